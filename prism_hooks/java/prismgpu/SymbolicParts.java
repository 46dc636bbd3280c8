package prismgpu;

import jdd.JDDNode;

/** What a problem on a symbolic model hands over: diagrams, and addresses of PRISM's native vectors. */
public final class SymbolicParts
{
	/** What PRISM gave the solve to multiply with, a CTMC's embedded chain where that is solved. */
	private final JDDNode trans;

	SymbolicParts(JDDNode trans)
	{
		this.trans = trans;
	}

	/** Reads it; to be called while the problem is being solved. */
	public Diagram own()
	{
		return new Diagram(trans);
	}

	/** The states that the task is about, and those to remain in; null for none, and for all. */
	public Diagram states;
	public Diagram remain;
	/** Values of the states that the task is not about; null for 0. */
	public Diagram start;
	/** Nodes of the diagram that PRISM's power method has of a step; 0 where they are not counted. */
	public int stepNodes;
	/** One double a state to start from; 0 for none. */
	public long startAddress;
	/** Rewards of states, and of an MDP's choices on top; null for none. */
	public Diagram stateRewards;
	public Diagram choiceRewards;
	/** How many transitions of these choices earn anything. */
	public double earningEntries;
	/** One double a state, for the solution; 0 for a set of states that goes to `Problem.found`. */
	public long solutionAddress;
}
