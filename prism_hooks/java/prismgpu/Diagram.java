package prismgpu;

import java.util.Arrays;

import jdd.JDD;
import jdd.JDDNode;

/** A decision diagram of PRISM's as primitive arrays, one array a crossing; node 0 is the terminal 0. */
public final class Diagram
{
	/** The variable of a terminal. */
	static final int TERMINAL = Integer.MAX_VALUE;

	/** The variable that each node tests. */
	public int[] variables;
	/** The node below where the variable is 0, and where it is 1; a terminal's are itself. */
	public int[] low;
	public int[] high;
	/** The values of the terminals, in the order of their nodes. */
	public double[] values;
	public final int root;

	/** The library's functions on bare pointers: a node's object would live no longer than the call. */
	private static final class Nodes extends JDDNode
	{
		private Nodes()
		{
			super(0);
		}

		static int variable(long pointer)
		{
			return DDN_GetIndex(pointer);
		}

		static double value(long pointer)
		{
			return DDN_GetValue(pointer);
		}

		static long low(long pointer)
		{
			return DDN_GetElse(pointer);
		}

		static long high(long pointer)
		{
			return DDN_GetThen(pointer);
		}
	}

	/** Reads a diagram, level by level; neither takes a reference nor gives one up. */
	Diagram(JDDNode node)
	{
		String before = HeapLimit.begin(HeapLimit.READING);
		// The terminal 0 may be none of its own.
		int most = JDD.GetNumNodes(node) + 1;
		variables = new int[most];
		low = new int[most];
		high = new int[most];
		values = new double[JDD.GetNumTerminals(node) + 1];
		PointerTable known = new PointerTable(most);
		known.number(JDD.ZERO.ptr());
		int constant = Nodes.variable(JDD.ZERO.ptr());
		root = known.number(node.ptr());
		int terminals = 0;
		for (int number = 0; number < known.size(); number++) {
			long pointer = known.pointer(number);
			int variable = Nodes.variable(pointer);
			variables[number] = variable == constant ? TERMINAL : variable;
			if (variable == constant) {
				values[terminals++] = Nodes.value(pointer);
				low[number] = number;
				high[number] = number;
			} else {
				low[number] = known.number(Nodes.low(pointer));
				high[number] = known.number(Nodes.high(pointer));
			}
		}
		int size = known.size();
		known = null;
		if (size < most) {
			variables = Arrays.copyOf(variables, size);
			low = Arrays.copyOf(low, size);
			high = Arrays.copyOf(high, size);
		}
		values = Arrays.copyOf(values, terminals);
		HeapLimit.begin(before);
	}

	/**
	 * The value of each state, found path by path, what paths share once. Null for large models, and for a function
	 * that depends on other variables.
	 */
	public double[] ofStates(SymbolicModel model)
	{
		Numbering numbers = model.numbers();
		if (numbers == null)
			return null;
		Paths paths = new Paths(model, numbers);
		return paths.follow(root, numbers.root, 0, 0) ? paths.found : null;
	}

	/** The paths from the top to the states. */
	private final class Paths
	{
		private final int[] rows;
		private final Numbering numbers;
		/** The value of each terminal, at its node. */
		private final double[] ends = new double[variables.length];
		/** What has been followed, a node and a place of the numbering each, and the first state that it was met at. */
		private final PointerTable known = new PointerTable(1 << 10);
		private int[] firsts = new int[1 << 10];
		final double[] found;

		Paths(SymbolicModel model, Numbering numbers)
		{
			rows = model.rows;
			this.numbers = numbers;
			found = new double[model.numStates];
			int terminals = 0;
			for (int node = 0; node < ends.length; node++) {
				if (variables[node] == TERMINAL)
					ends[node] = values[terminals++];
			}
		}

		/** Writes what lies below a node that is asked at `level` of the states below `place`; false where that fails. */
		boolean follow(int node, int place, int level, int first)
		{
			while (node != 0 && place != Numbering.NO_STATES) {
				int variable = variables[node];
				if (variable == TERMINAL) {
					Arrays.fill(found, first, first + (int) numbers.counts[place], ends[node]);
					return true;
				}
				if (level == rows.length || variable < rows[level])
					return false;
				int lower = variable == rows[level] ? low[node] : node, upper = variable == rows[level] ? high[node] : node;
				int below = numbers.low[place], above = numbers.high[place];
				if (below != Numbering.NO_STATES && above != Numbering.NO_STATES) {
					if (isKnown(node, place, first))
						return true;
					if (!follow(lower, below, level + 1, first))
						return false;
					first += (int) numbers.lowCounts[place];
				}
				// Where there is but one way on it is no part of its own.
				node = above == Numbering.NO_STATES ? lower : upper;
				place = above == Numbering.NO_STATES ? below : above;
				level++;
			}
			return true;
		}

		/** Whether the same has been met before: then it is copied. */
		private boolean isKnown(int node, int place, int first)
		{
			int before = known.size();
			int number = known.number((long) node << Integer.SIZE | place);
			if (number < before) {
				System.arraycopy(found, firsts[number], found, first, (int) numbers.counts[place]);
				return true;
			}
			if (number == firsts.length)
				firsts = Arrays.copyOf(firsts, 2 * number);
			firsts[number] = first;
			return false;
		}
	}
}
