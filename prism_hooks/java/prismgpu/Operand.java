package prismgpu;

import java.math.BigDecimal;

import explicit.StateValues;
import parser.ast.Expression;
import parser.type.TypeDouble;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.Accuracy.AccuracyType;

/** Numbers, one for each state, and bounds of their errors. The same rules are in bridge/check/arithmetic.py. */
final class Operand
{
	private static final double ROUNDING = 0x1p-53, UNKNOWN = Double.POSITIVE_INFINITY;
	/** Numbers outside may have lost digits, or overflowed. */
	private static final double SMALLEST = 0x1p-1000, LARGEST = 0x1p1000;
	/** Constants of more digits were computed, nobody knows how exactly. */
	private static final int MOST_DIGITS = 15;

	/** The largest absolute and relative errors; infinite where none is known. */
	private final double absolute, relative;
	/** The largest and the least of the numbers without their signs, but for infinities and 0. */
	private final double most, least;
	/** Whether none of them is negative. */
	private final boolean positive;
	/** Whether the errors are bounds; else estimates. */
	private final boolean guaranteed;

	private Operand(double absolute, double relative, double most, double least, boolean positive, boolean guaranteed)
	{
		boolean inRange = most <= LARGEST;
		this.relative = inRange && least >= SMALLEST ? relative : UNKNOWN;
		// A relative error bounds the absolute one.
		this.absolute = inRange ? Math.min(known(absolute), known(this.relative * most)) : UNKNOWN;
		this.most = most;
		this.least = least;
		this.positive = positive;
		this.guaranteed = guaranteed;
	}

	private static double known(double error)
	{
		return Double.isNaN(error) ? UNKNOWN : error;
	}

	/** The values of an expression, with what is known of their error. */
	static Operand of(Expression expr, StateValues values)
	{
		double most = 0.0, least = UNKNOWN;
		boolean positive = true;
		for (int state = 0; state < values.getSize(); state++) {
			double number = number(values, state), size = Math.abs(number);
			positive &= number >= 0.0;
			most = Double.isFinite(size) ? Math.max(most, size) : most;
			least = size == 0.0 ? least : Math.min(least, size);
		}
		Accuracy accuracy = values.getAccuracy();
		if (!(values.getType() instanceof TypeDouble))
			return new Operand(0.0, 0.0, most, least, positive, true);
		if (accuracy == null)
			return new Operand(UNKNOWN, expr.isConstant() && isShort(values) ? ROUNDING : UNKNOWN, most, least, positive, true);
		// Rounding is small beside 1, whose complements values may be.
		if (accuracy.getLevel() == AccuracyLevel.EXACT_FLOATING_POINT)
			return new Operand(Accuracy.FLOATING_POINT_ERROR * (1.0 + most), UNKNOWN, most, least, positive, false);
		boolean guaranteed = accuracy.getLevel() == AccuracyLevel.BOUNDED;
		boolean isAbsolute = accuracy.getType() == AccuracyType.ABSOLUTE;
		double error = accuracy instanceof KnownAccuracy ? accuracy.getErrorBound() : UNKNOWN;
		return new Operand(isAbsolute ? error : UNKNOWN, isAbsolute ? UNKNOWN : error, most, least, positive, guaranteed);
	}

	/** The number of a state; 0 where PRISM has computed none, as nobody is interested in it. */
	private static double number(StateValues values, int state)
	{
		Object value = values.getValue(state);
		return value == null ? 0.0 : ((Number) value).doubleValue();
	}

	/** Whether some of the numbers may be negative. */
	private static boolean isSigned(StateValues values)
	{
		int state = 0;
		while (state < values.getSize() && number(values, state) >= 0.0)
			state++;
		return state < values.getSize();
	}

	/** Whether a constant is a decimal of few digits. */
	private static boolean isShort(StateValues constant)
	{
		double number = number(constant, 0);
		return Double.isFinite(number) && new BigDecimal(Double.toString(number)).precision() <= MOST_DIGITS;
	}

	Operand negated()
	{
		return new Operand(absolute, relative, most, least, false, guaranteed);
	}

	Operand plus(Operand other)
	{
		boolean bothPositive = positive && other.positive;
		double sum = most + other.most, larger = Math.max(relative, other.relative);
		double error = absolute + other.absolute + ROUNDING * sum;
		return with(other, error, bothPositive ? larger + ROUNDING : UNKNOWN, sum, Math.min(least, other.least));
	}

	Operand times(Operand other)
	{
		double product = most * other.most;
		double error = absolute * other.most + other.absolute * most + absolute * other.absolute + ROUNDING * product + Double.MIN_VALUE;
		double part = relative + other.relative + known(relative * other.relative) + ROUNDING;
		return with(other, error, part, product, least * other.least);
	}

	Operand dividedBy(Operand other)
	{
		double error = other.relative < 1.0 ? (relative + other.relative) / (1.0 - other.relative) + ROUNDING : UNKNOWN;
		return with(other, UNKNOWN, error, most / other.least, other.most == 0.0 ? UNKNOWN : least / other.most);
	}

	/** The least or greatest of the two in each state. */
	Operand extreme(Operand other)
	{
		return with(other, Math.max(absolute, other.absolute), Math.max(relative, other.relative), Math.max(most, other.most),
				Math.min(least, other.least));
	}

	private Operand with(Operand other, double absolute, double relative, double most, double least)
	{
		return new Operand(absolute, relative, most, least, positive && other.positive, guaranteed && other.guaranteed);
	}

	/** The accuracy of the numbers; null where nothing is known. @param values The numbers */
	KnownAccuracy accuracy(StateValues values)
	{
		boolean isAbsolute = !Double.isFinite(relative);
		double error = isAbsolute ? absolute : relative;
		if (!Double.isFinite(error))
			return null;
		AccuracyLevel level = guaranteed ? AccuracyLevel.BOUNDED : AccuracyLevel.ESTIMATED_BOUNDED;
		return isSigned(values) ? new SignedAccuracy(level, error, isAbsolute) : new KnownAccuracy(level, error, isAbsolute);
	}
}
