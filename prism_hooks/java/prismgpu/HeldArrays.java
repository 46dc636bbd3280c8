package prismgpu;

/** The transitions of a model where the engines hold them: an array crosses when it is asked for. */
public interface HeldArrays
{
	/** For each row, of a state or of a choice, its first transition, and one past the last. */
	int[] rowOffsets();

	/** For each state of an MDP its first choice, and one past the last; null without choices. */
	int[] groupOffsets();

	int[] columns();

	double[] values();
}
