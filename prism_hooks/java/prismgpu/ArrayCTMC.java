package prismgpu;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.RandomAccess;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;

import explicit.CTMCSimple;
import explicit.ChoiceActionsSimple;
import explicit.DTMC;
import explicit.Distribution;
import explicit.SuccessorsIterator;
import prism.Evaluator;

/**
 * A CTMC that the engines have built, whose transitions lie in arrays once PRISM reads them. PRISM has no such
 * class, and its embedded and uniformised chains take a CTMCSimple: this is one whose lists are views of the
 * arrays. It cannot be changed.
 */
final class ArrayCTMC extends CTMCSimple<Double> implements Unread.Reader
{
	/** A list of computed elements. */
	private static final class View<T> extends AbstractList<T> implements RandomAccess
	{
		private final int size;
		private final IntFunction<T> element;

		private View(int size, IntFunction<T> element)
		{
			this.size = size;
			this.element = element;
		}

		@Override
		public int size()
		{
			return size;
		}

		@Override
		public T get(int index)
		{
			if (index < 0 || index >= size)
				throw new IndexOutOfBoundsException("element " + index + " of " + size);
			return element.apply(index);
		}
	}

	/** The actions of transitions, by their numbers. */
	private final class ArrayActions extends ChoiceActionsSimple
	{
		private final List<Object> names;
		private int[] numbers;

		private ArrayActions(List<Object> names)
		{
			this.names = names;
		}

		private int[] numbers()
		{
			if (numbers == null)
				numbers = held.actions();
			return numbers;
		}

		private Object named(int number)
		{
			return number < 0 ? null : names.get(number);
		}

		@Override
		public Object getAction(int s, int i)
		{
			return named(numbers()[rows()[s] + i]);
		}

		@Override
		public boolean onlyNullActionUsed()
		{
			return false;
		}

		@Override
		public List<Object> findActionsUsed(int numStates, IntUnaryOperator counts)
		{
			LinkedHashSet<Object> used = new LinkedHashSet<>();
			for (int number : numbers())
				used.add(named(number));
			return new ArrayList<>(used);
		}
	}

	/** The sum of a state's rates, which is all that PRISM's embedded chain asks for as it is made. */
	private static final class Exit extends Distribution<Double>
	{
		private final double rate;

		private Exit(double rate, Evaluator<Double> evaluator)
		{
			super(evaluator);
			this.rate = rate;
		}

		@Override
		public Double sum()
		{
			return rate;
		}
	}

	private final HeldModel held;
	private final int numTransitions;
	/** Null, like the others, until it is asked for. */
	private int[] rows;
	private int[] columns;
	private double[] rates;
	/** Whether an embedded chain is being made. */
	private boolean embedding;

	/** @param names Of the actions, by their numbers */
	ArrayCTMC(Construction built, List<Object> names)
	{
		held = built.held;
		numStates = built.numStates;
		numTransitions = built.numTransitions;
		succ = new View<>(numStates, s -> row(s, i -> columns()[i]));
		trans = new View<>(numStates, s -> row(s, i -> rates()[i]));
		if (built.hasActions)
			actions = new ArrayActions(names);
		Unread.note(built.id, this);
	}

	@Override
	public void read()
	{
		rows();
		columns();
		rates();
		if (actions instanceof ArrayActions)
			((ArrayActions) actions).numbers();
	}

	private int[] rows()
	{
		if (rows == null)
			rows = held.rowOffsets();
		return rows;
	}

	private int[] columns()
	{
		if (columns == null)
			columns = held.columns();
		return columns;
	}

	private double[] rates()
	{
		if (rates == null)
			rates = held.values();
		return rates;
	}

	@Override
	public int getNumTransitions()
	{
		return numTransitions;
	}

	@Override
	public int getNumTransitions(int s)
	{
		return rows()[s + 1] - rows()[s];
	}

	@Override
	public SuccessorsIterator getSuccessors(int s)
	{
		return SuccessorsIterator.from(Arrays.stream(columns(), rows()[s], rows()[s + 1]).iterator(), false);
	}

	@Override
	public void forEachTransition(int s, TransitionConsumer<Double> consumer)
	{
		forEachDoubleTransition(s, consumer::accept);
	}

	@Override
	public void forEachDoubleTransition(int s, DoubleTransitionConsumer consumer)
	{
		int last = rows()[s + 1];
		for (int i = rows()[s]; i < last; i++)
			consumer.accept(s, columns()[i], rates()[i]);
	}

	@Override
	public Double getExitRate(int s)
	{
		double sum = 0.0;
		int last = rows()[s + 1];
		for (int i = rows()[s]; i < last; i++)
			sum += rates()[i];
		return sum;
	}

	@Override
	public Double getMaxExitRate()
	{
		double most = 0.0;
		for (int s = 0; s < numStates; s++)
			most = Math.max(most, getExitRate(s));
		return most;
	}

	@Override
	public Distribution<Double> getTransitions(int s)
	{
		return embedding ? new Exit(getExitRate(s), getEvaluator()) : super.getTransitions(s);
	}

	@Override
	public DTMC<Double> getImplicitEmbeddedDTMC()
	{
		embedding = true;
		try {
			return super.getImplicitEmbeddedDTMC();
		} finally {
			embedding = false;
		}
	}

	private <T> List<T> row(int state, IntFunction<T> entry)
	{
		int first = rows()[state];
		return new View<>(rows()[state + 1] - first, i -> entry.apply(first + i));
	}
}
