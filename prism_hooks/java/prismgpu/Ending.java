package prismgpu;

/** How PRISM's code ends a run: its calls of System.exit come here, and the JVM is not taken down. */
public final class Ending
{
	/** A run's exit code on its way to who started the run. */
	@SuppressWarnings("serial")
	static final class Exit extends Error
	{
		final int code;

		Exit(int code)
		{
			super("exit code " + code, null, false, false);
			this.code = code;
		}
	}

	private static String text = "";

	private Ending()
	{
	}

	/** Has a text printed when a run ends. */
	public static void printFirst(String printed)
	{
		text = printed + System.lineSeparator();
	}

	/** Stands in for System.exit. PRISM's own thread goes back to the launcher, another ends the process. */
	public static void exit(int code)
	{
		if (Launcher.isRunning(Thread.currentThread()))
			throw new Exit(code);
		endProcess(code);
	}

	/** Prints what is held back. */
	static void flush()
	{
		System.out.print(text);
		System.out.flush();
		System.err.flush();
	}

	/** Ends the process, whatever its threads are doing. */
	static void endProcess(int code)
	{
		try {
			flush();
			if (Hooks.backend != null)
				Hooks.backend.end(code);
		} catch (RuntimeException | OutOfMemoryError e) {
			// Python cannot be called, for lack of room, say: the rest does without.
		}
		Runtime.getRuntime().halt(code);
	}
}
