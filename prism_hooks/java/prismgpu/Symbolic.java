package prismgpu;

import dv.DoubleVector;
import dv.IntegerVector;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import parser.ast.Expression;
import parser.ast.ExpressionFilter;
import parser.type.TypeBool;
import prism.Accuracy;
import prism.Prism;
import prism.PrismException;
import prism.PrismLog;
import prism.PrismSettings;
import symbolic.model.Model;
import symbolic.model.ModelSymbolic;
import symbolic.model.NondetModel;
import symbolic.model.ProbModel;
import symbolic.states.StateValues;
import symbolic.states.StateValuesDV;
import symbolic.states.StateValuesMTBDD;

/** The solves of PRISM's sparse and hybrid engines, sent to ours; null means that PRISM's own code must solve. */
final class Symbolic
{
	/** What PRISM does on diagrams in one multiplication. */
	static final String NEXT = "next, one product on a diagram,";
	private static final String POWER = "Power method";
	/** The part of the longest step that PRISM's power method takes; see POWER_STEP in engines/questions/steady_state.py. */
	private static final double POWER_STEP = 0.99;
	/** Of models of more states no diagram is made for the log alone. */
	private static final int MOST_COUNTED = 1 << 18;
	private static final String ADVERSARY = "export of an adversary";

	/** PRISM as a whole, whose settings and log the solves have. */
	static Prism prism;

	/** What the checker at work knows beyond what it hands to a solve. */
	private static Knowledge known = new Knowledge();
	/** What is known of the error of the last solve; null where PRISM's own code did it. */
	private static Accuracy accuracy;
	private static boolean solved;
	/** The accuracy of the last result of a checker's work; null where there is none. */
	private static Accuracy last;

	private Symbolic()
	{
	}

	/** A checker's knowledge. */
	static final class Knowledge
	{
		/** The rates whose embedded chain is solved; null for none. */
		JDDNode rates;
		/** For a steady state: the whole matrix, and the component that is solved. */
		JDDNode whole;
		JDDNode component;
		boolean continuous;
		/** Whether a distribution to start from is the checker's own, and nobody else's to clear. */
		boolean ownsStart;
		/** Whether bounds are wanted although PRISM was kept from preparing its own. */
		boolean bounds;

		/** Of a distribution to start from that is given up afterwards. */
		static Knowledge ofOwnStart()
		{
			Knowledge knowledge = new Knowledge();
			knowledge.ownsStart = true;
			return knowledge;
		}

		static Knowledge ofComponent(boolean continuous, JDDNode whole, JDDNode component)
		{
			Knowledge knowledge = new Knowledge();
			knowledge.continuous = continuous;
			knowledge.whole = whole;
			knowledge.component = component;
			return knowledge;
		}
	}

	/** Thrown by a solve that had to be refused although PRISM was kept from preparing its own bounds. */
	private static final class Unprepared extends PrismException
	{
		Unprepared()
		{
			super("a refused solve");
		}
	}

	/** A checker's switch for interval iteration. */
	interface Switch
	{
		void set(boolean on);
	}

	/** Runs a checker's work with what it knows. */
	static <T> T with(Knowledge knowledge, Hooks.Work<T> work) throws PrismException
	{
		Knowledge outer = known;
		known = knowledge;
		try {
			return work.run();
		} finally {
			known = outer;
		}
	}

	/**
	 * Runs a checker's work, and states what our engines know of the error of the result. Where bounds
	 * are wanted, PRISM is kept from the quotient and from the bounds of rewards that its own method needs;
	 * but not from saying that it needs precomputation.
	 */
	static StateValues stated(Knowledge knowledge, boolean intervals, Switch doIntervalIteration, Hooks.Work<StateValues> work) throws PrismException
	{
		knowledge.bounds = intervals && refusal() == null && Hooks.precomputes(prism.getSettings());
		if (knowledge.bounds) {
			doIntervalIteration.set(false);
			try {
				return stated(() -> with(knowledge, work));
			} catch (Unprepared e) {
				knowledge.bounds = false;
			} finally {
				doIntervalIteration.set(true);
			}
		}
		return stated(() -> with(knowledge, work));
	}

