package prismgpu;

/** Ends a run as System.exit does, which PRISM calls; but the JVM is not taken down, for which nobody waits. */
public final class Ending
{
	private static String text = "";

	/** Whether the process goes on when a run ends. */
	private static volatile boolean unwinds;

	private Ending()
	{
	}

	/** Unwinds the thread of a run that ends while the process goes on. */
	public static final class Unwinding extends Error
	{
		private static final long serialVersionUID = 1L;

		public final int code;

		private Unwinding(int code)
		{
			super("exit code " + code, null, false, false);
			this.code = code;
		}
	}

	/** Has runs end without the process: PRISM's exit then throws. */
	static void unwindFromNowOn()
	{
		unwinds = true;
	}

	/** Has a text printed when PRISM ends the run. */
	public static void printFirst(String printed)
	{
		text = printed + System.lineSeparator();
	}

	/** Ends the process; stands in for System.exit. */
	public static void exit(int code)
	{
		if (unwinds)
			throw new Unwinding(code);
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
