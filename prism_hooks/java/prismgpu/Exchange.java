package prismgpu;

/** Operators that are solved on another machine: taken down, or answered; implemented in Python. */
public interface Exchange
{
	/** Whether operators are taken down; else they are answered. */
	boolean collects();

	/**
	 * Takes in, or compares, the model that a property is about; sets `problem.error` on a fault.
	 * @param problem What the settings ask of a solve, without any states
	 */
	void model(Problem problem, BuiltModel model);

	/** Takes down an operator, or fills in its answer; sets its error on a fault. */
	void operator(Operator operator);
}