	/** Runs a checker's work, and states what our engines know of the error of the result. */
	static StateValues stated(Hooks.Work<StateValues> work) throws PrismException
	{
		solved = false;
		StateValues values = work.run();
		if (solved)
			values.setAccuracy(accuracy);
		solved = false;
		last = values.getAccuracy();
		return values;
	}

	/** Runs a checker's work on a product, and hands on the accuracy, which PRISM forgets on the way back to the model. */
	static StateValues handedOn(Hooks.Work<StateValues> work) throws PrismException
	{
		last = null;
		StateValues values = work.run();
		if (values.getAccuracy() == null)
			values.setAccuracy(ExactAccuracy.listing(last));
		if (Hooks.printsAsPrism())
			KnownAccuracy.printedAs("", values.getAccuracy());
		return values;
	}

	/**
	 * Goes on with a copy of a result that is kept for all states, where PRISM would clear the vector
	 * that it has kept: with several initial states it takes the range of their values last.
	 */
	static StateValues kept(Expression expr, StateValues values, Model model) throws PrismException
	{
		boolean stored = Expression.isFilter(expr, ExpressionFilter.FilterOperator.STORE);
		if (!stored || model.getNumInitialStates() == 1 || expr.getType() instanceof TypeBool)
			return values;
		if (values instanceof StateValuesMTBDD)
			return new StateValuesMTBDD(((StateValuesMTBDD) values).getJDDNode().copy(), model, values.getAccuracy());
		DoubleVector copy = new DoubleVector(values.getSize());
		copy.add(((StateValuesDV) values).getDoubleVector());
		return new StateValuesDV(copy, model, values.getAccuracy());
	}

	/** Mends the accuracy of 1 - p, which PRISM leaves at p's: a relative error of p, at most 1, is an absolute one of 1 - p. */
	static StateValues negated(StateValues probs)
	{
		Accuracy error = probs.getAccuracy();
		if (error instanceof DecidedAccuracy)
			probs.setAccuracy(((DecidedAccuracy) error).ofComplements(1.0));
		return probs;
	}

	// The solves, by what PrismSparse calls them.

	static DoubleVector until(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe) throws PrismException
	{
		Problem problem = chain(Hooks.untilTask(prism.getSettings()), trans, odd, rows, cols);
		problem.parts.states = new Diagram(maybe);
		problem.parts.start = new Diagram(yes);
		return solve(problem, refusal());
	}

