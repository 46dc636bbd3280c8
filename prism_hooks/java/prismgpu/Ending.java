package prismgpu;

/** Ends a run as System.exit does, which PRISM calls; but the JVM is not taken down, for which nobody waits. */
public final class Ending
{
	private static String text = "";

	private Ending()
	{
	}

	/** Has a text printed when PRISM ends the run. */
	public static void printFirst(String printed)
	{
		text = printed + System.lineSeparator();
	}

	/** Ends the process; stands in for System.exit. */
	public static void exit(int code)
	{
		try {
			System.out.print(text);
			Hooks.beginEnd();
			System.err.flush();
			if (Hooks.backend != null)
				Hooks.backend.end(code);
		} catch (RuntimeException | OutOfMemoryError e) {
			// Python cannot be called, for lack of room, say: the rest does without.
		}
		Runtime.getRuntime().halt(code);
	}
}
