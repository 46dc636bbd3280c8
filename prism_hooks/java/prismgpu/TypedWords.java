package prismgpu;

import prism.PrismCL;

/** The command line in PRISM's log: with the method of simulation that was typed, in whose place PRISM was told one of its own. */
public final class TypedWords
{
	private static boolean methodFollows;

	private TypedWords()
	{
	}

	/** A word as PRISM prints it. */
	public static String shellQuoteSingleIfNecessary(String word)
	{
		String typed = methodFollows ? Hooks.simulationWords() : "";
		methodFollows = word.equals("-simmethod") || word.equals("--simmethod");
		return typed.isEmpty() ? PrismCL.shellQuoteSingleIfNecessary(word) : typed;
	}
}
