package prismgpu;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Runs a main class as PRISM's start script would: in a thread whose stack has the size asked for. */
public final class Launcher
{
	/** What a run gives that returns and names no exit code. */
	private static final int NO_CODE = -1;

	/** The thread in which JPype gives up Java objects that Python is done with. */
	private static final String CLEANER = "Python Reference Queue";

	private static volatile Thread running;

	private Launcher()
	{
	}

	/** Prints what a thread died of. JPype's cleaner is the first to find a heap full; PRISM's own thread tells of it. */
	private static void report(Thread thread, Throwable error)
	{
		if (error instanceof OutOfMemoryError && thread.getName().equals(CLEANER))
			return;
		System.err.print("Exception in thread \"" + thread.getName() + "\" ");
		error.printStackTrace();
	}

	/** Whether a thread is the one that runs a main class. */
	static boolean isRunning(Thread thread)
	{
		return thread == running;
	}

	/** The number of threads that keep the JVM from ending. Java's own for events, which PRISM's settings load, come and go. */
	public static int threads()
	{
		int found = 0;
		for (Thread thread : Thread.getAllStackTraces().keySet()) {
			if (!thread.isDaemon() && !thread.getName().startsWith("AWT-"))
				found++;
		}
		return found;
	}

	/** Runs the main method of a class to its end; returns the exit code that it named, or -1. */
	public static int run(String mainClass, String[] args, long stackBytes) throws Throwable
	{
		Method main = Class.forName(mainClass).getMethod("main", String[].class);
		Throwable[] thrown = new Throwable[1];
		Thread.setDefaultUncaughtExceptionHandler(Launcher::report);
		running = new Thread(null, () -> {
			try {
				main.invoke(null, (Object) args);
			} catch (InvocationTargetException e) {
				thrown[0] = e.getCause();
			} catch (ReflectiveOperationException | OutOfMemoryError e) {
				thrown[0] = e;
			}
			// Python is not asked to: with a full heap, it could not even be told.
			if (thrown[0] instanceof OutOfMemoryError)
				HeapLimit.end((OutOfMemoryError) thrown[0]);
		}, "main", stackBytes);
		running.start();
		running.join();
		Ending.flush();
		if (thrown[0] instanceof Ending.Exit)
			return ((Ending.Exit) thrown[0]).code;
		if (thrown[0] != null)
			throw thrown[0];
		return NO_CODE;
	}
}
