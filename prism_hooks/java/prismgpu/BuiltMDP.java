package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map.Entry;

import explicit.MDPSparse;
import explicit.SuccessorsIterator;
import explicit.rewards.MCRewards;
import explicit.rewards.MDPRewards;
import prism.PrismException;

/** An MDP that the engines have built: PRISM's, whose arrays it gets as soon as its transitions are asked for. */
class BuiltMDP extends MDPSparse implements Unread.Reader
{
	/** Whether the probabilities of each choice sum to 1 but for rounding. */
	final boolean sumsToOne;
	private final HeldArrays held;
	/** Null where there are no actions. */
	private final HeldModel actions;
	private final List<Object> names;
	/** The action of each choice as a place in the names, or -1; null until it is asked for, and where there are none. */
	private int[] numbers;

	/** @param names Of the actions, by their numbers */
	BuiltMDP(Construction built, List<Object> names)
	{
		this(built, built.hasActions ? built.held : null, names);
	}

	/** Without actions of its own. */
	BuiltMDP(Built built)
	{
		this(built, null, null);
	}

	private BuiltMDP(Built built, HeldModel actions, List<Object> names)
	{
		initialise(built.numStates);
		numDistrs = built.numChoices;
		numTransitions = built.numTransitions;
		maxNumDistrs = built.mostChoices;
		sumsToOne = built.sumsToOne;
		held = built.arrays();
		this.actions = actions;
		this.names = names;
		Unread.note(built.id, this);
	}

	@Override
	public void read()
	{
		if (nonZeros != null)
			return;
		rowStarts = held.groupOffsets();
		choiceStarts = held.rowOffsets();
		cols = held.columns();
		numbers = actions == null ? null : actions.actions();
		nonZeros = held.values();
	}

	@Override
	public List<Object> findActionsUsed()
	{
		read();
		LinkedHashSet<Object> used = new LinkedHashSet<>();
		for (int choice = 0; choice < numDistrs; choice++)
			used.add(named(choice));
		return new ArrayList<>(used);
	}

	@Override
	public boolean onlyNullActionUsed()
	{
		return actions == null;
	}

	@Override
	public Object getAction(int s, int i)
	{
		read();
		return i < 0 ? null : named(rowStarts[s] + i);
	}

	private Object named(int choice)
	{
		return numbers == null || numbers[choice] < 0 ? null : names.get(numbers[choice]);
	}

	@Override
	public void checkForDeadlocks(BitSet except)
	{
		// Each state has a choice: it was given one where it had none.
	}

	// PRISM's, which read the arrays.

	@Override
	public int getNumTransitions(int s)
	{
		read();
		return super.getNumTransitions(s);
	}

	@Override
	public SuccessorsIterator getSuccessors(int s)
	{
		read();
		return super.getSuccessors(s);
	}

	@Override
	public void findDeadlocks(boolean fix) throws PrismException
	{
		read();
		super.findDeadlocks(fix);
	}

	@Override
	public int getNumChoices(int s)
	{
		read();
		return super.getNumChoices(s);
	}

	@Override
	public SuccessorsIterator getSuccessors(int s, int i)
	{
		read();
		return super.getSuccessors(s, i);
	}

	@Override
	public int getNumTransitions(int s, int i)
	{
		read();
		return super.getNumTransitions(s, i);
	}

	@Override
	public void forEachTransition(int s, int i, TransitionConsumer<Double> c)
	{
		read();
		super.forEachTransition(s, i, c);
	}

	@Override
	public void forEachDoubleTransition(int s, int i, DoubleTransitionConsumer c)
	{
		read();
		super.forEachDoubleTransition(s, i, c);
	}

	@Override
	public Iterator<Entry<Integer, Double>> getTransitionsIterator(int s, int i)
	{
		read();
		return super.getTransitionsIterator(s, i);
	}

	@Override
	public void prob0step(BitSet subset, BitSet u, boolean forall, BitSet result)
	{
		read();
		super.prob0step(subset, u, forall, result);
	}

	@Override
	public void prob1Astep(BitSet subset, BitSet u, BitSet v, BitSet result)
	{
		read();
		super.prob1Astep(subset, u, v, result);
	}

	@Override
	public void prob1Estep(BitSet subset, BitSet u, BitSet v, BitSet result, int[] strat)
	{
		read();
		super.prob1Estep(subset, u, v, result, strat);
	}

	@Override
	public void prob1step(BitSet subset, BitSet u, BitSet v, boolean forall, BitSet result)
	{
		read();
		super.prob1step(subset, u, v, forall, result);
	}

	@Override
	public boolean prob1stepSingle(int s, int i, BitSet u, BitSet v)
	{
		read();
		return super.prob1stepSingle(s, i, u, v);
	}

	@Override
	public double mvMultMinMaxSingle(int s, double[] vect, boolean min, int[] strat)
	{
		read();
		return super.mvMultMinMaxSingle(s, vect, min, strat);
	}

	@Override
	public List<Integer> mvMultMinMaxSingleChoices(int s, double[] vect, boolean min, double val)
	{
		read();
		return super.mvMultMinMaxSingleChoices(s, vect, min, val);
	}

	@Override
	public double mvMultSingle(int s, int i, double[] vect)
	{
		read();
		return super.mvMultSingle(s, i, vect);
	}

	@Override
	public double mvMultJacMinMaxSingle(int s, double[] vect, boolean min, int[] strat)
	{
		read();
		return super.mvMultJacMinMaxSingle(s, vect, min, strat);
	}

	@Override
	public double mvMultJacSingle(int s, int i, double[] vect)
	{
		read();
		return super.mvMultJacSingle(s, i, vect);
	}

	@Override
	public double mvMultRewMinMaxSingle(int s, double[] vect, MDPRewards<Double> mdpRewards, boolean min, int[] strat)
	{
		read();
		return super.mvMultRewMinMaxSingle(s, vect, mdpRewards, min, strat);
	}

	@Override
	public double mvMultRewSingle(int s, int i, double[] vect, MCRewards<Double> mcRewards)
	{
		read();
		return super.mvMultRewSingle(s, i, vect, mcRewards);
	}

	@Override
	public double mvMultRewJacMinMaxSingle(int s, double[] vect, MDPRewards<Double> mdpRewards, boolean min, int[] strat)
	{
		read();
		return super.mvMultRewJacMinMaxSingle(s, vect, mdpRewards, min, strat);
	}

	@Override
	public List<Integer> mvMultRewMinMaxSingleChoices(int s, double[] vect, MDPRewards<Double> mdpRewards, boolean min, double val)
	{
		read();
		return super.mvMultRewMinMaxSingleChoices(s, vect, mdpRewards, min, val);
	}

	@Override
	public void mvMultRight(int[] states, int[] strat, double[] source, double[] dest)
	{
		read();
		super.mvMultRight(states, strat, source, dest);
	}

	@Override
	public String toString()
	{
		read();
		return super.toString();
	}

	@Override
	public boolean equals(Object other)
	{
		read();
		if (other instanceof BuiltMDP)
			((BuiltMDP) other).read();
		return super.equals(other);
	}
}
