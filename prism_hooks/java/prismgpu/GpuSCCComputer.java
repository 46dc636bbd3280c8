package prismgpu;

import java.util.BitSet;
import java.util.function.IntPredicate;

import explicit.Model;
import explicit.SCCComputer;
import explicit.SCCComputerTarjan;
import explicit.SCCConsumer;
import explicit.SCCConsumerBitSet;
import prism.PrismComponent;
import prism.PrismException;

/**
 * Strongly connected components of any explicit model.
 *
 * For a consumer that is a topological order each comes after those that it may enter; one that
 * collects sets gets them by their smallest states, which is not the order of PRISM's search.
 */
public class GpuSCCComputer extends SCCComputer
{
	private static final String TASK = "strong components";

	private final PrismComponent caller;
	private final Model<?> model;

	public GpuSCCComputer(PrismComponent parent, Model<?> model, SCCConsumer consumer) throws PrismException
	{
		super(parent, consumer);
		caller = parent;
		this.model = model;
	}

	@Override
	public void computeSCCs(boolean filterTrivialSCCs, IntPredicate restrict) throws PrismException
	{
		ComponentList components = find(filterTrivialSCCs, restrict);
		if (components == null) {
			new SCCComputerTarjan(this, model, consumer).computeSCCs(filterTrivialSCCs, restrict);
			return;
		}
		consumer.notifyStart(model);
		components.report(consumer);
		consumer.notifyDone();
	}

	/** @return null if PRISM's own code must find them */
	private ComponentList find(boolean filterTrivialSCCs, IntPredicate restrict) throws PrismException
	{
		BitSet within = restrict == null ? null : new BitSet();
		for (int s = 0; within != null && s < model.getNumStates(); s++)
			within.set(s, restrict.test(s));
		if (Graphs.leftToPrism(TASK, caller, model, within, mainLog))
			return null;
		if (Graphs.isExport(caller)) {
			// Writing them takes longer, and PRISM's order is kept.
			Hooks.handBack(mainLog, "an export of " + TASK);
			return null;
		}
		Problem problem = Graphs.problem(TASK, model, within, mainLog);
		problem.withTrivial = !filterTrivialSCCs;
		problem.inOrder = !(consumer instanceof SCCConsumerBitSet);
		return Hooks.components(problem, mainLog);
	}
}
