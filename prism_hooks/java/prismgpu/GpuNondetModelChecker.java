package prismgpu;

import dv.DoubleVector;
import jdd.JDDNode;
import parser.ast.Expression;
import parser.ast.ExpressionFunc;
import parser.ast.PropertiesFile;
import prism.Prism;
import prism.PrismException;
import symbolic.comp.NondetModelChecker;
import symbolic.model.Model;
import symbolic.states.StateValues;
import symbolic.states.StateValuesDV;

/** MDPs under PRISM's symbolic engines. */
public class GpuNondetModelChecker extends NondetModelChecker
{
	public GpuNondetModelChecker(Prism prism, Model model, PropertiesFile propertiesFile) throws PrismException
	{
		super(prism, model, propertiesFile);
	}

	@Override
	public StateValues checkExpression(Expression expr, JDDNode statesOfInterest) throws PrismException
	{
		JDDNode wanted = Filters.wanted(expr, statesOfInterest);
		return Evaluation.symbolic(model, expr, wanted, constantValues, result, () -> super.checkExpression(expr, wanted));
	}

	@Override
	protected StateValues checkProbPathFormula(Expression expr, boolean qual, boolean min, JDDNode statesOfInterest) throws PrismException
	{
		return Comparison.comparable(super.checkProbPathFormula(expr, qual, min, statesOfInterest), model);
	}

	@Override
	protected StateValues checkProbPathFormulaLTL(Expression expr, boolean qual, boolean min, JDDNode statesOfInterest) throws PrismException
	{
		StateValues probs = Symbolic.handedOn(() -> super.checkProbPathFormulaLTL(expr, qual, min, statesOfInterest));
		// PRISM computes the largest probability that the formula does not hold.
		return min ? Symbolic.negated(probs) : probs;
	}

	@Override
	protected StateValues checkProbUntil(JDDNode b1, JDDNode b2, boolean qual, boolean min) throws PrismException
	{
		StateValues probs = GraphSearch.in(model, () -> super.checkProbUntil(b1, b2, qual, min));
		return min && fairness ? Symbolic.negated(probs) : probs;
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Expression expr, boolean qual, boolean min, JDDNode statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(expr, qual, min, statesOfInterest);
		return Hooks.isNegated(expr) ? Symbolic.negated(probs) : probs;
	}

	@Override
	protected StateValues computeNextProbs(JDDNode tr, JDDNode b, boolean min)
	{
		if (engine != Prism.MTBDD)
			Hooks.tellHandedBack(mainLog, Symbolic.NEXT);
		return super.computeNextProbs(tr, b, min);
	}

	@Override
	protected StateValues computeUntilProbs(JDDNode tr, JDDNode tra, JDDNode tr01, JDDNode b1, JDDNode b2, boolean min) throws PrismException
	{
		return stated(() -> super.computeUntilProbs(tr, tra, tr01, b1, b2, min));
	}

	@Override
	protected StateValues computeRestrictedNext(JDDNode tr, JDDNode b, StateValues probs, boolean min)
	{
		return DecidedAccuracy.aStepBefore(probs, () -> super.computeRestrictedNext(tr, b, probs, min));
	}

	@Override
	protected StateValues computeReachRewards(JDDNode tr, JDDNode tra, JDDNode tr01, JDDNode sr, JDDNode trr, JDDNode b, boolean min) throws PrismException
	{
		return Comparison.comparable(stated(() -> super.computeReachRewards(tr, tra, tr01, sr, trr, b, min)), model);
	}

	/** PRISM has no method for the least total reward; what our engines cannot do either, it refuses. */
	@Override
	protected StateValues computeTotalRewards(JDDNode tr, JDDNode tr01, JDDNode tra, JDDNode sr, JDDNode trr, boolean min) throws PrismException
	{
		if (!min || engine == Prism.MTBDD || fairness)
			return super.computeTotalRewards(tr, tr01, tra, sr, trr, min);
		mainLog.println("\nStarting total expected reward (min)...");
		return stated(() -> {
			DoubleVector rewards = Symbolic.leastTotalReward(tr, sr, trr, odd, allDDRowVars, allDDColVars, allDDNondetVars);
			return rewards != null ? new StateValuesDV(rewards, model) : super.computeTotalRewards(tr, tr01, tra, sr, trr, true);
		});
	}

	@Override
	protected StateValues computeTotalRewardsMax(JDDNode tr, JDDNode tr01, JDDNode tra, JDDNode sr, JDDNode trr, boolean noPositiveECs) throws PrismException
	{
		return Comparison.comparable(stated(() -> super.computeTotalRewardsMax(tr, tr01, tra, sr, trr, noPositiveECs)), model);
	}

	private StateValues stated(Hooks.Work<StateValues> work) throws PrismException
	{
		if (engine == Prism.MTBDD)
			return work.run();
		Symbolic.Knowledge knowledge = new Symbolic.Knowledge();
		return Symbolic.stated(knowledge, doIntervalIteration, on -> doIntervalIteration = on, () -> GraphSearch.in(model, work));
	}

	@Override
	protected StateValues checkExpressionFuncNary(ExpressionFunc expr, JDDNode statesOfInterest) throws PrismException
	{
		return Extremum.of(this, model, expr, statesOfInterest);
	}
}
