package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import parser.ast.Expression;
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
		return Symbolic.kept(expr, super.checkExpression(expr, statesOfInterest), model);
	}

	@Override
	protected StateValues checkProbPathFormulaLTL(Expression expr, boolean qual, JDDNode statesOfInterest) throws PrismException
	{
		return Symbolic.handedOn(() -> super.checkProbPathFormulaLTL(expr, qual, statesOfInterest));
	}

	@Override
	public StateValues doTransient(int time, StateValues initDist) throws PrismException
	{
		Symbolic.Knowledge knowledge = new Symbolic.Knowledge();
		knowledge.ownsStart = initDist == null;
		return Symbolic.with(knowledge, () -> super.doTransient(time, initDist));
	}

	@Override
	public StateValues computeSteadyStateProbs(JDDNode tr, StateValues initDist) throws PrismException
	{
		boolean ours = bsccComp && engine != Prism.MTBDD && tr.equals(model.getTrans());
		StateValues probs = ours ? Symbolic.longRun(false, initDist, model) : null;
		if (probs == null)
			return super.computeSteadyStateProbs(tr, initDist);
		initDist.clear();
		return probs;
	}

	/** The long run is one question; PRISM would look for components in the diagram first. */
	@Override
	protected StateValues checkExpressionSteadyState(ExpressionSS expr, JDDNode statesOfInterest) throws PrismException
	{
		OpRelOpBound bound = expr.getRelopBoundInfo(constantValues);
		if (!bsccComp || engine == Prism.MTBDD || bound.isTriviallyTrue() || bound.isTriviallyFalse())
			return super.checkExpressionSteadyState(expr, statesOfInterest);
		JDDNode states = checkExpressionDD(expr.getExpression(), model.getReach().copy());
		StateValues values = Symbolic.average(false, bound, states, model);
		JDD.Deref(states);
		if (values == null)
			return super.checkExpressionSteadyState(expr, statesOfInterest);
		JDD.Deref(statesOfInterest);
		return values;
	}

	@Override
	protected StateValues checkRewardSS(ExpressionTemporal expr, JDDNode stateRewards, JDDNode transRewards, JDDNode statesOfInterest) throws PrismException
	{
		if (!bsccComp || engine == Prism.MTBDD)
			return super.checkRewardSS(expr, stateRewards, transRewards, statesOfInterest);
		JDDNode earned = JDD.SumAbstract(JDD.Apply(JDD.TIMES, trans.copy(), transRewards.copy()), allDDColVars);
		JDDNode rewards = JDD.Apply(JDD.PLUS, stateRewards.copy(), earned);
		StateValues values = Symbolic.average(false, rewards, model);
		JDD.Deref(rewards);
		if (values == null)
			return super.checkRewardSS(expr, stateRewards, transRewards, statesOfInterest);
		JDD.Deref(statesOfInterest);
		return values;
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Expression expr, boolean qual, JDDNode statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(expr, qual, statesOfInterest);
		return Hooks.isNegated(expr) ? Symbolic.negated(probs) : probs;
	}

	@Override
	protected StateValues computeUntilProbs(JDDNode tr, JDDNode tr01, JDDNode b1, JDDNode b2) throws PrismException
	{
		return stated(() -> super.computeUntilProbs(tr, tr01, b1, b2));
	}

	@Override
	protected StateValues computeReachRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr, JDDNode b) throws PrismException
	{
		return stated(() -> super.computeReachRewards(tr, tr01, sr, trr, b));
	}

	@Override
	protected StateValues computeTotalRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr) throws PrismException
	{
		return stated(() -> super.computeTotalRewards(tr, tr01, sr, trr));
	}

	private StateValues stated(Hooks.Work<StateValues> work) throws PrismException
	{
		boolean symbolic = engine != Prism.MTBDD;
		return !symbolic ? work.run() : Symbolic.stated(new Symbolic.Knowledge(), doIntervalIteration, on -> doIntervalIteration = on, work);
	}

	@Override
	protected StateValues computeSteadyStateProbsForBSCC(JDDNode tr, JDDNode bscc) throws PrismException
	{
		Symbolic.Knowledge knowledge = new Symbolic.Knowledge();
		knowledge.whole = tr;
		knowledge.component = bscc;
		return Symbolic.with(knowledge, () -> super.computeSteadyStateProbsForBSCC(tr, bscc));
	}
}
