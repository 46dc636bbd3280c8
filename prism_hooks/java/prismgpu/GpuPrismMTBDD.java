package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import mtbdd.PrismMTBDD;

/** The searches of PRISM's symbolic engines: for reachable states, and for probabilities 0 and 1. */
public class GpuPrismMTBDD extends PrismMTBDD
{
	public static JDDNode Reachability(JDDNode trans01, JDDVars rows, JDDVars cols, JDDNode start)
	{
		return GraphSearch.reachable(SearchInput.reached(trans01, rows, cols, start), () -> PrismMTBDD.Reachability(trans01, rows, cols, start));
	}

	public static JDDNode Prob0(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDNode b1, JDDNode b2)
	{
		return GraphSearch.prob0("Prob0", trans01, reach, null, rows, cols, null, b1, b2, () -> PrismMTBDD.Prob0(trans01, reach, rows, cols, b1, b2));
	}

	public static JDDNode Prob1(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDNode b1, JDDNode b2, JDDNode no)
	{
		return sure("Prob1", trans01, reach, rows, cols, null, b1, b2, no, () -> PrismMTBDD.Prob1(trans01, reach, rows, cols, b1, b2, no));
	}

	public static JDDNode Prob0A(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		return GraphSearch.prob0("Prob0A", trans01, reach, null, rows, cols, nd, b1, b2, () -> PrismMTBDD.Prob0A(trans01, reach, rows, cols, nd, b1, b2));
	}

	public static JDDNode Prob0E(JDDNode trans01, JDDNode reach, JDDNode nondetMask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		return GraphSearch.prob0("Prob0E", trans01, reach, nondetMask, rows, cols, nd, b1, b2,
				() -> PrismMTBDD.Prob0E(trans01, reach, nondetMask, rows, cols, nd, b1, b2));
	}

	public static JDDNode Prob1A(JDDNode trans01, JDDNode reach, JDDNode nondetMask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode no, JDDNode b2)
	{
		return sure("Prob1A", trans01, reach, rows, cols, nd, reach, b2, no,
				() -> PrismMTBDD.Prob1A(trans01, reach, nondetMask, rows, cols, nd, no, b2));
	}

	public static JDDNode Prob1E(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no)
	{
		return GraphSearch.prob1("Prob1E", trans01, reach, rows, cols, nd, b1, b2, no, () -> PrismMTBDD.Prob1E(trans01, reach, rows, cols, nd, b1, b2, no));
	}

	/** Probability 1 is lost by a path, before the target, to where it is 0. */
	private static JDDNode sure(String name, JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no,
			GraphSearch.Own own)
	{
		JDDNode remain = JDD.And(b1.copy(), JDD.Not(b2.copy()));
		JDDNode lost = JDD.And(no.copy(), JDD.Not(b2.copy()));
		try {
			return GraphSearch.prob0(name, trans01, reach, null, rows, cols, nd, remain, lost, own);
		} finally {
			JDD.Deref(remain, lost);
		}
	}
}
