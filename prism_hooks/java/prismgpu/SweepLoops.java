package prismgpu;

/**
 * Sweeps of one system on the host, while the CPU engine's own loops are not loaded. The arithmetic and its order
 * are those of engines/cpu/kernels.py, so that a solve may go on there.
 *
 * Java compiles the loops as it meets them: compiled beforehand, over small systems, they take up to three times as
 * long on larger ones.
 */
public final class SweepLoops
{
	/** Null for a Markov chain. */
	private final int[] groups;
	private final int[] offsets;
	private final int[] columns;
	private final double[] values;
	/** Null for 0. */
	private final double[] offset;
	/** The state of each row or group; null where they have the same numbers. */
	private final int[] states;
	private final boolean minimise;
	/** Where the pieces of the rows or groups start, and the end. */
	private final int[] pieces;

	public SweepLoops(int[] groups, int[] offsets, int[] columns, double[] values, double[] offset, int[] states, boolean minimise,
			int[] pieces)
	{
		this.groups = groups;
		this.offsets = offsets;
		this.columns = columns;
		this.values = values;
		this.offset = offset;
		this.states = states;
		this.minimise = minimise;
		this.pieces = pieces;
	}

	/**
	 * Makes a sweep for each of `changes`, or until one changes less than `stopBelow`; the vectors change places after each.
	 * @return How many were made
	 */
	public int repeat(double[] changes, double stopBelow, double omega, double[] x, double[] xNew, boolean absolute, int threads)
	{
		SweepTeam.Work work = groups == null ? (first, behind, sweep, from, to) -> sweepRows(first, behind, omega, from, to, absolute)
				: (first, behind, sweep, from, to) -> sweepGroups(first, behind, from, to, absolute);
		return SweepTeam.repeat(work, pieces, threads, changes, stopBelow, x, xNew);
	}

	private double sweepRows(int first, int behind, double omega, double[] x, double[] xNew, boolean absolute)
	{
		int[] offsets = this.offsets, columns = this.columns, states = this.states;
		double[] values = this.values, offset = this.offset;
		double largest = 0.0;
		for (int row = first; row < behind; row++) {
			double total = offset == null ? 0.0 : offset[row];
			for (int entry = offsets[row], end = offsets[row + 1]; entry < end; entry++)
				total += values[entry] * x[columns[entry]];
			int state = states == null ? row : states[row];
			double before = x[state];
			double after = omega == 1.0 ? total : (1.0 - omega) * before + omega * total;
			xNew[state] = after;
			// Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change.
			double change = Math.abs(after - before);
			double scale = absolute ? 1.0 : Math.abs(before);
			if (change > largest * scale)
				largest = change / scale;
		}
		return largest;
	}

	private double sweepGroups(int first, int behind, double[] x, double[] xNew, boolean absolute)
	{
		int[] groups = this.groups, offsets = this.offsets, columns = this.columns, states = this.states;
		double[] values = this.values, offset = this.offset;
		boolean minimise = this.minimise;
		double largest = 0.0;
		for (int group = first; group < behind; group++) {
			double best = minimise ? Double.POSITIVE_INFINITY : Double.NEGATIVE_INFINITY;
			for (int row = groups[group], last = groups[group + 1]; row < last; row++) {
				double total = offset == null ? 0.0 : offset[row];
				for (int entry = offsets[row], end = offsets[row + 1]; entry < end; entry++)
					total += values[entry] * x[columns[entry]];
				// A sum that is no number replaces none.
				if (minimise ? total < best : total > best)
					best = total;
			}
			int state = states == null ? group : states[group];
			double before = x[state];
			xNew[state] = best;
			double change = Math.abs(best - before);
			double scale = absolute ? 1.0 : Math.abs(before);
			if (change > largest * scale)
				largest = change / scale;
		}
		return largest;
	}
}
