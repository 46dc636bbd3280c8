package prismgpu;

import java.util.BitSet;

import explicit.IterationMethod;
import explicit.MDP;
import explicit.MDPModelChecker;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.StateValues;
import explicit.rewards.MDPRewards;
import parser.ast.Expression;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;

/** Numerical work on MDPs: value iteration. */
public class GpuMDPModelChecker extends MDPModelChecker
{
	public GpuMDPModelChecker(PrismComponent parent) throws PrismException
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
	protected ModelCheckerResult doValueIterationReachProbs(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological, int[] strat) throws PrismException
	{
		String refusal = refusal(topological, strat);
		if (refusal == null) {
			int n = mdp.getNumStates();
			double initial = valIterDir == ValIterDir.BELOW ? 0.0 : 1.0;
			Problem problem = problem(mdp, Hooks.unknown(n, yes, no, known), min);
			problem.start = Hooks.startOfProbs(n, yes, no, init, known, initial);
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null)
				return res;
		} else {
			Hooks.handBack(mainLog, refusal);
		}
		return super.doValueIterationReachProbs(mdp, no, yes, min, init, known, iterationMethod, topological, strat);
	}

	@Override
	protected ModelCheckerResult doValueIterationReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, IterationMethod iterationMethod, BitSet target,
			BitSet inf, boolean min, double[] init, BitSet known, boolean topological, int[] strat) throws PrismException
	{
		String refusal = refusal(topological, strat);
		if (refusal == null) {
			int n = mdp.getNumStates();
			Problem problem = problem(mdp, Hooks.unknown(n, target, inf, known), min);
			problem.start = Hooks.startOfRewards(n, target, inf, init, known);
			problem.rewards = choiceRewards(mdp, mdpRewards);
			ModelCheckerResult res = Hooks.solve(problem, mainLog);
			if (res != null)
				return res;
		} else {
			Hooks.handBack(mainLog, refusal);
		}
		return super.doValueIterationReachRewards(mdp, mdpRewards, iterationMethod, target, inf, min, init, known, topological, strat);
	}

	private String refusal(boolean topological, int[] strat)
	{
		if (strat != null)
			return "generation of a strategy";
		return Hooks.refusal(settings, topological);
	}

	private Problem problem(MDP<Double> mdp, BitSet states, boolean min)
	{
		Problem problem = new Problem(mainLog, Extract.of(mdp));
		Hooks.ask(problem, "reachability", states, this, mdpSolnMethod.fullName());
		problem.direction = min ? "min" : "max";
		return problem;
	}

	/** State and transition rewards of each choice, in the order of the choices. */
	private static double[] choiceRewards(MDP<Double> mdp, MDPRewards<Double> rewards)
	{
		int n = mdp.getNumStates();
		double[] sums = new double[mdp.getNumChoices()];
		int row = 0;
		for (int s = 0; s < n; s++) {
			double stateReward = rewards.getStateReward(s);
			int choices = mdp.getNumChoices(s);
			for (int i = 0; i < choices; i++)
				sums[row++] = stateReward + rewards.getTransitionReward(s, i);
		}
		return sums;
	}

	// What is left to PRISM's own code, each with its line in the log.

	@Override
	protected ModelCheckerResult doIntervalIterationReachProbs(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, double[] init, BitSet known,
			IterationMethod iterationMethod, boolean topological, int[] strat) throws PrismException
	{
		return Hooks.handBack(mainLog, "interval iteration", () -> super.doIntervalIterationReachProbs(mdp, no, yes, min, init, known, iterationMethod, topological, strat));
	}

	@Override
	protected ModelCheckerResult doIntervalIterationReachRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, IterationMethod iterationMethod,
			BitSet target, BitSet inf, boolean min, double[] init, BitSet known, boolean topological, int[] strat) throws PrismException
	{
		return Hooks.handBack(mainLog, "interval iteration", () -> super.doIntervalIterationReachRewards(mdp, mdpRewards, iterationMethod, target, inf, min, init, known, topological, strat));
	}

	@Override
	protected ModelCheckerResult computeReachProbsPolIter(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, int[] strat) throws PrismException
	{
		return Hooks.handBack(mainLog, "policy iteration", () -> super.computeReachProbsPolIter(mdp, no, yes, min, strat));
	}

	@Override
	protected ModelCheckerResult computeReachProbsModPolIter(MDP<Double> mdp, BitSet no, BitSet yes, boolean min, int[] strat) throws PrismException
	{
		return Hooks.handBack(mainLog, "modified policy iteration", () -> super.computeReachProbsModPolIter(mdp, no, yes, min, strat));
	}

	@Override
	protected ModelCheckerResult computeReachRewardsPolIter(MDP<Double> mdp, MDPRewards<Double> mdpRewards, BitSet target, BitSet inf, boolean min,
			int[] strat) throws PrismException
	{
		return Hooks.handBack(mainLog, "policy iteration", () -> super.computeReachRewardsPolIter(mdp, mdpRewards, target, inf, min, strat));
	}

	@Override
	public ModelCheckerResult computeNextProbs(MDP<Double> mdp, BitSet target, boolean min) throws PrismException
	{
		return Hooks.handBack(mainLog, "a next operator", () -> super.computeNextProbs(mdp, target, min));
	}

	@Override
	public ModelCheckerResult computeBoundedReachProbs(MDP<Double> mdp, BitSet remain, BitSet target, int k, boolean min, double[] init, double[] results)
			throws PrismException
	{
		return Hooks.handBack(mainLog, "a step-bounded until", () -> super.computeBoundedReachProbs(mdp, remain, target, k, min, init, results));
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, int k, boolean min) throws PrismException
	{
		return Hooks.handBack(mainLog, "a cumulative reward", () -> super.computeCumulativeRewards(mdp, mdpRewards, k, min));
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewards(MDP<Double> mdp, MDPRewards<Double> mdpRewards, int k, boolean min)
	{
		Hooks.handBack(mainLog, "an instantaneous reward");
		return super.computeInstantaneousRewards(mdp, mdpRewards, k, min);
	}

	@Override
	public ModelCheckerResult computeTotalRewardsMax(MDP<Double> mdp, MDPRewards<Double> mdpRewards, boolean noPositiveECs) throws PrismException
	{
		return Hooks.handBack(mainLog, "a total reward", () -> super.computeTotalRewardsMax(mdp, mdpRewards, noPositiveECs));
	}
}
