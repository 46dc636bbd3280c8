package prismgpu;

import edu.jas.kern.ComputerThreads;

/**
 * Spares runs without exact or parametric work the loading of a computer algebra system.
 *
 * PRISM loads it at the end of every run, half a second's work, only to stop its threads. Where
 * nothing has started them there is nothing to stop.
 */
public final class AlgebraThreads
{
	private AlgebraThreads()
	{
	}

	public static void terminate()
	{
		Backend backend = Hooks.backend;
		if (backend == null || !backend.leftToPrism().isEmpty())
			ComputerThreads.terminate();
	}
}
