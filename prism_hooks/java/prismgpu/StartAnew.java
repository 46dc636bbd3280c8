package prismgpu;

/**
 * Thrown where the explorer gives a model up that PRISM's default engine is to build instead. It is no
 * PrismException, of which PRISM would tell its listeners that the model cannot be built.
 */
final class StartAnew extends RuntimeException
{
	private static final long serialVersionUID = 1L;

	/** @param reason Why, for the log */
	StartAnew(String reason)
	{
		super(reason, null, false, false);
	}
}
