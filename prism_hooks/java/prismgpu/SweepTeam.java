package prismgpu;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Sweeps that threads share out: each makes its pieces of every sweep, and waits for the others before the next. */
final class SweepTeam
{
	/** Looks at the others before a thread offers its core, and before it sleeps. */
	private static final int SPINS = 200;
	private static final int YIELDS = 2_000;
	private static final long SLEEP = 20_000;

	/** What is swept. */
	interface Work
	{
		/** Makes part of a sweep from `x` to `xNew`; returns the largest change. @param first, behind Rows, or groups of rows */
		double sweep(int first, int behind, int sweep, double[] x, double[] xNew);
	}

	private final Work work;
	/** Where the pieces start, and the end. */
	private final int[] pieces;
	private final int threads;
	private final double[] changes;
	private final double stopBelow;
	private final double[] even;
	private final double[] odd;
	/** The largest change of each piece, in two sweeps by turns. */
	private final double[][] worst;
	private final AtomicInteger arrived = new AtomicInteger();
	private volatile int phase;
	private volatile Throwable failure;

	private SweepTeam(Work work, int[] pieces, int threads, double[] changes, double stopBelow, double[] x, double[] xNew)
	{
		this.work = work;
		this.pieces = pieces;
		this.threads = threads;
		this.changes = changes;
		this.stopBelow = stopBelow;
		even = x;
		odd = xNew;
		worst = new double[2][pieces.length - 1];
	}

	/**
	 * Makes a sweep for each of `changes`, or until one changes less than `stopBelow`; the vectors change places after each.
	 * @return How many were made
	 */
	static int repeat(Work work, int[] pieces, int threads, double[] changes, double stopBelow, double[] x, double[] xNew)
	{
		SweepTeam team = new SweepTeam(work, pieces, threads, changes, stopBelow, x, xNew);
		int made = 0;
		try {
			for (int number = 1; number < threads; number++) {
				int own = number;
				Thread thread = new Thread(() -> team.sweep(own), "prism-gpu sweeps " + number);
				thread.setDaemon(true);
				thread.start();
			}
			made = team.sweep(0);
		} catch (OutOfMemoryError e) {
			// No further thread can be had: those that there are wait no longer.
			team.failure = e;
		}
		if (team.failure != null)
			throw new IllegalStateException("sweeps have failed: " + team.failure, team.failure);
		return made;
	}

	/** Makes a thread's part of all sweeps; returns how many were made. */
	private int sweep(int number)
	{
		int all = pieces.length - 1, first = all * number / threads, behind = all * (number + 1) / threads;
		try {
			for (int sweep = 0; sweep < changes.length; sweep++) {
				double[] x = sweep % 2 == 0 ? even : odd, xNew = sweep % 2 == 0 ? odd : even;
				double[] found = worst[sweep % 2];
				for (int piece = first; piece < behind; piece++)
					found[piece] = work.sweep(pieces[piece], pieces[piece + 1], sweep, x, xNew);
				if (!meet())
					return sweep;
				double largest = 0.0;
				for (double change : found)
					largest = Math.max(largest, change);
				if (number == 0)
					changes[sweep] = largest;
				if (largest < stopBelow)
					return sweep + 1;
			}
		} catch (RuntimeException | Error e) {
			failure = e;
		}
		return changes.length;
	}

	/** Waits until all threads are here; false where one has failed. */
	private boolean meet()
	{
		if (threads == 1)
			return true;
		int mine = phase;
		if (arrived.incrementAndGet() == threads) {
			arrived.set(0);
			phase = mine + 1;
			return true;
		}
		for (int looks = 0; phase == mine; looks++) {
			if (failure != null)
				return false;
			if (looks < SPINS)
				Thread.onSpinWait();
			else if (looks < YIELDS)
				Thread.yield();
			else
				LockSupport.parkNanos(SLEEP);
		}
		return true;
	}
}
