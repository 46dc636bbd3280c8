package prismgpu;

import java.util.Locale;

import jdd.JDDNode;
import odd.ODDNode;
import prism.ModelType;
import prism.PrismException;
import prism.PrismLog;
import symbolic.model.ModelSymbolic;

/**
 * Searches for probabilities 0 and 1 in the graph of a symbolic model. They begin as PRISM's, on the
 * diagram, with all states of a round at a time. Where the rounds are many that takes longer than any
 * solve; then the graph is written out, and each of its edges looked at once.
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

	/** Whether these are the transitions of the model at work, and our engines answer at all. */
	static boolean concerns(JDDNode trans01)
	{
		return model != null && Symbolic.answersOnDiagrams() && trans01.equals(model.getTrans01());
	}

	/**
	 * Finds the states where an until has probability 0 or 1.
	 * @param name What PRISM calls the search
	 * @param search The search on the diagram, given up here
	 * @param task The same as a question to the engines
	 * @param min Whether it is about the smallest probability; does not matter for a Markov chain
	 */
	static JDDNode run(String name, DiagramSearch search, String task, boolean min)
	{
		PrismLog log = Symbolic.prism.getMainLog();
		long begun = System.nanoTime();
		Hooks.searched();
		try {
			long modelId = SymbolicModel.idOf(model.getModelType().toString(), model.getTrans(), model.getODD());
			if (!search.run(Hooks.backend.searchSeconds(model.getNumTransitionsLong(), modelId))) {
				JDDNode found = isSmall() ? writtenOut(name, search, task, min) : null;
				if (found != null)
					return found;
				search.run(Double.POSITIVE_INFINITY);
			}
			double seconds = (System.nanoTime() - begun) / 1e9;
			String line = "\n%s: %d iterations in %.2f seconds (average %.6f, setup %.2f)";
			log.println(String.format(Locale.ROOT, line, name, search.rounds, seconds, seconds / search.rounds, 0.0));
			return search.result();
		} finally {
			search.clear();
		}
	}

	private static boolean isSmall()
	{
		ODDNode odd = model.getODD();
		return odd != null && odd.getNumStates() <= Integer.MAX_VALUE && model.getNumTransitionsLong() <= MOST_TRANSITIONS;
	}

	private static JDDNode writtenOut(String name, DiagramSearch search, String task, boolean min)
	{
		PrismLog log = Symbolic.prism.getMainLog();
		try {
			long begun = System.nanoTime();
			Problem problem = Symbolic.about(task, model);
			if (model.getModelType() == ModelType.MDP)
				problem.choosing(min);
			problem.parts.states = new Diagram(search.b2);
			problem.parts.remain = new Diagram(search.b1);
			JDDNode found = BitDiagrams.answer(problem, log, model.getAllDDRowVars(), model.getODD());
			if (found != null) {
				String line = "\nprism-gpu: %s, edge by edge, took %.3f seconds, after %d iterations on the diagram";
				log.println(String.format(Locale.ROOT, line, name, (System.nanoTime() - begun) / 1e9, search.rounds));
			}
			return found;
		} catch (PrismException e) {
			Hooks.handBack(log, task + " (" + e.getMessage() + ")");
			return null;
		}
	}
}
