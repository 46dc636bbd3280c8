package prismgpu;

import java.util.AbstractList;
import java.util.RandomAccess;

import explicit.Model;
import explicit.StateValues;
import parser.State;
import parser.VarList;
import parser.ast.ExpressionVar;
import parser.type.TypeBool;
import prism.PrismException;

/** The states of a model in words of bits; a State is made each time that one is asked for. */
final class PackedStates extends AbstractList<State> implements RandomAccess, Unread.Reader
{
	private final long modelId;
	private final int size;
	private final int width;
	private final HeldModel held;
	/** Null until they are asked for. */
	private long[] words;
	private final int[] fieldWords;
	private final int[] shifts;
	private final long[] masks;
	private final int[] lows;
	private final boolean[] isBool;

	PackedStates(Construction built, VarList variables)
	{
		modelId = built.id;
		size = built.numStates;
		width = built.words;
		held = built.held;
		fieldWords = built.fieldWords;
		shifts = built.shifts;
		masks = built.masks;
		lows = built.lows;
		isBool = new boolean[lows.length];
		for (int v = 0; v < isBool.length; v++)
			isBool[v] = variables.getType(v) instanceof TypeBool;
		Unread.note(built.id, this);
	}

	/** The model whose states they are, for questions about these. */
	ModelSource source()
	{
		return new ModelSource(modelId, "states", size)
		{
			@Override
			void read()
			{
				PackedStates.this.read();
			}
		};
	}

	@Override
	public void read()
	{
		if (words == null)
			words = held.states();
	}

	@Override
	public int size()
	{
		return size;
	}

	@Override
	public State get(int index)
	{
		if (index < 0 || index >= size)
			throw new IndexOutOfBoundsException("state " + index + " of " + size);
		State state = new State(lows.length);
		for (int v = 0; v < lows.length; v++)
			state.setValue(v, value(index, v));
		return state;
	}

	/** The values of a variable in the states of a model; null where they are not packed. */
	static StateValues values(Model<?> model, ExpressionVar variable) throws PrismException
	{
		if (!(model.getStatesList() instanceof PackedStates))
			return null;
		PackedStates states = (PackedStates) model.getStatesList();
		return StateValues.create(variable.getType(), s -> states.value(s, variable.getIndex()), model);
	}

	private Object value(int state, int variable)
	{
		read();
		long word = words[state * width + fieldWords[variable]];
		return value(isBool[variable], (int) ((word >>> shifts[variable] & masks[variable]) + lows[variable]));
	}

	/** A state whose variables have such values. */
	static State of(int[] values, VarList variables)
	{
		State state = new State(values.length);
		for (int v = 0; v < values.length; v++)
			state.setValue(v, value(variables.getType(v) instanceof TypeBool, values[v]));
		return state;
	}

	private static Object value(boolean isBool, int value)
	{
		return isBool ? (Object) (value != 0) : (Object) value;
	}
}
