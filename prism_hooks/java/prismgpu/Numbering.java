package prismgpu;

import java.util.Arrays;

import odd.ODDNode;
import odd.ODDUtils;

/** The numbers that PRISM's sparse and hybrid engines give states, as primitive arrays. */
public final class Numbering
{
	static final int NO_STATES = -1;

	/** The node below where a level's variable is 0, and where it is 1; -1 for none. */
	public int[] low = new int[16];
	public int[] high = new int[16];
	/** How many states lie below `low`, and below the node. */
	public long[] lowCounts = new long[16];
	public long[] counts = new long[16];
	public final int root;

	private int size;

	/** Reads the nodes level by level: one that two levels share has states on each. */
	Numbering(ODDNode odd, int levels)
	{
		PointerTable above = new PointerTable(16);
		PointerTable below = new PointerTable(16);
		root = number(odd.ptr(), above, 0);
		int first = 0;
		for (int level = 0; level < levels; level++) {
			int next = size;
			for (int place = 0; place < above.size(); place++) {
				int node = first + place;
				long pointer = above.pointer(place);
				// Numbered first: that may replace the arrays.
				int lower = child(ODDUtils.ODD_GetElse(pointer), lowCounts[node], below, next);
				low[node] = lower;
				int upper = child(ODDUtils.ODD_GetThen(pointer), counts[node] - lowCounts[node], below, next);
				high[node] = upper;
			}
			PointerTable done = above;
			above = below;
			below = done;
			below.clear();
			first = next;
		}
		low = Arrays.copyOf(low, size);
		high = Arrays.copyOf(high, size);
		lowCounts = Arrays.copyOf(lowCounts, size);
		counts = Arrays.copyOf(counts, size);
	}

	private int child(long pointer, long states, PointerTable level, int first)
	{
		return states == 0 ? NO_STATES : number(pointer, level, first);
	}

	/** @param first The number of the level's first node */
	private int number(long pointer, PointerTable level, int first)
	{
		int node = first + level.number(pointer);
		if (node < size)
			return node;
		if (size == low.length) {
			low = Arrays.copyOf(low, 2 * size);
			high = Arrays.copyOf(high, 2 * size);
			lowCounts = Arrays.copyOf(lowCounts, 2 * size);
			counts = Arrays.copyOf(counts, 2 * size);
		}
		low[size] = NO_STATES;
		high[size] = NO_STATES;
		lowCounts[size] = ODDUtils.ODD_GetEOff(pointer);
		counts[size] = lowCounts[size] + ODDUtils.ODD_GetTOff(pointer);
		return size++;
	}
}
