package prismgpu;

import prism.Prism;
import prism.PrismLog;

/** What is said where Java's heap is full, and how the run ends then: as PRISM ends on an error. */
final class HeapLimit
{
	static final String BUILDING = "while building the model";
	static final String CHECKING = "while checking a property";
	static final String READING = "while reading the model for our engines";
	static final String SOLVING = "while handing a question to our engines, or its answer back";

	/** What is at work. */
	private static volatile String stage = "in PRISM's own work";

	private HeapLimit()
	{
	}

	/** Notes what is at work from here on, and returns what was; allocates nothing. */
	static String begin(String work)
	{
		String before = stage;
		stage = work;
		return before;
	}

	/** How large Java's heap may become. */
	static long megabytes()
	{
		return Runtime.getRuntime().maxMemory() >> 20;
	}

	/** What ran out, as users know it: after a colon, compiled code tells how it noticed. */
	private static String cause(OutOfMemoryError error)
	{
		String message = error.getMessage();
		int colon = message == null ? -1 : message.indexOf(": ");
		return colon < 0 ? message : message.substring(0, colon);
	}

	/** Prints PRISM's form of an error and ends the process with PRISM's code for it. */
	static void end(OutOfMemoryError error)
	{
		Prism prism = Symbolic.prism;
		PrismLog log = prism == null ? null : prism.getMainLog();
		// What PRISM has built is nobody's from here on, and there is room to say what happened.
		Symbolic.prism = null;
		prism = null;
		try {
			String text = "\nError: Java ran out of memory (" + cause(error) + ") " + stage + "; its heap has at most "
					+ megabytes() + " MB.\nTip: Try using the -javamaxmem switch to increase the memory available to Java.";
			if (log == null) {
				System.out.println(text);
			} else {
				log.println(text);
				log.flush();
			}
		} catch (OutOfMemoryError e) {
			// It could not be said.
		}
		Ending.endProcess(1);
	}
}
