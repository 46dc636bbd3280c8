package prismgpu;

import java.util.ArrayList;
import java.util.List;

import parser.ast.Expression;
import parser.ast.ExpressionBinaryOp;
import parser.ast.ExpressionProb;
import parser.ast.ExpressionReward;
import parser.ast.ExpressionTemporal;
import parser.ast.ExpressionUnaryOp;
import parser.type.TypeBool;
import prism.PrismException;
import prism.RewardGenerator;
import prismgpu.ExpressionText.Unwritable;

/**
 * What a property asks of each path, as JSON. F, G, W and R are reduced to an until and a negation, and
 * bounds are evaluated and included, as PRISM's samplers take them; an upper bound may be null.
 * <pre>
 * {"kind": "until", "negated", "left", "right", "bounded", "lower", "upper"}
 * {"kind": "next", "negated", "target"}
 * {"kind": "ltl", "atoms": [target], "formula"}                     words in postfix order
 * {"kind": "cumulative", "rewards", "bound"}                        rewards: the number of a structure
 * {"kind": "instantaneous", "rewards", "bound"}
 * {"kind": "reach", "rewards", "target"}
 * </pre>
 * The words of a formula are "a0" for the first atom, "!", "&amp;", "|", "=&gt;", "&lt;=&gt;", "X", and "U:2:7" for
 * an until between these steps; an empty bound is none.
 */
final class QuestionText
{
	private final StringBuilder out = new StringBuilder();
	private final boolean continuous;

	private QuestionText(boolean continuous)
	{
		this.continuous = continuous;
	}

	/**
	 * The question of a property for which PRISM has a sampler.
	 * @param expr The property, its labels and constants replaced
	 * @param continuous Whether bounds are times
	 */
	static String of(Expression expr, RewardGenerator<Double> rewards, boolean continuous) throws PrismException, Unwritable
	{
		QuestionText text = new QuestionText(continuous);
		if (expr instanceof ExpressionProb)
			text.probability(((ExpressionProb) expr).getExpression());
		else if (expr instanceof ExpressionReward)
			text.reward((ExpressionReward) expr, rewards);
		else
			throw new Unwritable("a property of the form " + expr);
		return text.out.toString();
	}

	/** Whether a property is a probability of a formula for which PRISM has no sampler, and the engines may have one. */
	static boolean isSteppedLtl(Expression expr, boolean continuous) throws PrismException
	{
		return !continuous && expr instanceof ExpressionProb && !((ExpressionProb) expr).getExpression().isSimplePathFormula();
	}

	private void probability(Expression formula) throws PrismException, Unwritable
	{
		if (formula.isSimplePathFormula()) {
			path(formula, false);
			return;
		}
		List<Expression> atoms = new ArrayList<>();
		List<String> words = new ArrayList<>();
		ltl(formula, atoms, words);
		out.append("{\"kind\":\"ltl\",\"formula\":[\"").append(String.join("\",\"", words)).append("\"],\"atoms\":[");
		for (int i = 0; i < atoms.size(); i++) {
			out.append(i == 0 ? "" : ",");
			ExpressionText.write((Expression) atoms.get(i).deepCopy().simplify(), out);
		}
		out.append("]}");
	}

	private void ltl(Expression expr, List<Expression> atoms, List<String> words) throws PrismException, Unwritable
	{
		if (expr.getType() instanceof TypeBool) {
			int known = atoms.indexOf(expr);
			if (known < 0)
				atoms.add(expr);
			words.add("a" + (known < 0 ? atoms.size() - 1 : known));
		} else if (expr instanceof ExpressionUnaryOp) {
			ExpressionUnaryOp outer = (ExpressionUnaryOp) expr;
			ltl(outer.getOperand(), atoms, words);
			if (outer.getOperator() == ExpressionUnaryOp.NOT)
				words.add("!");
		} else if (expr instanceof ExpressionBinaryOp && ExpressionBinaryOp.isLogical(((ExpressionBinaryOp) expr).getOperator())) {
			ExpressionBinaryOp both = (ExpressionBinaryOp) expr;
			ltl(both.getOperand1(), atoms, words);
			ltl(both.getOperand2(), atoms, words);
			words.add(both.getOperatorSymbol());
		} else if (expr instanceof ExpressionTemporal) {
			temporal((ExpressionTemporal) expr, atoms, words);
		} else {
			throw new Unwritable("a path formula of the form " + expr);
		}
	}

