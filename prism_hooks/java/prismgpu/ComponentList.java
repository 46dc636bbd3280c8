package prismgpu;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import explicit.SCCConsumer;
import prism.PrismException;

/**
 * Components of a graph, each made a BitSet when it is asked for: as many sets of as many states
 * as a model has would not fit into memory. Sets may be added, as PRISM does.
 */
final class ComponentList extends AbstractList<BitSet>
{
	/** The states component by component, and behind the last of each. */
	private final int[] members;
	private final int[] ends;
	private final List<BitSet> added = new ArrayList<>();

	ComponentList(int[] members, int[] ends)
	{
		this.members = members;
		this.ends = ends;
	}

	@Override
	public int size()
	{
		return ends.length + added.size();
	}

	@Override
	public BitSet get(int component)
	{
		if (component >= ends.length)
			return added.get(component - ends.length);
		BitSet states = new BitSet();
		for (int i = begin(component); i < ends[component]; i++)
			states.set(members[i]);
		return states;
	}

	@Override
	public boolean add(BitSet states)
	{
		modCount++;
		return added.add(states);
	}

	/** Tells a consumer of each component and its states. */
	void report(SCCConsumer consumer) throws PrismException
	{
		for (int component = 0; component < ends.length; component++) {
			consumer.notifyStartSCC();
			for (int i = begin(component); i < ends[component]; i++)
				consumer.notifyStateInSCC(members[i]);
			consumer.notifyEndSCC();
		}
	}

	private int begin(int component)
	{
		return component == 0 ? 0 : ends[component - 1];
	}
}
