package prismgpu;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import odd.ODDNode;
import odd.ODDUtils;

/** The numbers that PRISM's sparse and hybrid engines give states, as primitive arrays. */
public final class Numbering
{
	private static final int NO_STATES = -1;

	/** The node below where a level's variable is 0, and where it is 1; -1 for none. */
	public int[] low = new int[16];
	public int[] high = new int[16];
	/** How many states lie below `low`, and below the node. */
	public long[] lowCounts = new long[16];
	public long[] counts = new long[16];
	public final int root;

	private int size;

	Numbering(ODDNode odd, int levels)
	{
		Map<Long, Integer> above = new HashMap<>();
		root = number(odd.ptr(), above);
		for (int level = 0; level < levels; level++) {
			Map<Long, Integer> below = new HashMap<>();
			List<Map.Entry<Long, Integer>> nodes = new ArrayList<>(above.entrySet());
			for (Map.Entry<Long, Integer> entry : nodes) {
				int node = entry.getValue();
				// Numbered first: that may replace the arrays.
				int lower = child(ODDUtils.ODD_GetElse(entry.getKey()), lowCounts[node], below);
				low[node] = lower;
				int upper = child(ODDUtils.ODD_GetThen(entry.getKey()), counts[node] - lowCounts[node], below);
				high[node] = upper;
			}
			above = below;
		}
		low = Arrays.copyOf(low, size);
		high = Arrays.copyOf(high, size);
		lowCounts = Arrays.copyOf(lowCounts, size);
		counts = Arrays.copyOf(counts, size);
	}

	private int child(long pointer, long states, Map<Long, Integer> level)
	{
		if (states == 0)
			return NO_STATES;
		Integer known = level.get(pointer);
		return known == null ? number(pointer, level) : known;
	}

	private int number(long pointer, Map<Long, Integer> level)
	{
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
		level.put(pointer, size);
		return size++;
	}
}
