package prismgpu;

import java.util.BitSet;

import explicit.Model;
import explicit.ProbModelChecker;
import explicit.StateValues;
import jdd.JDDNode;
import parser.Values;
import parser.ast.Expression;
import parser.ast.PropertiesFile;
import prism.PrismException;
import prism.Result;
import symbolic.model.ModelSymbolic;

/** What is done around PRISM's evaluation of an expression, the same for all kinds of models. */
final class Evaluation
{
	private Evaluation()
	{
	}

	/**
	 * Evaluates an expression of an explicit model.
	 * @param interest The states whose values matter; null for all
	 * @param result That of the property at hand
	 * @param prisms PRISM's evaluation
	 */
	static StateValues explicit(ProbModelChecker mc, Model<?> model, Expression expr, BitSet interest, PropertiesFile properties, Result result,
			Hooks.Work<StateValues> prisms) throws PrismException
	{
		Values constants = mc.getConstantValues();
		Moment.require(model, expr, constants);
		return Filters.explicit(expr, interest, result, model.getNumStates(), () -> {
			StateValues answer = Operators.answer(mc, model, expr, properties);
			if (answer == null)
				answer = StateSets.of(mc, model, expr, interest);
			return answer != null ? answer : Comparison.in(expr, constants, prisms);
		});
	}

	/** The same of a symbolic model. */
	static symbolic.states.StateValues symbolic(ModelSymbolic model, Expression expr, JDDNode interest, Values constants, Result result,
			Hooks.Work<symbolic.states.StateValues> prisms) throws PrismException
	{
		return Filters.symbolic(expr, interest, result, model.getNumStatesLong(),
				() -> Symbolic.kept(expr, Comparison.in(expr, constants, () -> GraphSearch.in(model, prisms)), model));
	}
}
