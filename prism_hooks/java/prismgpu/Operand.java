package prismgpu;

import java.util.DoubleSummaryStatistics;
import java.util.stream.IntStream;

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

	/** The largest absolute and relative errors; infinite where none is known. */
	private final double absolute, relative;
	/** The largest of the numbers without their signs. */
	private final double most;
	/** Whether none of them is negative. */
	private final boolean positive;
	/** Whether the errors are bounds; else estimates. */
	private final boolean guaranteed;

	private Operand(double absolute, double relative, double most, boolean positive, boolean guaranteed)
	{
		// Each kind of error bounds the other, of numbers that are finite.
		this.absolute = Math.min(absolute, number(relative * most));
		this.relative = relative;
		this.most = most;
		this.positive = positive;
		this.guaranteed = guaranteed;
	}

	private static double number(double error)
	{
		return Double.isNaN(error) ? UNKNOWN : error;
	}

	/** The values of an expression, with what is known of their error. */
	static Operand of(Expression expr, StateValues values)
	{
		DoubleSummaryStatistics range = range(values);
		double most = Math.max(range.getMax(), -range.getMin());
		boolean positive = range.getMin() >= 0.0;
		Accuracy accuracy = values.getAccuracy();
		if (!(values.getType() instanceof TypeDouble))
			return new Operand(0.0, 0.0, most, positive, true);
		if (accuracy == null)
			return new Operand(UNKNOWN, expr.isConstant() ? ROUNDING : UNKNOWN, most, positive, true);
		// Rounding is small beside 1, whose complements values may be.
		if (accuracy.getLevel() == AccuracyLevel.EXACT_FLOATING_POINT)
			return new Operand(Accuracy.FLOATING_POINT_ERROR * (1.0 + most), UNKNOWN, most, positive, false);
		boolean guaranteed = accuracy.getLevel() == AccuracyLevel.BOUNDED, known = accuracy instanceof KnownAccuracy;
		boolean isAbsolute = accuracy.getType() == AccuracyType.ABSOLUTE;
		double error = known ? accuracy.getErrorBound() : UNKNOWN;
		return new Operand(isAbsolute ? error : UNKNOWN, isAbsolute ? UNKNOWN : error, most, positive, guaranteed);
	}

	private static DoubleSummaryStatistics range(StateValues values)
	{
		return IntStream.range(0, values.getSize()).mapToDouble(state -> ((Number) values.getValue(state)).doubleValue()).summaryStatistics();
	}

	Operand negated()
	{
		return new Operand(absolute, relative, most, most == 0.0, guaranteed);
	}

	Operand plus(Operand other)
	{
		boolean bothPositive = positive && other.positive;
		double sum = most + other.most, larger = Math.max(relative, other.relative);
		return with(other, absolute + other.absolute + ROUNDING * sum, bothPositive ? larger + ROUNDING : UNKNOWN, sum, bothPositive);
	}

	Operand times(Operand other)
	{
		double product = most * other.most;
		double error = absolute * other.most + other.absolute * most + absolute * other.absolute + ROUNDING * product;
		return with(other, number(error), relative + other.relative + number(relative * other.relative) + ROUNDING, product,
				positive && other.positive);
	}

	Operand dividedBy(Operand other)
	{
		double error = other.relative < 1.0 ? (relative + other.relative) / (1.0 - other.relative) + ROUNDING : UNKNOWN;
		return with(other, UNKNOWN, error, UNKNOWN, positive && other.positive);
	}

	/** The least or greatest of the two in each state. */
	Operand extreme(Operand other)
	{
		return with(other, Math.max(absolute, other.absolute), Math.max(relative, other.relative), Math.max(most, other.most),
				positive && other.positive);
	}

	private Operand with(Operand other, double absolute, double relative, double most, boolean positive)
	{
		return new Operand(absolute, relative, number(most), positive, guaranteed && other.guaranteed);
	}

	/** The accuracy of the numbers; null where nothing is known. @param values The numbers */
	KnownAccuracy accuracy(StateValues values)
	{
		boolean isAbsolute = !Double.isFinite(relative);
		double error = isAbsolute ? absolute : relative;
		if (!Double.isFinite(error))
			return null;
		AccuracyLevel level = guaranteed ? AccuracyLevel.BOUNDED : AccuracyLevel.ESTIMATED_BOUNDED;
		boolean signed = !(range(values).getMin() >= 0.0);
		return signed ? new SignedAccuracy(level, error, isAbsolute) : new KnownAccuracy(level, error, isAbsolute);
	}
}
