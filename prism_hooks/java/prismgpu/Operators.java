package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import explicit.Model;
import explicit.ProbModelChecker;
import explicit.StateValues;
import parser.Values;
import parser.ast.Expression;
import parser.ast.ExpressionProb;
import parser.ast.ExpressionProp;
import parser.ast.ExpressionQuant;
import parser.ast.ExpressionReward;
import parser.ast.ExpressionSS;
import parser.ast.ExpressionStrategy;
import parser.ast.PropertiesFile;
import parser.ast.Property;
import parser.ast.RelOp;
import parser.visitor.ASTTraverse;
import parser.visitor.ReplaceLabels;
import prism.Accuracy;
import prism.ModelType;
import prism.OpRelOpBound;
import prism.Prism;
import prism.PrismException;
import prism.PrismLangException;

/**
 * The operators of a property that another machine solves. Those that lie within another are a part
 * of its question; PRISM never asks for them by themselves.
 */
final class Operators
{
	/** The PRISM that checks; its model is the only one that operators are asked of. */
	private static Prism prism;
	/** Whether the property at hand has come as far as a model checker of ours. */
	private static boolean reached;

	private Operators()
	{
	}

	/** Notes that a property is to be checked. */
	static void startProperty(Prism checking)
	{
		prism = checking;
		reached = false;
	}

	/** Whether the property came as far as a model checker of ours. */
	static boolean reached()
	{
		return reached;
	}

	/** Presents a property's model and settings; where operators are taken down, its operators too. */
	static void start(ProbModelChecker mc, Model<?> model, Expression expr, PropertiesFile properties) throws PrismException
	{
		boolean collects = Hooks.exchange.collects();
		reached = true;
		requireOriginal(model);
		if (collects) {
			String refusal = Hooks.refusal(mc.getSettings());
			if (mc.getDoTopologicalValueIteration())
				refusal = "topological value iteration";
			if (mc.getDoIntervalIteration())
				refusal = "interval iteration";
			if (refusal != null)
				throw new Refusal(refusal + " cannot be done on another machine");
		}
		Problem problem = new Problem("exchange", mc.getLog(), Extract.of(model));
		boolean choices = model.getModelType().nondeterministic();
		Hooks.ask(problem, mc, choices ? mc.getMDPSolnMethod().fullName() : mc.getLinEqMethod().fullName());
		problem.direction = choices ? "max" : null;
		Hooks.exchange.model(problem, new BuiltModel(prism));
		if (problem.error != null)
			throw new Refusal(problem.error);
		if (collects)
			for (Expression found : outermost(expr, properties))
				checked(mc, model, (ExpressionQuant) found, properties);
	}

	/** The values of an operator as another machine found them; null for any other expression. */
	static StateValues answer(ProbModelChecker mc, Model<?> model, Expression expr, PropertiesFile properties) throws PrismException
	{
		if (Hooks.exchange == null || !isOperator(expr))
			return null;
		requireOriginal(model);
		ExpressionQuant quant = (ExpressionQuant) expr;
		Operator operator = checked(mc, model, quant, properties);
		mc.getLog().println(operator.remark);
		StateValues values = StateValues.createFromDoubleArray(operator.values, model);
		values.setAccuracy(accuracy(operator));
		OpRelOpBound bound = quant.getRelopBoundInfo(mc.getConstantValues());
		if (!bound.isNumeric())
			values.applyPredicate(v -> bound.apply((double) v, values.getAccuracy()));
		return values;
	}

	private static Operator checked(ProbModelChecker mc, Model<?> model, ExpressionQuant expr, PropertiesFile properties) throws PrismException
	{
		Operator operator = question(mc, model, expr, properties);
		Hooks.exchange.operator(operator);
		if (operator.error != null && operator.fatal)
			throw new Refusal(operator.error);
		if (operator.error != null)
			throw new PrismException(operator.error);
		return operator;
	}

	private static Accuracy accuracy(Operator operator)
	{
		return Hooks.accuracy(operator.errorBound, operator.absolute, operator.guaranteed, operator.decided, null);
	}

	/** Products and quotients have states of their own: no answer fits them. */
	private static void requireOriginal(Model<?> model)
	{
		if (model != prism.getBuiltModelExplicit())
			throw new Refusal("an operator is asked of a model that PRISM derived from the one exported, for which there are no answers");
	}

	private static boolean isOperator(Expression expr)
	{
		return expr instanceof ExpressionProb || expr instanceof ExpressionReward || expr instanceof ExpressionSS;
	}

	/** The operator without its bound, over labels in the places of state formulas. */
	private static Operator question(ProbModelChecker mc, Model<?> model, ExpressionQuant expr, PropertiesFile properties) throws PrismException
	{
		Values constants = mc.getConstantValues();
		ExpressionQuant quant = (ExpressionQuant) expr.deepCopy().expandPropRefsAndLabels(properties, null);
		quant = (ExpressionQuant) quant.replaceConstants(constants);
		String key = quant.toString();
		if (quant instanceof ExpressionReward && ((ExpressionReward) quant).getRewardStructIndexDiv() != null)
			throw new Refusal("ratios of rewards cannot be exported: " + key);
		ModelType type = model.getModelType();
		OpRelOpBound bound = quant.getRelopBoundInfo(constants);
		if (!bound.isNumeric()) {
			boolean min = bound.getMinMax(type).isMin();
			quant.setRelOp(!type.nondeterministic() ? RelOp.EQ : min ? RelOp.MIN : RelOp.MAX);
			quant.setBound(null);
		}
		quant.setFilter(null);
		List<String> names = new ArrayList<>();
		List<BitSet> sets = new ArrayList<>();
		Expression rewritten = mc.checkMaximalPropositionalFormulas(model, quant, names, sets);
		if (!rewritten.getAllVars().isEmpty())
			throw new Refusal("a number that differs from state to state stands beside an operator inside another one, which cannot be exported: " + key);
		Map<String, String> numbered = new HashMap<>();
		long[][] words = new long[sets.size()][];
		for (int i = 0; i < words.length; i++) {
			numbered.put(names.get(i), "?" + i);
			words[i] = sets.get(i).toLongArray();
		}
		return new Operator(key, rewritten.accept(new ReplaceLabels(numbered)).toString(), words);
	}

	/** The operators that lie within no other, each once, in the order that PRISM comes across them. */
	private static Iterable<Expression> outermost(Expression expr, PropertiesFile properties) throws PrismException
	{
		Map<String, Expression> found = new LinkedHashMap<>();
		expr.accept(new ASTTraverse()
		{
			@Override
			public Object visit(ExpressionProb e)
			{
				return found.putIfAbsent(e.toString(), e);
			}

			@Override
			public Object visit(ExpressionReward e)
			{
				return found.putIfAbsent(e.toString(), e);
			}

			@Override
			public Object visit(ExpressionSS e)
			{
				return found.putIfAbsent(e.toString(), e);
			}

			@Override
			public Object visit(ExpressionStrategy e)
			{
				throw new Refusal("the " + e.getOperatorString() + " operator cannot be exported: " + e);
			}

			@Override
			public Object visit(ExpressionProp e) throws PrismLangException
			{
				Property property = properties.lookUpPropertyObjectByName(e.getName());
				return property == null ? null : property.getExpression().accept(this);
			}
		});
		return found.values();
	}
}
