package prismgpu;

import java.util.BitSet;

import explicit.CTMC;
import explicit.DTMC;
import explicit.ECComputerDefault;
import explicit.MDP;
import explicit.Model;
import explicit.SuccessorsIterator;
import explicit.modelviews.ModelView;
import prism.Prism;
import prism.PrismComponent;
import prism.PrismException;
import prism.PrismLog;

/** What the decompositions of graphs share: which of them are the engines', and how they are asked. */
final class Graphs
{
	private Graphs()
	{
	}

	/**
	 * Whether PRISM's own code decomposes a graph.
	 * @param task The decomposition
	 * @param caller Who asked for it
	 * @param within The states that it is about; null for all
	 */
	static boolean leftToPrism(String task, PrismComponent caller, Model<?> model, BitSet within, PrismLog log)
	{
		// A step of PRISM's own decomposition into end components is part of it.
		if (Hooks.backend == null || Hooks.exchange != null || caller instanceof ECComputerDefault)
			return true;
		long least = Hooks.backend.smallestGraph(task);
		if (isSmaller(model, within, least)) {
			if (Hooks.backend.showsSolves())
				Hooks.sayOnce(log, task + " of less than " + least + " states and transitions are found by PRISM's own code");
			return true;
		}
		return false;
	}

	/** Whether components go to a file, where alone their order is seen. */
	static boolean isExport(PrismComponent caller)
	{
		return caller instanceof Prism;
	}

	/** Whether there are fewer states and transitions than that. */
	private static boolean isSmaller(Model<?> model, BitSet within, long least)
	{
		int n = model.getNumStates();
		long size = within == null ? n : within.cardinality();
		int s = within == null ? 0 : within.nextSetBit(0);
		while (s >= 0 && s < n && size < least) {
			for (SuccessorsIterator successors = model.getSuccessors(s); successors.hasNext() && size < least; size++)
				successors.nextInt();
			s = within == null ? s + 1 : within.nextSetBit(s + 1);
		}
		return size < least;
	}

	/** A question about components of a model's graph. */
	static Problem problem(String task, Model<?> model, BitSet within, PrismLog log) throws PrismException
	{
		ModelSource source = source(model);
		Problem problem = new Problem(task, log, source).within(within);
		problem.graph = source instanceof GraphSource;
		// Its absorbing states have loops, which the CTMC's have not.
		problem.embedded = model instanceof DTMC && EmbeddedChain.is((DTMC<?>) model);
		return problem;
	}

	/** What is solved later is read whole, and once; of views and of other models the graph is enough. */
	private static ModelSource source(Model<?> model) throws PrismException
	{
		boolean solved = model instanceof DTMC || model instanceof MDP;
		if (!solved || model instanceof ModelView || !Hooks.answersGraphs(model))
			return new GraphSource(model);
		// A CTMC is a DTMC to Java.
		if (model instanceof CTMC || model instanceof MDP)
			return Extract.of(model);
		return EmbeddedChain.source(doubles(model));
	}

	@SuppressWarnings("unchecked")
	private static DTMC<Double> doubles(Model<?> model)
	{
		return (DTMC<Double>) model;
	}
}
