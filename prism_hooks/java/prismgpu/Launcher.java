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
	 * @param flags Memory shared with Python: two threads' business, and whether the end has begun
	 */
	public static void awaitAtExit(ByteBuffer flags)
	{
		Runtime.getRuntime().addShutdownHook(new Thread(() -> {
			flags.put(2, (byte) 1);
			long deadline = System.nanoTime() + PATIENCE;
			while ((flags.get(0) != 0 || flags.get(1) != 0) && System.nanoTime() < deadline)
				LockSupport.parkNanos(1_000_000);
		}));
	}

	/** Runs the main method of a class to its end. */
	public static void run(String mainClass, String[] args, long stackBytes) throws Throwable
	{
		Method main = Class.forName(mainClass).getMethod("main", String[].class);
		Throwable[] thrown = new Throwable[1];
		Thread thread = new Thread(null, () -> {
			try {
				main.invoke(null, (Object) args);
			} catch (InvocationTargetException e) {
				thrown[0] = e.getCause();
			} catch (ReflectiveOperationException e) {
				thrown[0] = e;
			}
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
