import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

import explicit.DTMC;
import explicit.MDP;
import explicit.Model;
import parser.State;

/** What PRISM tells of a model object by object, as arrays. */
public final class ModelArrays
{
	private ModelArrays()
	{
	}

	/** The values of the variables of each state, one state after the other. */
	public static int[] states(Model<?> model)
	{
		List<State> states = model.getStatesList();
		int[] values = new int[states.size() * (states.isEmpty() ? 0 : states.get(0).varValues.length)];
		int size = 0;
		for (State state : states) {
			for (Object value : state.varValues)
				values[size++] = value instanceof Boolean ? ((Boolean) value ? 1 : 0) : (Integer) value;
		}
		return values;
	}

	/** The place among some names of the action of each choice, of each transition of a chain; -1 for none. */
	public static int[] actions(Model<?> model, List<String> names)
	{
		int[] places = new int[16];
		int size = 0;
		for (int s = 0; s < model.getNumStates(); s++) {
			Iterator<?> ofChain = model instanceof DTMC ? ((DTMC<?>) model).getActionsIterator(s) : null;
			int count = ofChain == null ? ((MDP<?>) model).getNumChoices(s) : model.getNumTransitions(s);
			for (int i = 0; i < count; i++) {
				Object action = ofChain == null ? ((MDP<?>) model).getAction(s, i) : ofChain.next();
				if (size == places.length)
					places = Arrays.copyOf(places, 2 * size);
				places[size++] = action == null ? -1 : names.indexOf(action.toString());
			}
		}
		return Arrays.copyOf(places, size);
	}
}
