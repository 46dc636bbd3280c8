package prismgpu;

import java.util.BitSet;

import explicit.CTMC;
import explicit.CTMCModelChecker;
import explicit.MinMax;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.StateValues;
import explicit.rewards.MCRewards;
import parser.ast.Expression;
import parser.ast.ExpressionTemporal;
import prism.Accuracy;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;

/** Numerical work on CTMCs; what has no bound of time PRISM sends to the embedded DTMC. */
public class GpuCTMCModelChecker extends CTMCModelChecker
{
	/** The absolute errors of the solves of the until at hand, added up; NaN where one is not known. */
	private double error;
	/** What is known of the error after all of them; null before the first. */
	private Accuracy combined;

	/** Whether the engine is ours to choose. */
	private final boolean chosen;

	final SteadySum steady = new SteadySum();

	public GpuCTMCModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
		chosen = GpuPrism.explores(parent);
		GpuPrism.listAsByDefault(this, parent);
	}

	@Override
	public <Value> Result check(Model<Value> model, Expression expr) throws PrismException
	{
		if (Hooks.exchange == null)
			return super.check(model, expr);
		result = new Result();
		Operators.start(this, model, expr, propertiesFile);
		return Hooks.exchange.collects() ? result : super.check(model, expr);
	}

	@Override
	public StateValues checkExpression(Model<?> model, Expression expr, BitSet statesOfInterest) throws PrismException
	{
		BitSet wanted = Filters.wanted(expr, statesOfInterest);
		return Evaluation.explicit(this, model, expr, wanted, propertiesFile, result, () -> super.checkExpression(model, expr, wanted));
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Model<?> model, Expression expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(model, expr, minMax, statesOfInterest);
		return Hooks.isNegated(expr) ? Hooks.negated(probs) : probs;
	}

	/** PRISM puts an until together from solves, and forgets their errors; neither makes one larger. */
	@Override
	protected StateValues checkProbBoundedUntil(Model<?> model, ExpressionTemporal expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		double outer = error;
		Accuracy outerAccuracy = combined;
		error = 0.0;
		combined = null;
		try {
			StateValues probs = super.checkProbBoundedUntil(model, expr, minMax, statesOfInterest);
			if (!Double.isNaN(error) && !Comparison.asksForCertainty())
				probs.setAccuracy(combined == null ? new ExactAccuracy() : combined);
			return probs;
		} finally {
			error = outer;
			combined = outerAccuracy;
		}
	}

	@Override
	public ModelCheckerResult computeUntilProbs(CTMC<Double> ctmc, BitSet remain, BitSet target) throws PrismException
	{
		return noted(super.computeUntilProbs(ctmc, remain, target));
	}

	@Override
	public ModelCheckerResult computeTransientBackwardsProbs(CTMC<Double> ctmc, BitSet target, BitSet nonAbs, double t, double[] multProbs)
			throws PrismException
	{
		if (multProbs == null && (t == 0 || nonAbs != null && nonAbs.isEmpty()))
			return super.computeTransientBackwardsProbs(ctmc, target, nonAbs, t, multProbs);
		Problem problem = problem(ctmc, "time-bounded until").about(target).within(nonAbs).from(multProbs).upTo(t);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\nStarting backwards transient probability computation...",
				"Backwards transient probability computation took %d iters and %s seconds.");
		return noted(res != null ? res : super.computeTransientBackwardsProbs(ctmc, target, nonAbs, t, multProbs));
	}

	/** Adds the error of probabilities, none above 1, to that of the until at hand. */
	private ModelCheckerResult noted(ModelCheckerResult res)
	{
		Accuracy accuracy = res.accuracy;
		error += accuracy == null ? Double.NaN : DecidedAccuracy.ofProbabilities(accuracy);
		combined = DecidedAccuracy.ofSeveral(error, combined, accuracy);
		return res;
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		Problem problem = problem(ctmc, "cumulative reward").earning(ctmc, mcRewards).upTo(t);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\nStarting backwards cumulative rewards computation...",
				"Backwards transient cumulative rewards computation took %d iters and %s seconds.");
		return res != null ? decidable(res) : super.computeCumulativeRewards(ctmc, mcRewards, t);
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		if (t == 0)
			return decidable(super.computeInstantaneousRewards(ctmc, mcRewards, t));
		Problem problem = problem(ctmc, "instantaneous reward").earning(ctmc, mcRewards).upTo(t);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, Hooks.INSTANTANEOUS_BEGUN, Hooks.INSTANTANEOUS_DONE);
		return res != null ? decidable(res) : super.computeInstantaneousRewards(ctmc, mcRewards, t);
	}

	/** Leaves out the accuracy, as PRISM does, where no accuracy would do. */
	private ModelCheckerResult decidable(ModelCheckerResult res) throws PrismException
	{
		if (Comparison.asksForCertainty())
			res.accuracy = null;
		return res;
	}

	@Override
	public ModelCheckerResult computeTotalRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		if (refusal != null)
			return Hooks.handBack(mainLog, refusal, () -> super.computeTotalRewards(ctmc, mcRewards));
		Problem problem = problem(ctmc, "total reward");
		if (Hooks.backend.putsTogether(problem))
			return super.computeTotalRewards(ctmc, mcRewards);
		ModelCheckerResult res = Hooks.solve(problem.earning(ctmc, mcRewards), mainLog, Hooks.TOTAL_BEGUN, Hooks.TOTAL_DONE);
		return res != null ? res : super.computeTotalRewards(ctmc, mcRewards);
	}

	@Override
	protected StateValues computeSteadyStateFormula(CTMC<Double> ctmc, BitSet b) throws PrismException
	{
		ModelCheckerResult res = asksForAverage() ? solve(average(ctmc).about(b)) : null;
		StateValues put = res == null ? steady.told(super.computeSteadyStateFormula(ctmc, b)) : null;
		if (put != null && Comparison.isNear(put.getDoubleArray()))
			res = solve(average(ctmc).about(b));
		return res != null ? StateValues.createFromArrayResult(res, ctmc) : put;
	}

	@Override
	public ModelCheckerResult computeSteadyStateRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards) throws PrismException
	{
		ModelCheckerResult res = asksForAverage() ? solve(average(ctmc).earning(ctmc, mcRewards)) : null;
		ModelCheckerResult put = res == null ? super.computeSteadyStateRewards(ctmc, mcRewards) : null;
		if (put != null && Comparison.isNear(put.soln))
			res = solve(average(ctmc).earning(ctmc, mcRewards));
		return res != null ? res : put;
	}

	/** Whether the long run is one question: PRISM, which puts it together from solves, forgets their errors. */
	private boolean asksForAverage()
	{
		return chosen || getDoIntervalIteration();
	}

	/** The long run as one question. */
	private Problem average(CTMC<Double> ctmc) throws PrismException
	{
		return problem(ctmc, "long-run average");
	}

	private ModelCheckerResult solve(Problem problem) throws PrismException
	{
		return Hooks.backend == null ? null : Hooks.solve(problem, mainLog);
	}

	@Override
	public ModelCheckerResult computeTransientProbs(CTMC<Double> ctmc, double t, double[] initDist) throws PrismException
	{
		Problem problem = problem(ctmc, "transient distribution").from(initDist).upTo(t);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\n" + Hooks.TRANSIENT_BEGUN, "Transient probability computation took %d iters and %s seconds.");
		return res != null ? res : super.computeTransientProbs(ctmc, t, initDist);
	}

	@Override
	public ModelCheckerResult computeSteadyStateProbs(CTMC<Double> ctmc, double[] initDist) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		if (refusal != null)
			return Hooks.handBack(mainLog, refusal, () -> super.computeSteadyStateProbs(ctmc, initDist));
		Problem problem = problem(ctmc, "long-run distribution");
		if (Hooks.backend.putsTogether(problem))
			return super.computeSteadyStateProbs(ctmc, initDist);
		ModelCheckerResult res = Hooks.solve(problem.from(initDist), mainLog);
		return res != null ? res : super.computeSteadyStateProbs(ctmc, initDist);
	}

	private Problem problem(CTMC<Double> ctmc, String task) throws PrismException
	{
		return Hooks.ask(new Problem(task, mainLog, Extract.of(ctmc)), this, linEqMethod.fullName());
	}
}
