package prismgpu;

import java.util.Locale;

import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import prism.ModelType;
import prism.Prism;
import prism.PrismException;
import prism.PrismLog;
import symbolic.model.ModelSymbolic;

/**
 * Searches in the graph of a symbolic model: for its reachable states, and for probabilities 0 and 1. They begin as
 * PRISM's, on the diagram, with all states of a round at a time. Where the rounds are many those for probabilities take
 * longer than any solve; then the graph is written out, and each of its edges looked at once.
 */
final class GraphSearch
{
	/** Larger graphs are not written out for a search, nor for their components. */
	static final long MOST_TRANSITIONS = 200_000_000;

	/** The model of the checker at work. */
	private static ModelSymbolic model;

	private GraphSearch()
	{
	}

	/** Runs a checker's work on its model. */
	static <T> T in(ModelSymbolic model, Hooks.Work<T> work) throws PrismException
	{
		ModelSymbolic outer = GraphSearch.model;
		GraphSearch.model = model;
		try {
			return work.run();
		} finally {
			GraphSearch.model = outer;
		}
	}

	/** PRISM's own search. */
	interface Own
	{
		JDDNode run();
	}

	/** Finds the states that are reachable. */
	static JDDNode reachable(SearchInput input, Own own)
	{
		Prism prism = Symbolic.prism;
		boolean ours = Symbolic.answersOnDiagrams() && prism.getReachMethod() == Prism.REACH_BFS && !prism.getExtraReachInfo();
		DiagramSearch search = ours ? Hooks.backend.search(input) : null;
		if (search == null)
			return own.run();
		long begun = System.nanoTime();
		try {
			JDDNode found = search.run(Double.POSITIVE_INFINITY) ? SearchInput.resultOf(search) : null;
			if (found == null)
				return own.run();
			sayRounds(prism.getMainLog(), "Reachability (BFS)", search.rounds(), begun);
			return found;
		} finally {
			search.clear();
		}
	}

	/**
	 * Finds the states that are not bound to reach b2 through b1.
	 * @param name What PRISM calls the search
	 * @param mask Where there are no choices, if each choice must lead there; null if one is enough
	 * @param nd Null for a Markov chain
	 */
	static JDDNode prob0(String name, JDDNode trans01, JDDNode reach, JDDNode mask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, Own own)
	{
		if (!concerns(trans01))
			return own.run();
		return run(name, SearchInput.unreaching(trans01, reach, mask, rows, cols, nd, b1, b2), "prob0", mask != null, b1, b2, own);
	}

	/** Finds the states from which some strategy reaches b2 through b1 with probability 1. @param no Where the probability is 0 under each strategy */
	static JDDNode prob1(String name, JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no, Own own)
	{
		if (!concerns(trans01))
			return own.run();
		return run(name, SearchInput.sure(trans01, reach, rows, cols, nd, b1, b2, no), "prob1", false, b1, b2, own);
	}

	/** Whether these are the transitions of the model at work, and our engines answer at all. */
	private static boolean concerns(JDDNode trans01)
	{
		return model != null && Symbolic.answersOnDiagrams() && trans01.equals(model.getTrans01());
	}

	/**
	 * Searches on the diagram, and where that takes long edge by edge.
	 * @param task The same as a question to the engines
	 * @param min Whether it is about the smallest probability; does not matter for a Markov chain
	 */
	private static JDDNode run(String name, SearchInput input, String task, boolean min, JDDNode b1, JDDNode b2, Own own)
	{
		PrismLog log = Symbolic.prism.getMainLog();
		DiagramSearch search = Hooks.backend.search(input);
		if (search == null) {
			Hooks.handBack(log, "a search on diagrams, whose library hides its functions,");
			return own.run();
		}
		long begun = System.nanoTime();
		Hooks.searched();
		try {
			long modelId = SymbolicModel.idOf(model.getModelType().toString(), model.getTrans(), model.getODD());
			boolean complete = search.run(Hooks.backend.searchSteps(model.getNumTransitionsLong(), modelId));
			if (!complete) {
				JDDNode found = isSmall() ? writtenOut(name, search.rounds(), task, min, b1, b2, begun) : null;
				if (found != null)
					return found;
				complete = !search.failed() && search.run(Double.POSITIVE_INFINITY);
			}
			JDDNode found = complete ? SearchInput.resultOf(search) : null;
			if (found == null) {
				Hooks.handBack(log, "a search on diagrams, for which there is too little memory (-cuddmaxmem),");
				return own.run();
			}
			sayRounds(log, name, search.rounds(), begun);
			return found;
		} finally {
			search.clear();
		}
	}

	/** Prints PRISM's line on a search on diagrams. */
	private static void sayRounds(PrismLog log, String name, int rounds, long begun)
	{
		double seconds = (System.nanoTime() - begun) / 1e9;
		String line = "\n%s: %d iterations in %.2f seconds (average %.6f, setup %.2f)";
		log.println(String.format(Locale.ROOT, line, name, rounds, seconds, seconds / rounds, 0.0));
	}

	private static boolean isSmall()
	{
		ODDNode odd = model.getODD();
		return odd != null && odd.getNumStates() <= Integer.MAX_VALUE && model.getNumTransitionsLong() <= MOST_TRANSITIONS;
	}

	private static JDDNode writtenOut(String name, int rounds, String task, boolean min, JDDNode b1, JDDNode b2, long start)
	{
		PrismLog log = Symbolic.prism.getMainLog();
		try {
			long begun = System.nanoTime();
			Problem problem = Symbolic.about(task, model);
			if (model.getModelType() == ModelType.MDP)
				problem.choosing(min);
			problem.parts.states = new Diagram(b2);
			problem.parts.remain = new Diagram(b1);
			JDDNode found = BitDiagrams.answer(problem, log, model.getAllDDRowVars(), model.getODD());
			if (found != null && Hooks.backend.showsSolves()) {
				String line = "\nprism-gpu: %s, edge by edge, took %.3f seconds, after %d iterations on the diagram";
				log.println(String.format(Locale.ROOT, line, name, (System.nanoTime() - begun) / 1e9, rounds));
			}
			// Where they are not counted, all that is left takes one round.
			if (found != null)
				sayRounds(log, name, problem.iterations > 0 ? problem.iterations : rounds + 1, start);
			return found;
		} catch (PrismException e) {
			Hooks.handBack(log, task + " (" + e.getMessage() + ")");
			return null;
		}
	}
}
