package prismgpu;

import java.util.Arrays;

/**
 * Walks along all paths of a matrix's diagram, or along those of single states, while the CPU engine's own loops are not
 * loaded. What lies below the same node in the lowest levels is followed once, and copied from then on.
 */
public final class DiagramLoops
{
	private static final int LEAF = Diagram.TERMINAL;

	/** The diagram's nodes: the variable that each tests, the nodes below, the values of terminals. */
	private final int[] variables;
	private final int[] low;
	private final int[] high;
	private final double[] values;
	/** The states' numbers: the nodes below, and the states below the lower one. */
	private final int[] numberingLow;
	private final int[] numberingHigh;
	private final int[] lowCounts;
	private final int[] rowVariables;
	private final int[] columnVariables;
	/** Of each level the node, its rows and its columns that are still to be followed. */
	private final int[] stack;

	/** Where each row starts, and of each entry the column and the value: row by row, columns ascending in each, and what is left of the room. */
	public final int[] offsets;
	public final int[] columns;
	public final double[] entries;
	/** Of an MDP: where each row starts, its choice, and where the rows of each state start. */
	public int[] rowOffsets;
	public int[] rowChoices;
	public int[] groups;

	private final DiagramBlocks blocks = new DiagramBlocks();
	/** The block of each terminal that has been met by itself, 1 added. */
	private int[] blocksOfTerminals = new int[0];
	/** What has been found in the order of the paths: of each block its number, first row and first column. */
	private int[] placed = new int[1 << 12];
	private int height;
	private long found;
	/** The depth at which blocks begin. */
	private int cut;

	public DiagramLoops(int[] variables, int[] low, int[] high, double[] values, int[] numberingLow, int[] numberingHigh,
			int[] lowCounts, int[] rowVariables, int[] columnVariables, int numStates, int numEntries)
	{
		this.variables = variables;
		this.low = low;
		this.high = high;
		this.values = values;
		this.numberingLow = numberingLow;
		this.numberingHigh = numberingHigh;
		this.lowCounts = lowCounts;
		this.rowVariables = rowVariables;
		this.columnVariables = columnVariables;
		// On the way down each level leaves up to three of four children behind.
		stack = new int[FIELDS * (4 * rowVariables.length + 4)];
		offsets = new int[numStates + 1];
		columns = new int[numEntries];
		entries = new double[numEntries];
	}

	private static final int FIELDS = 6;

	/** How many rows a block has on average, at most. */
	private static final int BLOCK_ROWS = 32;

	/** What is returned instead of a node: all is well, or there are more entries than were told. */
	private static final int NONE = -1;
	private static final int TOO_MANY = -2;

	/** Finds the entries; returns a node that tests a variable of none of the levels, `NONE` or `TOO_MANY`. */
	public int expand(int root, int numberingRoot)
	{
		cut = levelOfBlocks(numberingRoot);
		int strange = walk(0, root, numberingRoot, numberingRoot, 0, false);
		if (strange != NONE)
			return strange;
		// By rows, in the order of the paths: in each row columns ascend.
		for (int place = 0; place < height; place += 3)
			blocks.count(placed[place], placed[place + 1], offsets);
		addUp(offsets);
		int[] places = offsets.clone();
		for (int place = 0; place < height; place += 3)
			blocks.copy(placed[place], placed[place + 1], placed[place + 2], places, columns, entries);
		return NONE;
	}

	/** Finds the entries of an MDP, state by state and choice by choice, each of which lies below a root; returns what `expand` does. */
	public int expandChoices(int[] roots, int numberingRoot)
	{
		cut = levelOfBlocks(numberingRoot);
		int[] ends = new int[roots.length];
		for (int choice = 0; choice < roots.length; choice++) {
			int strange = walk(0, roots[choice], numberingRoot, numberingRoot, 0, false);
			if (strange != NONE)
				return strange;
			ends[choice] = height;
		}
		// Counted as if a choice were one more than it is, so that none is 0.
		int[] latest = new int[offsets.length - 1];
		groups = new int[offsets.length];
		for (int choice = 0, place = 0; choice < ends.length; choice++)
			for (; place < ends[choice]; place += 3)
				blocks.count(placed[place], placed[place + 1], choice + 1, latest, groups, offsets);
		addUp(groups);
		addUp(offsets);
		int rows = groups[groups.length - 1];
		rowOffsets = new int[rows + 1];
		rowChoices = new int[rows];
		int[] places = offsets.clone(), nextRows = groups.clone();
		Arrays.fill(latest, 0);
		for (int choice = 0, place = 0; choice < ends.length; choice++)
			for (; place < ends[choice]; place += 3)
				blocks.copy(placed[place], placed[place + 1], placed[place + 2], choice + 1, latest, nextRows, places, rowOffsets, rowChoices, columns,
						entries);
		rowOffsets[rows] = offsets[offsets.length - 1];
		return NONE;
	}

	/**
	 * Values of functions of row variables at states: follows the diagram from each root along the bits of a state.
	 * @return Null where another variable is tested
	 */
	public double[] read(int numberingRoot, int[] states, int[] roots)
	{
		boolean[] bits = new boolean[rowVariables.length];
		double[] results = new double[states.length];
		for (int point = 0; point < states.length; point++) {
			if (point == 0 || states[point] != states[point - 1])
				findBits(states[point], numberingRoot, bits);
			int node = roots[point];
			for (int level = 0; level < bits.length && variables[node] != LEAF; level++)
				if (variables[node] == rowVariables[level])
					node = bits[level] ? high[node] : low[node];
			if (variables[node] != LEAF)
				return null;
			results[point] = values[node];
		}
		return results;
	}

