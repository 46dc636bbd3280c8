package prismgpu;

import java.util.BitSet;

import explicit.Model;
import explicit.StateValues;
import parser.ast.ExpressionLabel;

/** The labels that every model has. PRISM asks of each state whether it is among the few that have them. */
final class MarkedStates
{
	private MarkedStates()
	{
	}

	/** The states with a label; null for one of the program's. */
	static StateValues of(Model<?> model, ExpressionLabel label)
	{
		if (!label.isInitLabel() && !label.isDeadlockLabel())
			return null;
		BitSet states = new BitSet(model.getNumStates());
		for (int s : label.isInitLabel() ? model.getInitialStates() : model.getDeadlockStates())
			states.set(s);
		return StateValues.createFromBitSet(states, model);
	}
}
