package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;

/** A fixpoint over sets of states in diagrams, round by round; it can be left for a while, and gone on with. */
abstract class DiagramSearch
{
	protected final JDDNode trans01;
	protected final JDDNode reach;
	protected final JDDVars rows;
	protected final JDDVars cols;
	/** Null for a Markov chain. */
	protected final JDDVars nd;
	protected final JDDNode b1;
	protected final JDDNode b2;
	/** Rounds that were made. */
	int rounds;
	private boolean complete;

	private DiagramSearch(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		this.trans01 = trans01;
		this.reach = reach;
		this.rows = rows;
		this.cols = cols;
		this.nd = nd;
		this.b1 = b1;
		this.b2 = b2;
	}

	/** Makes rounds until the fixpoint or the time limit is reached; returns whether it is the fixpoint. */
	final boolean run(double seconds)
	{
		long begun = System.nanoTime();
		while (!complete && (System.nanoTime() - begun) / 1e9 < seconds) {
			rounds++;
			complete = round();
		}
		return complete;
	}

	/** Makes a round; returns whether it has changed nothing. */
	protected abstract boolean round();

	/** The states that were searched for, once the search is complete; to be given up by who asks. */
	abstract JDDNode result();

	/** Gives up what the search holds. */
	abstract void clear();

	protected final JDDNode ofColumns(JDDNode states)
	{
		return JDD.PermuteVariables(states.copy(), rows, cols);
	}

	/** Where some successor, by each choice, is in a set. */
	protected final JDDNode before(JDDNode states)
	{
		return JDD.ThereExists(JDD.And(ofColumns(states), trans01.copy()), cols);
	}

	/** The states that are not bound to reach b2 through b1: all that some choice, or each, may lead there are left out. */
	static final class Zero extends DiagramSearch
	{
		private final JDDNode mask;
		private JDDNode reaching;

		/** @param mask Where there are no choices, if each choice must lead there; null if one is enough */
		Zero(JDDNode trans01, JDDNode reach, JDDNode mask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
		{
			super(trans01, reach, rows, cols, nd, b1, b2);
			this.mask = mask;
			reaching = b2.copy();
		}

		@Override
		protected boolean round()
		{
			JDDNode next = before(reaching);
			if (mask != null)
				next = JDD.ForAll(JDD.Or(next, mask.copy()), nd);
			else if (nd != null)
				next = JDD.ThereExists(next, nd);
			next = JDD.Or(b2.copy(), JDD.And(b1.copy(), next));
			boolean same = next.equals(reaching);
			JDD.Deref(reaching);
			reaching = next;
			return same;
		}

		@Override
		JDDNode result()
		{
			return JDD.And(reach.copy(), JDD.Not(reaching.copy()));
		}

		@Override
		void clear()
		{
			JDD.Deref(reaching);
		}
	}

	/** The states that no path leads to from a set. */
	static final class Unreached extends DiagramSearch
	{
		private JDDNode reached;

		Unreached(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDNode from)
		{
			super(trans01, reach, rows, cols, null, reach, from);
			reached = from.copy();
		}

		@Override
		protected boolean round()
		{
			JDDNode next = JDD.ThereExists(JDD.And(reached.copy(), trans01.copy()), rows);
			next = JDD.Or(reached.copy(), JDD.PermuteVariables(next, cols, rows));
			boolean same = next.equals(reached);
			JDD.Deref(reached);
			reached = next;
			return same;
		}

		@Override
		JDDNode result()
		{
			return JDD.And(reach.copy(), JDD.Not(reached.copy()));
		}

		@Override
		void clear()
		{
			JDD.Deref(reached);
		}
	}

	/** The states of a set that lie between others of it, at least: such that some of the set leads there, and some is led to. */
	static final class Trimmed extends DiagramSearch
	{
		private JDDNode states;

		Trimmed(JDDNode trans01, JDDNode states, JDDVars rows, JDDVars cols)
		{
			super(trans01, states, rows, cols, null, states, states);
			this.states = states.copy();
		}

		@Override
		protected boolean round()
		{
			JDDNode within = edges();
			JDDNode leaving = JDD.ThereExists(within.copy(), cols);
			JDDNode entered = JDD.PermuteVariables(JDD.ThereExists(within, rows), cols, rows);
			JDDNode next = JDD.And(leaving, entered);
			boolean same = next.equals(states);
			JDD.Deref(states);
			states = next;
			return same;
		}

		/** The edges between them, to be given up. */
		JDDNode edges()
		{
			return JDD.And(JDD.And(trans01.copy(), states.copy()), ofColumns(states));
		}

		@Override
		JDDNode result()
		{
			return states.copy();
		}

		@Override
		void clear()
		{
			JDD.Deref(states);
		}
	}

	/** The states from which some strategy reaches b2 through b1 with probability 1. */
	static final class One extends DiagramSearch
	{
		private JDDNode staying;
		/** Choices that stay there. */
		private JDDNode safe;
		private JDDNode reaching;

		/** @param no Where the probability is 0 under each strategy */
		One(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no)
		{
			super(trans01, reach, rows, cols, nd, b1, b2);
			staying = JDD.And(reach.copy(), JDD.Not(no.copy()));
			begin();
		}

		private void begin()
		{
			safe = JDD.ForAll(JDD.Implies(trans01.copy(), ofColumns(staying)), cols);
			reaching = JDD.Constant(0);
		}

		@Override
		protected boolean round()
		{
			JDDNode next = JDD.ThereExists(JDD.And(safe.copy(), before(reaching)), nd);
			next = JDD.Or(b2.copy(), JDD.And(b1.copy(), next));
			boolean same = next.equals(reaching);
			JDD.Deref(reaching);
			reaching = next;
			if (!same)
				return false;
			boolean settled = reaching.equals(staying);
			if (!settled) {
				JDD.Deref(staying, safe);
				staying = reaching;
				begin();
			}
			return settled;
		}

		@Override
		JDDNode result()
		{
			return reaching.copy();
		}

		@Override
		void clear()
		{
			JDD.Deref(staying, safe, reaching);
		}
	}
}
