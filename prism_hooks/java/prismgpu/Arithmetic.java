package prismgpu;

import java.util.ArrayList;
import java.util.List;

import explicit.StateValues;
import parser.ast.Expression;
import parser.ast.ExpressionBinaryOp;
import parser.ast.ExpressionFunc;
import parser.ast.ExpressionITE;
import parser.ast.ExpressionUnaryOp;
import parser.type.TypeBool;
import parser.type.TypeDouble;
import prism.Accuracy;
import prism.PrismException;

/**
 * What is known of the error of what an expression makes of values. PRISM's explicit engine states that of an operand, though
 * p - 0.5 is not known to as many digits as p; its symbolic engines state none.
 */
final class Arithmetic
{
	/** The innermost expression at work that computes; null for none. */
	private static Arithmetic current;

	private final List<Operand> operands = new ArrayList<>();
	/** That of the first operand, which PRISM prints; null for none. */
	private Accuracy first;
	/** Whether something is known of the error of an operand's values. */
	private boolean isKnown;

	private Arithmetic()
	{
	}

	/** Evaluates an expression; values that it computes get an error, or none where nothing is known of it. */
	static StateValues in(Expression expr, Hooks.Work<StateValues> work) throws PrismException
	{
		boolean computes = isArithmetic(expr);
		Arithmetic inner = computes && expr.getType() instanceof TypeDouble ? new Arithmetic() : null;
		StateValues values = within(inner, work);
		if (computes && !(values.getType() instanceof TypeBool))
			values.setAccuracy(inner == null ? null : inner.of(expr, values));
		return values;
	}

	/** Evaluates an expression that may be an operand of another. */
	static StateValues operand(Expression expr, Hooks.Work<StateValues> work) throws PrismException
	{
		Arithmetic outer = current;
		StateValues values = within(null, work);
		if (outer != null)
			outer.take(expr, values);
		return values;
	}

	private static StateValues within(Arithmetic inner, Hooks.Work<StateValues> work) throws PrismException
	{
		Arithmetic before = current;
		current = inner;
		try {
			return work.run();
		} finally {
			current = before;
		}
	}

	private static boolean isArithmetic(Expression expr)
	{
		if (expr instanceof ExpressionUnaryOp)
			return ((ExpressionUnaryOp) expr).getOperator() != ExpressionUnaryOp.PARENTH;
		return expr instanceof ExpressionBinaryOp || expr instanceof ExpressionFunc || expr instanceof ExpressionITE;
	}

	private void take(Expression expr, StateValues values)
	{
		Accuracy accuracy = ExactAccuracy.listing(values.getAccuracy());
		if (operands.isEmpty())
			first = accuracy;
		isKnown |= accuracy instanceof KnownAccuracy;
		if (!(values.getType() instanceof TypeBool))
			operands.add(Operand.of(expr, values));
	}

	private Accuracy of(Expression expr, StateValues values)
	{
		Operand made = isKnown ? computed(expr) : null;
		KnownAccuracy accuracy = made == null ? null : made.accuracy(values);
		if (accuracy == null || !Hooks.printsAsPrism())
			return accuracy;
		// PRISM calls it exact where the first operand is.
		boolean prints = first instanceof KnownAccuracy && ((KnownAccuracy) first).printsSomething();
		return prints ? accuracy : KnownAccuracy.printedAs("", accuracy);
	}

	/** What is known of the numbers that an expression is; null for nothing. */
	private Operand computed(Expression expr)
	{
		if (expr instanceof ExpressionUnaryOp && ((ExpressionUnaryOp) expr).getOperator() == ExpressionUnaryOp.MINUS)
			return operands.get(0).negated();
		if (expr instanceof ExpressionFunc) {
			int function = ((ExpressionFunc) expr).getNameCode();
			boolean extreme = function == ExpressionFunc.MIN || function == ExpressionFunc.MAX;
			return extreme ? operands.stream().reduce(Operand::extreme).get() : null;
		}
		if (!(expr instanceof ExpressionBinaryOp) || operands.size() != 2)
			return null;
		Operand left = operands.get(0), right = operands.get(1);
		switch (((ExpressionBinaryOp) expr).getOperator()) {
		case ExpressionBinaryOp.PLUS:
			return left.plus(right);
		case ExpressionBinaryOp.MINUS:
			return left.plus(right.negated());
		case ExpressionBinaryOp.TIMES:
			return left.times(right);
		case ExpressionBinaryOp.DIVIDE:
			return left.dividedBy(right);
		default:
			return null;
		}
	}
}
