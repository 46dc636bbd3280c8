package prismgpu;

import java.util.Arrays;

import explicit.StateValues;
import prism.Accuracy;
import prism.Accuracy.AccuracyType;

/**
 * The accuracy of what PRISM's explicit engine adds up from the steady state of a chain that is one
 * component; PRISM forgets it. Of several components nothing is stated: their weights have errors of
 * their own.
 */
final class SteadySum
{
	/** That of the probabilities of all states; null where nothing is known. */
	private Accuracy ofEach;
	/** That of the last sum; null where nothing is known. */
	private Accuracy ofSum;

	/** A steady state is asked for. */
	void begin()
	{
		ofEach = null;
		ofSum = null;
	}

	/** The steady state of a component is found. @param whole Whether that is the chain */
	void found(Accuracy accuracy, boolean whole)
	{
		ofEach = whole ? accuracy : null;
	}

	/** The accuracy of a sum with weights; null where nothing is known, as where some of them are negative or there are none. */
	Accuracy of(double[] weights)
	{
		if (ofEach == null || weights == null || Arrays.stream(weights).anyMatch(weight -> weight < 0.0))
			return null;
		if (ofEach instanceof ExactAccuracy)
			ofSum = ofEach;
		else if (ofEach.getType() == AccuracyType.RELATIVE)
			ofSum = new DecidedAccuracy(ofEach.getLevel(), ofEach.getErrorBound() + weights.length * Math.ulp(0.5), false, null, null).as(ofEach);
		return ofSum;
	}

	/** Values that PRISM's code has put together, with what is known of their error. */
	StateValues told(StateValues values)
	{
		values.setAccuracy(ofSum);
		return values;
	}
}
