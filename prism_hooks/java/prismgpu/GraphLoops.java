package prismgpu;

import java.util.Arrays;

/** Searches of graphs for the CPU engine, while its own loops are not loaded. */
public final class GraphLoops
{
	private GraphLoops()
	{
	}

	/**
	 * Labels the strong components of the states labelled 0, numbered by their smallest states (Tarjan 1972).
	 * @param starts Where the edges of each state start, and the end
	 * @param labels 0 or -1 for each state; a component's number or -1 in the end
	 */
	public static void label(int[] starts, int[] targets, int[] labels)
	{
		int size = labels.length;
		// From 1 on; 0 for a state that has not been seen, and the largest number once its component is known.
		int[] oldest = new int[size];
		int[] number = new int[size];
		int[] next = new int[size];
		int[] path = new int[size];
		int[] open = new int[size];
		int seen = 0, length = 0, height = 0, found = 0;
		for (int first = 0; first < size; first++) {
			if (labels[first] < 0 || oldest[first] != 0)
				continue;
			oldest[first] = number[first] = ++seen;
			next[first] = starts[first];
			path[length++] = first;
			open[height++] = first;
			while (length > 0) {
				int state = path[length - 1];
				int edge = next[state], end = starts[state + 1], least = oldest[state];
				int unseen = -1;
				while (edge < end) {
					int target = targets[edge++];
					if (labels[target] < 0)
						continue;
					int other = oldest[target];
					if (other == 0) {
						unseen = target;
						break;
					}
					if (other < least)
						least = other;
				}
				oldest[state] = least;
				next[state] = edge;
				if (unseen >= 0) {
					oldest[unseen] = number[unseen] = ++seen;
					next[unseen] = starts[unseen];
					path[length++] = unseen;
					open[height++] = unseen;
					continue;
				}
				length--;
				if (least == number[state]) {
					int member;
					do {
						member = open[--height];
						oldest[member] = Integer.MAX_VALUE;
						labels[member] = found;
					} while (member != state);
					found++;
				}
				if (length > 0 && least != number[state]) {
					int before = path[length - 1];
					oldest[before] = Math.min(oldest[before], least);
				}
			}
		}
		int[] names = next;
		Arrays.fill(names, 0, found, -1);
		int named = 0;
		for (int state = 0; state < size; state++) {
			int label = labels[state];
			if (label >= 0) {
				if (names[label] < 0)
					names[label] = named++;
				labels[state] = names[label];
			}
		}
	}
}
