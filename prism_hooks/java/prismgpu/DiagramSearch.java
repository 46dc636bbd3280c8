package prismgpu;

/** A fixpoint over sets of states in diagrams, round by round; it can be left for a while, and gone on with. Implemented in Python. */
public interface DiagramSearch
{
	/** Makes rounds until the fixpoint or the limit of steps is reached; returns whether it is the fixpoint. */
	boolean run(double steps);

	/** Steps that were made: what the diagrams' library computed, and rounds. */
	double steps();

	/** Whether the diagrams' library had no memory left for it. */
	boolean failed();

	/** Rounds that were made. */
	int rounds();

	/** The address of what was searched for, once the search is complete, referenced; 0 where the search has failed. */
	long result();

	/** Gives up what the search holds. */
	void clear();
}
