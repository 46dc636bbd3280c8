package prismgpu;

import prism.OptionsIntervalIteration;
import prism.PrismException;
import prism.PrismSettings;

/** Sub-switches of interval iteration. */
public final class Intervals
{
	/** How expected rewards are bounded from above, by the name that PRISM's switch has for it. */
	public final String boundMethod;
	/** Bounds of expected rewards that the user gave; NaN for none. */
	public final double lower;
	public final double upper;
	/** Whether the result is the midpoint; else the lower end. */
	public final boolean selectMidpoint;
	public final boolean monotonicBelow;
	public final boolean monotonicAbove;
	public final boolean checkMonotonic;

	Intervals(PrismSettings settings) throws PrismException
	{
		OptionsIntervalIteration options = OptionsIntervalIteration.from(settings);
		boundMethod = options.getBoundMethod().name().toLowerCase().replace('_', '-');
		lower = options.hasManualLowerBound() ? options.getManualLowerBound() : Double.NaN;
		upper = options.hasManualUpperBound() ? options.getManualUpperBound() : Double.NaN;
		selectMidpoint = options.isSelectMidpointForResult();
		monotonicBelow = options.isEnforceMonotonicityFromBelow();
		monotonicAbove = options.isEnforceMonotonicityFromAbove();
		checkMonotonic = options.isCheckMonotonicity();
	}
}
