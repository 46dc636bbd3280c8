package prismgpu;

/**
 * Sums of powers of a uniformised chain's matrix, while the CPU engine's own loops are not loaded. The arithmetic and
 * its order are those of engines/cpu/uniformise_kernels.py.
 */
public final class PowerLoops
{
	private final int[] offsets;
	private final int[] columns;
	private final double[] rates;
	/** The state of each row; null where they have the same numbers. */
	private final int[] states;
	private final double[] stay;
	private final double rate;
	private final int[] pieces;

	public PowerLoops(int[] offsets, int[] columns, double[] rates, int[] states, double[] stay, double rate, int[] pieces)
	{
		this.offsets = offsets;
		this.columns = columns;
		this.rates = rates;
		this.states = states;
		this.stay = stay;
		this.rate = rate;
		this.pieces = pieces;
	}

	/**
	 * Makes a sweep for each coefficient, or until one changes nothing, and adds each to the total; the vectors change
	 * places after each.
	 * @param changed Shape of the coefficients; 0 for a sweep that changes nothing
	 * @return How many were made
	 */
	public int add(double[] coefficients, double[] changed, double[] x, double[] xNew, double[] total, int threads)
	{
		SweepTeam.Work work = (first, behind, sweep, from, to) -> sweep(first, behind, coefficients[sweep], from, to, total);
		return SweepTeam.repeat(work, pieces, threads, changed, 0.5, x, xNew);
	}

	private double sweep(int first, int behind, double coefficient, double[] x, double[] xNew, double[] total)
	{
		int[] offsets = this.offsets, columns = this.columns, states = this.states;
		double[] rates = this.rates, stay = this.stay;
		double rate = this.rate, changed = 0.0;
		for (int row = first; row < behind; row++) {
			double inflow = 0.0;
			for (int entry = offsets[row], end = offsets[row + 1]; entry < end; entry++)
				inflow += rates[entry] * x[columns[entry]];
			int state = states == null ? row : states[row];
			double before = x[state];
			double after = stay[row] * before + inflow / rate;
			xNew[state] = after;
			if (coefficient != 0.0)
				total[row] += coefficient * after;
			if (after != before)
				changed = 1.0;
		}
		return changed;
	}
}