	/** Finds the bits of a state, one a row variable. */
	private void findBits(int state, int numberingRoot, boolean[] bits)
	{
		int place = numberingRoot;
		for (int level = 0; level < bits.length; level++) {
			bits[level] = state >= lowCounts[place];
			if (bits[level])
				state -= lowCounts[place];
			place = bits[level] ? numberingHigh[place] : numberingLow[place];
		}
	}

	/** Makes of lengths, each behind its place, where each begins. */
	private static void addUp(int[] lengths)
	{
		for (int place = 1; place < lengths.length; place++)
			lengths[place] += lengths[place - 1];
	}

	/** The least depth of which so many nodes stand for all states that blocks below have no more than so many rows. */
	private int levelOfBlocks(int numberingRoot)
	{
		double states = offsets.length - 1.0;
		double[] paths = new double[numberingLow.length];
		if (numberingRoot < 0)
			return NONE;
		int[] nodes = {numberingRoot};
		paths[numberingRoot] = 1.0;
		for (int depth = 0; depth < rowVariables.length; depth++) {
			double sum = 0.0;
			for (int node : nodes)
				sum += paths[node];
			if (sum * BLOCK_ROWS >= states)
				return depth;
			int[] below = new int[Math.min(2 * nodes.length, paths.length)];
			int count = 0;
			for (int node : nodes)
				for (int child : new int[] {numberingLow[node], numberingHigh[node]})
					if (child >= 0) {
						if (paths[child] == 0.0)
							below[count++] = child;
						paths[child] += paths[node];
					}
			nodes = Arrays.copyOf(below, count);
		}
		return NONE;
	}

	/**
	 * Follows all paths below a node of some depth, in rows and columns; returns what `expand` does.
	 * @param base The height of the stack
	 * @param inBlock Whether they make a block
	 */
	private int walk(int base, int root, int rootRows, int rootColumns, int rootDepth, boolean inBlock)
	{
		int levels = rowVariables.length;
		int[] stack = this.stack;
		int height = push(base, root, rootRows, rootColumns, rootDepth, 0, 0);
		while (height > base) {
			height -= FIELDS;
			int node = stack[height], rowNode = stack[height + 1], columnNode = stack[height + 2];
			int depth = stack[height + 3], state = stack[height + 4], column = stack[height + 5];
			if (depth == cut && !inBlock && blocks.repay()) {
				int block = blocks.find(node, rowNode, columnNode);
				if (block < 0) {
					int strange = walk(height, node, rowNode, columnNode, depth, true);
					if (strange != NONE)
						return strange;
					block = blocks.close(node, rowNode, columnNode);
				}
				if (!place(block, state, column))
					return TOO_MANY;
				continue;
			}
			int variable = variables[node];
			if (depth == levels) {
				if (variable != LEAF)
					return node;
				if (inBlock)
					blocks.add(state, column, values[node]);
				else if (!place(blockOf(node), state, column))
					return TOO_MANY;
				continue;
			}
			int rowVariable = rowVariables[depth], columnVariable = columnVariables[depth];
			boolean rowsFirst = rowVariable < columnVariable;
			int upper = rowsFirst ? rowVariable : columnVariable, lower = rowsFirst ? columnVariable : rowVariable;
			if (variable < upper)
				return node;
			// The last one pushed is the first one followed: for each row, columns have to ascend.
			for (int firstBit = 1; firstBit >= 0; firstBit--) {
				int half = variable != upper ? node : firstBit == 1 ? high[node] : low[node];
				if (half == 0)
					continue;
				int deeper = variables[half];
				if (deeper < lower)
					return half;
				for (int secondBit = 1; secondBit >= 0; secondBit--) {
					int below = deeper != lower ? half : secondBit == 1 ? high[half] : low[half];
					if (below == 0)
						continue;
					boolean upperRows = (rowsFirst ? firstBit : secondBit) == 1, upperColumns = (rowsFirst ? secondBit : firstBit) == 1;
					int rowBelow = upperRows ? numberingHigh[rowNode] : numberingLow[rowNode];
					int columnBelow = upperColumns ? numberingHigh[columnNode] : numberingLow[columnNode];
					if (rowBelow >= 0 && columnBelow >= 0) {
						int firstRow = state + (upperRows ? lowCounts[rowNode] : 0);
						int firstColumn = column + (upperColumns ? lowCounts[columnNode] : 0);
						height = push(height, below, rowBelow, columnBelow, depth + 1, firstRow, firstColumn);
					}
				}
			}
		}
		return NONE;
	}

	/** Notes a block at a row and a column; false if there are more entries than were told. */
	private boolean place(int block, int row, int column)
	{
		found += blocks.size(block);
		if (found > columns.length)
			return false;
		if (height + 3 > placed.length)
			placed = Arrays.copyOf(placed, 2 * placed.length);
		placed[height] = block;
		placed[height + 1] = row;
		placed[height + 2] = column;
		height += 3;
		return true;
	}

	/** The block that is a terminal alone. */
	private int blockOf(int terminal)
	{
		if (blocksOfTerminals.length == 0)
			blocksOfTerminals = new int[variables.length];
		if (blocksOfTerminals[terminal] == 0) {
			blocks.add(0, 0, values[terminal]);
			blocksOfTerminals[terminal] = 1 + blocks.close(terminal, NONE, NONE);
		}
		return blocksOfTerminals[terminal] - 1;
	}

	private int push(int height, int node, int rowNode, int columnNode, int depth, int state, int column)
	{
		stack[height] = node;
		stack[height + 1] = rowNode;
		stack[height + 2] = columnNode;
		stack[height + 3] = depth;
		stack[height + 4] = state;
		stack[height + 5] = column;
		return height + FIELDS;
	}
}
