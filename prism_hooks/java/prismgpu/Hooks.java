package prismgpu;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;

import explicit.ModelCheckerResult;
import explicit.ProbModelChecker;
import explicit.ProbModelChecker.TermCrit;
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

	/** Where operators are taken down or answered instead of solved; null in a plain run. */
	public static volatile Exchange exchange;

	/** What is being solved, for the message of an interrupted run; null between solves. */
	private static volatile String solving;

	private static final Set<String> said = new HashSet<>();
	private static int depth;

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
	static String refusal(PrismSettings settings, boolean topological)
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

	/** Work that is PRISM's own. */
	interface Work<T>
	{
		T run() throws PrismException;
	}

	/** Prints the one line that says what runs on PRISM's own code; once a property is enough. */
	static void handBack(PrismLog log, String what)
	{
		if (said.add(what))
			log.println("prism-gpu: " + what + " is not done by our engines; PRISM's own code runs it");
	}

	/** Runs PRISM's own code for something that the engines cannot do; its parts get no line of their own. */
	static <T> T handBack(PrismLog log, String what, Work<T> work) throws PrismException
	{
		if (depth == 0)
			handBack(log, what);
		depth++;
		try {
			return work.run();
		} finally {
			depth--;
		}
	}

	/** Forgets what was said, because a new property begins. */
	static void startProperty()
	{
		said.clear();
		depth = 0;
	}

	/** Fills in what every question has: the states, and what the model checker's settings ask for. */
	static void ask(Problem problem, String task, BitSet states, ProbModelChecker mc, String method)
	{
		PrismSettings settings = mc.getSettings();
		problem.task = task;
		problem.states = states.toLongArray();
		problem.method = method;
		problem.omega = settings == null ? 0.9 : settings.getDouble(PrismSettings.PRISM_LIN_EQ_METHOD_PARAM);
		problem.epsilon = mc.getTermCritParam();
		problem.absolute = mc.getTermCrit() == TermCrit.ABSOLUTE;
		problem.maxIterations = mc.getMaxIters();
		problem.errorOnNonConvergence = mc.geterrorOnNonConverge();
	}

	/** Sends the problem to the engines; null means that PRISM's own code must solve it. */
	static ModelCheckerResult solve(Problem problem, PrismLog log) throws PrismException
	{
		if (exchange != null)
			throw new Refusal("a numerical solve was asked for where only another machine solves: " + problem.task);
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

	/** Probabilities: known values and the first iterate of the others, in PRISM's order of preference. */
	static double[] startOfProbs(int n, BitSet yes, BitSet no, double[] init, BitSet known, double initial)
	{
		return start(n, yes, 1.0, no, 0.0, init, known, initial);
	}

	/** Rewards: known values and the first iterate of the others, in PRISM's order of preference. */
	static double[] startOfRewards(int n, BitSet target, BitSet inf, double[] init, BitSet known)
	{
		return start(n, target, 0.0, inf, Double.POSITIVE_INFINITY, init, known, 0.0);
	}

	private static double[] start(int n, BitSet first, double firstValue, BitSet second, double secondValue, double[] init, BitSet known,
			double initial)
	{
		double[] start = new double[n];
		for (int i = 0; i < n; i++) {
			if (known != null && known.get(i))
				start[i] = init[i];
			else if (first.get(i))
				start[i] = firstValue;
			else if (second.get(i))
				start[i] = secondValue;
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
