package prismgpu;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

import automata.DA;
import prism.PrismLog;

/** A product of a model and a deterministic automaton to be built: on its way to the engines, and back. */
public final class ProductConstruction extends Built
{
	private static final int NO_STATE = -1;
	/** The steps are an array, as long as the automaton has edges. */
	private static final int MOST_ATOMS = 30;

	// The question.
	/** The model that the arrays are read from; equal numbers mean the very same model. */
	public final long modelId;
	/** None: it is no diagram. */
	public final SymbolicParts parts = null;
	/** For each state of the automaton and each letter the next state, or -1. */
	public final int[] steps;
	public final int numLetters;
	/** The states where each atom holds, as the words of a BitSet; it is a bit of a letter. */
	public final long[][] atoms;
	/** Where the automaton starts, before it has read the letter of the first state. */
	public final int start;
	/** The states to start from, as the words of a BitSet; null for all. */
	public final long[] firstStates;

	// The answer.
	/** The transitions. */
	public HeldArrays held;
	/** What each state is made of: that of the model times the size of the automaton, and that of the automaton. */
	public int[] pairs;

	private final Extract source;
	private final PrismLog log;

	/**
	 * @param labels The states of each label that the automaton's atoms may name
	 * @param firstStates The states to start from; null for all
	 */
	private ProductConstruction(Extract source, DA<BitSet, ?> automaton, List<BitSet> labels, BitSet firstStates, PrismLog log)
	{
		this.source = source;
		this.log = log;
		modelId = source.id;
		List<String> names = automaton.getAPList();
		numLetters = 1 << names.size();
		atoms = new long[names.size()][];
		for (int i = 0; i < atoms.length; i++)
			atoms[i] = labels.get(Integer.parseInt(names.get(i).substring(1))).toLongArray();
		steps = stepsOf(automaton, numLetters);
		start = automaton.getStartState();
		this.firstStates = firstStates == null ? null : firstStates.toLongArray();
	}

	/** @return null where the automaton is too large for an array */
	static ProductConstruction of(Extract source, DA<BitSet, ?> automaton, List<BitSet> labels, BitSet firstStates, PrismLog log)
	{
		int atoms = automaton.getAPList().size();
		boolean fits = atoms <= MOST_ATOMS && (long) automaton.size() << atoms <= Integer.MAX_VALUE - 8;
		return fits ? new ProductConstruction(source, automaton, labels, firstStates, log) : null;
	}

	private static int[] stepsOf(DA<BitSet, ?> automaton, int letters)
	{
		int[] steps = new int[automaton.size() * letters];
		Arrays.fill(steps, NO_STATE);
		for (int state = 0; state < automaton.size(); state++) {
			// Of edges with equal letters PRISM takes the first.
			for (int edge = automaton.getNumEdges(state) - 1; edge >= 0; edge--)
				steps[state * letters + letterOf(automaton.getEdgeLabel(state, edge))] = automaton.getEdgeDest(state, edge);
		}
		return steps;
	}

	private static int letterOf(BitSet atoms)
	{
		long[] words = atoms.toLongArray();
		return words.length == 0 ? 0 : (int) words[0];
	}

	@Override
	HeldArrays arrays()
	{
		return held;
	}

	/** Prints a line to PRISM's log. */
	public void say(String line)
	{
		log.println(line);
	}

	/** Reads the model out of PRISM's objects. */
	public ModelSource model()
	{
		source.read();
		return source;
	}
}
