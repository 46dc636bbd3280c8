package prismgpu;

import java.util.BitSet;

import explicit.IterationMethod;
import explicit.MDP;
import explicit.MDPModelChecker;
import explicit.MinMax;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.NondetModel;
import explicit.POMDPModelChecker;
import explicit.StateValues;
import explicit.rewards.MDPRewards;
import explicit.rewards.Rewards;
import parser.ast.Expression;
import parser.ast.ExpressionTemporal;
import prism.IntegerBound;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;
import strat.MDStrategyArray;

/** Numerical work on MDPs. */
public class GpuMDPModelChecker extends MDPModelChecker
{
	private static final String STRATEGY = "generation of a strategy";
	private static final String TOTAL = "total reward";
	/** PRISM's number for it in a strategy. */
	private static final int ANY_CHOICE = -2;

	/** Whether the MDPs are steps of solving a POMDP, which is PRISM's as a whole. */
	private final boolean ofBeliefs;
	/** Whether rewards until a goal that is none are total ones, as PRISM solves for these. */
	private boolean total;

	public GpuMDPModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
		ofBeliefs = parent instanceof POMDPModelChecker;
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
	protected ModelCheckerResult doValueIterationReachProbs(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(mdp, no, yes, min, init, known, strat);
		return res != null ? res : super.doValueIterationReachProbs(mdp, no, yes, min, init, known, iterationMethod, topological, strat);
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachProbs(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(mdp, no, yes, min, init, known, strat);
		return res != null ? res : super.doIntervalIterationReachProbs(mdp, no, yes, min, init, known, iterationMethod, topological, strat);
	}

	@Override
	protected ModelCheckerResult computeReachProbsPolIter(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(mdp, no, yes, min, null, null, strat);
		return res != null ? decidable(res) : super.computeReachProbsPolIter(mdp, no, yes, min, strat);
	}

	@Override
	protected ModelCheckerResult computeReachProbsModPolIter(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachProbs(mdp, no, yes, min, null, null, strat);
		return res != null ? decidable(res) : super.computeReachProbsModPolIter(mdp, no, yes, min, strat);
	}

	private ModelCheckerResult solveReachProbs(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, double[] init, BitSet known, int[] strat)
			throws PrismException
	{
		int n = mdp.getNumStates();
		double initial = valIterDir == ValIterDir.BELOW ? 0.0 : 1.0;
		Problem problem = problem(mdp, Hooks.untilTask(settings), min).about(Hooks.unknown(n, yes, no, known));
		return solveUnlessRefused(problem.fromProbs(yes, no, init, known, initial), strat);
	}

	@Override
	protected ModelCheckerResult doValueIterationReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, IterationMethod iterationMethod, BitSet target,
			BitSet inf, boolean min, double[] init, BitSet known, boolean topological, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachRewards(mdp, mdpRewards, target, inf, min, init, known, strat);
		return res != null ? res
				: super.doValueIterationReachRewards(mdp, mdpRewards, iterationMethod, target, inf, min, init, known, topological, strat);
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, IterationMethod iterationMethod,
			BitSet target, BitSet inf, boolean min, double[] init, BitSet known, boolean topological, int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachRewards(mdp, mdpRewards, target, inf, min, init, known, strat);
		return res != null ? res
				: super.doIntervalIterationReachRewards(mdp, mdpRewards, iterationMethod, target, inf, min, init, known, topological, strat);
	}

	@Override
	protected ModelCheckerResult computeReachRewardsPolIter(MDP<Double> mdp, MDPRewards<Double> mdpRewards, BitSet target, BitSet inf, boolean min,
			int[] strat) throws PrismException
	{
		ModelCheckerResult res = solveReachRewards(mdp, mdpRewards, target, inf, min, null, null, strat);
		return res != null ? decidable(res) : super.computeReachRewardsPolIter(mdp, mdpRewards, target, inf, min, strat);
	}

