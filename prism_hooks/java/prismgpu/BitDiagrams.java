package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import dv.DoubleVector;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import parser.ast.RelOp;
import prism.PrismException;
import prism.PrismLog;

/**
 * Makes a diagram of a set of states that is one bit a state. States are numbered in the order of the paths to them, so
 * that each part of the numbering is a range of bits; equal parts are made once.
 */
final class BitDiagrams
{
	/** The part without a state of the set. */
	private static final int NONE = 0;

	private final Numbering numbers;
	private final JDDVars rows;
	private final BitSet states;
	/** A part below two others, by the numbers of both; and a part, by its place in the numbering and that. */
	private final PointerTable pairs = new PointerTable(1 << 8);
	private final PointerTable parts = new PointerTable(1 << 8);
	/** The diagrams of the parts, each referenced. */
	private final List<JDDNode> diagrams = new ArrayList<>();
	/** The part of each place that holds all its states, if it has been made; 1 added. */
	private final int[] full;
	/** Which way the only path leads, of the levels between two where paths part. */
	private final boolean[] upwards;

	private BitDiagrams(BitSet states, Numbering numbers, JDDVars rows)
	{
		this.states = states;
		this.numbers = numbers;
		this.rows = rows;
		full = new int[numbers.counts.length];
		upwards = new boolean[rows.n()];
		diagrams.add(JDD.Constant(0));
	}

	/**
	 * Asks the engines for a set of states; returns its diagram, to be given up, or null where PRISM's own code is to find it.
	 * @param odd The states' numbers as PRISM has them
	 */
	static JDDNode answer(Problem problem, PrismLog log, JDDVars rows, ODDNode odd) throws PrismException
	{
		Numbering numbers = problem.numbers();
		if (numbers != null)
			return Hooks.answered(problem, log) ? of(problem.found, numbers, rows) : null;
		// A large one: PRISM's own way, one call for each state and each level above it, takes no room beside the vector.
		DoubleVector marks = new DoubleVector(problem.numStates);
		try {
			problem.parts.solutionAddress = marks.getPtr();
			return Hooks.answered(problem, log) ? marks.getBDDFromInterval(RelOp.GEQ, 1.0, rows, odd) : null;
		} finally {
			marks.clear();
		}
	}

	/**
	 * The states whose bits are 1, as a diagram to be given up.
	 * @param words As of a BitSet
	 */
	static JDDNode of(long[] words, Numbering numbers, JDDVars rows)
	{
		BitDiagrams made = new BitDiagrams(BitSet.valueOf(words), numbers, rows);
		try {
			return made.diagrams.get(made.part(numbers.root, 0, 0)).copy();
		} finally {
			for (JDDNode diagram : made.diagrams)
				JDD.Deref(diagram);
		}
	}

	/** The part of the set that lies below a place of the numbering, whose first state is given. */
	private int part(int place, int level, int first)
	{
		int behind = first + (int) numbers.counts[place];
		int least = states.nextSetBit(first);
		if (least < 0 || least >= behind)
			return NONE;
		boolean all = states.nextClearBit(first) >= behind;
		if (all && full[place] != 0)
			return full[place] - 1;
		int below = place, parting = level;
		while (parting < rows.n() && (numbers.low[below] == Numbering.NO_STATES || numbers.high[below] == Numbering.NO_STATES)) {
			below = numbers.low[below] == Numbering.NO_STATES ? numbers.high[below] : numbers.low[below];
			parting++;
		}
		int lower = NONE, upper = NONE;
		if (parting < rows.n()) {
			lower = part(numbers.low[below], parting + 1, first);
			upper = part(numbers.high[below], parting + 1, first + (int) numbers.lowCounts[below]);
		}
		// A single state has no parts below, which no other place with states of the set has.
		long pair = pairs.number((long) lower << Integer.SIZE | upper);
		int known = diagrams.size();
		int part = 1 + parts.number(pair << Integer.SIZE | place);
		if (part == known)
			diagrams.add(diagram(place, level, parting, lower, upper));
		if (all)
			full[place] = part + 1;
		return part;
	}

	/** The diagram of two parts, and of the only path that leads to where they part. */
	private JDDNode diagram(int place, int level, int parting, int lower, int upper)
	{
		for (int on = level; on < parting; on++) {
			upwards[on] = numbers.low[place] == Numbering.NO_STATES;
			place = upwards[on] ? numbers.high[place] : numbers.low[place];
		}
		JDDNode made = JDD.Constant(1);
		if (parting < rows.n()) {
			JDD.Deref(made);
			made = JDD.ITE(rows.getVar(parting).copy(), diagrams.get(upper).copy(), diagrams.get(lower).copy());
		}
		for (int on = parting - 1; on >= level; on--) {
			JDDNode variable = rows.getVar(on).copy();
			made = JDD.And(upwards[on] ? variable : JDD.Not(variable), made);
		}
		return made;
	}
}
