package prismgpu;

import java.util.Arrays;

/**
 * Sweeps of one system on the host, while the CPU engine's own loops are not loaded. The arithmetic and its order
 * are those of engines/cpu/kernels.py, so that a solve may go on there.
 *
 * Java compiles the loops as it meets them: compiled beforehand, over small systems, they take up to three times as
 * long on larger ones.
 */
public final class SweepLoops
{
	private static final double UNIT = 0x1p-53;
	/** By how much probabilities that add up to 1 may miss it. */
	private static final double ROUNDING_OF_A_SUM = 1e-11;
	/** Roundings of a row besides one for each entry. */
	private static final int SLACK = 8;
	/** Returned by a walk where states need each other, or one leads to nothing but itself. */
	private static final double IMPOSSIBLE = -1.0;
	/** What stands for an entry to go on with: nothing has been looked at, or everything has. */
	private static final int WAITING = -1;
	private static final int DONE = -2;

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

	/**
	 * Solves the equations, each state after those that it needs; as engines/cpu/substitution_kernels.py does.
	 * @param x Values of states without a row; takes those of the others
	 * @return A bound of the relative error that rounding leaves, or a negative number where states need each other
	 */
	public double substitute(double[] x)
	{
		int[] groups = this.groups, offsets = this.offsets, columns = this.columns, states = this.states;
		int count = (groups == null ? offsets : groups).length - 1;
		int[] groupOf = new int[x.length];
		Arrays.fill(groupOf, -1);
		for (int group = 0; group < count; group++)
			groupOf[states == null ? group : states[group]] = group;
		int[] nextEntry = new int[count];
		Arrays.fill(nextEntry, WAITING);
		int[] stack = new int[count];
		double[] errors = new double[x.length];
		double worst = 0.0;
		for (int root = 0; root < count; root++) {
			if (nextEntry[root] != WAITING)
				continue;
			int height = push(root, stack, 0, nextEntry);
			while (height > 0) {
				int group = stack[height - 1];
				int entry = nextEntry[group], end = offsets[groups == null ? group + 1 : groups[group + 1]];
				int needed = -1;
				for (; entry < end; entry++) {
					needed = groupOf[columns[entry]];
					if (needed >= 0 && needed != group && nextEntry[needed] != DONE)
						break;
				}
				nextEntry[group] = entry;
				if (entry < end) {
					if (nextEntry[needed] != WAITING)
						return IMPOSSIBLE;
					height = push(needed, stack, height, nextEntry);
					continue;
				}
				double error = evaluate(group, x, errors);
				if (error < 0.0)
					return IMPOSSIBLE;
				worst = Math.max(worst, error);
				nextEntry[group] = DONE;
				height--;
			}
		}
		return worst;
	}

	private int push(int group, int[] stack, int height, int[] nextEntry)
	{
		nextEntry[group] = offsets[groups == null ? group : groups[group]];
		stack[height] = group;
		return height + 1;
	}

	/** Solves the rows of a group for its own state, the others being known; returns a bound of the error, or a negative number. */
	private double evaluate(int group, double[] x, double[] errors)
	{
		int[] offsets = this.offsets, columns = this.columns;
		double[] values = this.values, offset = this.offset;
		int state = states == null ? group : states[group];
		int first = groups == null ? group : groups[group], behind = groups == null ? group + 1 : groups[group + 1];
		double best = minimise ? Double.POSITIVE_INFINITY : Double.NEGATIVE_INFINITY, error = 0.0;
		for (int row = first; row < behind; row++) {
			double total = offset == null ? 0.0 : offset[row], own = 0.0, others = 0.0, inherited = 0.0;
			for (int entry = offsets[row], end = offsets[row + 1]; entry < end; entry++) {
				int column = columns[entry];
				if (column == state)
					own += values[entry];
				else {
					others += values[entry];
					total += values[entry] * x[column];
					inherited = Math.max(inherited, errors[column]);
				}
			}
			double roundings = offsets[row + 1] - offsets[row] + SLACK;
			if (own > 0.0) {
				if (!(own < 1.0))
					return IMPOSSIBLE;
				if (Math.abs(others + own - 1.0) <= ROUNDING_OF_A_SUM) {
					total /= others;
					roundings *= 2.0;
				} else {
					total /= 1.0 - own;
					roundings *= 1.0 + own / (1.0 - own);
				}
			}
			if (minimise ? total < best : total > best)
				best = total;
			error = Math.max(error, inherited + roundings * UNIT);
		}
		x[state] = best;
		errors[state] = error;
		return error;
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
