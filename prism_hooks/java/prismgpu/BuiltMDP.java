package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;

import explicit.MDPSparse;

/** An MDP that the engines have built. */
final class BuiltMDP extends MDPSparse
{
	/** The action of each choice as a place in the names, or -1; null where there are none. */
	private final int[] numbers;
	private final List<Object> names;
	/** Whether the probabilities of each choice sum to 1 but for rounding. */
	final boolean sumsToOne;

	/** @param names Of the actions, by their numbers */
	BuiltMDP(Construction built, List<Object> names)
	{
		initialise(built.numStates);
		rowStarts = built.held.groupOffsets();
		choiceStarts = built.held.rowOffsets();
		cols = built.held.columns();
		nonZeros = built.held.values();
		numDistrs = choiceStarts.length - 1;
		numTransitions = cols.length;
		maxNumDistrs = built.mostChoices;
		numbers = built.hasActions ? built.held.actions() : null;
		this.names = names;
		sumsToOne = built.sumsToOne;
	}

	@Override
	public List<Object> findActionsUsed()
	{
		LinkedHashSet<Object> used = new LinkedHashSet<>();
		for (int choice = 0; choice < numDistrs; choice++)
			used.add(named(choice));
		return new ArrayList<>(used);
	}

	@Override
	public boolean onlyNullActionUsed()
	{
		return numbers == null;
	}

	@Override
	public Object getAction(int s, int i)
	{
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
}
