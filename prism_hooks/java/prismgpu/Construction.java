package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import prism.PrismLog;
import prism.ProgressDisplay;

/** A model to be built from its program: on its way to the engines, and back. */
public final class Construction extends Built
{
	// The question.
	/** A ProgramText. */
	public final String program;
	/** Whether the model may be left to PRISM's default engine, because the user named no engine. */
	public final boolean mayStartAnew;
	/** How many bytes Java's heap may take. */
	public final long heapBytes = Runtime.getRuntime().maxMemory();

	// The answer.
	/** The transitions and the states. */
	public HeldModel held;
	/** Whether any choice, or transition of a chain, has an action. */
	public boolean hasActions;
	/** How many words a packed state has. */
	public int words;
	/** Where each variable lies in the words of a state, and what is added to its bits there. */
	public int[] fieldWords;
	public int[] shifts;
	public long[] masks;
	public int[] lows;
	/** Sets of states, as the words of a BitSet. */
	public long[] initial;
	public long[] deadlocks;
	final List<BitSet> labels = new ArrayList<>();
	/** What a reader must know of where it was built; empty for nothing. */
	public String remark = "";

	// Set instead of an answer.
	/** The values of the variables in a state in which PRISM finds an error. */
	public int[] faultyState;
	private final boolean unbounded;
	private final PrismLog log;
	private final ProgressDisplay display;
	private boolean begun;

	/** @param unbounded Whether there may be no end of states */
	Construction(String program, boolean mayStartAnew, boolean unbounded, PrismLog log)
	{
		this.program = program;
		this.mayStartAnew = mayStartAnew;
		this.unbounded = unbounded;
		this.log = log;
		display = new ProgressDisplay(log);
	}

	@Override
	HeldArrays arrays()
	{
		return held;
	}

	/** Says that the search for states begins. */
	public void begin()
	{
		if (unbounded)
			log.printWarning("Model contains one or more unbounded variables: model construction may not terminate");
		log.print("\nComputing reachable states...");
		log.flush();
		display.start();
		begun = true;
	}

	/** Shows now and then how many states were found. */
	public void showProgress(int found)
	{
		display.updateIfReady(found);
	}

	/** Fills in the states of the next label, as the words of a BitSet. */
	public void addLabel(long[] states)
	{
		labels.add(BitSet.valueOf(states));
	}

	/** Says how many states there are. */
	void end()
	{
		display.update(numStates);
		display.end(" states");
	}

	/** Ends the line that tells of the search. */
	void breakOff()
	{
		if (begun)
			log.println();
	}
}
