package prismgpu;

import java.util.List;

import dv.DoubleVector;
import dv.IntegerVector;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import prism.PrismException;
import sparse.PrismSparse;

/**
 * The solves of PRISM's sparse engine, ours where our engines do them. What is not declared here is
 * PRISM's own; Power, JOR and SOR among it, which no checker of PRISM's calls.
 */
public class GpuPrismSparse extends PrismSparse
{
	public static DoubleVector ProbBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, int bound)
			throws PrismException
	{
		DoubleVector ours = Symbolic.boundedUntil(trans, odd, rows, cols, yes, maybe, bound);
		return ours != null ? ours : PrismSparse.ProbBoundedUntil(trans, odd, rows, cols, yes, maybe, bound);
	}

	public static DoubleVector ProbUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe) throws PrismException
	{
		DoubleVector ours = Symbolic.until(trans, odd, rows, cols, yes, maybe);
		return ours != null ? ours : PrismSparse.ProbUntil(trans, odd, rows, cols, yes, maybe);
	}

	public static DoubleVector ProbUntilInterval(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, int flags)
			throws PrismException
	{
		DoubleVector ours = Symbolic.until(trans, odd, rows, cols, yes, maybe);
		return ours != null ? ours : PrismSparse.ProbUntilInterval(trans, odd, rows, cols, yes, maybe, flags);
	}

	public static DoubleVector ProbCumulReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, int bound) throws PrismException
	{
		DoubleVector ours = Symbolic.cumulReward(false, trans, sr, trr, odd, rows, cols, bound);
		return ours != null ? ours : PrismSparse.ProbCumulReward(trans, sr, trr, odd, rows, cols, bound);
	}

	public static DoubleVector ProbInstReward(JDDNode trans, JDDNode sr, ODDNode odd, JDDVars rows, JDDVars cols, int time) throws PrismException
	{
		DoubleVector ours = Symbolic.instReward(trans, sr, odd, rows, cols, time);
		return ours != null ? ours : PrismSparse.ProbInstReward(trans, sr, odd, rows, cols, time);
	}

	public static DoubleVector ProbReachReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode goal,
			JDDNode inf, JDDNode maybe) throws PrismException
	{
		DoubleVector ours = Symbolic.reachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
		return ours != null ? ours : PrismSparse.ProbReachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
	}

	public static DoubleVector ProbReachRewardInterval(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode goal,
			JDDNode inf, JDDNode maybe, JDDNode lower, JDDNode upper, int flags) throws PrismException
	{
		DoubleVector ours = Symbolic.reachReward(trans, sr, trr, odd, rows, cols, goal, inf, maybe);
		return ours != null ? ours : PrismSparse.ProbReachRewardInterval(trans, sr, trr, odd, rows, cols, goal, inf, maybe, lower, upper, flags);
	}

	public static DoubleVector ProbTransient(JDDNode trans, ODDNode odd, DoubleVector init, JDDVars rows, JDDVars cols, int time) throws PrismException
	{
		DoubleVector ours = Symbolic.transientProbs(false, trans, odd, init, rows, cols, time);
		return ours != null ? ours : PrismSparse.ProbTransient(trans, odd, init, rows, cols, time);
	}

	public static DoubleVector NondetBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe,
			int time, boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.boundedUntilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, time, minmax);
		return ours != null ? ours : PrismSparse.NondetBoundedUntil(trans, odd, rows, cols, nondet, yes, maybe, time, minmax);
	}

	public static DoubleVector NondetUntil(JDDNode trans, JDDNode transActions, List<String> synchs, ODDNode odd, JDDVars rows, JDDVars cols,
			JDDVars nondet, JDDNode yes, JDDNode maybe, boolean minmax, IntegerVector strat) throws PrismException
	{
		DoubleVector ours = Symbolic.untilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, minmax, strat);
		return ours != null ? ours : PrismSparse.NondetUntil(trans, transActions, synchs, odd, rows, cols, nondet, yes, maybe, minmax, strat);
	}

	public static DoubleVector NondetUntilInterval(JDDNode trans, JDDNode transActions, List<String> synchs, ODDNode odd, JDDVars rows, JDDVars cols,
			JDDVars nondet, JDDNode yes, JDDNode maybe, boolean minmax, IntegerVector strat, int flags) throws PrismException
	{
		DoubleVector ours = Symbolic.untilOfChoices(trans, odd, rows, cols, nondet, yes, maybe, minmax, strat);
		return ours != null ? ours : PrismSparse.NondetUntilInterval(trans, transActions, synchs, odd, rows, cols, nondet, yes, maybe, minmax, strat, flags);
	}

	public static DoubleVector NondetCumulReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet,
			int bound, boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.cumulRewardOfChoices(trans, sr, trr, odd, rows, cols, nondet, bound, minmax);
		return ours != null ? ours : PrismSparse.NondetCumulReward(trans, sr, trr, odd, rows, cols, nondet, bound, minmax);
	}

	public static DoubleVector NondetInstReward(JDDNode trans, JDDNode sr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, int time,
			boolean minmax, JDDNode init) throws PrismException
	{
		DoubleVector ours = Symbolic.instRewardOfChoices(trans, sr, odd, rows, cols, nondet, time, minmax);
		return ours != null ? ours : PrismSparse.NondetInstReward(trans, sr, odd, rows, cols, nondet, time, minmax, init);
	}

	public static DoubleVector NondetReachReward(JDDNode trans, JDDNode transActions, List<String> synchs, JDDNode sr, JDDNode trr, ODDNode odd,
			JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode goal, JDDNode inf, JDDNode maybe, boolean minmax) throws PrismException
	{
		DoubleVector ours = Symbolic.reachRewardOfChoices(trans, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, minmax);
		return ours != null ? ours : PrismSparse.NondetReachReward(trans, transActions, synchs, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, minmax);
	}

	public static DoubleVector NondetReachRewardInterval(JDDNode trans, JDDNode transActions, List<String> synchs, JDDNode sr, JDDNode trr, ODDNode odd,
			JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode goal, JDDNode inf, JDDNode maybe, JDDNode lower, JDDNode upper, boolean minmax, int flags)
			throws PrismException
	{
		DoubleVector ours = Symbolic.reachRewardOfChoices(trans, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, minmax);
		return ours != null ? ours : PrismSparse.NondetReachRewardInterval(trans, transActions, synchs, sr, trr, odd, rows, cols, nondet, goal, inf, maybe, lower, upper, minmax, flags);
	}

	public static DoubleVector StochBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, double time,
			DoubleVector multProbs) throws PrismException
	{
		DoubleVector ours = Symbolic.timeBoundedUntil(trans, odd, rows, cols, yes, maybe, time, multProbs);
		return ours != null ? ours : PrismSparse.StochBoundedUntil(trans, odd, rows, cols, yes, maybe, time, multProbs);
	}

	public static DoubleVector StochCumulReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, double time)
			throws PrismException
	{
		DoubleVector ours = Symbolic.cumulReward(true, trans, sr, trr, odd, rows, cols, time);
		return ours != null ? ours : PrismSparse.StochCumulReward(trans, sr, trr, odd, rows, cols, time);
	}

	public static DoubleVector StochSteadyState(JDDNode trans, ODDNode odd, JDDNode init, JDDVars rows, JDDVars cols) throws PrismException
	{
		DoubleVector ours = Symbolic.steadyState(trans, odd, rows, cols);
		return ours != null ? ours : PrismSparse.StochSteadyState(trans, odd, init, rows, cols);
	}

	public static DoubleVector StochTransient(JDDNode trans, ODDNode odd, DoubleVector init, JDDVars rows, JDDVars cols, double time) throws PrismException
	{
		DoubleVector ours = Symbolic.transientProbs(true, trans, odd, init, rows, cols, time);
		return ours != null ? ours : PrismSparse.StochTransient(trans, odd, init, rows, cols, time);
	}
}
