package prismgpu;

/** The accuracy of values some of which may be negative, so that their sum may be less known than each. */
final class SignedAccuracy extends KnownAccuracy
{
	SignedAccuracy(AccuracyLevel level, double errorBound, boolean absolute)
	{
		super(level, errorBound, absolute);
	}
}
