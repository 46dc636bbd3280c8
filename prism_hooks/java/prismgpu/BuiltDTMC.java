package prismgpu;

import java.lang.reflect.Field;
import java.util.BitSet;
import java.util.List;

import explicit.DTMCSparse;

/** A DTMC that the engines have built. */
final class BuiltDTMC extends DTMCSparse
{
	/** Whether the probabilities of each row sum to 1 but for rounding. */
	final boolean sumsToOne;

	/** @param names Of the actions, by their numbers */
	BuiltDTMC(Construction built, List<Object> names)
	{
		this(built);
		set("actions", built.hasActions ? named(built.held.actions(), names) : null);
	}

	/** Without actions. */
	BuiltDTMC(Built built)
	{
		initialise(built.numStates);
		set("rows", built.arrays().rowOffsets());
		set("columns", built.arrays().columns());
		set("probabilities", built.arrays().values());
		sumsToOne = built.sumsToOne;
	}

	private static Object[] named(int[] numbers, List<Object> names)
	{
		Object[] actions = new Object[numbers.length];
		for (int i = 0; i < numbers.length; i++) {
			if (numbers[i] >= 0)
				actions[i] = names.get(numbers[i]);
		}
		return actions;
	}

	/** PRISM makes such a chain of other models only. */
	private void set(String name, Object value)
	{
		try {
			Field field = DTMCSparse.class.getDeclaredField(name);
			field.setAccessible(true);
			field.set(this, value);
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException("the arrays of " + DTMCSparse.class.getName() + " cannot be set", e);
		}
	}

	@Override
	public void checkForDeadlocks(BitSet except)
	{
		// Each state has a transition: it was given one where it had none.
	}
}