	static DoubleVector boundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, int bound) throws PrismException
	{
		Problem problem = chain("step-bounded until", trans, odd, rows, cols).upTo(bound);
		problem.parts.states = new Diagram(yes);
		problem.parts.remain = new Diagram(maybe);
		return solve(problem, null);
	}

	static DoubleVector cumulReward(boolean continuous, JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, double bound)
			throws PrismException
	{
		Problem problem = problem("cumulative reward", continuous ? "CTMC" : "DTMC", trans, odd, rows, cols, null).upTo(bound);
		problem.parts.stateRewards = expected(trans, sr, trr, cols);
		return solve(problem, null);
	}

	static DoubleVector instReward(JDDNode trans, JDDNode sr, ODDNode odd, JDDVars rows, JDDVars cols, int time) throws PrismException
	{
		Problem problem = chain("instantaneous reward", trans, odd, rows, cols).upTo(time);
		problem.parts.stateRewards = new Diagram(sr);
		return solve(problem, null);
	}

	static DoubleVector reachReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode goal, JDDNode inf,
			JDDNode maybe) throws PrismException
	{
		// PRISM has total rewards as those before a goal that is never reached.
		boolean total = goal.equals(JDD.ZERO);
		Problem problem = total ? problem("total reward", "DTMC", trans, odd, rows, cols, null) : chain("reachability", trans, odd, rows, cols);
		problem.parts.stateRewards = expected(trans, sr, trr, cols);
		problem.parts.states = new Diagram(maybe);
		if (!total)
			problem.parts.start = infinite(inf);
		return solve(problem, refusal());
	}

	static DoubleVector transientProbs(boolean continuous, JDDNode trans, ODDNode odd, DoubleVector init, JDDVars rows, JDDVars cols, double time)
			throws PrismException
	{
		Problem problem = problem("transient distribution", continuous ? "CTMC" : "DTMC", trans, odd, rows, cols, null).upTo(time);
		problem.parts.startAddress = init.getPtr();
		DoubleVector solution = solve(problem, null);
		if (solution != null && known.ownsStart)
			init.clear();
		return solution;
	}

	/** What a question that is no solve of PRISM's comes to; null where PRISM's own code must put it together. */
	static StateValuesDV answered(Problem problem, ProbModel model, Unfolding unfolding) throws PrismException
	{
		DoubleVector solution = solve(problem, refusal());
		solved = false;
		return solution == null ? null : new StateValuesDV(unfolding.of(solution), model, accuracy);
	}

	/** Makes values of a model's states of those of which the engines were asked, which it gives up. */
	interface Unfolding
	{
		DoubleVector of(DoubleVector values) throws PrismException;
	}

	static DoubleVector timeBoundedUntil(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDNode yes, JDDNode maybe, double time,
			DoubleVector multProbs) throws PrismException
	{
		Problem problem = problem("time-bounded until", "CTMC", trans, odd, rows, cols, null).upTo(time);
		problem.parts.states = new Diagram(yes);
		problem.parts.remain = new Diagram(maybe);
		problem.parts.startAddress = multProbs == null ? 0 : multProbs.getPtr();
		return solve(problem, null);
	}

	static DoubleVector steadyState(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols) throws PrismException
	{
		if (known.component == null)
			return null;
		Problem problem = problem("steady state", known.continuous ? "CTMC" : "DTMC", known.whole, odd, rows, cols, null);
		problem.parts.states = new Diagram(known.component);
		countStep(problem, trans, rows, cols);
		return solve(problem, refusal());
	}

	/** Counts the nodes that the diagram of a step of the uniformised chain has, which PRISM's power method makes and its log tells. */
	static void countStep(Problem problem, JDDNode rates, JDDVars rows, JDDVars cols)
	{
		if (!problem.method.equals(POWER) || problem.numStates > MOST_COUNTED)
			return;
		JDDNode exits = JDD.Apply(JDD.TIMES, JDD.SumAbstract(rates.copy(), cols), JDD.Constant(-1));
		JDDNode length = JDD.Constant(-POWER_STEP / JDD.FindMin(exits));
		JDDNode generator = JDD.Apply(JDD.PLUS, rates.copy(), JDD.Apply(JDD.TIMES, JDD.Identity(rows, cols), exits.copy()));
		JDDNode stay = JDD.Apply(JDD.TIMES, JDD.Identity(rows, cols), JDD.LessThan(exits, 0));
		JDDNode step = JDD.Apply(JDD.PLUS, JDD.Apply(JDD.TIMES, length, generator), stay);
		problem.parts.stepNodes = JDD.GetNumNodes(step);
		JDD.Deref(step);
	}

	/** @param strat Where a strategy is wanted; PRISM's command line generates none under these engines */
	static DoubleVector untilOfChoices(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe, boolean min,
			IntegerVector strat) throws PrismException
	{
		Problem problem = problem(Hooks.untilTask(prism.getSettings()), "MDP", trans, odd, rows, cols, nondet).choosing(min);
		problem.parts.states = new Diagram(maybe);
		problem.parts.start = new Diagram(yes);
		return solve(problem, strat != null ? "generation of a strategy" : adversaryRefusal());
	}

	static DoubleVector boundedUntilOfChoices(JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode yes, JDDNode maybe, int time,
			boolean min) throws PrismException
	{
		Problem problem = problem("step-bounded until", "MDP", trans, odd, rows, cols, nondet).choosing(min).upTo(time);
		problem.parts.states = new Diagram(yes);
		problem.parts.remain = new Diagram(maybe);
		return solve(problem, exportsAdversary() ? ADVERSARY : null);
	}

	static DoubleVector cumulRewardOfChoices(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, int bound,
			boolean min) throws PrismException
	{
		Problem problem = problem("cumulative reward", "MDP", trans, odd, rows, cols, nondet).choosing(min).upTo(bound);
		earn(problem, trans, sr, trr, rows, cols, nondet, JDD.ONE);
		return solve(problem, null);
	}

	static DoubleVector instRewardOfChoices(JDDNode trans, JDDNode sr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, int time, boolean min)
			throws PrismException
	{
		Problem problem = problem("instantaneous reward", "MDP", trans, odd, rows, cols, nondet).choosing(min).upTo(time);
		problem.parts.stateRewards = new Diagram(sr);
		return solve(problem, null);
	}

	static DoubleVector reachRewardOfChoices(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode goal,
			JDDNode inf, JDDNode maybe, boolean min) throws PrismException
	{
		boolean total = goal.equals(JDD.ZERO);
		// Unlike its explicit engine, PRISM's symbolic ones do not look for zero-reward loops; they warn of them.
		String task = total ? "total reward" : min ? "least reward" : "reachability";
		Problem problem = problem(task, "MDP", trans, odd, rows, cols, nondet).choosing(min);
		earn(problem, trans, sr, trr, rows, cols, nondet, maybe);
		problem.parts.states = new Diagram(maybe);
		if (!total)
			problem.parts.start = infinite(inf);
		return solve(problem, adversaryRefusal());
	}

	static DoubleVector leastTotalReward(JDDNode trans, JDDNode sr, JDDNode trr, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet) throws PrismException
	{
		Problem problem = problem("total reward", "MDP", trans, odd, rows, cols, nondet).choosing(true);
		earn(problem, trans, sr, trr, rows, cols, nondet, JDD.ONE);
		return solve(problem, adversaryRefusal());
	}

	/** Whether our engines answer at all, with PRISM's present settings. */
	static boolean answers()
	{
		return Hooks.backend != null && Hooks.exchange == null && refusal() == null;
	}

	/** Whether they answer questions about graphs in diagrams, which -mtbdd wants to be left to PRISM. */
	static boolean answersOnDiagrams()
	{
		return prism != null && prism.getEngine() != Prism.MTBDD && answers();
	}

	/** A question about the graph of a model. */
	static Problem about(String task, ModelSymbolic model) throws PrismException
	{
		JDDVars nondet = model instanceof NondetModel ? ((NondetModel) model).getAllDDNondetVars() : null;
		return problem(task, model.getModelType().toString(), model.getTrans(), model.getODD(), model.getAllDDRowVars(), model.getAllDDColVars(), nondet);
	}

	/** A question about a Markov chain. */
	static Problem ofChain(String task, boolean continuous, ProbModel model) throws PrismException
	{
		return problem(task, continuous ? "CTMC" : "DTMC", model.getTrans(), model.getODD(), model.getAllDDRowVars(), model.getAllDDColVars(), null);
	}

	private static Problem chain(String task, JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols) throws PrismException
	{
		if (known.rates == null)
			return problem(task, "DTMC", trans, odd, rows, cols, null);
		Problem problem = problem(task, "CTMC", known.rates, odd, rows, cols, null);
		problem.parts = new SymbolicParts(trans);
		problem.embedded = true;
		return problem;
	}

	private static Problem problem(String task, String kind, JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet) throws PrismException
	{
		return problem(task, SymbolicModel.of(kind, trans, odd, rows, cols, nondet), trans, nondet != null);
	}

	/** A question about a part of a Markov chain that is a chain by itself. */
	static Problem about(String task, SymbolicModel chain, JDDNode trans) throws PrismException
	{
		return problem(task, chain, trans, false);
	}

	private static Problem problem(String task, SymbolicModel source, JDDNode trans, boolean hasChoices) throws PrismException
	{
		PrismSettings settings = prism.getSettings();
		Problem problem = new Problem(task, prism.getMainLog(), source);
		problem.parts = new SymbolicParts(trans);
		String linear = settings.getString(PrismSettings.PRISM_LIN_EQ_METHOD);
		problem.method = hasChoices ? settings.getString(PrismSettings.PRISM_MDP_SOLN_METHOD) : linear.equals("Power") ? POWER : linear;
		problem.omega = settings.getDouble(PrismSettings.PRISM_LIN_EQ_METHOD_PARAM);
		problem.epsilon = prism.getTermCritParam();
		problem.absolute = prism.getTermCrit() == Prism.ABSOLUTE;
		problem.maxIterations = prism.getMaxIters();
		problem.errorOnNonConvergence = true;
		problem.topological = settings.getBoolean(PrismSettings.PRISM_TOPOLOGICAL_VI);
		problem.detectsSteadyState = settings.getBoolean(PrismSettings.PRISM_DO_SS_DETECTION);
		problem.intervals = settings.getBoolean(PrismSettings.PRISM_INTERVAL_ITER) ? new Intervals(settings) : null;
		return problem;
	}

	private static DoubleVector solve(Problem problem, String refusal) throws PrismException
	{
		PrismLog log = prism.getMainLog();
		solved = false;
		DoubleVector solution = null;
		if (refusal != null || Hooks.backend == null) {
			Hooks.handBack(log, refusal != null ? refusal : "computation without an engine");
		} else {
			DoubleVector room = vector(problem.numStates);
			problem.parts.solutionAddress = room.getPtr();
			try {
				explicit.ModelCheckerResult res = Hooks.solve(problem, log);
				if (res != null) {
					solution = room;
					accuracy = res.accuracy;
					solved = true;
				}
			} finally {
				if (solution == null)
					room.clear();
			}
		}
		if (solution == null && known.bounds)
			throw new Unprepared();
		return solution;
	}

	static DoubleVector vector(int states) throws PrismException
	{
		try {
			return new DoubleVector(states);
		} catch (PrismException e) {
			throw new PrismException(e.getMessage() + ": the host has no " + 8L * states + " bytes left for a solution of " + states + " states");
		}
	}

	/** Why PRISM's settings keep the engines out, or null if they do not. */
	private static String refusal()
	{
		return Hooks.refusal(prism.getSettings());
	}

	private static String adversaryRefusal()
	{
		return exportsAdversary() ? ADVERSARY : refusal();
	}

	/** Whether choices are told, so that states must not be taken for targets that are only sure to reach one. */
	static boolean tellsChoices()
	{
		return prism.getGenStrat() || exportsAdversary();
	}

	private static boolean exportsAdversary()
	{
		return prism.getExportAdv() != Prism.EXPORT_ADV_NONE;
	}

	/** The rewards of a Markov chain's states, those of its transitions in there as expected values. */
	private static Diagram expected(JDDNode trans, JDDNode sr, JDDNode trr, JDDVars cols)
	{
		JDDNode earned = JDD.SumAbstract(JDD.Apply(JDD.TIMES, trans.copy(), trr.copy()), cols);
		return read(JDD.Apply(JDD.PLUS, sr.copy(), earned));
	}

	/** @param states Whose choices are solved for */
	private static void earn(Problem problem, JDDNode trans, JDDNode sr, JDDNode trr, JDDVars rows, JDDVars cols, JDDVars nondet, JDDNode states)
	{
		JDDNode earning = JDD.Apply(JDD.TIMES, trr.copy(), states.copy());
		problem.parts.earningEntries = JDD.GetNumMinterms(earning, rows.n() + cols.n() + nondet.n());
		JDD.Deref(earning);
		problem.parts.stateRewards = new Diagram(sr);
		problem.parts.choiceRewards = read(JDD.SumAbstract(JDD.Apply(JDD.TIMES, trans.copy(), trr.copy()), cols));
	}

	private static Diagram infinite(JDDNode states)
	{
		return read(JDD.ITE(states.copy(), JDD.PlusInfinity(), JDD.Constant(0)));
	}

	/** Reads a diagram and gives up the reference to it. */
	private static Diagram read(JDDNode node)
	{
		Diagram diagram = new Diagram(node);
		JDD.Deref(node);
		return diagram;
	}
}
