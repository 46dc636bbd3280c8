package prismgpu;

/** Reads functions of row variables at single states, while the CPU engine's own loops are not loaded. */
public final class PointLoops
{
	/** The diagram's nodes: the variable that each tests, the nodes below, the values of terminals. */
	private final int[] variables;
	private final int[] low;
	private final int[] high;
	private final double[] values;
	/** The states' numbers: the nodes below, and the states below the lower one. */
	private final int[] numberingLow;
	private final int[] numberingHigh;
	private final int[] lowCounts;
	private final int numberingRoot;
	private final int[] rowVariables;

	public PointLoops(int[] variables, int[] low, int[] high, double[] values, int[] numberingLow, int[] numberingHigh,
			int[] lowCounts, int numberingRoot, int[] rowVariables)
	{
		this.variables = variables;
		this.low = low;
		this.high = high;
		this.values = values;
		this.numberingLow = numberingLow;
		this.numberingHigh = numberingHigh;
		this.lowCounts = lowCounts;
		this.numberingRoot = numberingRoot;
		this.rowVariables = rowVariables;
	}

	/** Follows the diagram from each root along the bits of a state; null where a variable is tested that is no row's. */
	public double[] read(int[] states, int[] roots)
	{
		boolean[] bits = new boolean[rowVariables.length];
		double[] results = new double[states.length];
		for (int point = 0; point < states.length; point++) {
			if (point == 0 || states[point] != states[point - 1])
				follow(states[point], bits);
			int node = roots[point];
			for (int level = 0; level < bits.length && variables[node] != Diagram.TERMINAL; level++)
				if (variables[node] == rowVariables[level])
					node = bits[level] ? high[node] : low[node];
			if (variables[node] != Diagram.TERMINAL)
				return null;
			results[point] = values[node];
		}
		return results;
	}

	/** Finds the bits of a state, one a row variable. */
	private void follow(int state, boolean[] bits)
	{
		int place = numberingRoot;
		for (int level = 0; level < bits.length; level++) {
			bits[level] = state >= lowCounts[place];
			if (bits[level]) {
				state -= lowCounts[place];
				place = numberingHigh[place];
			} else
				place = numberingLow[place];
		}
	}
}
