package prismgpu;

import java.util.BitSet;

import explicit.Model;
import explicit.StateModelChecker;
import explicit.StateValues;
import parser.ast.Expression;
import parser.ast.ExpressionBinaryOp;
import parser.ast.ExpressionFormula;
import parser.ast.ExpressionLabel;
import parser.ast.ExpressionUnaryOp;
import parser.ast.ExpressionVar;
import parser.type.TypeBool;
import prism.PrismException;
import prism.PrismLangException;

/** State formulas for all states at once, where PRISM takes state by state. */
final class StateSets
{
	private static final String TASK = "state formula";

	private StateSets()
	{
	}

	/**
	 * The values of an expression in the states of a model.
	 * @param interest The states whose values matter; null for all
	 * @return null if PRISM's own code must find them
	 */
	static StateValues of(StateModelChecker mc, Model<?> model, Expression expr, BitSet interest) throws PrismException
	{
		if (expr instanceof ExpressionLabel)
			return ofLabel(model, (ExpressionLabel) expr);
		BitSet found = isFormula(expr) ? ofStates(mc, model, expr) : null;
		if (found != null)
			return StateValues.createFromBitSet(found, model);
		if (expr instanceof ExpressionVar)
			return PackedStates.values(model, (ExpressionVar) expr);
		if (!(expr.getType() instanceof TypeBool))
			return null;
		if (expr instanceof ExpressionBinaryOp)
			return connected(mc, model, (ExpressionBinaryOp) expr, interest);
		if (expr instanceof ExpressionUnaryOp && ((ExpressionUnaryOp) expr).getOperator() == ExpressionUnaryOp.NOT)
			return complement(model, mc.checkExpression(model, ((ExpressionUnaryOp) expr).getOperand(), interest));
		return null;
	}

	/** The states with one of the labels that every model has, few of which have them; null for another label. */
	private static StateValues ofLabel(Model<?> model, ExpressionLabel label)
	{
		if (!label.isInitLabel() && !label.isDeadlockLabel())
			return null;
		BitSet states = new BitSet(model.getNumStates());
		for (int s : label.isInitLabel() ? model.getInitialStates() : model.getDeadlockStates())
			states.set(s);
		return StateValues.createFromBitSet(states, model);
	}

	private static boolean isFormula(Expression expr)
	{
		boolean operates = expr instanceof ExpressionBinaryOp || expr instanceof ExpressionUnaryOp || expr instanceof ExpressionVar
			|| expr instanceof ExpressionFormula;
		return operates && expr.getType() instanceof TypeBool;
	}

	/** The states in which a formula over variables alone holds; null for another, and for states that the engines have not found. */
	private static BitSet ofStates(StateModelChecker mc, Model<?> model, Expression expr) throws PrismException
	{
		if (Hooks.backend == null || !(model.getStatesList() instanceof PackedStates))
			return null;
		StringBuilder text = new StringBuilder();
		try {
			ExpressionText.write((Expression) expr.deepCopy().replaceConstants(mc.getConstantValues()), text);
		} catch (ExpressionText.Unwritable | PrismLangException e) {
			return null;
		}
		Problem problem = new Problem(TASK, mc.getLog(), ((PackedStates) model.getStatesList()).source());
		problem.formula = text.toString();
		Hooks.answer(problem);
		if (problem.error != null)
			throw new PrismException(problem.error);
		return problem.found == null ? null : BitSet.valueOf(problem.found);
	}

	/** As PRISM's own code does, the second operand is looked at only where it matters. */
	private static StateValues connected(StateModelChecker mc, Model<?> model, ExpressionBinaryOp expr, BitSet interest) throws PrismException
	{
		int operator = expr.getOperator();
		boolean implies = operator == ExpressionBinaryOp.IMPLIES;
		boolean or = operator == ExpressionBinaryOp.OR;
		if (!implies && !or && operator != ExpressionBinaryOp.AND)
			return null;
		StateValues values = mc.checkExpression(model, expr.getOperand1(), interest);
		BitSet open = (BitSet) values.getBitSet().clone();
		if (or)
			open.flip(0, model.getNumStates());
		if (interest != null)
			open.and(interest);
		BitSet second = mc.checkExpression(model, expr.getOperand2(), open).getBitSet();
		if (implies)
			complement(model, values);
		if (implies || or)
			values.getBitSet().or(second);
		else
			values.getBitSet().and(second);
		return values;
	}

	private static StateValues complement(Model<?> model, StateValues values)
	{
		values.getBitSet().flip(0, model.getNumStates());
		return values;
	}
}
