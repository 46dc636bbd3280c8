package prismgpu;

import jdd.JDDNode;
import parser.ast.Expression;
import parser.ast.ExpressionFunc;
import parser.ast.ExpressionSS;
import parser.ast.ExpressionTemporal;
import parser.ast.PropertiesFile;
import prism.Accuracy;
import prism.OpRelOpBound;
import prism.Prism;
import prism.PrismException;
import symbolic.comp.StochModelChecker;
import symbolic.model.Model;
import symbolic.states.StateValues;

/** CTMCs under PRISM's symbolic engines. */
public class GpuStochModelChecker extends StochModelChecker
{
	/** The absolute errors of the solves of the until at hand, added up; NaN where one is not known. */
	private double error;
	/** What is known of the error after all of them; null before the first. */
	private Accuracy combined;

	public GpuStochModelChecker(Prism prism, Model model, PropertiesFile propertiesFile) throws PrismException
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
	public StateValues doTransient(double time, StateValues initDist) throws PrismException
	{
		StateValues start = initDist == null ? null : initDist.deepCopy();
		return Symbolic.with(Symbolic.Knowledge.ofOwnStart(), () -> super.doTransient(time, start));
	}

	@Override
	public StateValues computeSteadyStateProbs(JDDNode tr, StateValues initDist) throws PrismException
	{
		boolean whole = asOneQuestion() && tr.equals(model.getTrans());
		StateValues probs = whole && !LongRun.isPutTogether(true, model) ? LongRun.distribution(true, initDist, model) : null;
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
		StateValues put = LongRun.putTogether(true, model, statesOfInterest, of -> super.checkExpressionSteadyState(unbounded, of));
		if (put != null)
			return LongRun.compared(bound, put, model);
		JDDNode states = checkExpressionDD(expr.getExpression(), model.getReach().copy());
		StateValues values = LongRun.probabilities(true, bound, states, model, statesOfInterest);
		return values != null ? values : super.checkExpressionSteadyState(expr, statesOfInterest);
	}

	@Override
	protected StateValues checkRewardSS(ExpressionTemporal expr, JDDNode stateRewards, JDDNode transRewards, JDDNode statesOfInterest) throws PrismException
	{
		if (!asOneQuestion())
			return super.checkRewardSS(expr, stateRewards, transRewards, statesOfInterest);
		StateValues values = LongRun.putTogether(true, model, statesOfInterest, of -> super.checkRewardSS(expr, stateRewards, transRewards, of));
		if (values == null)
			values = LongRun.rewards(true, stateRewards, transRewards, model, statesOfInterest);
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

	/** PRISM puts an until together from solves, and forgets their errors; neither makes one larger. */
	@Override
	protected StateValues checkProbBoundedUntil(ExpressionTemporal expr, JDDNode statesOfInterest) throws PrismException
	{
		double outer = error;
		Accuracy outerAccuracy = combined;
		error = 0.0;
		combined = null;
		try {
			StateValues probs = super.checkProbBoundedUntil(expr, statesOfInterest);
			if (!Double.isNaN(error))
				probs.setAccuracy(combined == null ? new ExactAccuracy() : combined);
			return probs;
		} finally {
			error = outer;
			combined = outerAccuracy;
		}
	}

	@Override
	protected StateValues computeBoundedUntilProbs(JDDNode tr, JDDNode tr01, JDDNode b2, JDDNode nonabs, double time, StateValues multProbs)
			throws PrismException
	{
		return noted(Symbolic.stated(() -> super.computeBoundedUntilProbs(tr, tr01, b2, nonabs, time, multProbs)));
	}

	@Override
	protected StateValues computeCumulRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr, double time) throws PrismException
	{
		return Comparison.comparable(Symbolic.stated(() -> super.computeCumulRewards(tr, tr01, sr, trr, time)), model);
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
		return noted(stated(tr, () -> super.computeUntilProbs(tr, tr01, b1, b2)));
	}

	/** Adds the error of probabilities, none above 1, to that of the until at hand. */
	private StateValues noted(StateValues probs)
	{
		Accuracy accuracy = probs.getAccuracy();
		error += accuracy == null ? Double.NaN : DecidedAccuracy.ofProbabilities(accuracy);
		combined = DecidedAccuracy.ofSeveral(error, combined, accuracy);
		return probs;
	}

	@Override
	protected StateValues computeReachRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr, JDDNode b) throws PrismException
	{
		return Comparison.comparable(stated(tr, () -> super.computeReachRewards(tr, tr01, sr, trr, b)), model);
	}

	@Override
	protected StateValues computeTotalRewards(JDDNode tr, JDDNode tr01, JDDNode sr, JDDNode trr) throws PrismException
	{
		return Comparison.comparable(stated(null, () -> super.computeTotalRewards(tr, tr01, sr, trr)), model);
	}

	/** @param rates What PRISM solves the embedded chain of; null for no matter */
	private StateValues stated(JDDNode rates, Hooks.Work<StateValues> work) throws PrismException
	{
		if (engine == Prism.MTBDD)
			return work.run();
		Symbolic.Knowledge knowledge = new Symbolic.Knowledge();
		// PRISM embeds the model's own rates, whatever it is given.
		knowledge.rates = trans.equals(rates) ? rates : null;
		return Symbolic.stated(knowledge, doIntervalIteration, on -> doIntervalIteration = on, () -> GraphSearch.in(model, work));
	}

	@Override
	protected StateValues computeSteadyStateProbsForBSCC(JDDNode tr, JDDNode bscc) throws PrismException
	{
		return Symbolic.with(Symbolic.Knowledge.ofComponent(true, tr, bscc), () -> super.computeSteadyStateProbsForBSCC(tr, bscc));
	}

	@Override
	protected StateValues checkExpressionFuncNary(ExpressionFunc expr, JDDNode statesOfInterest) throws PrismException
	{
		return Extremum.of(this, model, expr, statesOfInterest);
	}
}
