package prismgpu;

/** A model that was built from its program, where the engines hold it. */
public interface HeldModel extends HeldArrays
{
	/** The action of each choice of an MDP, of each transition of a chain: its number, or -1; null where there are none. */
	int[] actions();

	/** The states in order, packed: so many words each. */
	long[] states();
}
