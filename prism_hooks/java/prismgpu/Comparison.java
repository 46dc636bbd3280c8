package prismgpu;

import java.util.Arrays;

import jdd.JDD;
import jdd.JDDNode;
import parser.Values;
import parser.ast.Expression;
import parser.ast.ExpressionQuant;
import prism.Accuracy;
import prism.OpRelOpBound;
import prism.PrismException;
import symbolic.model.Model;
import symbolic.states.StateValues;

/**
 * What the values of the operator at work are compared with. The engines are told: where the error of a value leaves
 * the answer open, they put one in its place that is compared as the exact value is, if they know that.
 */
final class Comparison
{
	/** That of the innermost operator; null if it has no bound. */
	private static OpRelOpBound current;

	private Comparison()
	{
	}

	/** Checks an expression; an operator with a bound compares with that. */
	static <T> T in(Expression expr, Values constants, Hooks.Work<T> work) throws PrismException
	{
		if (!(expr instanceof ExpressionQuant))
			return work.run();
		OpRelOpBound outer = current, own = ((ExpressionQuant) expr).getRelopBoundInfo(constants);
		current = own.isNumeric() ? null : own;
		try {
			return work.run();
		} finally {
			current = outer;
		}
	}

	/** Whether values of an unknown error are compared with a bound near them. */
	static boolean isNear(double[] values)
	{
		return current != null && Arrays.stream(values).anyMatch(value -> Math.abs(value - current.getBound()) <= Accuracy.DEFAULT_ERROR_BOUND * Math.abs(value));
	}

	/** The same of the values of a symbolic model. */
	static boolean isNear(StateValues values)
	{
		if (current == null)
			return false;
		JDDNode near = values.getBDDFromCloseValueRel(current.getBound(), Accuracy.DEFAULT_ERROR_BOUND);
		boolean any = !near.equals(JDD.ZERO);
		JDD.Deref(near);
		return any;
	}

	/** Tells the engines what a problem's values are compared with. */
	static void tell(Problem problem)
	{
		if (current == null)
			return;
		problem.bound = current.getBound();
		problem.relation = current.getRelOp().toString();
	}

	/**
	 * Whether the operator compares with a value that is met exactly or not at all: 0, or probability 1.
	 * No error bound decides that, and where PRISM states none it compares the numbers.
	 */
	static boolean asksForCertainty()
	{
		return current != null && (current.getBound() == 0.0 || current.isProbabilistic() && current.getBound() == 1.0);
	}

	/** Refuses values that are too near to the bound for their error, as PRISM's explicit engine does; its others compare the numbers. */
	static StateValues comparable(StateValues values, Model model) throws PrismException
	{
		if (current == null || asksForCertainty() || !(values.getAccuracy() instanceof DecidedAccuracy))
			return values;
		double bound = current.getBound();
		JDDNode open = JDD.And(((DecidedAccuracy) values.getAccuracy()).near(bound, values), model.getReach().copy());
		boolean none = open.equals(JDD.ZERO);
		double value = none ? 0.0 : values.firstFromBDD(open);
		JDD.Deref(open);
		if (none)
			return values;
		values.clear();
		throw new PrismException("Accuracy of value " + value + " is not enough to compare to bound " + bound);
	}
}
