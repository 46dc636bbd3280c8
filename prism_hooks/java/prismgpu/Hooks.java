package prismgpu;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.ProbModelChecker;
import explicit.ProbModelChecker.TermCrit;
import explicit.StateValues;
import explicit.rewards.Rewards;
import parser.ast.Expression;
import parser.type.TypeDouble;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.ModelType;
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

	/** Whether a line of progress is on the terminal; set from Python. */
	public static volatile boolean progressShown;

	/** Whether the process is about to end. */
	private static volatile boolean ending;

	// PRISM's lines around a solve that more than one kind of model has.
	static final String INSTANTANEOUS_BEGUN = "\nStarting backwards instantaneous rewards computation...";
	static final String INSTANTANEOUS_DONE = "Backwards transient instantaneous rewards computation took %d iters and %s seconds.";
	static final String TOTAL_BEGUN = "\nStarting total reward computation...";
	static final String TOTAL_DONE = "Total reward computation took %2$s seconds.";
	static final String TRANSIENT_BEGUN = "Starting transient probability computation...";

	private static final String NO_ENGINE = "computation without an engine";
	private static final Set<String> said = new HashSet<>();

	/** What it has taken to check a property so far. */
	private enum Course
	{
		NOTHING, SEARCHED, COMPUTED
	}

	private static Course course = Course.NOTHING;
	private static int depth;

	private Hooks()
	{
	}

	/** Says what the end of the process interrupts, once. */
	public static void beginEnd()
	{
		System.out.flush();
		if (ending)
			return;
		ending = true;
		String what = solving;
		if (what != null) {
			// Of a line of progress nothing is left; the rest of another line stays.
			String before = progressShown ? "\r\033[K" : "\n";
			System.err.println(before + "prism-gpu: interrupted during " + what);
			System.err.flush();
		}
	}

	/** Why PRISM's settings keep the engines out of value iteration, or null if they do not. */
	static String refusal(PrismSettings settings)
	{
		if (backend == null)
			return NO_ENGINE;
		if (settings == null)
			return null;
		if (settings.getBoolean(PrismSettings.PRISM_EXPORT_ITERATIONS))
			return "export of iterations";
		return null;
	}

	/** Whether PRISM looks for probabilities 0 and 1, and sets them aside. */
	static boolean precomputes(PrismSettings settings)
	{
		return settings == null || settings.getBoolean(PrismSettings.PRISM_PRECOMPUTATION)
				&& settings.getBoolean(PrismSettings.PRISM_PROB0) && settings.getBoolean(PrismSettings.PRISM_PROB1);
	}

	/** The task of probabilities to reach, those of 0 and 1 known or not. */
	static String untilTask(PrismSettings settings)
	{
		return precomputes(settings) ? "reachability" : "until";
	}

	/** Work that is PRISM's own. */
	interface Work<T>
	{
		T run() throws PrismException;
	}

	/** Prints a line of ours; once a property is enough. */
	static void sayOnce(PrismLog log, String text)
	{
		if (!said.add(text))
			return;
		if (Symbolic.prism instanceof GpuPrism)
			((GpuPrism) Symbolic.prism).say("prism-gpu: " + text);
		else
			log.println("prism-gpu: " + text);
	}

	/** Prints the one line that says what runs on PRISM's own code; once a property is enough. */
	static void handBack(PrismLog log, String what)
	{
		course = Course.COMPUTED;
		sayOnce(log, what + " is not done by our engines; PRISM's own code runs it");
	}

	/** The same of what PRISM does so under each engine: the user is to ask for the line. */
	static void tellHandedBack(PrismLog log, String what)
	{
		if (backend != null && backend.showsSolves())
			handBack(log, what);
		course = Course.COMPUTED;
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
		course = Course.NOTHING;
	}

	/** Notes that the graph of a model was searched for what decides a property. */
	static void searched()
	{
		if (course == Course.NOTHING)
			course = Course.SEARCHED;
	}

	/** Says so where the searches have left nothing to solve, and no residual is told for that. */
	static void sayDecided(PrismLog log)
	{
		if (course == Course.SEARCHED && backend != null && backend.showsSolves())
			log.println("\nprism-gpu: decided by the graph of the model, nothing was left to solve, residual 0, exact");
	}

	/** Fills in what the model checker's settings ask for. */
	static Problem ask(Problem problem, ProbModelChecker mc, String method) throws PrismException
	{
		PrismSettings settings = mc.getSettings();
		problem.method = method;
		problem.omega = settings == null ? 0.9 : settings.getDouble(PrismSettings.PRISM_LIN_EQ_METHOD_PARAM);
		problem.epsilon = mc.getTermCritParam();
		problem.absolute = mc.getTermCrit() == TermCrit.ABSOLUTE;
		problem.maxIterations = mc.getMaxIters();
		problem.errorOnNonConvergence = mc.geterrorOnNonConverge();
		problem.topological = mc.getDoTopologicalValueIteration();
		problem.intervals = mc.getDoIntervalIteration() ? new Intervals(settings) : null;
		return problem;
	}

	/**
	 * Sends the problem to the engines, between the lines that PRISM's log has around its own solve.
	 * @param begun The line before
	 * @param done The line after, with the places of iterations and seconds
	 * @return null if PRISM's own code must solve it
	 */
	static ModelCheckerResult solve(Problem problem, PrismLog log, String begun, String done) throws PrismException
	{
		return solve(problem, log, begun, done, 0);
	}

	/** The same of a number of steps; PRISM has lines on those from the lower bound to the upper one alone. */
	static ModelCheckerResult solveSteps(Problem problem, PrismLog log, String begun, String done) throws PrismException
	{
		return problem.lower == problem.upper ? solve(problem, log) : solve(problem, log, begun, done, (int) problem.lower);
	}

	/** @param untold How many iterations PRISM does not count */
	private static ModelCheckerResult solve(Problem problem, PrismLog log, String begun, String done, int untold) throws PrismException
	{
		log.println(begun);
		ModelCheckerResult res = solve(problem, log);
		if (res != null)
			log.println(String.format(done, Math.max(0, res.numIters - untold), Double.toString(res.timeTaken)));
		return res;
	}

	/** Sends the problem to the engines; null means that PRISM's own code must solve it. */
	static ModelCheckerResult solve(Problem problem, PrismLog log) throws PrismException
	{
		if (exchange != null)
			throw new Refusal("a numerical solve was asked for where only another machine solves: " + problem.task);
		if (backend == null) {
			handBack(log, NO_ENGINE);
			return null;
		}
		course = Course.COMPUTED;
		long timer = System.currentTimeMillis();
		Comparison.tell(problem);
		during(problem.task + " computation", () -> answer(problem));
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
		Accuracy known = accuracy(problem.errorBound, problem.errorAbsolute, problem.guaranteed, problem.decided, problem.complements);
		res.accuracy = KnownAccuracy.printedAs(problem.printedAs, known);
		return res;
	}

	static void answer(Problem problem)
	{
		String before = HeapLimit.begin(HeapLimit.SOLVING);
		call(() -> backend.solve(problem));
		if (problem.heapIsFull)
			throw new OutOfMemoryError("Java heap space");
		HeapLimit.begin(before);
	}

	/** The method of the engines that judges simulated paths; empty for PRISM's own. */
	static String simulationMethod()
	{
		parkIfEnding();
		return backend == null ? "" : backend.simulationMethod();
	}

	/** The method of the engines and its parameters, as they were typed; empty for PRISM's own. */
	static String simulationWords()
	{
		parkIfEnding();
		return backend == null ? "" : backend.simulationWords();
	}

	/** What was asked of a simulation that PRISM does not have; empty for nothing. */
	static String onlySampledHere()
	{
		parkIfEnding();
		return backend == null ? "" : backend.onlySampledHere();
	}

	private static void parkIfEnding()
	{
		while (ending)
			LockSupport.park();
	}

	/** Calls Python. A thread that comes back once the end has begun waits for it, and prints no more. */
	private static void call(Runnable work)
	{
		try {
			work.run();
		} finally {
			parkIfEnding();
		}
	}

	/** Does some work, which is named where the end of the process interrupts it. */
	private static void during(String what, Runnable work)
	{
		solving = what;
		try {
			work.run();
		} finally {
			solving = null;
		}
	}

	/** Tells the engines of a question before its solves come to them. */
	static void begin(String question, String constants)
	{
		if (backend != null)
			call(() -> backend.begin(question, constants));
	}

	/** Tells the engines of the result of the question that was begun last. */
	static void ended(Object result)
	{
		if (backend != null)
			call(() -> backend.ended(String.valueOf(result)));
	}

	/** Tells the engines that a part of the run begins, for them to tell where its seconds went. */
	static void beginPart(String name)
	{
		if (backend != null)
			call(() -> backend.beginPart(name));
	}

	/** Tells the engines that the part that was begun last ends. */
	static void endPart()
	{
		if (backend != null)
			call(backend::endPart);
	}

	/** Tells the engines that PRISM closes down. */
	static void closing()
	{
		if (backend != null)
			call(backend::closing);
	}

	/** Has a model built by the engines. */
	static void build(Construction construction)
	{
		during("model construction", () -> call(() -> backend.build(construction)));
	}

	/** Has a product of a model and an automaton built by the engines. */
	static void build(ProductConstruction construction)
	{
		during("product construction", () -> call(() -> backend.buildProduct(construction)));
	}

	/** Has the rewards of a model found by the engines. */
	static void earn(Earning earning)
	{
		during("construction of rewards", () -> call(() -> backend.earn(earning)));
	}

	/** Has paths sampled by the engines. */
	static void sample(Sampling sampling)
	{
		course = Course.COMPUTED;
		during("simulation", () -> call(() -> backend.sample(sampling)));
	}

	/** Whether a question about the graph of a model is one for the engines. */
	static boolean answersGraphs(Model<?> model)
	{
		ModelType type = model.getModelType();
		boolean known = type == ModelType.DTMC || type == ModelType.CTMC || type == ModelType.MDP;
		return backend != null && exchange == null && known && model.getEvaluator().one() instanceof Double;
	}

	/**
	 * Sends a question about a graph to the engines.
	 * @param name What PRISM's log calls the computation; null to keep silent
	 * @return null if PRISM's own code must answer it
	 */
	static BitSet states(Problem problem, PrismLog log, String name)
	{
		long timer = System.currentTimeMillis();
		if (name != null)
			log.println("Starting " + name + "...");
		if (!answered(problem, log))
			return null;
		// PRISM goes round until nothing changes, where there are choices; of large graphs that is not counted.
		String rounds = problem.direction == null ? "" : Math.max(1, problem.iterations) + " iterations and ";
		if (name != null)
			log.println(name + " took " + rounds + (System.currentTimeMillis() - timer) / 1000.0 + " seconds.");
		return BitSet.valueOf(problem.found);
	}

	/** Sends a question about a graph to the engines; false means that PRISM's own code must answer it. */
	static boolean answered(Problem problem, PrismLog log)
	{
		searched();
		answer(problem);
		String refusal = problem.error == null ? problem.refusal : problem.task + " (" + problem.error + ")";
		if (refusal != null)
			handBack(log, refusal);
		return refusal == null;
	}

	/**
	 * Sends a question about the components of a graph to the engines.
	 * @return null if PRISM's own code must find them
	 */
	static ComponentList components(Problem problem, PrismLog log) throws PrismException
	{
		during(problem.task + " computation", () -> answer(problem));
		if (problem.error != null)
			throw new PrismException(problem.error);
		if (problem.refusal == null)
			return new ComponentList(problem.members, problem.ends);
		handBack(log, problem.refusal);
		return null;
	}

	/**
	 * @param errorBound 0 for values that are exact but for rounding, NaN where nothing is known
	 * @param decided Values that have no error in any state; null for none
	 * @param complements The same of 1 - p
	 */
	static Accuracy accuracy(double errorBound, boolean absolute, boolean guaranteed, double[] decided, double[] complements)
	{
		if (Double.isNaN(errorBound))
			return null;
		if (errorBound == 0.0)
			return new ExactAccuracy();
		return new DecidedAccuracy(guaranteed ? AccuracyLevel.BOUNDED : AccuracyLevel.ESTIMATED_BOUNDED, errorBound, absolute, decided, complements);
	}

	/** Whether what is printed behind results is PRISM's. */
	static boolean printsAsPrism()
	{
		return backend != null && backend.printsAsPrism();
	}

	/** Whether PRISM computes a path formula's probabilities as those that it does not hold. */
	static boolean isNegated(Expression expr) throws PrismException
	{
		return Expression.isNot(Expression.convertSimplePathFormulaToCanonicalForm(expr));
	}

	/** Mends the accuracy of 1 - p, which PRISM leaves at p's: a relative error of p is not one of 1 - p. */
	static StateValues negated(StateValues probs)
	{
		Accuracy accuracy = probs.getAccuracy();
		if (!(accuracy instanceof DecidedAccuracy) || !(probs.getType() instanceof TypeDouble))
			return probs;
		if (Comparison.asksForCertainty()) {
			// The numbers are compared, as those of a formula that is not negated.
			probs.setAccuracy(null);
			return probs;
		}
		double largest = 0.0;
		for (double value : probs.getDoubleArray())
			largest = Math.max(largest, 1.0 - value);
		probs.setAccuracy(((DecidedAccuracy) accuracy).ofComplements(largest));
		return probs;
	}

	static double[] stateRewards(int n, Rewards<Double> rewards)
	{
		double[] values = new double[n];
		for (int s = 0; s < n; s++)
			values[s] = rewards.getStateReward(s);
		return values;
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
