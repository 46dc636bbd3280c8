package prismgpu;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.IntFunction;

import explicit.Model;
import explicit.StateValues;
import parser.State;
import parser.type.Type;
import parser.type.TypeBool;
import parser.type.TypeDouble;
import prism.PrismException;
import prism.PrismLangException;

/**
 * Values of states that are numbers, or the same everywhere. PRISM makes an object of each, of which it most often
 * reads one; here they are made when all are to be changed.
 */
public final class UnboxedValues extends StateValues
{
	/** Null once the objects are made. */
	private IntFunction<Object> values;
	/** Null for what is the same everywhere, and once the objects are made. */
	private double[] numbers;

	private UnboxedValues(Type type, int size, List<State> statesList, IntFunction<Object> values)
	{
		this.type = type;
		this.size = size;
		this.statesList = statesList;
		this.values = values;
	}

	private UnboxedValues(double[] numbers, int size, List<State> statesList)
	{
		this(TypeDouble.getInstance(), size, statesList, i -> numbers[i]);
		this.numbers = numbers;
	}

	// In place of PRISM's.

	public static StateValues createFromSingleValue(Type type, Object value, Model<?> model) throws PrismException
	{
		if (type instanceof TypeBool)
			return StateValues.createFromSingleValue(type, value, model);
		return new UnboxedValues(type, model.getNumStates(), model.getStatesList(), i -> value);
	}

	public static StateValues createFromDoubleArray(double[] array, Model<?> model)
	{
		return new UnboxedValues(array.clone(), model.getNumStates(), model.getStatesList());
	}

	public static StateValues createFromDoubleArray(double[] array, List<State> statesList)
	{
		return new UnboxedValues(array.clone(), statesList.size(), statesList);
	}

	private void box()
	{
		if (values == null)
			return;
		valuesO = new Object[size];
		Arrays.setAll(valuesO, values);
		values = null;
		numbers = null;
	}

	@Override
	public Object getValue(int i)
	{
		return values == null ? super.getValue(i) : values.apply(i);
	}

	@Override
	public double[] getDoubleArray()
	{
		if (numbers != null && numbers.length == size)
			return numbers.clone();
		box();
		return super.getDoubleArray();
	}

	@Override
	public void clear()
	{
		values = null;
		numbers = null;
		super.clear();
	}

	@Override
	public void setValue(int i, Object value) throws PrismLangException
	{
		box();
		super.setValue(i, value);
	}

	@Override
	public void applyPredicate(Predicate predicate) throws PrismException
	{
		super.applyPredicate(predicate);
		values = null;
		numbers = null;
	}

	/** A number that follows itself is looked at once: most are 0 or 1. */
	@Override
	public BitSet getBitSetFromPredicate(Predicate predicate) throws PrismException
	{
		if (values == null || numbers == null)
			return super.getBitSetFromPredicate(predicate);
		BitSet states = new BitSet(size);
		boolean holds = false;
		for (int i = 0; i < size; i++) {
			if (i == 0 || Double.doubleToRawLongBits(numbers[i]) != Double.doubleToRawLongBits(numbers[i - 1]))
				holds = predicate.test(numbers[i]);
			states.set(i, holds);
		}
		return states;
	}

	@Override
	public void applyFunction(Type retType, UnaryFunction func) throws PrismException
	{
		box();
		super.applyFunction(retType, func);
	}

	@Override
	public void applyFunction(Type retType, UnaryFunction func, BitSet subset) throws PrismException
	{
		box();
		super.applyFunction(retType, func, subset);
	}

	@Override
	public void applyFunction(Type retType, BinaryFunction func, StateValues sv2) throws PrismException
	{
		box();
		super.applyFunction(retType, func, sv2);
	}

	@Override
	public void applyFunction(Type retType, BinaryFunction func, StateValues sv2, BitSet subset) throws PrismException
	{
		box();
		super.applyFunction(retType, func, sv2, subset);
	}

	@Override
	public void applyFunction(Type retType, TernaryFunction func, StateValues sv2, StateValues sv3) throws PrismException
	{
		box();
		super.applyFunction(retType, func, sv2, sv3);
	}

	@Override
	public void applyFunction(Type retType, TernaryFunction func, StateValues sv2, StateValues sv3, BitSet subset) throws PrismException
	{
		box();
		super.applyFunction(retType, func, sv2, sv3, subset);
	}

	@Override
	public StateValues deepCopy() throws PrismException
	{
		box();
		return super.deepCopy();
	}

	@Override
	public String toString()
	{
		box();
		return super.toString();
	}
}
