package prismgpu;

import java.util.Arrays;

import explicit.LTS;
import explicit.Model;
import explicit.NondetModel;
import explicit.SuccessorsIterator;

/** The successors in any explicit model of PRISM's as primitive arrays, one array a crossing. */
public final class GraphSource extends ModelSource
{
	public int[] rowOffsets;
	public int[] columns;
	/** For each state its first choice, and one past the last; null without choices. */
	public int[] groupOffsets;

	private final Model<?> model;
	private int size;

	GraphSource(Model<?> model)
	{
		super(Extract.idOf(model), "graph", model.getNumStates());
		this.model = model;
	}

	@Override
	void read()
	{
		if (rowOffsets != null)
			return;
		columns = new int[Math.max(16, numStates)];
		// What an LTS calls a choice is a transition.
		if (model instanceof NondetModel && !(model instanceof LTS))
			readChoices((NondetModel<?>) model);
		else
			readStates();
		columns = Arrays.copyOf(columns, size);
	}

	private void readStates()
	{
		rowOffsets = new int[numStates + 1];
		for (int s = 0; s < numStates; s++)
			rowOffsets[s + 1] = add(model.getSuccessors(s));
	}

	private void readChoices(NondetModel<?> choices)
	{
		rowOffsets = new int[choices.getNumChoices() + 1];
		groupOffsets = new int[numStates + 1];
		int row = 0;
		for (int s = 0; s < numStates; s++) {
			int last = row + choices.getNumChoices(s);
			for (int i = 0; row < last; i++)
				rowOffsets[++row] = add(choices.getSuccessors(s, i));
			groupOffsets[s + 1] = row;
		}
	}

	/** @return The number of successors so far */
	private int add(SuccessorsIterator successors)
	{
		while (successors.hasNext()) {
			if (size == columns.length) {
				if (size == Integer.MAX_VALUE - 8)
					throw new OutOfMemoryError("more transitions than a Java array holds");
				columns = Arrays.copyOf(columns, (int) Math.min(Integer.MAX_VALUE - 8L, 2L * size));
			}
			columns[size++] = successors.nextInt();
		}
		return size;
	}
}
