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

	/** @param ofTransitions The transitions' actions; null where none has one */
	ArrayCTMC(int[] rows, int[] columns, double[] rates, Object[] ofTransitions)
	{
		numStates = rows.length - 1;
		succ = new View<>(numStates, s -> row(rows, s, i -> columns[i]));
		trans = new View<>(numStates, s -> row(rows, s, i -> rates[i]));
		if (ofTransitions != null)
			actions = new ArrayActions(rows, ofTransitions);
	}

	private static <T> List<T> row(int[] rows, int state, IntFunction<T> entry)
	{
		int first = rows[state];
		return new View<>(rows[state + 1] - first, i -> entry.apply(first + i));
	}
}
