package prismgpu;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Runs a main class as PRISM's start script would: in a thread whose stack has the size asked for. */
public final class Launcher
{
	/** The thread in which JPype gives up Java objects that Python is done with. */
	private static final String CLEANER = "Python Reference Queue";

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

	/** Runs the main method of a class to its end. */
	public static void run(String mainClass, String[] args, long stackBytes) throws Throwable
	{
		Method main = Class.forName(mainClass).getMethod("main", String[].class);
		Throwable[] thrown = new Throwable[1];
		Thread.setDefaultUncaughtExceptionHandler(Launcher::report);
		Thread thread = new Thread(null, () -> {
			try {
				main.invoke(null, (Object) args);
			} catch (InvocationTargetException e) {
				thrown[0] = e.getCause();
			} catch (ReflectiveOperationException | OutOfMemoryError e) {
				thrown[0] = e;
			}
			// Python is not asked to: with a full heap, it could not even be told.
			try {
				if (thrown[0] instanceof OutOfMemoryError)
					HeapLimit.end((OutOfMemoryError) thrown[0]);
			} catch (Ending.Unwinding e) {
				thrown[0] = e;
			}
		}, "main", stackBytes);
		thread.start();
		thread.join();
		if (thrown[0] != null)
			throw thrown[0];
	}
}
