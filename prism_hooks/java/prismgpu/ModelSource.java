package prismgpu;

/** Where the engines get a model from: arrays that PRISM has built, or its diagrams. */
public abstract class ModelSource
{
	private static long given;

	/** Equal for the very same model, and never given twice. */
	public final long id;
	/** "DTMC", "CTMC" or "MDP". */
	public final String kind;
	public final int numStates;

	ModelSource(long id, String kind, int numStates)
	{
		this.id = id;
		this.kind = kind;
		this.numStates = numStates;
	}

	static synchronized long nextId()
	{
		return ++given;
	}

	/** Fills the arrays. */
	abstract void read();
}
