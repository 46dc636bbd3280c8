package prismgpu;

import java.util.BitSet;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

import jdd.JDD;
import jdd.JDDNode;
import parser.ast.Expression;
import parser.ast.ExpressionFilter;
import parser.ast.ExpressionFilter.FilterOperator;
import parser.ast.ExpressionProb;
import parser.ast.ExpressionSS;
import parser.ast.ExpressionUnaryOp;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.Accuracy.AccuracyType;
import prism.PrismException;
import prism.Result;
import symbolic.states.StateValues;
import symbolic.states.StateValuesVoid;

/**
 * What is done around PRISM's evaluation of filters: their results get an error, which PRISM states for the value of a single
 * state alone; and where one prints the values that it is over and keeps them, those that are used beyond it are computed too.
 */
final class Filters
{
	/** What a sum of n values may be rounded by, in units of n times the sum: none of them is negative. */
	private static final double ROUNDING = 0x1p-53;
	/** The innermost filter at work; null for none. */
	private static Filters current;

	private final ExpressionFilter filter;
	/** The states whose values of the filter matter, as PRISM's engine has them; null for all. */
	private final Object interest;
	/** That of the values that the filter is over; null where nothing is known. */
	private KnownAccuracy operand;
	/** How many states it is over. */
	private double states;

	private Filters(ExpressionFilter filter, Object interest, double allStates)
	{
		this.filter = filter;
		this.interest = interest;
		states = allStates;
	}

	/** The states whose values of an expression matter: of what a filter prints and keeps, also those that matter beyond it. */
	static BitSet wanted(Expression expr, BitSet interest)
	{
		if (interest == null || !isKept(expr))
			return interest;
		BitSet wanted = current.interest == null ? null : (BitSet) ((BitSet) current.interest).clone();
		if (wanted != null)
			wanted.or(interest);
		return wanted;
	}

	/** The same of a symbolic model. @param interest Given up */
	static JDDNode wanted(Expression expr, JDDNode interest)
	{
		return isKept(expr) ? JDD.Or(interest, ((JDDNode) current.interest).copy()) : interest;
	}

	private static boolean isKept(Expression expr)
	{
		return current != null && current.prints() && expr == current.filter.getOperand();
	}

	/**
	 * Checks an expression of a symbolic model; the result of a filter gets an error.
	 * @param interest The states whose values matter; PRISM gives them up after the filter's operand
	 */
	static StateValues symbolic(Expression expr, JDDNode interest, Result result, double allStates, Hooks.Work<StateValues> work) throws PrismException
	{
		return in(expr, interest, result, allStates, work, Filters::of, StateValues::setAccuracy, values -> counted(values.getNNZ(), allStates));
	}

	/** The same of an explicit model. */
	static explicit.StateValues explicit(Expression expr, BitSet interest, Result result, double allStates, Hooks.Work<explicit.StateValues> work)
			throws PrismException
	{
		return Arithmetic.operand(expr, () -> in(expr, interest, result, allStates, () -> Arithmetic.in(expr, work), explicit.StateValues::getAccuracy,
				explicit.StateValues::setAccuracy, values -> values.getBitSet().cardinality()));
	}

	/** A Pareto curve is no vector of values. */
	private static Accuracy of(StateValues values)
	{
		return values instanceof StateValuesVoid ? null : values.getAccuracy();
	}

	/** PRISM counts to 2 billion, and in diagrams more than the states of the model. */
	private static double counted(int states, double allStates)
	{
		return states < 0 ? allStates : Math.min(states, allStates);
	}

	private static <V> V in(Expression expr, Object interest, Result result, double allStates, Hooks.Work<V> work, Function<V, Accuracy> accuracy,
			BiConsumer<V, Accuracy> state, ToDoubleFunction<V> size) throws PrismException
	{
		Filters outer = current;
		current = expr instanceof ExpressionFilter ? new Filters((ExpressionFilter) expr, interest, allStates) : null;
		try {
			V values = work.run();
			Accuracy known = current == null ? null : current.ofResult(result.getResult());
			if (known != null && !current.isOfOneState())
				result.setAccuracy(known);
			if (known != null && !current.keepsValues())
				state.accept(values, known);
			if (outer != null && expr == outer.filter.getFilter())
				outer.states = size.applyAsDouble(values);
			if (outer != null && expr == outer.filter.getOperand())
				outer.take(ExactAccuracy.listing(accuracy.apply(values)));
			return values;
		} finally {
			current = outer;
		}
	}

	private void take(Accuracy accuracy)
	{
		if (accuracy instanceof KnownAccuracy)
			operand = (KnownAccuracy) accuracy;
	}

	/** What is known of the error of the filter's result, printed where PRISM prints one; null where PRISM states it, or nothing is. */
	private Accuracy ofResult(Object value)
	{
		KnownAccuracy known = operand == null || !KnownAccuracy.isNumber(value) ? null : known(value);
		return known != null && Hooks.printsAsPrism() && !isOfOneState() ? KnownAccuracy.printedAs("", known) : known;
	}

	/** Whether the filter's values are those that it is over. */
	private boolean keepsValues()
	{
		return prints() || filter.getOperatorType() == FilterOperator.RANGE;
	}

	/** Whether PRISM states the error of the result. */
	private boolean isOfOneState()
	{
		return filter.getOperatorType() == FilterOperator.STATE;
	}

	private boolean prints()
	{
		return filter.getOperatorType() == FilterOperator.PRINT || filter.getOperatorType() == FilterOperator.PRINTALL;
	}

	private KnownAccuracy known(Object value)
	{
		switch (filter.getOperatorType()) {
		case FIRST:
		case STATE:
			return operand;
		case MIN:
		case MAX:
		case RANGE:
			return operand instanceof DecidedAccuracy ? ((DecidedAccuracy) operand).ofExtreme(ends()) : operand;
		case AVG:
			return ofSum((Double) value, 1.0);
		case SUM:
			return ofSum((Double) value, states);
		default:
			return null;
		}
	}

	/** What no value can lie beyond: of probabilities 0 and 1, of others 0 and infinity. */
	private double[] ends()
	{
		Expression values = filter.getOperand();
		while (Expression.isParenth(values))
			values = ((ExpressionUnaryOp) values).getOperand();
		boolean probabilities = values instanceof ExpressionProb || values instanceof ExpressionSS;
		return new double[] { 0.0, probabilities ? 1.0 : Double.POSITIVE_INFINITY };
	}

	/** @param times How often a value's absolute error is in the result */
	private KnownAccuracy ofSum(double sum, double times)
	{
		// An infinite one may have overflowed.
		if (!Double.isFinite(sum) || operand instanceof SignedAccuracy)
			return null;
		double error = operand.getErrorBound(), rounding = states * ROUNDING;
		// Rounding is small beside 1, whose complements values may be.
		if (operand.getLevel() == AccuracyLevel.EXACT_FLOATING_POINT)
			return new KnownAccuracy(AccuracyLevel.ESTIMATED_BOUNDED, Accuracy.FLOATING_POINT_ERROR * (times + sum) + rounding * sum, true);
		if (operand.getType() == AccuracyType.ABSOLUTE)
			return new KnownAccuracy(operand.getLevel(), error * times + rounding * sum, true);
		return new KnownAccuracy(operand.getLevel(), error + rounding, false);
	}
}
