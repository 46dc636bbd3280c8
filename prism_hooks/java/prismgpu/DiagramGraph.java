package prismgpu;

import java.io.FileNotFoundException;
import java.util.ArrayList;
import java.util.List;

import dv.DoubleVector;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import odd.ODDUtils;
import prism.PrismException;
import prism.PrismLog;

/** A graph in a diagram whose components the engines find, edge by edge. */
final class DiagramGraph
{
	/** In smaller graphs PRISM's own searches do not take long, as a rule. */
	static final long FEWEST_STATES = 50_000;
	/** The same of searches for end components: PRISM's go through all states again for each one that they take away. */
	static final long FEWEST_STATES_OF_END_COMPONENTS = 10_000;
	/** The same of those of which the states alone are wanted. */
	static final long FEWEST_STATES_OF_SETS = 2_000;
	/** Each component becomes a diagram of its own. */
	private static final int MOST_COMPONENTS = 10_000;

	/** Whether components go to a file, where their order is seen. */
	private static boolean exporting;

	/** The graph that was asked for last: of an LTL formula's product, one question after the other is asked. */
	private static DiagramGraph last;

	private final JDDNode trans01;
	private final JDDNode reach;
	private final JDDVars rows;
	private final ODDNode odd;
	private final SymbolicModel source;
	final long transitions;

	private DiagramGraph(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, ODDNode odd, long transitions)
	{
		this.trans01 = trans01.copy();
		this.reach = reach.copy();
		this.rows = rows;
		this.odd = odd;
		this.transitions = transitions;
		source = SymbolicModel.ofPart(nd == null ? "CTMC" : "MDP", trans01, odd, rows, cols, nd);
	}

	/**
	 * The graph, or null where PRISM's own code is to look for its components.
	 * @param nd Null where there are no choices
	 * @param fewestStates Smaller graphs are left to PRISM
	 */
	static DiagramGraph of(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, long fewestStates) throws PrismException
	{
		if (!Symbolic.answersOnDiagrams())
			return null;
		boolean same = !exporting && last != null && last.trans01.equals(trans01) && last.reach.equals(reach);
		if (same)
			return last;
		int variables = rows.n() + cols.n() + (nd == null ? 0 : nd.n());
		double states = JDD.GetNumMinterms(reach, rows.n());
		long transitions = (long) JDD.GetNumMinterms(trans01, variables);
		boolean every = Hooks.backend.searchSteps(transitions, SymbolicModel.NO_ID) == 0.0;
		boolean small = states < fewestStates && !every;
		if (small || states > Integer.MAX_VALUE || transitions > GraphSearch.MOST_TRANSITIONS)
			return null;
		// What is given without choices is a whole model; of a part of one, edges may be cut off.
		if (nd != null && !isClosed(trans01, reach, rows, cols))
			return null;
		if (exporting) {
			Hooks.handBack(Symbolic.prism.getMainLog(), "an export of components");
			return null;
		}
		ODDNode odd = ODDUtils.BuildODD(reach, rows);
		if (odd == null)
			return null;
		forget();
		last = new DiagramGraph(trans01, reach, rows, cols, nd, odd, transitions);
		return last;
	}

	/** Work that writes to a file. */
	interface Export
	{
		void run() throws FileNotFoundException, PrismException;
	}

	/** Exports components in PRISM's own order. */
	static void export(Export work) throws FileNotFoundException, PrismException
	{
		exporting = true;
		try {
			work.run();
		} finally {
			exporting = false;
		}
	}

	/** Gives up what is kept; to be called before PRISM closes its diagrams' library or builds anew. */
	static void forget()
	{
		if (last == null)
			return;
		JDD.Deref(last.trans01, last.reach);
		last.source.release();
		ODDUtils.ClearODD(last.odd);
		last = null;
	}

	/** Whether no edge begins or ends outside of the states. */
	private static boolean isClosed(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols)
	{
		// One after the other: all pairs of states are often a far larger diagram.
		return isWithin(trans01, reach.copy()) && isWithin(trans01, JDD.PermuteVariables(reach.copy(), rows, cols));
	}

	/** @param states Given up */
	private static boolean isWithin(JDDNode trans01, JDDNode states)
	{
		JDDNode outside = JDD.And(trans01.copy(), JDD.Not(states));
		boolean within = outside.equals(JDD.ZERO);
		JDD.Deref(outside);
		return within;
	}

	/** Bottom strongly connected components that are no single state without a loop. */
	Found bottomComponents(PrismLog log) throws PrismException
	{
		Problem problem = problem("bottom components", log);
		return found(problem, log);
	}

	/**
	 * Maximal end components.
	 * @param within The states that they lie in; null for all
	 * @param accept States of which each is to have one; null for no matter
	 */
	Found endComponents(JDDNode within, JDDNode accept, PrismLog log) throws PrismException
	{
		return found(problem("end components", within, accept, log), log);
	}

	/**
	 * The states of maximal end components as one diagram, to be given up; null where PRISM's own code is to find them.
	 * @param within The states that they lie in; null for all
	 * @param accept States of which each is to have one; null for no matter
	 */
	JDDNode endComponentStates(JDDNode within, JDDNode accept, PrismLog log) throws PrismException
	{
		return BitDiagrams.answer(problem("states of end components", within, accept, log), log, rows, odd);
	}

	private Problem problem(String task, JDDNode within, JDDNode accept, PrismLog log)
	{
		Problem problem = problem(task, log);
		problem.parts.remain = within == null ? null : new Diagram(within);
		problem.parts.states = accept == null ? null : new Diagram(accept);
		return problem;
	}

	private Problem problem(String task, PrismLog log)
	{
		Problem problem = new Problem(task, log, source);
		problem.parts = new SymbolicParts(trans01);
		return problem;
	}

	private Found found(Problem problem, PrismLog log) throws PrismException
	{
		DoubleVector numbers = new DoubleVector(problem.numStates);
		try {
			problem.parts.solutionAddress = numbers.getPtr();
			if (!Hooks.answered(problem, log))
				return null;
			if (problem.numComponents > MOST_COMPONENTS) {
				Hooks.handBack(log, "a list of " + problem.numComponents + " components in diagrams");
				return null;
			}
			return new Found(numbers.convertToMTBDD(rows, odd), problem);
		} finally {
			numbers.clear();
		}
	}

	/** Components, each a diagram. */
	final class Found
	{
		/** To be given up by who asks. */
		final List<JDDNode> components = new ArrayList<>();
		/** The states that are in none of them; to be given up. */
		final JDDNode rest;
		/** How many strongly connected components there are, bottom ones or not. */
		final int numStrong;

		/** @param numbers The number of each state's component from 1 on, or 0; given up */
		private Found(JDDNode numbers, Problem problem)
		{
			for (int number = 1; number <= problem.numComponents; number++)
				components.add(JDD.Interval(numbers.copy(), number - 0.5, number + 0.5));
			rest = JDD.And(reach.copy(), JDD.Not(JDD.GreaterThan(numbers, 0.5)));
			numStrong = problem.numStrong;
		}
	}
}
