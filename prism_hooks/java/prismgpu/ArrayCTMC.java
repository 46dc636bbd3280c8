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
 * A CTMC whose transitions lie in arrays. PRISM has no such class, and its embedded and uniformised chains
 * take a CTMCSimple: this is one whose lists are views of the arrays. It cannot be changed.
 */
final class ArrayCTMC extends CTMCSimple<Double>
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

	/** The actions of transitions in an array. */
	private static final class ArrayActions extends ChoiceActionsSimple
	{
		private final int[] rows;
		private final Object[] ofTransitions;

		private ArrayActions(int[] rows, Object[] ofTransitions)
		{
			this.rows = rows;
			this.ofTransitions = ofTransitions;
		}

		@Override
		public Object getAction(int s, int i)
		{
			return ofTransitions[rows[s] + i];
		}

		@Override
		public boolean onlyNullActionUsed()
		{
			return false;
		}

		@Override
		public List<Object> findActionsUsed(int numStates, IntUnaryOperator counts)
		{
			return new ArrayList<>(new LinkedHashSet<>(Arrays.asList(ofTransitions)));
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

	private final int[] rows;
	private final int[] columns;
	private final double[] rates;
	/** Whether an embedded chain is being made. */
	private boolean embedding;

	/** @param ofTransitions The transitions' actions; null where none has one */
	ArrayCTMC(int[] rows, int[] columns, double[] rates, Object[] ofTransitions)
	{
		this.rows = rows;
		this.columns = columns;
		this.rates = rates;
		numStates = rows.length - 1;
		succ = new View<>(numStates, s -> row(rows, s, i -> columns[i]));
		trans = new View<>(numStates, s -> row(rows, s, i -> rates[i]));
		if (ofTransitions != null)
			actions = new ArrayActions(rows, ofTransitions);
	}

	@Override
	public int getNumTransitions()
	{
		return columns.length;
	}

	@Override
	public int getNumTransitions(int s)
	{
		return rows[s + 1] - rows[s];
	}

	@Override
	public SuccessorsIterator getSuccessors(int s)
	{
		return SuccessorsIterator.from(Arrays.stream(columns, rows[s], rows[s + 1]).iterator(), false);
	}

	@Override
	public void forEachTransition(int s, TransitionConsumer<Double> consumer)
	{
		forEachDoubleTransition(s, consumer::accept);
	}

	@Override
	public void forEachDoubleTransition(int s, DoubleTransitionConsumer consumer)
	{
		for (int i = rows[s]; i < rows[s + 1]; i++)
			consumer.accept(s, columns[i], rates[i]);
	}

	@Override
	public Double getExitRate(int s)
	{
		double sum = 0.0;
		for (int i = rows[s]; i < rows[s + 1]; i++)
			sum += rates[i];
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

	private static <T> List<T> row(int[] rows, int state, IntFunction<T> entry)
	{
		int first = rows[state];
		return new View<>(rows[state + 1] - first, i -> entry.apply(first + i));
	}
}
