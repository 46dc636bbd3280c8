package prismgpu;

/** A reward structure of a model that the engines have built: on its way to them, and back. */
public final class Earning
{
	// The question.
	/** The model's, as of ModelSource. */
	public final long modelId;
	/** A ProgramText of nothing but variables and this structure. */
	public final String program;

	// The answer.
	/** The rewards; null if PRISM's own code must find them. */
	public HeldRewards held;
	/** Whether choices earn anything. */
	public boolean ofChoices;

	// Set instead of an answer.
	/** The text of the PrismException to throw. */
	public String error;

	Earning(long modelId, String program)
	{
		this.modelId = modelId;
		this.program = program;
	}
}
