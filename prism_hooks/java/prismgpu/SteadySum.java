package prismgpu;

import java.util.Arrays;
import java.util.BitSet;

import explicit.ModelCheckerResult;
import explicit.StateValues;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.Accuracy.AccuracyType;

/**
 * The accuracy of what PRISM's explicit engine adds up from the steady states of a chain's components and the probabilities of
 * reaching them; PRISM forgets it.
 */
final class SteadySum
{
	/** What the probabilities of states are multiplied by; null where nothing is known, as where some are negative or there are none. */
	private double[] weights;
	/** The largest relative errors of probabilities of a component's states, and of reaching one. */
	private double ofStates, ofReaching;
	/** The sum of the absolute errors of reaching components. */
	private double absolute;
	/** The largest value of a component. */
	private double largest;
	/** That of the last steady state; null where something is not known. */
	private Accuracy last;
	/** That of the last sum; null where nothing is known. */
	private Accuracy ofSum;

	/** A steady state is asked for. @param mult What its probabilities are multiplied by; null for 1 */
	void begin(double[] mult)
	{
		weights = mult == null || Arrays.stream(mult).anyMatch(weight -> weight < 0.0) ? null : mult;
		ofStates = ofReaching = absolute = largest = 0.0;
		last = null;
		ofSum = null;
	}

	/** The steady state of a component is found. */
	void found(ModelCheckerResult res, BitSet states)
	{
		boolean known = isExact(res.accuracy) || res.accuracy != null && res.accuracy.getType() == AccuracyType.RELATIVE;
		if (!known)
			weights = null;
		if (weights == null)
			return;
		last = res.accuracy;
		ofStates = Math.max(ofStates, errorOf(last));
		largest = Math.max(largest, states.stream().mapToDouble(state -> weights[state] * res.soln[state]).sum());
	}

	/** The probabilities of reaching a component are found. @return The same */
	ModelCheckerResult reached(ModelCheckerResult res)
	{
		if (!isExact(res.accuracy) && !(res.accuracy instanceof KnownAccuracy))
			weights = null;
		else if (isExact(res.accuracy) || res.accuracy.getType() == AccuracyType.RELATIVE)
			ofReaching = Math.max(ofReaching, errorOf(res.accuracy));
		else
			absolute += res.accuracy.getErrorBound();
		return res;
	}

	private static boolean isExact(Accuracy accuracy)
	{
		return accuracy != null && accuracy.getLevel() == AccuracyLevel.EXACT_FLOATING_POINT;
	}

	private static double errorOf(Accuracy relative)
	{
		return isExact(relative) ? 0.0 : relative.getErrorBound();
	}

	/** The accuracy of the sum; null where nothing is known. */
	Accuracy ended()
	{
		if (weights == null || last == null)
			return null;
		double relative = ofStates + ofReaching + ofStates * ofReaching;
		if (relative == 0.0 && absolute == 0.0)
			return ofSum = last;
		relative += weights.length * Math.ulp(0.5);
		boolean mixed = absolute > 0.0;
		double error = mixed ? (relative + absolute + relative * absolute) * largest : relative;
		return ofSum = new DecidedAccuracy(AccuracyLevel.ESTIMATED_BOUNDED, error, mixed, null, null).as(last);
	}

	/** Values that PRISM's code has put together, with what is known of their error. */
	StateValues told(StateValues values)
	{
		values.setAccuracy(ofSum);
		return values;
	}
}
