package prismgpu;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/** Runs a main class as PRISM's start script would: in a thread whose stack has the size asked for. */
public final class Launcher
{
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