	@Override
	public ModelCheckerResult computeReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, BitSet target, boolean min, double[] init, BitSet known)
			throws PrismException
	{
		ModelCheckerResult res = super.computeReachRewards(mdp, mdpRewards, target, min, init, known);
		if (genStrat && !min && !ofBeliefs && Hooks.refusal(settings) == null)
			res.strat = avoidingWhereInfinite(mdp, target, res);
		return res;
	}

	/** Has states of infinite reward miss the target; PRISM takes any choice by which they may stay among them. */
	private MDStrategyArray<Double> avoidingWhereInfinite(MDP<Double> mdp, BitSet target, ModelCheckerResult res) throws PrismException
	{
		MDStrategyArray<Double> found = (MDStrategyArray<Double>) res.strat;
		int n = mdp.getNumStates();
		BitSet infinite = new BitSet(n);
		int[] strat = new int[n];
		for (int s = 0; s < n; s++) {
			strat[s] = found.getChoiceIndex(s, -1);
			infinite.set(s, res.soln[s] == Double.POSITIVE_INFINITY);
		}
		if (infinite.isEmpty() || target.isEmpty() || !Hooks.answersGraphs(mdp))
			return found;
		Problem problem = new Problem("prob1", mainLog, Extract.of(mdp)).about(target).choosing(true).withStrategy(true);
		if (Hooks.states(problem, mainLog, null) == null)
			return found;
		copyChoices(problem, infinite, strat);
		return new MDStrategyArray<>(mdp, strat);
	}

	private ModelCheckerResult solveReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, BitSet target, BitSet inf, boolean min, double[] init,
			BitSet known, int[] strat) throws PrismException
	{
		int n = mdp.getNumStates();
		Problem problem = problem(mdp, total ? TOTAL : "reachability", min).about(Hooks.unknown(n, target, inf, known));
		problem.fromRewards(target, inf, init, known).earningByChoices(mdp, mdpRewards);
		return solveUnlessRefused(problem, strat);
	}

	/** @param strat Where the choices of the unknown states go, if a strategy is generated */
	private ModelCheckerResult solveUnlessRefused(Problem problem, int[] strat) throws PrismException
	{
		if (ofBeliefs)
			return null;
		String refusal = Hooks.refusal(settings);
		if (genStrat && getDoIntervalIteration())
			refusal = "interval iteration with a strategy";
		if (refusal != null) {
			Hooks.handBack(mainLog, refusal);
			return null;
		}
		ModelCheckerResult res = Hooks.solve(problem.withStrategy(genStrat), mainLog);
		if (res != null && genStrat)
			copyChoices(problem, BitSet.valueOf(problem.states), strat);
		return res;
	}

	private static void copyChoices(Problem problem, BitSet states, int[] strat)
	{
		for (int s = states.nextSetBit(0); s >= 0; s = states.nextSetBit(s + 1))
			strat[s] = problem.strategy[s] < 0 ? ANY_CHOICE : problem.strategy[s];
	}

	/** Leaves out the accuracy, as PRISM's policy iteration does, where no accuracy would do. */
	private ModelCheckerResult decidable(ModelCheckerResult res) throws PrismException
	{
		if (Comparison.asksForCertainty())
			res.accuracy = null;
		return res;
	}

	// The sets of probability 0 and 1.

	@Override
	public BitSet prob0(NondetModel<?> mdp, BitSet remain, BitSet target, boolean min, int[] strat)
	{
		// Who can avoid the target does so by staying; every choice of the others is as good.
		BitSet found = statesOf(mdp, "prob0", remain, target, min, min ? strat : null);
		return found != null ? found : super.prob0(mdp, remain, target, min, strat);
	}

	@Override
	public BitSet prob1(NondetModel<?> mdp, BitSet remain, BitSet target, boolean min, int[] strat)
	{
		BitSet found = statesOf(mdp, "prob1", remain, target, min, min ? null : strat);
		return found != null ? found : super.prob1(mdp, remain, target, min, strat);
	}

	private BitSet statesOf(NondetModel<?> model, String task, BitSet remain, BitSet target, boolean min, int[] strat)
	{
		if (ofBeliefs || !(model instanceof MDP) || !Hooks.answersGraphs(model) || target.isEmpty())
			return null;
		Problem problem = new Problem(task, mainLog, Extract.of(doubles(model))).about(target).within(remain).choosing(min);
		String name = "Prob" + task.charAt(4) + " (" + name(min) + ")";
		BitSet found = Hooks.states(problem.withStrategy(strat != null), mainLog, silentPrecomputations ? null : name);
		if (found != null && strat != null) {
			BitSet chosen = (BitSet) found.clone();
			chosen.andNot(target);
			copyChoices(problem, chosen, strat);
		}
		return found;
	}

	@Override
	public ModelCheckerResult computeNextProbs(MDP<Double> mdp, BitSet target, boolean min) throws PrismException
	{
		if (genStrat)
			return Hooks.handBack(mainLog, STRATEGY, () -> super.computeNextProbs(mdp, target, min));
		ModelCheckerResult res = Hooks.solve(problem(mdp, "next", min).about(target), mainLog);
		return res != null ? res : super.computeNextProbs(mdp, target, min);
	}

	@Override
	protected StateValues checkProbPathFormulaSimple(Model<?> model, Expression expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaSimple(model, expr, minMax, statesOfInterest);
		return Hooks.isNegated(expr) ? Hooks.negated(probs) : probs;
	}

	@Override
	protected StateValues checkProbPathFormulaLTL(Model<?> model, Expression expr, boolean qual, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		StateValues probs = super.checkProbPathFormulaLTL(model, expr, qual, minMax, statesOfInterest);
		return minMax.isMin() ? Hooks.negated(probs) : probs;
	}

	@Override
	protected StateValues checkProbBoundedUntil(Model<?> model, ExpressionTemporal expr, MinMax minMax, BitSet statesOfInterest) throws PrismException
	{
		IntegerBound bounds = IntegerBound.fromExpressionTemporal(expr, constantValues, true);
		if (genStrat || !(model instanceof MDP) || !bounds.hasLowerBound() || bounds.getLowestInteger() == 0)
			return super.checkProbBoundedUntil(model, expr, minMax, statesOfInterest);
		// PRISM takes the steps before the lower bound one by one; the engines take them at once.
		MDP<Double> mdp = doubles(model);
		boolean min = minMax.isMin();
		int lower = bounds.getLowestInteger();
		BitSet remain = checkExpression(model, expr.getOperand1(), null).getBitSet();
		BitSet target = checkExpression(model, expr.getOperand2(), null).getBitSet();
		Problem problem = problem(mdp, "step-bounded until", min).about(target).within(remain);
		ModelCheckerResult until = null;
		if (bounds.hasUpperBound()) {
			problem.between(lower, bounds.getHighestInteger());
		} else {
			until = computeUntilProbs(mdp, remain, target, min);
			problem.from(until.soln).between(lower, lower);
		}
		ModelCheckerResult res = until == null ? solveBounded(problem, min) : Hooks.solve(problem, mainLog);
		if (res == null)
			return super.checkProbBoundedUntil(model, expr, minMax, statesOfInterest);
		if (until != null && !Comparison.asksForCertainty())
			res.accuracy = DecidedAccuracy.before(until.accuracy, lower);
		return StateValues.createFromArrayResult(res, model);
	}

	@Override
	public ModelCheckerResult computeBoundedReachProbs(MDP<Double> mdp, BitSet remain, BitSet target, int k, boolean min, double[] init, double[] results)
			throws PrismException
	{
		String refusal = genStrat ? STRATEGY : null;
		if (init != null || results != null)
			refusal = "a step-bounded until that starts from given values or keeps those of each step";
		if (refusal != null)
			return Hooks.handBack(mainLog, refusal, () -> super.computeBoundedReachProbs(mdp, remain, target, k, min, init, results));
		ModelCheckerResult res = solveBounded(problem(mdp, "step-bounded until", min).about(target).within(remain).upTo(k), min);
		return res != null ? res : super.computeBoundedReachProbs(mdp, remain, target, k, min, init, results);
	}

	private ModelCheckerResult solveBounded(Problem problem, boolean min) throws PrismException
	{
		return Hooks.solveSteps(problem, mainLog, "\nStarting bounded probabilistic reachability (" + name(min) + ")...",
				"Bounded probabilistic reachability (" + name(min) + ") took %d iterations and %s seconds.");
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, int k, boolean min) throws PrismException
	{
		Problem problem = problem(mdp, "cumulative reward", min).earningByChoices(mdp, mdpRewards).upTo(k);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\nStarting expected cumulative reward (" + name(min) + ")...",
				"Expected cumulative reward (" + name(min) + ") took %d iterations and %s seconds.");
		return res != null ? res : super.computeCumulativeRewards(mdp, mdpRewards, k, min);
	}

	/** Taken over here, where a failure may be told: PRISM's method for the numerical part throws nothing. */
	@Override
	protected StateValues checkRewardInstantaneous(Model<?> model, Rewards<?> modelRewards, ExpressionTemporal expr, MinMax minMax, BitSet statesOfInterest)
			throws PrismException
	{
		if (!(model instanceof MDP))
			return super.checkRewardInstantaneous(model, modelRewards, expr, minMax, statesOfInterest);
		int k = expr.getUpperBound().evaluateInt(constantValues);
		Problem problem = problem(doubles(model), "instantaneous reward", minMax.isMin()).earning(model, doubles(modelRewards)).upTo(k);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, Hooks.INSTANTANEOUS_BEGUN, Hooks.INSTANTANEOUS_DONE);
		return res != null ? StateValues.createFromArrayResult(res, model)
				: super.checkRewardInstantaneous(model, modelRewards, expr, minMax, statesOfInterest);
	}

	@Override
	public ModelCheckerResult computeTotalRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, boolean min) throws PrismException
	{
		// PRISM has no method for the minimum, and so none that is another.
		if (!min || Hooks.refusal(settings) != null)
			return super.computeTotalRewards(mdp, mdpRewards, min);
		ModelCheckerResult res = solveTotal(mdp, mdpRewards, true);
		return res != null ? res : super.computeTotalRewards(mdp, mdpRewards, true);
	}

	@Override
	public ModelCheckerResult computeTotalRewardsMax(MDP<Double> mdp, MDPRewards<Double> mdpRewards, boolean noPositiveECs) throws PrismException
	{
		String refusal = Hooks.refusal(settings);
		if (refusal != null)
			return Hooks.handBack(mainLog, refusal, () -> super.computeTotalRewardsMax(mdp, mdpRewards, noPositiveECs));
		boolean swept = mdpSolnMethod == MDPSolnMethod.VALUE_ITERATION || mdpSolnMethod == MDPSolnMethod.GAUSS_SEIDEL;
		// PRISM's steps end in a reward until a goal that is none, of which our engines go from policy to policy.
		if (!swept)
			return super.computeTotalRewardsMax(mdp, mdpRewards, noPositiveECs);
		// PRISM has no strategy for states of infinite reward.
		if (!genStrat && Hooks.backend.putsTogether(problem(mdp, TOTAL, false)))
			return inParts(mdp, mdpRewards, noPositiveECs);
		ModelCheckerResult res = solveTotal(mdp, mdpRewards, false);
		return res != null ? res : super.computeTotalRewardsMax(mdp, mdpRewards, noPositiveECs);
	}

	/** As PRISM's explicit engine does it: the states of infinite reward first. */
	private ModelCheckerResult inParts(MDP<Double> mdp, MDPRewards<Double> mdpRewards, boolean noPositiveECs) throws PrismException
	{
		total = true;
		try {
			return super.computeTotalRewardsMax(mdp, mdpRewards, noPositiveECs);
		} finally {
			total = false;
		}
	}

	private ModelCheckerResult solveTotal(MDP<Double> mdp, MDPRewards<Double> mdpRewards, boolean min) throws PrismException
	{
		Problem problem = problem(mdp, TOTAL, min).earningByChoices(mdp, mdpRewards).withStrategy(genStrat);
		ModelCheckerResult res = Hooks.solve(problem, mainLog, "\nStarting total expected reward (" + name(min) + ")...",
				"Expected total reward took %2$s seconds.");
		if (res != null && genStrat) {
			int n = mdp.getNumStates();
			int[] strat = new int[n];
			copyChoices(problem, Hooks.unknown(n, new BitSet(), new BitSet(), null), strat);
			res.strat = new MDStrategyArray<>(mdp, strat);
		}
		return res;
	}

	private static String name(boolean min)
	{
		return min ? "min" : "max";
	}

	@SuppressWarnings("unchecked")
	private static MDP<Double> doubles(Model<?> model)
	{
		return (MDP<Double>) model;
	}

	@SuppressWarnings("unchecked")
	private static Rewards<Double> doubles(Rewards<?> rewards)
	{
		return (Rewards<Double>) rewards;
	}

	private Problem problem(MDP<Double> mdp, String task, boolean min) throws PrismException
	{
		return Hooks.ask(new Problem(task, mainLog, Extract.of(mdp)), this, mdpSolnMethod.fullName()).choosing(min);
	}
}
