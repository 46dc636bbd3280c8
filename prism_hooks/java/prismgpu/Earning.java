package prismgpu;

/** A reward structure of a model that the engines have built: on its way to them, and back. */
public final class Earning
{
	// The question.
	/** The model's, as of ModelSource. */
	public final long modelId;
	/** A ProgramText of nothing but variables and this structure. */
	public final String program;

	// The answer; null if PRISM's own code must find the rewards.
	/** Of a chain with the rewards of transitions, by their probabilities or rates. */
	public double[] ofStates;
	/** For each choice of an MDP; null where choices earn nothing. */
	public double[] ofChoices;

	// Set instead of an answer.
	/** The text of the PrismException to throw. */
	public String error;

	Earning(long modelId, String program)
	{
		this.modelId = modelId;
		this.program = program;
	}
}
