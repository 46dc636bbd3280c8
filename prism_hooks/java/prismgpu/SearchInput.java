package prismgpu;

import java.util.List;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;

/** What is to be searched for in diagrams: their addresses, 0 for none, and the indices of variables. Who asks holds the diagrams meanwhile. */
public final class SearchInput
{
	public final String kind;
	/** Where PRISM's libraries lie. */
	public final String folders = System.getProperty("java.library.path", "");
	public final long manager = JDD.GetCUDDManager();
	public final long transitions;
	public final int[] rows;
	public final int[] columns;
	/** Null for a Markov chain. */
	public final int[] choices;
	public long within;
	public long through;
	public long goal;
	/** Null where there are not several. */
	public long[] goals;
	public long mask;
	public long no;

	private SearchInput(String kind, JDDNode trans01, JDDVars rows, JDDVars cols, JDDVars nd)
	{
		this.kind = kind;
		transitions = trans01.ptr();
		this.rows = SymbolicModel.indices(rows);
		columns = SymbolicModel.indices(cols);
		choices = nd == null ? null : SymbolicModel.indices(nd);
	}

	/**
	 * The states that are not bound to reach b2 through b1: all that some choice, or each, may lead there are left out.
	 * @param mask Where there are no choices, if each choice must lead there; null if one is enough
	 * @param nd Null for a Markov chain
	 */
	static SearchInput unreaching(JDDNode trans01, JDDNode reach, JDDNode mask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		SearchInput input = new SearchInput("unreaching", trans01, rows, cols, nd).between(reach, b1, b2);
		input.mask = mask == null ? 0 : mask.ptr();
		return input;
	}

	/** The states from which some strategy reaches b2 through b1 with probability 1. @param no Where the probability is 0 under each strategy */
	static SearchInput sure(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no)
	{
		SearchInput input = new SearchInput("sure", trans01, rows, cols, nd).between(reach, b1, b2);
		input.no = no.ptr();
		return input;
	}

	/** The states of a set that some strategy stays in with probability 1, seeing each of some sets again and again. @param goals One at least */
	static SearchInput recurring(JDDNode trans01, JDDNode within, JDDVars rows, JDDVars cols, JDDVars nd, List<JDDNode> goals)
	{
		SearchInput input = new SearchInput("recurring", trans01, rows, cols, nd).between(within, within, within);
		input.goals = new long[goals.size()];
		for (int i = 0; i < input.goals.length; i++)
			input.goals[i] = goals.get(i).ptr();
		return input;
	}

	/** The states within a set that no path in it leads to from others. */
	static SearchInput unreached(JDDNode trans01, JDDNode within, JDDVars rows, JDDVars cols, JDDNode from)
	{
		return new SearchInput("unreached", trans01, rows, cols, null).between(within, within, from);
	}

	/** All that some path leads to from states. */
	static SearchInput reached(JDDNode trans01, JDDVars rows, JDDVars cols, JDDNode from)
	{
		SearchInput input = new SearchInput("reached", trans01, rows, cols, null);
		input.goal = from.ptr();
		return input;
	}

	/** The states of a set that lie between others of it, at least: such that some of the set leads there, and some is led to. */
	static SearchInput trimmed(JDDNode trans01, JDDNode states, JDDVars rows, JDDVars cols)
	{
		return new SearchInput("trimmed", trans01, rows, cols, null).between(states, states, states);
	}

	/** What a search finds, to be given up by who asks; null where the steps do not suffice, or it cannot be made. */
	JDDNode found(Steps steps)
	{
		DiagramSearch search = Hooks.backend.search(this);
		if (search == null)
			return null;
		try {
			return steps.suffice(search) ? resultOf(search) : null;
		} finally {
			search.clear();
		}
	}

	/** What a complete search has found, to be given up by who asks; null where there was no memory for it. */
	static JDDNode resultOf(DiagramSearch search)
	{
		long result = search.result();
		return result == 0 ? null : JDD.ptrToNode(result);
	}

	private SearchInput between(JDDNode within, JDDNode through, JDDNode goal)
	{
		this.within = within.ptr();
		this.through = through.ptr();
		this.goal = goal.ptr();
		return this;
	}
}
