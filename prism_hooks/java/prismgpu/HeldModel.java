package prismgpu;

/** A model where the engines hold it: an array crosses when it is asked for. */
public interface HeldModel
{
	/** For each row, of a state or of a choice, its first transition, and one past the last. */
	int[] rowOffsets();

	/** For each state of an MDP its first choice, and one past the last; null without choices. */
	int[] groupOffsets();

	int[] columns();

	double[] values();

	/** The action of each choice of an MDP, of each transition of a chain: its number, or -1; null where there are none. */
	int[] actions();

	/** The states in order, packed: so many words each. */
	long[] states();
}
