package prismgpu;

import prism.Accuracy;
import prism.Interval;
import prism.Result;

/**
 * What the engines know of the error of values. Where the log is to be PRISM's, and PRISM prints something else behind a result, so do
 * we, and the end of the log tells the largest error.
 */
class KnownAccuracy extends Accuracy
{
	/** The largest errors that were not printed so far, 0 for none. */
	private static double largest, largestRelative;
	/** How many results there were of whose error nothing is known. */
	private static int withoutError;

	/** What is printed behind a result in place of the error, empty for nothing; null for the error. */
	private String inPlace;

	KnownAccuracy(AccuracyLevel level)
	{
		super(level);
	}

	KnownAccuracy(AccuracyLevel level, double errorBound, boolean absolute)
	{
		super(level, errorBound, absolute);
	}

	/** The same, printed as so from here on; null for no change. */
	static Accuracy printedAs(String inPlace, Accuracy known)
	{
		if (inPlace != null && known instanceof KnownAccuracy)
			((KnownAccuracy) known).inPlace = inPlace;
		return known;
	}

	/** Whether the error is printed behind a result. */
	boolean isPrinted()
	{
		return inPlace == null;
	}

	/** Whether something is printed behind a result, be it not the error. */
	boolean printsSomething()
	{
		return !"".equals(inPlace);
	}

	/** This accuracy, printed as the one that it was made from. */
	KnownAccuracy as(Accuracy source)
	{
		if (source instanceof KnownAccuracy)
			inPlace = ((KnownAccuracy) source).inPlace;
		return this;
	}

	@Override
	public String toString(Object result)
	{
		if (result instanceof Interval && isNumber(result))
			return toString(lessKnown((Interval) result));
		if (inPlace == null)
			return super.toString(result);
		if (result instanceof Double && getLevel() != AccuracyLevel.EXACT_FLOATING_POINT) {
			largest = Math.max(largest, getAbsoluteErrorBound((Double) result));
			largestRelative = Math.max(largestRelative, getRelativeErrorBound((Double) result));
		}
		return inPlace;
	}

	/** The end of a range that has the larger error. */
	private Double lessKnown(Interval range)
	{
		Double low = (Double) range.lower, high = (Double) range.upper;
		double atLow = getAbsoluteErrorBound(low), atHigh = getAbsoluteErrorBound(high);
		boolean lower = atLow == atHigh ? Math.abs(low) < Math.abs(high) : atLow > atHigh;
		return lower ? low : high;
	}

	/** Counts a result that is a number and of whose error nothing is known, where the log is to be PRISM's. */
	static void note(Result result)
	{
		if (Hooks.printsAsPrism() && isNumber(result.getResult()) && result.getAccuracy() == null)
			withoutError++;
	}

	/** Whether a result is a number, or the ends of a range. */
	static boolean isNumber(Object result)
	{
		return result instanceof Double || result instanceof Interval && ((Interval) result).lower instanceof Double;
	}

	/** The line on the errors that were not printed, which is told once; empty for none. */
	static String lineOnUnprinted()
	{
		String known = largest == 0.0 ? "" : "errors not told with the results are at most " + largest + " (estimated; rel err " + largestRelative
				+ "); -gpuinfo prints each";
		String unknown = withoutError == 0 ? "" : "of " + withoutError + (withoutError == 1 ? " result" : " results") + " no error is known";
		largest = largestRelative = 0.0;
		withoutError = 0;
		String both = known.isEmpty() || unknown.isEmpty() ? known + unknown : known + "; " + unknown;
		return both.isEmpty() ? "" : "prism-gpu: " + both;
	}
}
