package prismgpu;

import dv.DoubleVector;
import jdd.JDD;
import jdd.JDDNode;
import parser.ast.ExpressionFunc;
import prism.PrismException;
import symbolic.comp.StateModelChecker;
import symbolic.model.Model;
import symbolic.states.StateValues;
import symbolic.states.StateValuesDV;
import symbolic.states.StateValuesMTBDD;

/** min(...) and max(...) of values of states: of vectors, PRISM compares one state's value with that of all. */
final class Extremum
{
	private Extremum()
	{
	}

	/** @param statesOfInterest Given up */
	static StateValues of(StateModelChecker checker, Model model, ExpressionFunc expr, JDDNode statesOfInterest) throws PrismException
	{
		StateValues best = null;
		try {
			for (int i = 0; i < expr.getNumOperands(); i++) {
				StateValues next = checker.checkExpression(expr.getOperand(i), statesOfInterest.copy());
				best = best == null ? next : better(best, next, expr.getNameCode() == ExpressionFunc.MIN, model);
			}
		} catch (PrismException e) {
			if (best != null)
				best.clear();
			throw e;
		} finally {
			JDD.Deref(statesOfInterest);
		}
		return best;
	}

	/** The smaller or the larger of the two in each state, both given up. */
	private static StateValues better(StateValues one, StateValues two, boolean smaller, Model model) throws PrismException
	{
		if (one instanceof StateValuesMTBDD && two instanceof StateValuesMTBDD) {
			JDDNode both = JDD.Apply(smaller ? JDD.MIN : JDD.MAX, ((StateValuesMTBDD) one).getJDDNode(), ((StateValuesMTBDD) two).getJDDNode());
			return new StateValuesMTBDD(both, model);
		}
		DoubleVector mine = one.convertToStateValuesDV().getDoubleVector(), others = two.convertToStateValuesDV().getDoubleVector();
		for (int s = 0; s < mine.getSize(); s++) {
			double value = mine.getElement(s), other = others.getElement(s);
			mine.setElement(s, smaller ? Math.min(value, other) : Math.max(value, other));
		}
		others.clear();
		return new StateValuesDV(mine, model);
	}
}
