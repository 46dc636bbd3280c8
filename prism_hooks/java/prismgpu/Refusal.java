package prismgpu;

/** Ends a run at once: PRISM catches its exceptions and goes on with the next property. */
public final class Refusal extends Error
{
	private static final long serialVersionUID = 1L;

	Refusal(String text)
	{
		super(text, null, false, false);
	}
}
