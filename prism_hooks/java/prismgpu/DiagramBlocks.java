package prismgpu;

import java.util.Arrays;

/** The entries below nodes of the same depth, which many paths of a diagram share; those of a row lie together, in the order in which they were added. */
final class DiagramBlocks
{
	/** So many blocks are kept before it counts how often they serve. */
	private static final int FEW = 4_096;

	/** Of each entry its column and value. */
	private int[] columns = new int[1 << 10];
	private double[] values = new double[1 << 10];
	private int size;
	/** The row of each entry of the block that is being made, and room to sort them. */
	private int[] added = new int[1 << 10];
	private int[] sortedColumns = new int[0];
	private double[] sortedValues = new double[0];
	private int begun;
	/** Of each part, the entries of one row of one block, its row and where it ends. */
	private int[] rows = new int[1 << 8];
	private int[] rowEnds = new int[1 << 8];
	private int parts;
	/** Of each block the three nodes that it lies below, and where its parts end. */
	private int[] keys = new int[3 << 8];
	private int[] ends = new int[1 << 8];
	private int count;
	private long served;
	/** Blocks by hash, 1 added; 0 for none. Twice as many places as `ends` has. */
	private int[] table = new int[2 << 8];

	/** Whether there are few, or what is followed is shared. */
	boolean repay()
	{
		return count < FEW || served > 2L * count;
	}

	/** The block below three nodes, or −1. */
	int find(int node, int rowNode, int columnNode)
	{
		for (int place = placeOf(node, rowNode, columnNode);; place = place + 1 & table.length - 1) {
			int block = table[place] - 1;
			if (block < 0)
				return -1;
			if (keys[3 * block] == node && keys[3 * block + 1] == rowNode && keys[3 * block + 2] == columnNode) {
				served++;
				return block;
			}
		}
	}

	/** Adds an entry to the block that is being made. */
	void add(int row, int column, double value)
	{
		if (size == columns.length) {
			columns = Arrays.copyOf(columns, 2 * size);
			values = Arrays.copyOf(values, 2 * size);
		}
		if (size - begun == added.length)
			added = Arrays.copyOf(added, 2 * added.length);
		added[size - begun] = row;
		columns[size] = column;
		values[size++] = value;
	}

	/** Makes a block of what was added since the last one; returns its number. */
	int close(int node, int rowNode, int columnNode)
	{
		sortByRows();
		if (count == ends.length) {
			ends = Arrays.copyOf(ends, 2 * count);
			keys = Arrays.copyOf(keys, 6 * count);
			table = new int[4 * count];
			for (int block = 0; block < count; block++)
				enter(block);
		}
		keys[3 * count] = node;
		keys[3 * count + 1] = rowNode;
		keys[3 * count + 2] = columnNode;
		ends[count] = parts;
		enter(count);
		return count++;
	}

	/** How many entries a block has. */
	int size(int block)
	{
		int last = ends[block], first = block == 0 ? 0 : ends[block - 1];
		return endOf(last) - endOf(first);
	}

	/** Adds the number of entries of each row of a block to those of the matrix, each behind its place. @param row Where its first row lies */
	void count(int block, int row, int[] lengths)
	{
		for (int part = block == 0 ? 0 : ends[block - 1]; part < ends[block]; part++)
			lengths[row + rows[part] + 1] += rowEnds[part] - endOf(part);
	}

	/** Copies a block to where the next entries of its rows belong. @param row, column Where its first row and column lie */
	void copy(int block, int row, int column, int[] places, int[] columnsThere, double[] valuesThere)
	{
		for (int part = block == 0 ? 0 : ends[block - 1]; part < ends[block]; part++) {
			int first = endOf(part), length = rowEnds[part] - first, place = places[row + rows[part]];
			for (int entry = 0; entry < length; entry++) {
				columnsThere[place + entry] = column + columns[first + entry];
				valuesThere[place + entry] = values[first + entry];
			}
			places[row + rows[part]] = place + length;
		}
	}

	/**
	 * Counts the entries of each row of a block, and a row for each state that a choice has not been met in yet, each behind the state's place.
	 * @param row Where the first row lies
	 * @param latest The choice that each state was met in last
	 */
	void count(int block, int row, int choice, int[] latest, int[] rowsOfStates, int[] lengths)
	{
		int part = block == 0 ? 0 : ends[block - 1];
		for (int first = endOf(part); part < ends[block]; part++) {
			int state = row + rows[part], end = rowEnds[part];
			lengths[state + 1] += end - first;
			first = end;
			if (latest[state] != choice) {
				latest[state] = choice;
				rowsOfStates[state + 1]++;
			}
		}
	}

	/**
	 * Copies a block to where the next entries of its states belong, and begins rows there; choices are noted less 1.
	 * @param row, column Where its first row and column lie
	 * @param nextRows The next row of each state
	 */
	void copy(int block, int row, int column, int choice, int[] latest, int[] nextRows, int[] places, int[] rowOffsets, int[] rowChoices,
			int[] columnsThere, double[] valuesThere)
	{
		int[] columns = this.columns;
		double[] values = this.values;
		int part = block == 0 ? 0 : ends[block - 1];
		for (int entry = endOf(part); part < ends[block]; part++) {
			int state = row + rows[part], place = places[state];
			if (latest[state] != choice) {
				latest[state] = choice;
				int begun = nextRows[state]++;
				rowOffsets[begun] = place;
				rowChoices[begun] = choice - 1;
			}
			for (int end = rowEnds[part]; entry < end; entry++, place++) {
				columnsThere[place] = column + columns[entry];
				valuesThere[place] = values[entry];
			}
			places[state] = place;
		}
	}

	/** Where the entries of the parts before some end. */
	private int endOf(int part)
	{
		return part == 0 ? 0 : rowEnds[part - 1];
	}

	private void sortByRows()
	{
		int length = size - begun, most = 0;
		for (int entry = 0; entry < length; entry++)
			most = Math.max(most, added[entry]);
		int[] starts = new int[most + 2];
		for (int entry = 0; entry < length; entry++)
			starts[added[entry] + 1]++;
		for (int row = 0; row <= most; row++) {
			if (starts[row + 1] > 0) {
				if (parts == rows.length) {
					rows = Arrays.copyOf(rows, 2 * parts);
					rowEnds = Arrays.copyOf(rowEnds, 2 * parts);
				}
				rows[parts] = row;
				rowEnds[parts] = endOf(parts) + starts[row + 1];
				parts++;
			}
			starts[row + 1] += starts[row];
		}
		if (sortedColumns.length < length) {
			sortedColumns = new int[2 * length];
			sortedValues = new double[2 * length];
		}
		for (int entry = 0; entry < length; entry++) {
			int place = starts[added[entry]]++;
			sortedColumns[place] = columns[begun + entry];
			sortedValues[place] = values[begun + entry];
		}
		System.arraycopy(sortedColumns, 0, columns, begun, length);
		System.arraycopy(sortedValues, 0, values, begun, length);
		begun = size;
	}

	private void enter(int block)
	{
		int place = placeOf(keys[3 * block], keys[3 * block + 1], keys[3 * block + 2]);
		while (table[place] != 0)
			place = place + 1 & table.length - 1;
		table[place] = block + 1;
	}

	private int placeOf(int node, int rowNode, int columnNode)
	{
		int mixed = ((node * 31 + rowNode) * 31 + columnNode) * 0x9E3779B9;
		return (mixed ^ mixed >>> 15) & table.length - 1;
	}
}
