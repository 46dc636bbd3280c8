package prismgpu;

import java.util.Arrays;

/**
 * Maximal end components for the CPU engine, while its own loops are not loaded: strong components, and what
 * they lose with the choices that leave them, until none is lost (de Alfaro 1997).
 */
public final class EndComponentLoops
{
	private final ClosureLoops graph;
	/** Choices that stay where they may. */
	private boolean[] usable;
	/** Of each state how many there are. */
	private final int[] remaining;
	/** 0 for the states that are looked at in this round, -1 for all others; then their strong components. */
	private final int[] labels;
	/** The components that are known, each named by a state; -1 for the others. */
	private final int[] names;
	private final int[] stack;

	public EndComponentLoops(ClosureLoops graph)
	{
		this.graph = graph;
		remaining = new int[graph.size];
		labels = new int[graph.size];
		names = new int[graph.size];
		stack = new int[graph.size];
	}

	/**
	 * Returns the component of each state, numbered by their smallest states, or -1; null where edges would be
	 * looked at too often.
	 * @param within The states that they lie in
	 * @param choices The choices that may be made; in the end those of components alone
	 * @param mostLooks How often each edge may be looked at, on average
	 */
	public int[] find(boolean[] within, boolean[] choices, int mostLooks)
	{
		usable = choices;
		Arrays.fill(names, -1);
		keepInside(within);
		long looks = 0, most = (long) mostLooks * graph.columns.length;
		while (true) {
			int[] starts = new int[graph.size + 1];
			int[] targets = keptEdges(starts);
			looks += targets.length;
			if (looks > most)
				return null;
			GraphLoops.label(starts, targets, labels);
			if (!split())
				return numbered();
		}
	}

	/** Bars the choices that leave a set, and the states that have none left. */
	private void keepInside(boolean[] within)
	{
		int top = 0;
		for (int state = 0; state < graph.size; state++) {
			labels[state] = within[state] ? 0 : -1;
			int kept = 0;
			for (int choice = graph.first(state); choice < graph.first(state + 1); choice++) {
				// A choice without successors is none.
				boolean stays = within[state] && usable[choice] && graph.offsets[choice] < graph.offsets[choice + 1];
				for (int edge = graph.offsets[choice]; stays && edge < graph.offsets[choice + 1]; edge++)
					stays = within[graph.columns[edge]];
				usable[choice] = stays;
				if (stays)
					kept++;
			}
			remaining[state] = kept;
			if (within[state] && kept == 0)
				stack[top++] = state;
		}
		remove(top);
	}

	/** Removes the states on the stack, and whatever is forced into them. */
	private void remove(int top)
	{
		while (top > 0) {
			int state = stack[--top];
			labels[state] = -1;
			for (int edge = graph.entering[state]; edge < graph.entering[state + 1]; edge++) {
				int choice = graph.choices[edge];
				if (!usable[choice])
					continue;
				usable[choice] = false;
				int owner = graph.owner(choice);
				if (--remaining[owner] == 0)
					stack[top++] = owner;
			}
		}
	}

	/** The edges of usable choices of the states that are looked at; fills in where those of each state start. */
	private int[] keptEdges(int[] starts)
	{
		int kept = 0;
		for (int state = 0; state < graph.size; state++) {
			starts[state] = kept;
			for (int choice = graph.first(state); labels[state] == 0 && choice < graph.first(state + 1); choice++)
				kept += usable[choice] ? graph.offsets[choice + 1] - graph.offsets[choice] : 0;
		}
		starts[graph.size] = kept;
		int[] targets = new int[kept];
		for (int state = 0; state < graph.size; state++) {
			int at = starts[state];
			for (int choice = graph.first(state); labels[state] == 0 && choice < graph.first(state + 1); choice++) {
				if (!usable[choice])
					continue;
				int length = graph.offsets[choice + 1] - graph.offsets[choice];
				System.arraycopy(graph.columns, graph.offsets[choice], targets, at, length);
				at += length;
			}
		}
		return targets;
	}

	/** Names the strong components that lose nothing, and leaves the others to the next round; returns whether there are any. */
	private boolean split()
	{
		int[] heads = new int[graph.size];
		boolean[] loses = new boolean[graph.size];
		Arrays.fill(heads, -1);
		int top = 0;
		for (int state = 0; state < graph.size; state++) {
			int own = labels[state];
			if (own < 0)
				continue;
			if (heads[own] < 0)
				heads[own] = state;
			for (int choice = graph.first(state); choice < graph.first(state + 1); choice++) {
				boolean leaves = false;
				for (int edge = graph.offsets[choice]; usable[choice] && !leaves && edge < graph.offsets[choice + 1]; edge++)
					leaves = labels[graph.columns[edge]] != own;
				if (leaves) {
					usable[choice] = false;
					loses[own] = true;
					if (--remaining[state] == 0)
						stack[top++] = state;
				}
			}
		}
		boolean again = false;
		for (int state = 0; state < graph.size; state++) {
			int own = labels[state];
			if (own >= 0 && !loses[own])
				names[state] = heads[own];
			again |= own >= 0 && loses[own];
			labels[state] = own >= 0 && loses[own] ? 0 : -1;
		}
		remove(top);
		return again;
	}

	private int[] numbered()
	{
		int[] numbers = new int[graph.size];
		int found = 0;
		// A component is named by its smallest state.
		for (int state = 0; state < graph.size; state++) {
			if (names[state] < 0)
				numbers[state] = -1;
			else
				numbers[state] = names[state] == state ? found++ : numbers[names[state]];
		}
		return numbers;
	}
}
