package prismgpu;

import java.util.BitSet;

import explicit.CTMC;
import explicit.DTMC;
import explicit.DTMCModelChecker;
import explicit.IterationMethod;
import explicit.MinMax;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.PredecessorRelation;
import explicit.StateValues;
import explicit.rewards.MCRewards;
import explicit.rewards.Rewards;
import parser.ast.Expression;
import parser.ast.ExpressionTemporal;
import prism.IntegerBound;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;

/** Numerical work on DTMCs, and on the embedded DTMCs of CTMCs. */
public class GpuDTMCModelChecker extends DTMCModelChecker
{
	private static final String BOUNDED_BEGUN = "\nStarting bounded probabilistic reachability...";
	private static final String BOUNDED_DONE = "Bounded probabilistic reachability took %d iterations and %s seconds.";
	private static final String EXIT_RATE_WEIGHTS = "explicit.CTMCModelChecker$SteadyStateBSCCPostProcessor";

	/** The method that the user named, while PRISM's code sees another in its place; else null. */
	private LinEqMethod hidden;

	/** Whether the next search of a graph is one for which PRISM would relate states to their predecessors first. */
	private boolean tellsPredecessors;

	/** Whether the engine is ours to choose. */
	private final boolean chosen;

	/** Of the chain, or of the CTMC whose embedded chain it is. */
	private final SteadySum steady;

	public GpuDTMCModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
		steady = parent instanceof GpuCTMCModelChecker ? ((GpuCTMCModelChecker) parent).steady : new SteadySum();
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
	public StateValues checkExpression(Model<?> asked, Expression expr, BitSet statesOfInterest) throws PrismException
	{
		Model<?> model = ParallelTransitions.original(asked);
		BitSet wanted = Filters.wanted(expr, statesOfInterest);
		return Evaluation.explicit(this, model, expr, wanted, propertiesFile, result, () -> super.checkExpression(model, expr, wanted));
	}

	// PRISM builds the products with automata here, those of CTMCs too.

	@Override
	protected StateValues checkProbPathFormulaLTL(Model<?> model, Expression expr, boolean qual, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		return super.checkProbPathFormulaLTL(ParallelTransitions.addedUp(model, mainLog), expr, qual, minMax, statesOfInterest);
	}

	@Override
	protected StateValues checkRewardCoSafeLTL(Model<?> model, Rewards<?> modelRewards, Expression expr, MinMax minMax, BitSet statesOfInterest)
			throws PrismException
	{
		// Its rewards are those of states: what transitions earn is in there as expected values.
		return super.checkRewardCoSafeLTL(ParallelTransitions.addedUp(model, mainLog), modelRewards, expr, minMax, statesOfInterest);
	}

	@Override
	public ModelCheckerResult computeReachProbs(DTMC<Double> dtmc, BitSet remain, BitSet target, double[] init, BitSet known) throws PrismException
	{
		return prepared(dtmc, () -> super.computeReachProbs(dtmc, remain, target, init, known));
	}

