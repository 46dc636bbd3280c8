package prismgpu;

import jdd.JDDNode;
import parser.ast.Expression;
import parser.ast.ExpressionFunc;
import parser.ast.ExpressionSS;
import parser.ast.ExpressionTemporal;
import parser.ast.PropertiesFile;
import prism.OpRelOpBound;
import prism.Prism;
import prism.PrismException;
import symbolic.comp.ProbModelChecker;
import symbolic.model.Model;
import symbolic.states.StateValues;

/** DTMCs under PRISM's symbolic engines. */
public class GpuProbModelChecker extends ProbModelChecker
{
	public GpuProbModelChecker(Prism prism, Model model, PropertiesFile propertiesFile) throws PrismException
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
	protected StateValues checkProbUntil(JDDNode b1, JDDNode b2, boolean qual) throws PrismException
	{
		return GraphSearch.in(model, () -> super.checkProbUntil(b1, b2, qual));
	}

	@Override
	protected StateValues checkProbPathFormula(Expression expr, boolean qual, JDDNode statesOfInterest) throws PrismException
	{
		return Comparison.comparable(super.checkProbPathFormula(expr, qual, statesOfInterest), model);
	}

	@Override
	protected StateValues checkProbPathFormulaLTL(Expression expr, boolean qual, JDDNode statesOfInterest) throws PrismException
	{
		return Symbolic.handedOn(() -> super.checkProbPathFormulaLTL(expr, qual, statesOfInterest));
	}

	/** Computes from a copy: PRISM gives up what it started from a second time, or prints it after that. */
	@Override
	public StateValues doTransient(int time, StateValues initDist) throws PrismException
	{
		StateValues start = initDist == null ? null : initDist.deepCopy();
		return Symbolic.with(Symbolic.Knowledge.ofOwnStart(), () -> super.doTransient(time, start));
	}

	@Override
	public StateValues computeSteadyStateProbs(JDDNode tr, StateValues initDist) throws PrismException
	{
		boolean whole = asOneQuestion() && tr.equals(model.getTrans());
		StateValues probs = whole && !LongRun.isPutTogether(false, model) ? LongRun.distribution(false, initDist, model) : null;
		return probs != null ? probs : super.computeSteadyStateProbs(tr, initDist);
	}

	/** The long run is one question, unless PRISM's own way is wanted; near to a bound it is always. */
	@Override
	protected StateValues checkExpressionSteadyState(ExpressionSS expr, JDDNode statesOfInterest) throws PrismException
	{
		OpRelOpBound bound = expr.getRelopBoundInfo(constantValues);
		if (!asOneQuestion() || bound.isTriviallyTrue() || bound.isTriviallyFalse())
			return super.checkExpressionSteadyState(expr, statesOfInterest);
		ExpressionSS unbounded = new ExpressionSS(expr.getExpression(), "=", null);
		StateValues put = LongRun.putTogether(false, model, statesOfInterest, of -> super.checkExpressionSteadyState(unbounded, of));
		if (put != null)
			return LongRun.compared(bound, put, model);
		JDDNode states = checkExpressionDD(expr.getExpression(), model.getReach().copy());
		StateValues values = LongRun.probabilities(false, bound, states, model, statesOfInterest);
		return values != null ? values : super.checkExpressionSteadyState(expr, statesOfInterest);
	}

	@Override
	protected StateValues checkRewardSS(ExpressionTemporal expr, JDDNode stateRewards, JDDNode transRewards, JDDNode statesOfInterest) throws PrismException
	{
		if (!asOneQuestion())
			return super.checkRewardSS(expr, stateRewards, transRewards, statesOfInterest);
		StateValues values = LongRun.putTogether(false, model, statesOfInterest, of -> super.checkRewardSS(expr, stateRewards, transRewards, of));
		if (values == null)
			values = LongRun.rewards(false, stateRewards, transRewards, model, statesOfInterest);
		return values != null ? values : super.checkRewardSS(expr, stateRewards, transRewards, statesOfInterest);
	}

	private boolean asOneQuestion()
	{
		return bsccComp && engine != Prism.MTBDD;
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Expression expr, boolean qual, JDDNode statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(expr, qual, statesOfInterest);
		return Hooks.isNegated(expr) ? Symbolic.negated(probs) : probs;
	}

	@Override
	protected StateValues computeNextProbs(JDDNode tr, JDDNode b)
	{
		if (engine != Prism.MTBDD)
			Hooks.tellHandedBack(mainLog, Symbolic.NEXT);
		return super.computeNextProbs(tr, b);
	}

	@Override
	protected StateValues computeUntilProbs(JDDNode tr, JDDNode tr01, JDDNode b1, JDDNode b2) throws PrismException
	{
		return stated(() -> super.computeUntilProbs(tr, tr01, b1, b2));
	}

	@Override
	protected StateValues computeRestrictedNext(JDDNode tr, JDDNode b, StateValues probs)
	{
		return DecidedAccuracy.aStepBefore(probs, () -> super.computeRestrictedNext(tr, b, probs));
	}

	@Override
	protected StateValues computeReachRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr, JDDNode b) throws PrismException
	{
		return Comparison.comparable(stated(() -> super.computeReachRewards(tr, tr01, sr, trr, b)), model);
	}

	@Override
	protected StateValues computeTotalRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr) throws PrismException
	{
		return Comparison.comparable(stated(() -> super.computeTotalRewards(tr, tr01, sr, trr)), model);
	}

	private StateValues stated(Hooks.Work<StateValues> work) throws PrismException
	{
		if (engine == Prism.MTBDD)
			return work.run();
		Symbolic.Knowledge knowledge = new Symbolic.Knowledge();
		return Symbolic.stated(knowledge, doIntervalIteration, on -> doIntervalIteration = on, () -> GraphSearch.in(model, work));
	}

	@Override
	protected StateValues computeSteadyStateProbsForBSCC(JDDNode tr, JDDNode bscc) throws PrismException
	{
		return Symbolic.with(Symbolic.Knowledge.ofComponent(false, tr, bscc), () -> super.computeSteadyStateProbsForBSCC(tr, bscc));
	}

	@Override
	protected StateValues checkExpressionFuncNary(ExpressionFunc expr, JDDNode statesOfInterest) throws PrismException
	{
		return Extremum.of(this, model, expr, statesOfInterest);
	}
}
