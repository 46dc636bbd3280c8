package prismgpu;

import prism.Accuracy;

/**
 * The accuracy of values that are exact but for their last digits. PRISM lists the states whose values lie nearer to that
 * of a filter than the error bound: where it is 0, not even those of the same value.
 */
final class ExactAccuracy extends KnownAccuracy
{
	ExactAccuracy()
	{
		super(AccuracyLevel.EXACT_FLOATING_POINT);
	}

	@Override
	public double getErrorBound()
	{
		return FLOATING_POINT_ERROR;
	}

	/** An accuracy that is known, the same if it is no exact one. */
	static Accuracy listing(Accuracy known)
	{
		return known != null && known.getLevel() == AccuracyLevel.EXACT_FLOATING_POINT ? new ExactAccuracy().as(known) : known;
	}
}
