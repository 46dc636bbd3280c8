package prismgpu;

import java.util.BitSet;

import explicit.ModelCheckerResult;
import explicit.ProbModelChecker;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.PrismException;
import prism.PrismLog;
import prism.PrismSettings;

/** What the model checkers share: the way to the engines and back. */
public final class Hooks
{
	/** The engines; null until Python has set it. */
	public static volatile Backend backend;

	/** What is being solved, for the message of an interrupted run; null between solves. */
	private static volatile String solving;

	private Hooks()
	{
	}

	static {
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			String what = solving;
			if (what != null) {
				System.out.flush();
				System.err.println("\nprism-gpu: interrupted during " + what);
				System.err.flush();
			}
		}));
	}

	/** Why PRISM's settings keep the engines out of value iteration, or null if they do not. */
	static String refusal(ProbModelChecker mc, PrismSettings settings, boolean topological)
	{
		if (backend == null)
			return "no engine was set";
		if (topological)
			return "topological value iteration";
		if (settings == null)
			return null;
		if (settings.getBoolean(PrismSettings.PRISM_INTERVAL_ITER))
			return "interval iteration";
		if (settings.getBoolean(PrismSettings.PRISM_EXPORT_ITERATIONS))
			return "export of iterations";
		if (!settings.getBoolean(PrismSettings.PRISM_PRECOMPUTATION))
			return "computation without precomputation";
		if (!settings.getBoolean(PrismSettings.PRISM_PROB0) || !settings.getBoolean(PrismSettings.PRISM_PROB1))
			return "computation without prob0 or prob1";
		return null;
	}

	/** The one line that says what runs on PRISM's own code, and why. */
	static void handBack(PrismLog log, String what)
	{
		log.println("prism-gpu: " + what + " is not done by our engines; PRISM's own code runs it");
	}

	/** Fills in what every question has. */
	static void ask(Problem problem, String task, BitSet states, PrismSettings settings)
	{
		problem.task = task;
		problem.states = states.toLongArray();
		problem.omega = settings == null ? 0.9 : settings.getDouble(PrismSettings.PRISM_LIN_EQ_METHOD_PARAM);
	}

	/** Sends the problem to the engines; null means that PRISM's own code must solve it. */
	static ModelCheckerResult solve(Problem problem, PrismLog log) throws PrismException
	{
		long timer = System.currentTimeMillis();
		solving = problem.task + " computation";
		try {
			backend.solve(problem);
		} finally {
			solving = null;
		}
		if (problem.error != null)
			throw new PrismException(problem.error);
		if (problem.refusal != null) {
			handBack(log, problem.refusal);
			return null;
		}
		ModelCheckerResult res = new ModelCheckerResult();
		res.soln = problem.solution;
		res.numIters = problem.iterations;
		res.timeTaken = (System.currentTimeMillis() - timer) / 1000.0;
		res.accuracy = problem.errorBound == 0.0 ? new Accuracy(AccuracyLevel.EXACT_FLOATING_POINT)
				: new Accuracy(AccuracyLevel.ESTIMATED_BOUNDED, problem.errorBound, problem.absolute);
		return res;
	}

	/** Values of known states and the first iterate of the others, in PRISM's order of preference. */
	static double[] start(int n, BitSet ones, BitSet others, double otherValue, double[] init, BitSet known, double initial)
	{
		double[] start = new double[n];
		for (int i = 0; i < n; i++) {
			if (known != null && known.get(i))
				start[i] = init[i];
			else if (ones != null && ones.get(i))
				start[i] = 1.0;
			else if (others.get(i))
				start[i] = otherValue;
			else
				start[i] = init == null ? initial : init[i];
		}
		return start;
	}

	/** The states whose values are to be computed. */
	static BitSet unknown(int n, BitSet first, BitSet second, BitSet known)
	{
		BitSet unknown = new BitSet(n);
		unknown.set(0, n);
		unknown.andNot(first);
		unknown.andNot(second);
		if (known != null)
			unknown.andNot(known);
		return unknown;
	}
}
