package prismgpu;

import java.util.Arrays;
import java.util.BitSet;

import explicit.MDP;
import explicit.Model;
import explicit.rewards.Rewards;
import prism.PrismLog;

/**
 * One numerical problem on its way to the engines, and its answer on the way back.
 *
 * The task says which parts of the question count, and what they mean:
 * <pre>
 * reachability              unknown states; known values and first iterate; rewards or none
 * until                     unknown states, those of 0 and 1 among them; known values and first iterate
 * least reward              unknown states; known values, 0 or infinite; rewards; zero-reward loops may be among them
 * prob0, prob1              target, remain
 * predecessors              (for these to have them at hand)
 * state formula             (of a model that the engines have built) the formula
 * zero-reward end components  (of such a model) rewards that are held; remain
 * steady state              the component
 * next                      target
 * step-bounded until        target, remain, bounds; values to start from instead of a target or none
 * time-bounded until        target, remain (the states not absorbing), upper bound; values or none
 * cumulative reward         rewards, upper bound
 * instantaneous reward      rewards of states, upper bound
 * total reward              rewards
 * long-run average          rewards of states, or the states that earn 1
 * transient distribution    initial distribution, upper bound
 * long-run distribution     initial distribution
 * strong components         remain; with trivial ones or without; in order or not
 * bottom components         (of a diagram)
 * end components            remain; states of which each is to have one, or none
 * states of end components  (of a diagram) the same
 * </pre>
 */
public final class Problem
{
	// The question.
	public final String task;
	/** The model that the arrays are read from; equal numbers mean the very same model. */
	public final long modelId;
	public final int numStates;
	/** Whether a CTMC is to be seen as its embedded DTMC. */
	public boolean embedded;
	/** Whether the model is read as a graph, without probabilities; so are values of any type. */
	public boolean graph;
	/** The states that the task is about, as a BitSet's words; null for none. */
	public long[] states;
	/** The states to remain in, as a BitSet's words; null for all. */
	public long[] remain;
	/** One value a state, by the task: known values, values to start from, a distribution; null for none. */
	public double[] start;
	/** Instead of these: sets of states, as a BitSet's words; null for none. */
	public long[][] startSets;
	/** The values of these sets, of which the last one counts that a state is in, and of all other states. */
	public double[] startValues;
	public double startOfOthers;
	/** Rewards of states, or of choices where there are any; null for probabilities, and where they are held. */
	public double[] rewards;
	/** The rewards where the engines hold them; else null. */
	public HeldRewards held;
	/** Whether each choice's rewards are wanted of these, its state's among them. */
	public boolean byChoices;
	/** "min", "max", or null where there are no choices. */
	public String direction;
	/** Bounds, included, in steps or time. */
	public double lower;
	public double upper;

	/** An ExpressionText over the variables. */
	public String formula;

	/** What PRISM's log calls the long-run average of a component; null where it has no such line. */
	public String sought;
	/** Whether who asks prints PRISM's lines around the solve. */
	public boolean told;
	/** Whether the log is to have the values of all states. */
	public boolean verbose;

	/** Whether strong components of one state without a loop count. */
	public boolean withTrivial;
	/** Whether each strong component must come after those that it may enter. */
	public boolean inOrder;

	/** What of the above symbolic engines hand over as diagrams instead; null elsewhere. */
	public SymbolicParts parts;

	// How to solve.
	/** PRISM's name of the method that its settings hold. */
	public String method;
	public double omega;
	public double epsilon;
	public boolean absolute;
	public int maxIterations;
	/** Whether a method that fails to converge is an error. */
	public boolean errorOnNonConvergence;
	/** Whether to go component by component. */
	public boolean topological;
	/** Whether PRISM ends sums over time at the first change below epsilon. */
	public boolean detectsSteadyState;
	/** Whether an optimal choice of each state is wanted. */
	public boolean wantsStrategy;
	/** What the values, or 1 minus these, are compared with; NaN for nothing. */
	public double bound = Double.NaN;
	/** How: one of < <= > >=; null for not at all. */
	public String relation;
	/** Sub-switches of interval iteration where bounds are wanted; else null. */
	public Intervals intervals;

	// The answer.
	/** Values of all states; null for a question about the graph. */
	public double[] solution;
	/** The states found by a question about the graph, as a BitSet's words. */
	public long[] found;
	/** The states of the components found, component by component, and behind the last state of each. */
	public int[] members;
	public int[] ends;
	/** Of a diagram: how many components were found, each state's number from 1 on being its solution, and how many are strong. */
	public int numComponents;
	public int numStrong;
	/** For each state the number of its choice, -1 for any; null where none was wanted. */
	public int[] strategy;
	public int iterations;
	/** The largest error, 0 for values exact but for rounding. */
	public double errorBound;
	/** Whether the error is absolute; else relative. */
	public boolean errorAbsolute;
	/** Whether the error is a bound; else an estimate. */
	public boolean guaranteed;
	/** Values that have no error in any state; null for none. */
	public double[] decided;
	/** The same of 1 - p, if the values are probabilities. */
	public double[] complements;
	/** What PRISM prints behind a result in place of its error, empty for nothing; null where the error is to be printed. */
	public String printedAs;
	/** Set instead of an answer: why PRISM's own code must do this one. */
	public String refusal;
	/** Set instead of an answer: the text of the PrismException to throw. */
	public String error;
	/** Set instead of an answer: whether Java's heap was full, which ends the run. */
	public boolean heapIsFull;

