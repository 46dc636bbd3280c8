package prismgpu;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import jdd.JDD;
import jdd.JDDNode;

/** A decision diagram of PRISM's as primitive arrays, one array a crossing; node 0 is the terminal 0. */
public final class Diagram
{
	/** The variable of a terminal. */
	static final int TERMINAL = Integer.MAX_VALUE;

	/** The variable that each node tests. */
	public int[] variables = new int[16];
	/** The node below where the variable is 0, and where it is 1; a terminal's are itself. */
	public int[] low = new int[16];
	public int[] high = new int[16];
	/** Values of the terminals. */
	public double[] values = new double[16];
	public final int root;

	private final Map<Long, Integer> numbers = new HashMap<>();
	private int size;

	/** Reads a diagram; neither takes a reference nor gives one up. */
	Diagram(JDDNode node)
	{
		number(JDD.ZERO);
		root = read(node);
		variables = Arrays.copyOf(variables, size);
		low = Arrays.copyOf(low, size);
		high = Arrays.copyOf(high, size);
		values = Arrays.copyOf(values, size);
		numbers.clear();
	}

	private int read(JDDNode top)
	{
		int number = number(top);
		List<JDDNode> pending = new ArrayList<>(List.of(top));
		while (!pending.isEmpty()) {
			JDDNode node = pending.remove(pending.size() - 1);
			int parent = numbers.get(node.ptr());
			if (variables[parent] == TERMINAL)
				continue;
			int before = size;
			JDDNode child = node.getElse();
			// Numbered first: that may replace the arrays.
			int below = number(child);
			low[parent] = below;
			if (size > before)
				pending.add(child);
			before = size;
			child = node.getThen();
			below = number(child);
			high[parent] = below;
			if (size > before)
				pending.add(child);
		}
		return number;
	}

	private int number(JDDNode node)
	{
		Integer known = numbers.get(node.ptr());
		if (known != null)
			return known;
		if (size == variables.length) {
			variables = Arrays.copyOf(variables, 2 * size);
			low = Arrays.copyOf(low, 2 * size);
			high = Arrays.copyOf(high, 2 * size);
			values = Arrays.copyOf(values, 2 * size);
		}
		boolean terminal = node.isConstant();
		variables[size] = terminal ? TERMINAL : node.getIndex();
		values[size] = terminal ? node.getValue() : 0.0;
		low[size] = size;
		high[size] = size;
		numbers.put(node.ptr(), size);
		return size++;
	}
}
