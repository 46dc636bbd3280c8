package prismgpu;

/**
 * Sweeps of symmetric Gauss-Seidel on the host, with the arithmetic and the order of engines/cpu/symmetric_kernels.py:
 * every other one goes through the rows of each piece backwards.
 */
public final class SymmetricLoops
{
	private final int[] offsets;
	private final int[] columns;
	private final double[] values;
	/** Where the pieces of the rows start, and the end. */
	private final int[] pieces;

	public SymmetricLoops(int[] offsets, int[] columns, double[] values, int[] pieces)
	{
		this.offsets = offsets;
		this.columns = columns;
		this.values = values;
		this.pieces = pieces;
	}

	/**
	 * Makes a sweep for each of `changes`, or until one changes less than `stopBelow`; the vectors change places after each.
	 * @param begun How many sweeps were made before
	 * @return How many were made
	 */
	public int repeat(double[] changes, double stopBelow, double omega, int begun, double[] x, double[] xNew, boolean absolute, int threads)
	{
		SweepTeam.Work work = (first, behind, sweep, from, to) -> sweep(first, behind, (begun + sweep) % 2 == 1, omega, from, to, absolute);
		return SweepTeam.repeat(work, pieces, threads, changes, stopBelow, x, xNew);
	}

	private double sweep(int first, int behind, boolean backwards, double omega, double[] x, double[] xNew, boolean absolute)
	{
		int[] offsets = this.offsets, columns = this.columns;
		double[] values = this.values;
		System.arraycopy(x, first, xNew, first, behind - first);
		double largest = 0.0;
		for (int done = 0, rows = behind - first; done < rows; done++) {
			int row = backwards ? behind - 1 - done : first + done;
			double total = 0.0;
			for (int entry = offsets[row], end = offsets[row + 1]; entry < end; entry++) {
				int column = columns[entry];
				total += values[entry] * (column >= first && column < behind ? xNew[column] : x[column]);
			}
			double before = xNew[row];
			// Without a branch for ω = 1, which adds nothing: taken late, it would have the loop compiled anew.
			double after = (1.0 - omega) * before + omega * total;
			xNew[row] = after;
			// Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change.
			double change = Math.abs(after - before);
			double scale = absolute ? 1.0 : Math.abs(before);
			if (change > largest * scale)
				largest = change / scale;
		}
		return largest;
	}
}