	private final PrismLog log;
	private final ModelSource source;

	Problem(String task, PrismLog log, ModelSource source)
	{
		this.task = task;
		this.log = log;
		this.source = source;
		modelId = source.id;
		numStates = source.numStates;
	}

	/** The numbers of a symbolic model's states; null for a large model, and for any other. */
	Numbering numbers()
	{
		return source instanceof SymbolicModel ? ((SymbolicModel) source).numbers() : null;
	}

	Problem about(BitSet set)
	{
		states = set.toLongArray();
		return this;
	}

	/** @param set The states to remain in; null for all */
	Problem within(BitSet set)
	{
		remain = set == null ? null : set.toLongArray();
		return this;
	}

	/** @param values One a state; null for none */
	Problem from(double[] values)
	{
		start = values;
		return this;
	}

	/** Probabilities: known values and the first iterate of the others, in PRISM's order of preference. */
	Problem fromProbs(BitSet yes, BitSet no, double[] init, BitSet known, double initial)
	{
		return from(yes, 1.0, no, 0.0, init, known, initial);
	}

	/** Rewards: known values and the first iterate of the others, in PRISM's order of preference. */
	Problem fromRewards(BitSet target, BitSet inf, double[] init, BitSet known)
	{
		return from(target, 0.0, inf, Double.POSITIVE_INFINITY, init, known, 0.0);
	}

	private Problem from(BitSet first, double firstValue, BitSet second, double secondValue, double[] init, BitSet known, double initial)
	{
		if (init == null) {
			startSets = new long[][] { second.toLongArray(), first.toLongArray() };
			startValues = new double[] { secondValue, firstValue };
			startOfOthers = initial;
			return this;
		}
		double[] values = Arrays.copyOf(init, numStates);
		for (int i = second.nextSetBit(0); i >= 0; i = second.nextSetBit(i + 1))
			values[i] = secondValue;
		for (int i = first.nextSetBit(0); i >= 0; i = first.nextSetBit(i + 1))
			values[i] = firstValue;
		for (int i = known == null ? -1 : known.nextSetBit(0); i >= 0; i = known.nextSetBit(i + 1))
			values[i] = init[i];
		return from(values);
	}

	Problem earning(double[] values)
	{
		rewards = values;
		return this;
	}

	/** @param given Of the states of the model; of a chain those of its transitions are in there */
	Problem earning(Model<?> model, Rewards<Double> given)
	{
		held = EarnedRewards.of(model, given);
		return held == null ? earning(Hooks.stateRewards(model.getNumStates(), given)) : this;
	}

	/** @param given State and transition rewards of each choice, in the order of the choices */
	Problem earningByChoices(MDP<Double> mdp, Rewards<Double> given)
	{
		held = EarnedRewards.of(mdp, given);
		byChoices = held != null;
		if (byChoices)
			return this;
		double[] sums = new double[mdp.getNumChoices()];
		int row = 0;
		for (int s = 0; s < mdp.getNumStates(); s++) {
			double stateReward = given.getStateReward(s);
			int choices = mdp.getNumChoices(s);
			for (int i = 0; i < choices; i++)
				sums[row++] = stateReward + given.getTransitionReward(s, i);
		}
		return earning(sums);
	}

	/** @param wanted Whether an optimal choice of each state is wanted */
	Problem withStrategy(boolean wanted)
	{
		wantsStrategy = wanted;
		return this;
	}

	Problem choosing(boolean min)
	{
		direction = min ? "min" : "max";
		return this;
	}

	Problem between(double from, double to)
	{
		lower = from;
		upper = to;
		return this;
	}

	Problem upTo(double to)
	{
		return between(0.0, to);
	}

	/** Prints a line to PRISM's log. */
	public void say(String line)
	{
		log.println(line);
	}

	/** Prints a warning to PRISM's log. */
	public void warn(String text)
	{
		log.printWarning(text);
	}

	/** Prints a line to PRISM's log that must be seen while the solve goes on. */
	public void progress(String line)
	{
		log.println(line);
		log.flush();
	}

	/** Reads the model out of PRISM's objects. */
	public ModelSource model()
	{
		String before = HeapLimit.begin(HeapLimit.READING);
		source.read();
		HeapLimit.begin(before);
		return source;
	}
}
