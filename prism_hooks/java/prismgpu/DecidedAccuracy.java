package prismgpu;

import java.util.Arrays;
import java.util.function.Supplier;

import jdd.JDD;
import jdd.JDDNode;
import prism.Accuracy;
import symbolic.states.StateValues;

/** The accuracy of values some of which have no error, such as those that the graph of the model decides. */
final class DecidedAccuracy extends KnownAccuracy
{
	private static final double[] NONE = {};
	/** What 1 - p may be rounded by. */
	private static final double ROUNDING_OF_COMPLEMENTS = 0x1p-54;
	/** What a step adds to the error: sums of products, all positive. */
	private static final double ROUNDING_OF_A_STEP = 0x1p-52;

	/** Values that have no error in any state. */
	private final double[] decided;
	/** The same of the complements 1 - p. */
	private final double[] complements;

	/** @param decided Values that have no error in any state; null for none */
	DecidedAccuracy(AccuracyLevel level, double errorBound, boolean absolute, double[] decided, double[] complements)
	{
		super(level, errorBound, absolute);
		this.decided = decided == null ? NONE : decided;
		this.complements = complements == null ? NONE : complements;
	}

	/** The error of probabilities that are not decided, none above 1; 0 where all are exact. */
	static double ofProbabilities(Accuracy accuracy)
	{
		return accuracy instanceof DecidedAccuracy ? accuracy.getErrorBound() : accuracy.getAbsoluteErrorBound(1.0);
	}

	/** The accuracy of probabilities so many steps before others; none of them is known to have no error. */
	static Accuracy before(Accuracy known, int steps)
	{
		if (known == null)
			return null;
		double rounding = steps * ROUNDING_OF_A_STEP;
		if (known instanceof ExactAccuracy)
			return new DecidedAccuracy(AccuracyLevel.ESTIMATED_BOUNDED, rounding, true, null, null);
		return new DecidedAccuracy(known.getLevel(), known.getErrorBound() + rounding, known.getType() == AccuracyType.ABSOLUTE, null, null);
	}

	/** Makes a step before probabilities that the engines have computed, and keeps their error, which PRISM forgets. */
	static StateValues aStepBefore(StateValues probs, Supplier<StateValues> step)
	{
		Accuracy error = probs.getAccuracy();
		StateValues before = step.get();
		if (error == null || error instanceof DecidedAccuracy)
			before.setAccuracy(before(error, 1));
		return before;
	}

	/**
	 * The accuracy of 1 - p: an absolute one.
	 * @param largest Of the 1 - p
	 */
	KnownAccuracy ofComplements(double largest)
	{
		double scale = getType() == AccuracyType.ABSOLUTE ? 1.0 : largest;
		return new DecidedAccuracy(getLevel(), getErrorBound() * scale + ROUNDING_OF_COMPLEMENTS, true, complements, decided).as(this);
	}

	/**
	 * The accuracy of probabilities that were computed from others in several solves.
	 * @param error The sum of the errors
	 * @param before Of those computed before; null for none
	 */
	static Accuracy ofSeveral(double error, Accuracy before, Accuracy last)
	{
		if (error == 0.0)
			return new ExactAccuracy().as(last);
		double[] decided = { 0.0, 1.0 }, complements = decided;
		for (Accuracy part : new Accuracy[] { before, last })
			if (part instanceof DecidedAccuracy) {
				decided = both(decided, ((DecidedAccuracy) part).decided);
				complements = both(complements, ((DecidedAccuracy) part).complements);
			}
		return new DecidedAccuracy(AccuracyLevel.ESTIMATED_BOUNDED, error, true, decided, complements).as(last);
	}

	private static double[] both(double[] some, double[] others)
	{
		return Arrays.stream(some).filter(value -> among(others, value)).toArray();
	}

	private static boolean among(double[] values, double wanted)
	{
		return Arrays.stream(values).anyMatch(value -> value == wanted);
	}

	/**
	 * The accuracy of the least or greatest of such values: it has an error unless no value that has one can lie beyond it.
	 * @param ends What no value can lie beyond
	 */
	KnownAccuracy ofExtreme(double[] ends)
	{
		return new DecidedAccuracy(getLevel(), getErrorBound(), getType() == AccuracyType.ABSOLUTE, both(decided, ends), null).as(this);
	}

	boolean decides(double value)
	{
		return among(decided, value);
	}

	/** The states whose values are too near to a positive bound to tell on which side of it the exact ones are. */
	JDDNode near(double bound, StateValues values)
	{
		double error = getErrorBound();
		boolean absolute = getType() == AccuracyType.ABSOLUTE;
		double low = absolute ? bound - error : bound / (1.0 + error), high = absolute ? bound + error : bound / Math.max(0.0, 1.0 - error);
		JDDNode near = values.getBDDFromInterval(low, Math.min(high, Double.MAX_VALUE));
		for (double value : decided)
			if (low <= value && value <= high)
				near = JDD.And(near, JDD.Not(values.getBDDFromInterval(value, value)));
		return near;
	}

	@Override
	public double getAbsoluteErrorBound(double result)
	{
		return decides(result) ? 0.0 : super.getAbsoluteErrorBound(result);
	}

	@Override
	public double getRelativeErrorBound(double result)
	{
		return decides(result) ? 0.0 : super.getRelativeErrorBound(result);
	}

	@Override
	public String toString(Object result)
	{
		if (!(result instanceof Double) || !decides((Double) result))
			return super.toString(result);
		// PRISM's log has the error of all values behind those without one, too.
		boolean asOthers = isPrinted() && Hooks.printsAsPrism();
		KnownAccuracy told = asOthers ? new KnownAccuracy(getLevel(), getErrorBound(), getType() == AccuracyType.ABSOLUTE) : new ExactAccuracy();
		return told.as(this).toString(result);
	}
}