	@Override
	public ModelCheckerResult computeReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, double[] init, BitSet known) throws PrismException
	{
		return prepared(dtmc, () -> super.computeReachRewards(dtmc, mcRewards, target, init, known));
	}

	/**
	 * Runs PRISM's code without what only its own solves need: a relation of predecessors, and the
	 * replacing of a method that its explicit engine lacks and ours has.
	 */
	private ModelCheckerResult prepared(DTMC<Double> dtmc, Hooks.Work<ModelCheckerResult> work) throws PrismException
	{
		LinEqMethod named = linEqMethod;
		boolean related = preRel;
		boolean relaxed = named == LinEqMethod.JOR || named == LinEqMethod.SOR || named == LinEqMethod.BACKWARDS_SOR;
		if (relaxed && !getDoIntervalIteration() && Hooks.refusal(settings) == null) {
			hidden = named;
			linEqMethod = LinEqMethod.JACOBI;
		}
		preRel = related && !Hooks.answersGraphs(dtmc);
		tellsPredecessors = related && !preRel;
		try {
			return work.run();
		} finally {
			linEqMethod = named;
			hidden = null;
			preRel = related;
			tellsPredecessors = false;
		}
	}

	@Override
	protected ModelCheckerResult doValueIterationReachProbs(DTMC<Double> dtmc, BitSet no, BitSet yes, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(dtmc, no, yes, init, known);
		return res != null ? res : super.doValueIterationReachProbs(dtmc, no, yes, init, known, iterationMethod, topological);
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachProbs(DTMC<Double> dtmc, BitSet no, BitSet yes, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(dtmc, no, yes, init, known);
		return res != null ? res : super.doIntervalIterationReachProbs(dtmc, no, yes, init, known, iterationMethod, topological);
	}

	private ModelCheckerResult solveReachProbs(DTMC<Double> dtmc, BitSet no, BitSet yes, double[] init, BitSet known) throws PrismException
	{
		int n = dtmc.getNumStates();
		double initial = valIterDir == ValIterDir.BELOW ? 0.0 : 1.0;
		Problem problem = problem(dtmc, Hooks.untilTask(settings)).about(Hooks.unknown(n, yes, no, known));
		return solveUnlessRefused(problem.fromProbs(yes, no, init, known, initial));
	}

	private ModelCheckerResult solveUnlessRefused(Problem problem) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		if (refusal == null)
			return Hooks.solve(problem, mainLog);
		Hooks.handBack(mainLog, refusal);
		return null;
	}

	@Override
	protected ModelCheckerResult doValueIterationReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init,
			BitSet known, IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		ModelCheckerResult res = solveReachRewards(dtmc, mcRewards, target, inf, init, known);
		return res != null ? res : super.doValueIterationReachRewards(dtmc, mcRewards, target, inf, init, known, iterationMethod, topological);
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init,
			BitSet known, IterationMethod iterationMethod, boolean topological) throws PrismException
	{
		ModelCheckerResult res = solveReachRewards(dtmc, mcRewards, target, inf, init, known);
		return res != null ? res : super.doIntervalIterationReachRewards(dtmc, mcRewards, target, inf, init, known, iterationMethod, topological);
	}

	private ModelCheckerResult solveReachRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init, BitSet known)
			throws PrismException
	{
		int n = dtmc.getNumStates();
		Problem problem = problem(dtmc, "reachability").about(Hooks.unknown(n, target, inf, known));
		problem.fromRewards(target, inf, init, known).earning(dtmc, mcRewards);
		return solveUnlessRefused(problem);
	}

	// The sets of probability 0 and 1.

	@Override
	public BitSet prob0(Model<?> dtmc, BitSet remain, BitSet target, PredecessorRelation pre)
	{
		BitSet found = statesOf(dtmc, "prob0", remain, target);
		return found != null ? found : super.prob0(dtmc, remain, target, pre);
	}

	@Override
	public BitSet prob0(Model<?> dtmc, BitSet remain, BitSet target)
	{
		BitSet found = statesOf(dtmc, "prob0", remain, target);
		return found != null ? found : super.prob0(dtmc, remain, target);
	}

	@Override
	public BitSet prob1(Model<?> dtmc, BitSet remain, BitSet target, PredecessorRelation pre)
	{
		BitSet found = statesOf(dtmc, "prob1", remain, target);
		return found != null ? found : super.prob1(dtmc, remain, target, pre);
	}

	@Override
	public BitSet prob1(Model<?> dtmc, BitSet remain, BitSet target)
	{
		BitSet found = statesOf(dtmc, "prob1", remain, target);
		return found != null ? found : super.prob1(dtmc, remain, target);
	}

	private void findPredecessors(Model<?> model)
	{
		if (tellsPredecessors)
			Predecessors.find(model, mainLog, () -> EmbeddedChain.source(doubles(model)));
		tellsPredecessors = false;
	}

	private BitSet statesOf(Model<?> model, String task, BitSet remain, BitSet target)
	{
		findPredecessors(model);
		if (!(model instanceof DTMC) || !Hooks.answersGraphs(model) || target.isEmpty())
			return null;
		Problem problem = new Problem(task, mainLog, EmbeddedChain.source(doubles(model))).about(target).within(remain);
		return Hooks.states(problem, mainLog, silentPrecomputations ? null : "Prob" + task.charAt(4));
	}

	@Override
	public ModelCheckerResult computeSteadyStateProbsForBSCC(DTMC<Double> dtmc, BitSet states, double[] result, BSCCPostProcessor bsccPostProcessor)
			throws PrismException
	{
		// Topology and interval iteration play no part here; PRISM ignores both.
		boolean ours = Hooks.backend != null && (settings == null || !settings.getBoolean(prism.PrismSettings.PRISM_EXPORT_ITERATIONS));
		boolean weighted = bsccPostProcessor != null && bsccPostProcessor.getClass().getName().equals(EXIT_RATE_WEIGHTS);
		CTMC<Double> ctmc = weighted ? EmbeddedChain.parent(dtmc) : null;
		if (ours && (bsccPostProcessor == null || ctmc != null)) {
			Problem problem = problem(dtmc, "steady state").about(states);
			problem.embedded = problem.embedded && ctmc == null;
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null) {
				// Rates give the probabilities of the CTMC itself, with nothing left to weigh.
				steady.found(res, states);
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

	@Override
	public ModelCheckerResult computeSteadyStateBackwardsProbs(DTMC<Double> dtmc, double[] mult, BSCCPostProcessor bsccPostProcessor) throws PrismException
	{
		steady.begin(mult);
		ModelCheckerResult res = super.computeSteadyStateBackwardsProbs(dtmc, mult, bsccPostProcessor);
		res.accuracy = steady.ended();
		return res;
	}

	@Override
	public ModelCheckerResult computeUntilProbs(DTMC<Double> dtmc, BitSet remain, BitSet target) throws PrismException
	{
		return steady.reached(super.computeUntilProbs(dtmc, remain, target));
	}

	@Override
	public ModelCheckerResult computeSteadyStateProbs(DTMC<Double> dtmc, double[] initDist, BSCCPostProcessor bsccPostProcessor) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		Problem problem = problem(dtmc, "long-run distribution");
		if (refusal == null && Hooks.backend.putsTogether(problem))
			return super.computeSteadyStateProbs(dtmc, initDist, bsccPostProcessor);
		if (refusal != null || bsccPostProcessor != null)
			return Hooks.handBack(mainLog, refusal != null ? refusal : "a steady state of weighted components",
					() -> super.computeSteadyStateProbs(dtmc, initDist, bsccPostProcessor));
		ModelCheckerResult res = Hooks.solve(problem.from(initDist), mainLog);
		return res != null ? res : super.computeSteadyStateProbs(dtmc, initDist, bsccPostProcessor);
	}

	@Override
	public ModelCheckerResult computeNextProbs(DTMC<Double> dtmc, BitSet target) throws PrismException
	{
		ModelCheckerResult res = Hooks.solve(problem(dtmc, "next").about(target), mainLog);
		return res != null ? res : super.computeNextProbs(dtmc, target);
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Model<?> model, Expression expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(model, expr, minMax, statesOfInterest);
		return Hooks.isNegated(expr) ? Hooks.negated(probs) : probs;
	}

	@Override
	protected StateValues checkProbBoundedUntil(Model<?> model, ExpressionTemporal expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		IntegerBound bounds = IntegerBound.fromExpressionTemporal(expr, constantValues, true);
		if (!(model instanceof DTMC) || !bounds.hasLowerBound() || bounds.getLowestInteger() == 0)
			return super.checkProbBoundedUntil(model, expr, minMax, statesOfInterest);
		// PRISM takes the steps before the lower bound one by one; the engines take them at once.
		DTMC<Double> dtmc = doubles(model);
		int lower = bounds.getLowestInteger();
		BitSet remain = checkExpression(model, expr.getOperand1(), null).getBitSet();
		BitSet target = checkExpression(model, expr.getOperand2(), null).getBitSet();
		Problem problem = problem(dtmc, "step-bounded until").about(target).within(remain);
		ModelCheckerResult until = null;
		if (bounds.hasUpperBound()) {
			problem.between(lower, bounds.getHighestInteger());
		} else {
			until = computeUntilProbs(dtmc, remain, target);
			problem.from(until.soln).between(lower, lower);
		}
		ModelCheckerResult res = until == null ? Hooks.solveSteps(problem, mainLog, BOUNDED_BEGUN, BOUNDED_DONE) : Hooks.solve(problem, mainLog);
		if (res == null)
			return super.checkProbBoundedUntil(model, expr, minMax, statesOfInterest);
		if (until != null && !Comparison.asksForCertainty())
			res.accuracy = DecidedAccuracy.before(until.accuracy, lower);
		return StateValues.createFromArrayResult(res, model);
	}

	@Override
	public ModelCheckerResult computeBoundedReachProbs(DTMC<Double> dtmc, BitSet remain, BitSet target, int k, double[] init, double[] results)
			throws PrismException
	{
		if (init != null || results != null)
			return Hooks.handBack(mainLog, "a step-bounded until that starts from given values or keeps those of each step",
					() -> super.computeBoundedReachProbs(dtmc, remain, target, k, init, results));
		Problem problem = problem(dtmc, "step-bounded until").about(target).within(remain).upTo(k);
		ModelCheckerResult res = Hooks.solveSteps(problem, mainLog, BOUNDED_BEGUN, BOUNDED_DONE);
		return res != null ? res : super.computeBoundedReachProbs(dtmc, remain, target, k, init, results);
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		Problem problem = problem(dtmc, "cumulative reward").earning(dtmc, mcRewards).upTo((int) t);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\nStarting backwards cumulative rewards computation...",
				"Backwards cumulative rewards computation took %d iters and %s seconds.");
		return res != null ? res : super.computeCumulativeRewards(dtmc, mcRewards, t);
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, int k, BitSet statesOfInterest)
			throws PrismException
	{
		// PRISM's code fails where all states are of interest, as in the states of a filter.
		return statesOfInterest == null ? computeInstantaneousRewardsBackwards(dtmc, mcRewards, k)
				: super.computeInstantaneousRewards(dtmc, mcRewards, k, statesOfInterest);
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewardsBackwards(DTMC<Double> dtmc, MCRewards<Double> mcRewards, int k) throws PrismException
	{
		Problem problem = problem(dtmc, "instantaneous reward").earning(dtmc, mcRewards).upTo(k);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, Hooks.INSTANTANEOUS_BEGUN, Hooks.INSTANTANEOUS_DONE);
		return res != null ? res : super.computeInstantaneousRewardsBackwards(dtmc, mcRewards, k);
	}

	@Override
	public ModelCheckerResult computeTotalRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		if (refusal != null)
			return Hooks.handBack(mainLog, refusal, () -> super.computeTotalRewards(dtmc, mcRewards));
		Problem problem = problem(dtmc, "total reward");
		if (Hooks.backend.putsTogether(problem))
			return prepared(dtmc, () -> super.computeTotalRewards(dtmc, mcRewards));
		ModelCheckerResult res = Hooks.solve(problem.earning(dtmc, mcRewards), mainLog, Hooks.TOTAL_BEGUN, Hooks.TOTAL_DONE);
		return res != null ? res : super.computeTotalRewards(dtmc, mcRewards);
	}

	/** PRISM's power method for total rewards. Equations do not decide states from where nothing more is earned: they have 0. */
	@Override
	protected ModelCheckerResult computeReachRewardsValIter(DTMC<Double> dtmc, MCRewards<Double> mcRewards, BitSet target, BitSet inf, double[] init, BitSet known)
			throws PrismException
	{
		if (Hooks.refusal(settings) != null || init != null || known != null)
			return super.computeReachRewardsValIter(dtmc, mcRewards, target, inf, init, known);
		int n = dtmc.getNumStates();
		BitSet earning = new BitSet(n);
		for (int s = 0; s < n; s++)
			earning.set(s, mcRewards.getStateReward(s) > 0.0);
		boolean outer = silentPrecomputations;
		silentPrecomputations = true;
		BitSet zero = prob0(dtmc, null, earning);
		silentPrecomputations = outer;
		zero.or(target);
		Problem problem = problem(dtmc, "reachability").about(Hooks.unknown(n, zero, inf, null)).fromRewards(zero, inf, null, null).earning(dtmc, mcRewards);
		problem.method = LinEqMethod.POWER.fullName();
		problem.told = true;
		mainLog.println("Starting value iteration...");
		long timer = System.currentTimeMillis();
		try {
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res == null)
				return super.computeReachRewardsValIter(dtmc, mcRewards, target, inf, init, known);
			tellValueIteration(problem, timer);
			return res;
		} catch (PrismException error) {
			// Where it has not converged.
			if (problem.iterations > 0)
				tellValueIteration(problem, timer);
			throw error;
		}
	}

	private void tellValueIteration(Problem problem, long timer)
	{
		// PRISM counts the step by which nothing changes where all is known.
		int steps = Math.max(1, problem.iterations);
		mainLog.println("Value iteration took " + steps + " iterations and " + (System.currentTimeMillis() - timer) / 1000.0 + " seconds.");
	}

	@Override
	protected StateValues computeSteadyStateFormula(DTMC<Double> dtmc, BitSet b) throws PrismException
	{
		ModelCheckerResult res = asksForAverage() ? solve(average(dtmc).about(b)) : null;
		StateValues put = res == null ? steady.told(super.computeSteadyStateFormula(dtmc, b)) : null;
		if (put != null && Comparison.isNear(put.getDoubleArray()))
			res = solve(average(dtmc).about(b));
		return res != null ? StateValues.createFromArrayResult(res, dtmc) : put;
	}

	@Override
	public ModelCheckerResult computeSteadyStateRewards(DTMC<Double> dtmc, MCRewards<Double> mcRewards) throws PrismException
	{
		ModelCheckerResult res = asksForAverage() ? solve(average(dtmc).earning(dtmc, mcRewards)) : null;
		ModelCheckerResult put = res == null ? super.computeSteadyStateRewards(dtmc, mcRewards) : null;
		if (put != null && Comparison.isNear(put.soln))
			res = solve(average(dtmc).earning(dtmc, mcRewards));
		return res != null ? res : put;
	}

	/** Whether the long run is one question: PRISM, which puts it together from solves, forgets their errors. */
	private boolean asksForAverage()
	{
		return chosen || getDoIntervalIteration();
	}

	/** The long run as one question. */
	private Problem average(DTMC<Double> dtmc) throws PrismException
	{
		return problem(dtmc, "long-run average");
	}

	private ModelCheckerResult solve(Problem problem) throws PrismException
	{
		return Hooks.backend == null ? null : Hooks.solve(problem, mainLog);
	}

	@Override
	public ModelCheckerResult computeTransientProbs(DTMC<Double> dtmc, int k, double[] initDist) throws PrismException
	{
		Problem problem = problem(dtmc, "transient distribution").from(initDist).upTo(k);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, Hooks.TRANSIENT_BEGUN, "Transient probability computation took %d iterations and %s seconds.");
		if (res == null)
			return super.computeTransientProbs(dtmc, k, initDist);
		// PRISM states none, and rewards that it computes from these would be taken for exact.
		res.accuracy = null;
		return res;
	}

	@SuppressWarnings("unchecked")
	private static DTMC<Double> doubles(Model<?> model)
	{
		return (DTMC<Double>) model;
	}

	private Problem problem(DTMC<Double> dtmc, String task) throws PrismException
	{
		Problem problem = new Problem(task, mainLog, EmbeddedChain.source(dtmc));
		problem.embedded = EmbeddedChain.is(dtmc);
		return Hooks.ask(problem, this, (hidden == null ? linEqMethod : hidden).fullName());
	}
}
