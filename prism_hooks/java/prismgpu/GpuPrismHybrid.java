package prismgpu;

import dv.DoubleVector;
import hybrid.PrismHybrid;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import prism.PrismException;

/**
 * The solves of PRISM's hybrid engine, ours where our engines do them. What is not declared here is
 * PRISM's own; Power, JOR and SOR among it, which no checker of PRISM's calls.
 */
public class GpuPrismHybrid extends PrismHybrid
{
	public static DoubleVector ProbBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, int bound)
			throws PrismException
	{
		DoubleVector ours = Symbolic.boundedUntil(trans, odd, rows, cols, yes, maybe, bound);
		return ours != null ? ours : PrismHybrid.ProbBoundedUntil(trans, odd, rows, cols, yes, maybe, bound);
	}

	public static DoubleVector ProbUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe) throws PrismException
	{
		DoubleVector ours = Symbolic.until(trans, odd, rows, cols, yes, maybe);
		return ours != null ? ours : PrismHybrid.ProbUntil(trans, odd, rows, cols, yes, maybe);
	}

	public static DoubleVector ProbUntilInterval(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, int flags)
			throws PrismException
	{
		DoubleVector ours = Symbolic.until(trans, odd, rows, cols, yes, maybe);
		return ours != null ? ours : PrismHybrid.ProbUntilInterval(trans, odd, rows, cols, yes, maybe, flags);
	}

	public static DoubleVector ProbCumulReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, int bound) throws PrismException
	{
		DoubleVector ours = Symbolic.cumulReward(false, trans, sr, trr, odd, rows, cols, bound);
		return ours != null ? ours : PrismHybrid.ProbCumulReward(trans, sr, trr, odd, rows, cols, bound);
	}

	public static DoubleVector ProbInstReward(JDDNode trans, JDDNode sr, ODDNode odd, JDDVars rows, JDDVars cols, int time) throws PrismException
	{
		DoubleVector ours = Symbolic.instReward(trans, sr, odd, rows, cols, time);
		return ours != null ? ours : PrismHybrid.ProbInstReward(trans, sr, odd, rows, cols, time);
	}

	public static DoubleVector ProbReachReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode goal,
			JDDNode inf, JDDNode maybe) throws PrismException
	{
		DoubleVector ours = Symbolic.reachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
		return ours != null ? ours : PrismHybrid.ProbReachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
	}

	public static DoubleVector ProbReachRewardInterval(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode goal,
			JDDNode inf, JDDNode maybe, JDDNode lower, JDDNode upper, int flags) throws PrismException
	{
		DoubleVector ours = Symbolic.reachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
		return ours != null ? ours : PrismHybrid.ProbReachRewardInterval(trans, sr, trr, odd, rows, cols, goal, inf, maybe, lower, upper, flags);
	}

	public static DoubleVector ProbTransient(JDDNode trans, ODDNode odd, DoubleVector init, JDDVars rows, JDDVars cols, int time) throws PrismException
	{
		DoubleVector ours = Symbolic.transientProbs(false, trans, odd, init, rows, cols, time);
		return ours != null ? ours : PrismHybrid.ProbTransient(trans, odd, init, rows, cols, time);
	}

	public static DoubleVector NondetBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe,
			int time, boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.boundedUntilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, time, minmax);
		return ours != null ? ours : PrismHybrid.NondetBoundedUntil(trans, odd, rows, cols, nondet, yes, maybe, time, minmax);
	}

	public static DoubleVector NondetUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe,
			boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.untilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, minmax, null);
		return ours != null ? ours : PrismHybrid.NondetUntil(trans, odd, rows, cols, nondet, yes, maybe, minmax);
	}

	public static DoubleVector NondetUntilInterval(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe,
			boolean minmax, int flags) throws PrismException
	{
		DoubleVector ours = Symbolic.untilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, minmax, null);
		return ours != null ? ours : PrismHybrid.NondetUntilInterval(trans, odd, rows, cols, nondet, yes, maybe, minmax, flags);
	}

	public static DoubleVector NondetReachReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet,
			JDDNode goal, JDDNode inf, JDDNode maybe, boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.reachRewardOfChoices(trans, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, minmax);
		return ours != null ? ours : PrismHybrid.NondetReachReward(trans, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, minmax);
	}

	public static DoubleVector StochBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, double time,
			DoubleVector multProbs) throws PrismException
	{
		DoubleVector ours = Symbolic.timeBoundedUntil(trans, odd, rows, cols, yes, maybe, time, multProbs);
		return ours != null ? ours : PrismHybrid.StochBoundedUntil(trans, odd, rows, cols, yes, maybe, time, multProbs);
	}

	public static DoubleVector StochCumulReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, double time)
			throws PrismException
	{
		DoubleVector ours = Symbolic.cumulReward(true, trans, sr, trr, odd, rows, cols, time);
		return ours != null ? ours : PrismHybrid.StochCumulReward(trans, sr, trr, odd, rows, cols, time);
	}

	public static DoubleVector StochSteadyState(JDDNode trans, ODDNode odd, JDDNode init, JDDVars rows, JDDVars cols) throws PrismException
	{
		DoubleVector ours = Symbolic.steadyState(trans, odd, rows, cols);
		return ours != null ? ours : PrismHybrid.StochSteadyState(trans, odd, init, rows, cols);
	}

	public static DoubleVector StochTransient(JDDNode trans, ODDNode odd, DoubleVector init, JDDVars rows, JDDVars cols, double time) throws PrismException
	{
		DoubleVector ours = Symbolic.transientProbs(true, trans, odd, init, rows, cols, time);
		return ours != null ? ours : PrismHybrid.StochTransient(trans, odd, init, rows, cols, time);
	}
}