	private void temporal(ExpressionTemporal expr, List<Expression> atoms, List<String> words) throws PrismException, Unwritable
	{
		if (expr.getOperand1() != null)
			ltl(expr.getOperand1(), atoms, words);
		ltl(expr.getOperand2(), atoms, words);
		String symbol = expr.getOperatorSymbol();
		if (expr.getOperator() == ExpressionTemporal.P_X) {
			words.add(symbol);
			return;
		}
		Integer lower = steps(expr.getLowerBound(), expr.lowerBoundIsStrict() ? 1 : 0);
		Integer upper = steps(expr.getUpperBound(), expr.upperBoundIsStrict() ? -1 : 0);
		if (lower != null && lower < 0 || upper != null && upper < (lower == null ? 0 : lower))
			throw new PrismException("Invalid bounds in " + expr);
		words.add(symbol + ":" + (lower == null ? "" : lower) + ":" + (upper == null ? "" : upper));
	}

	private static Integer steps(Expression bound, int change) throws PrismException
	{
		return bound == null ? null : (Integer) (bound.evaluateInt() + change);
	}

	private void path(Expression expr, boolean negated) throws PrismException, Unwritable
	{
		if (expr instanceof ExpressionUnaryOp) {
			ExpressionUnaryOp outer = (ExpressionUnaryOp) expr;
			path(outer.getOperand(), negated != (outer.getOperator() == ExpressionUnaryOp.NOT));
			return;
		}
		if (!(expr instanceof ExpressionTemporal))
			throw new Unwritable("a path formula of the form " + expr);
		ExpressionTemporal temporal = (ExpressionTemporal) expr;
		switch (temporal.getOperator()) {
		case ExpressionTemporal.P_X:
			out.append("{\"kind\":\"next\",\"negated\":").append(negated);
			expression("target", temporal.getOperand2());
			break;
		case ExpressionTemporal.P_U:
			out.append("{\"kind\":\"until\",\"negated\":").append(negated);
			expression("left", temporal.getOperand1());
			expression("right", temporal.getOperand2());
			// PRISM looks for loops only where there is no bound at all.
			out.append(",\"bounded\":").append(temporal.hasBounds());
			number("lower", temporal.getLowerBound(), temporal.lowerBoundIsStrict(), 1);
			number("upper", temporal.getUpperBound(), temporal.upperBoundIsStrict(), -1);
			break;
		default:
			Expression reduced = temporal.convertToUntilForm();
			// The operators that the reduction adds have no types yet.
			reduced.typeCheck();
			path(reduced, negated);
			return;
		}
		out.append('}');
	}

	private void reward(ExpressionReward expr, RewardGenerator<Double> rewards) throws PrismException, Unwritable
	{
		if (!(expr.getExpression() instanceof ExpressionTemporal))
			throw new Unwritable("a reward formula of the form " + expr.getExpression());
		ExpressionTemporal temporal = (ExpressionTemporal) expr.getExpression();
		int structure = expr.getRewardStructIndexByIndexObject(rewards, null);
		switch (temporal.getOperator()) {
		case ExpressionTemporal.R_C:
			out.append("{\"kind\":\"cumulative\",\"rewards\":").append(structure);
			number("bound", temporal.getUpperBound(), false, 0);
			break;
		case ExpressionTemporal.R_I:
			out.append("{\"kind\":\"instantaneous\",\"rewards\":").append(structure);
			number("bound", temporal.getUpperBound(), false, 0);
			break;
		case ExpressionTemporal.P_F:
			out.append("{\"kind\":\"reach\",\"rewards\":").append(structure);
			expression("target", temporal.getOperand2());
			break;
		default:
			throw new Unwritable("a reward formula of the form " + temporal);
		}
		out.append('}');
	}

	private void expression(String name, Expression expr) throws PrismException, Unwritable
	{
		out.append(",\"").append(name).append("\":");
		ExpressionText.write((Expression) expr.deepCopy().simplify(), out);
	}

	/** A bound; of steps, a strict one is included after a step more or less. Times meet a bound with probability 0. */
	private void number(String name, Expression bound, boolean strict, int step) throws PrismException
	{
		out.append(",\"").append(name).append("\":");
		if (bound == null)
			out.append(step == 1 ? "0" : "null");
		else if (continuous)
			out.append(bound.evaluateDouble());
		else
			out.append(bound.evaluateInt() + (strict ? step : 0));
	}
}
