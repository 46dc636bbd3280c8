package prismgpu;

import java.util.Arrays;

/** Sets of states that a graph's edges close, for the CPU engine while its own loops are not loaded. */
public final class ClosureLoops
{
	/** Where the choices of each state start, and the end; null where each state has one. */
	private final int[] groups;
	/** Where the edges of each choice start, and the end, and where they lead. */
	final int[] offsets;
	final int[] columns;
	final int size;
	/** Where the edges into each state start, and the end, and the choices that they are of. */
	final int[] entering;
	final int[] choices;
	/** The state of each choice; null where each state has one. */
	private final int[] owners;
	private final int[] stack;

	public ClosureLoops(int[] groups, int[] offsets, int[] columns, int size)
	{
		this.groups = groups;
		this.offsets = offsets;
		this.columns = columns;
		this.size = size;
		entering = new int[size + 1];
		choices = new int[columns.length];
		owners = groups == null ? null : new int[offsets.length - 1];
		stack = new int[size];
		for (int column : columns)
			entering[column + 1]++;
		for (int state = 0; state < size; state++)
			entering[state + 1] += entering[state];
		int[] ends = Arrays.copyOf(entering, size);
		for (int choice = 0; choice < offsets.length - 1; choice++) {
			for (int edge = offsets[choice]; edge < offsets[choice + 1]; edge++)
				choices[ends[columns[edge]]++] = choice;
		}
		for (int state = 0; groups != null && state < size; state++)
			Arrays.fill(owners, groups[state], groups[state + 1], state);
	}

	/** The least set with these states that no edge leaves. */
	public boolean[] reachedFrom(boolean[] sources)
	{
		boolean[] closed = sources.clone();
		int top = push(closed);
		while (top > 0) {
			int state = stack[--top];
			for (int edge = offsets[first(state)]; edge < offsets[first(state + 1)]; edge++) {
				int target = columns[edge];
				if (!closed[target]) {
					closed[target] = true;
					stack[top++] = target;
				}
			}
		}
		return closed;
	}

	/** The least set with a goal and each state of another set that has a choice into it. */
	public boolean[] mayReach(boolean[] goal, boolean[] through)
	{
		return mayReach(goal, through, new boolean[offsets.length - 1]);
	}

	/** The least set with a goal and each state of another set whose choices all may lead into it. */
	public boolean[] mustApproach(boolean[] goal, boolean[] through)
	{
		boolean[] closed = goal.clone();
		boolean[] entered = new boolean[offsets.length - 1];
		int[] missing = new int[size];
		for (int state = 0; state < size; state++)
			missing[state] = first(state + 1) - first(state);
		int top = push(closed);
		while (top > 0) {
			int state = stack[--top];
			for (int edge = entering[state]; edge < entering[state + 1]; edge++) {
				int choice = choices[edge];
				if (entered[choice])
					continue;
				entered[choice] = true;
				int before = owner(choice);
				if (--missing[before] == 0 && through[before] && !closed[before]) {
					closed[before] = true;
					stack[top++] = before;
				}
			}
		}
		return closed;
	}

	/**
	 * The states from which some strategy reaches a goal through another set with probability 1; null where
	 * that takes more rounds than are allowed.
	 */
	public boolean[] canForce(boolean[] goal, boolean[] through, int mostRounds)
	{
		boolean[] staying = mayReach(goal, through);
		boolean[] leaving = new boolean[offsets.length - 1];
		int top = 0;
		for (int state = 0; state < size; state++) {
			if (!staying[state])
				stack[top++] = state;
		}
		for (int round = 0; round < mostRounds; round++) {
			while (top > 0) {
				int state = stack[--top];
				for (int edge = entering[state]; edge < entering[state + 1]; edge++)
					leaving[choices[edge]] = true;
			}
			boolean[] reaching = mayReach(goal, staying, leaving);
			for (int state = 0; state < size; state++) {
				if (staying[state] && !reaching[state])
					stack[top++] = state;
			}
			if (top == 0)
				return staying;
			staying = reaching;
		}
		return null;
	}

	/** The same, but for some choices. */
	private boolean[] mayReach(boolean[] goal, boolean[] through, boolean[] barred)
	{
		boolean[] closed = goal.clone();
		int top = push(closed);
		while (top > 0) {
			int state = stack[--top];
			for (int edge = entering[state]; edge < entering[state + 1]; edge++) {
				int choice = choices[edge];
				int before = owner(choice);
				if (!barred[choice] && through[before] && !closed[before]) {
					closed[before] = true;
					stack[top++] = before;
				}
			}
		}
		return closed;
	}

	private int push(boolean[] states)
	{
		int top = 0;
		for (int state = 0; state < size; state++) {
			if (states[state])
				stack[top++] = state;
		}
		return top;
	}

	int first(int state)
	{
		return groups == null ? state : groups[state];
	}

	int owner(int choice)
	{
		return owners == null ? choice : owners[choice];
	}
}
