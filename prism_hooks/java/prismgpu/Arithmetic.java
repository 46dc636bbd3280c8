package prismgpu;

import explicit.StateValues;
import parser.ast.Expression;
import parser.ast.ExpressionBinaryOp;
import parser.ast.ExpressionFunc;
import parser.ast.ExpressionITE;
import parser.ast.ExpressionUnaryOp;
import parser.type.TypeBool;

/** What expressions make of values. */
final class Arithmetic
{
	private Arithmetic()
	{
	}

	/**
	 * Values of an expression, without an error that is another's: PRISM's explicit engine keeps that of an operand, and
	 * p - 0.5 is not known to as many digits as p. Its symbolic engines state none.
	 */
	static StateValues told(Expression expr, StateValues values)
	{
		if (isArithmetic(expr) && !(values.getType() instanceof TypeBool))
			values.setAccuracy(null);
		return values;
	}

	private static boolean isArithmetic(Expression expr)
	{
		if (expr instanceof ExpressionUnaryOp)
			return ((ExpressionUnaryOp) expr).getOperator() != ExpressionUnaryOp.PARENTH;
		return expr instanceof ExpressionBinaryOp || expr instanceof ExpressionFunc || expr instanceof ExpressionITE;
	}
}
