package prismgpu;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;

import explicit.DTMC;
import explicit.DTMCSimple;
import explicit.Model;
import prism.PrismException;
import prism.PrismLog;

/**
 * Transitions from one state to another that differ in their actions alone. PRISM's explicit engine keeps
 * them apart; the product with an automaton that it builds then has the last of them for all (4.10.2).
 */
final class ParallelTransitions
{
	/** The chain summed last, and the one that it was made of. */
	private static WeakReference<Model<?>> summed = new WeakReference<>(null);
	private static WeakReference<Model<?>> origin = new WeakReference<>(null);

	private ParallelTransitions()
	{
	}

	/** Returns a chain in which they are added up: the very same where there are none. */
	@SuppressWarnings("unchecked")
	static Model<?> addedUp(Model<?> model, PrismLog log) throws PrismException
	{
		if (!(model instanceof DTMC) || !(model.getEvaluator().one() instanceof Double))
			return model;
		DTMC<Double> chain = (DTMC<Double>) model;
		long parallel = count(chain);
		if (parallel == 0)
			return chain;
		DTMCSimple<Double> sums = new DTMCSimple<>(chain.getNumStates());
		sums.copyFrom(chain);
		for (int state = 0; state < chain.getNumStates(); state++)
			for (Iterator<Map.Entry<Integer, Double>> entries = chain.getTransitionsIterator(state); entries.hasNext();) {
				Map.Entry<Integer, Double> entry = entries.next();
				sums.addToProbability(state, entry.getKey(), entry.getValue());
			}
		log.println("prism-gpu: " + parallel + " transitions beside others between the same states are added up before the product is built");
		summed = new WeakReference<>(sums);
		origin = new WeakReference<>(model);
		return sums;
	}

	/** The model whose sums these are, for operators inside a formula: sums have no actions, which rewards are for. */
	static Model<?> original(Model<?> model)
	{
		Model<?> known = model == summed.get() ? origin.get() : null;
		return known == null ? model : known;
	}

	private static long count(DTMC<Double> chain)
	{
		int[] lastFrom = new int[chain.getNumStates()];
		Arrays.fill(lastFrom, -1);
		long parallel = 0;
		for (int state = 0; state < lastFrom.length; state++)
			for (Iterator<Map.Entry<Integer, Double>> entries = chain.getTransitionsIterator(state); entries.hasNext();) {
				int successor = entries.next().getKey();
				if (lastFrom[successor] == state)
					parallel++;
				lastFrom[successor] = state;
			}
		return parallel;
	}
}
