package prismgpu;

/** A model that the engines build: what PRISM's object of it must know at once. */
abstract class Built
{
	/** The model's, as of ModelSource; the engines keep its arrays under it. */
	public final long id = ModelSource.nextId();

	// The answer.
	public int numStates;
	/** Of an MDP. */
	public int numChoices;
	public int numTransitions;
	/** Of a state of an MDP. */
	public int mostChoices;
	/** Whether the probabilities of each row sum to 1 but for rounding. */
	public boolean sumsToOne;

	// Set instead of an answer.
	/** Why PRISM's own code must build the model. */
	public String refusal;
	/** The text of the PrismException to throw. */
	public String error;

	/** The transitions, once they are there. */
	abstract HeldArrays arrays();
}
