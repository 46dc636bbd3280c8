package prismgpu;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.concurrent.locks.LockSupport;

/** Runs a main class as PRISM's start script would: in a thread whose stack has the size asked for. */
public final class Launcher
{
	/** Nanoseconds that the end of the JVM waits at most. */
	private static final long PATIENCE = 10_000_000_000L;

	/** The thread in which JPype gives up Java objects that Python is done with. */
	private static final String CLEANER = "Python Reference Queue";

	private Launcher()
	{
	}

	/** Prints a text when the JVM ends, whoever ends it. */
	public static void printAtExit(String text)
	{
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			System.out.println(text);
			System.out.flush();
		}));
	}

	/**
	 * Holds up the end of the JVM while a thread of ours is where an end would crash it.
	 * @param flags Memory shared with Python: two threads' business, whether the end has begun, and what is closed then
	 */
	public static void awaitAtExit(ByteBuffer flags)
	{
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			flags.put(2, (byte) 1);
			long deadline = System.nanoTime() + PATIENCE;
			while ((flags.get(0) != 0 || flags.get(1) != 0 || flags.get(3) != 0) && System.nanoTime() < deadline)
				LockSupport.parkNanos(1_000_000);
		}));
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
			if (thrown[0] instanceof OutOfMemoryError)
				HeapLimit.end((OutOfMemoryError) thrown[0]);
		}, "main", stackBytes);
		thread.start();
		try {
			thread.join();
		} catch (InterruptedException e) {
			// JPype interrupts the threads that wait in Java when the JVM ends. Python must not go
			// on then: what it would call is being taken down.
			while (true)
				LockSupport.park();
		}
		if (thrown[0] != null)
			throw thrown[0];
	}
}
