package prismgpu;

import explicit.Model;
import parser.Values;
import parser.ast.Expression;
import parser.ast.ExpressionReward;
import parser.ast.ExpressionTemporal;
import prism.PrismLangException;

/** When an instantaneous reward is asked for. */
final class Moment
{
	private Moment()
	{
	}

	/** Refuses a time before the start, as PRISM's symbolic engines do; its explicit one has a number for it. */
	static void require(Model<?> model, Expression expr, Values constants) throws PrismLangException
	{
		Expression asked = expr instanceof ExpressionReward ? ((ExpressionReward) expr).getExpression() : null;
		if (!(asked instanceof ExpressionTemporal) || ((ExpressionTemporal) asked).getOperator() != ExpressionTemporal.R_I)
			return;
		Expression bound = ((ExpressionTemporal) asked).getUpperBound();
		boolean continuous = model.getModelType().continuousTime();
		Number time = continuous ? (Number) bound.evaluateDouble(constants) : (Number) bound.evaluateInt(constants);
		if (time.doubleValue() < 0)
			throw new PrismLangException("Invalid bound " + time + " in instantaneous reward property");
	}
}
