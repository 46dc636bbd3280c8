package prismgpu;

import prism.PrismLog;

/** One numerical problem on its way to the engines, and its answer on the way back. */
public final class Problem
{
	// The question.
	/** "reachability" or "steady state". */
	public String task;
	/** The model that the arrays are read from; equal numbers mean the very same model. */
	public long modelId;
	public int numStates;
	/** Whether a CTMC is to be seen as its embedded DTMC. */
	public boolean embedded;
	/** The states to solve for (reachability) or the component (steady state), as a BitSet's words. */
	public long[] states;
	/** Known values and first iterate; null for a steady state. */
	public double[] start;
	/** Rewards of states (DTMC) or of choices (MDP); null for probabilities. */
	public double[] rewards;
	/** "min", "max", or null where there are no choices. */
	public String direction;
	/** PRISM's name of the method that its settings hold. */
	public String method;
	public double omega;
	public double epsilon;
	public boolean absolute;
	public int maxIterations;
	/** Whether a method that fails to converge is an error. */
	public boolean errorOnNonConvergence;

	// The answer.
	/** Values of all states. */
	public double[] solution;
	public int iterations;
	/** Estimated error bound, for PRISM's accuracy. */
	public double errorBound;
	/** Set instead of an answer: why PRISM's own code must do this one. */
	public String refusal;
	/** Set instead of an answer: the text of the PrismException to throw. */
	public String error;

	private final PrismLog log;
	private final Extract source;

	Problem(PrismLog log, Extract source)
	{
		this.log = log;
		this.source = source;
		modelId = source.id;
		numStates = source.numStates;
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
	public Extract model()
	{
		source.read();
		return source;
	}
}
