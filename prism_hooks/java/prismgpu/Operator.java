package prismgpu;

/** A P, R or S operator on its way to another machine, and its answer on the way back. */
public final class Operator
{
	// The question.
	/** The operator as PRISM writes it, constants replaced. */
	public final String key;
	/** The same without a bound; the i-th set of states in it is the label "?i". */
	public final String text;
	/** The sets of states, each as a BitSet's words. */
	public final long[][] sets;

	// The answer.
	/** Values of all states. */
	public double[] values;
	/** The largest error, 0 for exact values; NaN where nothing is known of it. */
	public double errorBound = Double.NaN;
	/** Whether the error is absolute; else relative. */
	public boolean absolute;
	/** Whether the error is a bound; else an estimate. */
	public boolean guaranteed;
	/** Values that have no error in any state; null for none. */
	public double[] decided;
	/** A line for the log. */
	public String remark;
	/** Set instead of an answer: why there is none. */
	public String error;
	/** Whether the error concerns the whole run. */
	public boolean fatal;

	Operator(String key, String text, long[][] sets)
	{
		this.key = key;
		this.text = text;
		this.sets = sets;
	}
}
