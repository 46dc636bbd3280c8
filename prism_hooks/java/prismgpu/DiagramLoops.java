package prismgpu;

/** Walks along all paths of a matrix's diagram, entry by entry, while the CPU engine's own loops are not loaded. */
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
	/** Of each entry in the order of the paths, the row, the column and the terminal. */
	private final int[] rowsFound;
	private final int[] columnsFound;
	private final int[] nodesFound;
	private int found;

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
		rowsFound = new int[numEntries];
		columnsFound = new int[numEntries];
		nodesFound = new int[numEntries];
	}

	private static final int FIELDS = 6;

	/** What is returned instead of a node: all is well, or there are more entries than were told. */
	private static final int NONE = -1;
	private static final int TOO_MANY = -2;

	/** Finds the entries; returns a node that tests a variable of none of the levels, `NONE` or `TOO_MANY`. */
	public int expand(int root, int numberingRoot)
	{
		int strange = walk(root, numberingRoot);
		if (strange != NONE)
			return strange;
		// By rows, in the order of the paths: for each row, columns ascend in it.
		int[] places = new int[offsets.length];
		for (int entry = 0; entry < found; entry++)
			offsets[rowsFound[entry] + 1]++;
		for (int state = 1; state < offsets.length; state++) {
			offsets[state] += offsets[state - 1];
			places[state] = offsets[state];
		}
		for (int entry = 0; entry < found; entry++) {
			int place = places[rowsFound[entry]]++;
			columns[place] = columnsFound[entry];
			entries[place] = values[nodesFound[entry]];
		}
		return NONE;
	}

	private int walk(int root, int numberingRoot)
	{
		int levels = rowVariables.length, height = 0;
		int[] stack = this.stack;
		height = push(height, root, numberingRoot, numberingRoot, 0, 0, 0);
		while (height > 0) {
			height -= FIELDS;
			int node = stack[height], rowNode = stack[height + 1], columnNode = stack[height + 2];
			int depth = stack[height + 3], state = stack[height + 4], column = stack[height + 5];
			int variable = variables[node];
			if (depth == levels) {
				if (variable != LEAF)
					return node;
				if (found == rowsFound.length)
					return TOO_MANY;
				rowsFound[found] = state;
				columnsFound[found] = column;
				nodesFound[found++] = node;
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
