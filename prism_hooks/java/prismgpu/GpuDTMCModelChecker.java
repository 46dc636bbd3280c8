package prismgpu;

import java.lang.reflect.Field;
import java.util.BitSet;

import explicit.CTMC;
import explicit.DTMC;
import explicit.DTMCEmbeddedSimple;
import explicit.DTMCModelChecker;
import explicit.IterationMethod;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.StateValues;
import explicit.rewards.MCRewards;
import parser.ast.Expression;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;

/** Numerical work on DTMCs, and on the embedded DTMCs of CTMCs. */
public class GpuDTMCModelChecker extends DTMCModelChecker
{
	private static final String EXIT_RATE_WEIGHTS = "explicit.CTMCModelChecker$SteadyStateBSCCPostProcessor";

	/** The method that the user named, while PRISM's code sees another in its place; else null. */
	private LinEqMethod hidden;

	public GpuDTMCModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
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
		StateValues answer = Operators.answer(this, model, expr, propertiesFile);
		return answer != null ? answer : super.checkExpression(model, expr, statesOfInterest);
	}

	@Override
	public ModelCheckerResult computeReachProbs(DTMC<Double> dtmc, BitSet remain, BitSet target, double[] init, BitSet known) throws PrismException
	{
		LinEqMethod named = hideMethod();
		try {
			return super.computeReachProbs(dtmc, remain, target, init, known);
		} finally {
			linEqMethod = named;
			hidden = null;
		}
	}

	@Override
	public ModelCheckerResult computeReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, double[] init, BitSet known) throws PrismException
	{
		LinEqMethod named = hideMethod();
		try {
			return super.computeReachRewards(dtmc, mcRewards, target, init, known);
		} finally {
			linEqMethod = named;
			hidden = null;
		}
	}

	/**
	 * Hides a method that PRISM's explicit engine would replace by another, and ours would not.
	 * @return The method as it was named
	 */
	private LinEqMethod hideMethod()
	{
		LinEqMethod named = linEqMethod;
		boolean relaxed = named == LinEqMethod.JOR || named == LinEqMethod.SOR || named == LinEqMethod.BACKWARDS_SOR;
		if (relaxed && refusal(false) == null) {
			hidden = named;
			linEqMethod = LinEqMethod.JACOBI;
		}
		return named;
	}

	private String refusal(boolean topological)
	{
		return Hooks.refusal(settings, topological || getDoTopologicalValueIteration());
	}

	@Override
	protected ModelCheckerResult doValueIterationReachProbs(DTMC<Double> dtmc, BitSet no, BitSet yes, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		String refusal = refusal(topological);
		if (refusal == null) {
			int n = dtmc.getNumStates();
			double initial = valIterDir == ValIterDir.BELOW ? 0.0 : 1.0;
			Problem problem = problem(dtmc, "reachability", Hooks.unknown(n, yes, no, known));
			problem.start = Hooks.startOfProbs(n, yes, no, init, known, initial);
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null)
				return res;
		} else {
			Hooks.handBack(mainLog, refusal);
		}
		return super.doValueIterationReachProbs(dtmc, no, yes, init, known, iterationMethod, topological);
	}

	@Override
	protected ModelCheckerResult doValueIterationReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init,
			BitSet known, IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		String refusal = refusal(topological);
		if (refusal == null) {
			int n = dtmc.getNumStates();
			Problem problem = problem(dtmc, "reachability", Hooks.unknown(n, target, inf, known));
			problem.start = Hooks.startOfRewards(n, target, inf, init, known);
			problem.rewards = new double[n];
			for (int i = 0; i < n; i++)
				problem.rewards[i] = mcRewards.getStateReward(i);
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null)
				return res;
		} else {
			Hooks.handBack(mainLog, refusal);
		}
		return super.doValueIterationReachRewards(dtmc, mcRewards, target, inf, init, known, iterationMethod, topological);
	}

	@Override
	public ModelCheckerResult computeSteadyStateProbsForBSCC(DTMC<Double> dtmc, BitSet states, double[] result, BSCCPostProcessor bsccPostProcessor)
			throws PrismException
	{
		// Topology and interval iteration play no part here; PRISM ignores both.
		boolean ours = Hooks.backend != null && (settings == null || !settings.getBoolean(prism.PrismSettings.PRISM_EXPORT_ITERATIONS));
		boolean weighted = bsccPostProcessor != null && bsccPostProcessor.getClass().getName().equals(EXIT_RATE_WEIGHTS);
		CTMC<Double> ctmc = weighted ? parent(dtmc) : null;
		if (ours && weighted == (ctmc != null)) {
			Problem problem = ctmc == null ? problem(dtmc, "steady state", states)
					: question(new Problem(mainLog, Extract.of(ctmc)), "steady state", states);
			problem.embedded = problem.embedded && ctmc == null;
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null) {
				// Rates give the probabilities of the CTMC itself, with nothing left to weigh.
				if (bsccPostProcessor != null && !weighted)
					bsccPostProcessor.apply(res.soln, states);
				if (result == null)
					return res;
				for (int i = states.nextSetBit(0); i >= 0; i = states.nextSetBit(i + 1))
					result[i] = res.soln[i];
				res.soln = result;
				return res;
			}
		} else {
			Hooks.handBack(mainLog, "steady-state computation " + (ours ? "of this kind of model" : "with export of iterations"));
		}
		return super.computeSteadyStateProbsForBSCC(dtmc, states, result, bsccPostProcessor);
	}

	private Problem problem(DTMC<Double> dtmc, String task, BitSet states)
	{
		CTMC<Double> ctmc = parent(dtmc);
		Problem problem = new Problem(mainLog, ctmc == null ? Extract.of(dtmc) : Extract.of(ctmc));
		problem.embedded = ctmc != null;
		return question(problem, task, states);
	}

	private Problem question(Problem problem, String task, BitSet states)
	{
		Hooks.ask(problem, task, states, this, (hidden == null ? linEqMethod : hidden).fullName());
		return problem;
	}

	/** The CTMC that a DTMC is the embedded chain of, or null. */
	@SuppressWarnings("unchecked")
	private static CTMC<Double> parent(DTMC<Double> dtmc)
	{
		if (!(dtmc instanceof DTMCEmbeddedSimple))
			return null;
		try {
			Field field = DTMCEmbeddedSimple.class.getDeclaredField("ctmc");
			field.setAccessible(true);
			return (CTMC<Double>) field.get(dtmc);
		} catch (ReflectiveOperationException | ClassCastException e) {
			return null;
		}
	}

	// What is left to PRISM's own code, each with its line in the log.

	@Override
	protected ModelCheckerResult doIntervalIterationReachProbs(DTMC<Double> dtmc, BitSet no, BitSet yes, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		return Hooks.handBack(mainLog, "interval iteration", () -> super.doIntervalIterationReachProbs(dtmc, no, yes, init, known, iterationMethod, topological));
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init,
			BitSet known, IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		return Hooks.handBack(mainLog, "interval iteration", () -> super.doIntervalIterationReachRewards(dtmc, mcRewards, target, inf, init, known, iterationMethod, topological));
	}

	@Override
	public ModelCheckerResult computeNextProbs(DTMC<Double> dtmc, BitSet target) throws PrismException
	{
		return Hooks.handBack(mainLog, "a next operator", () -> super.computeNextProbs(dtmc, target));
	}

	@Override
	public ModelCheckerResult computeBoundedReachProbs(DTMC<Double> dtmc, BitSet remain, BitSet target, int k, double[] init, double[] results)
			throws PrismException
	{
		return Hooks.handBack(mainLog, "a step-bounded until", () -> super.computeBoundedReachProbs(dtmc, remain, target, k, init, results));
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewardsBackwards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, int k) throws PrismException
	{
		return Hooks.handBack(mainLog, "an instantaneous reward", () -> super.computeInstantaneousRewardsBackwards(dtmc, mcRewards, k));
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewardsForwards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, int k, int stateOfInterest)
			throws PrismException
	{
		return Hooks.handBack(mainLog, "an instantaneous reward", () -> super.computeInstantaneousRewardsForwards(dtmc, mcRewards, k, stateOfInterest));
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		return Hooks.handBack(mainLog, "a cumulative reward", () -> super.computeCumulativeRewards(dtmc, mcRewards, t));
	}

	@Override
	public ModelCheckerResult computeTotalRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards) throws PrismException
	{
		return Hooks.handBack(mainLog, "a total reward", () -> super.computeTotalRewards(dtmc, mcRewards));
	}

	@Override
	public ModelCheckerResult computeTransientProbs(DTMC<Double> dtmc, int k, double[] initDist) throws PrismException
	{
		return Hooks.handBack(mainLog, "a transient distribution", () -> super.computeTransientProbs(dtmc, k, initDist));
	}
}
