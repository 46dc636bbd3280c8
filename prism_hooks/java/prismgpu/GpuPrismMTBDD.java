package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import mtbdd.PrismMTBDD;

/** The searches for probabilities 0 and 1 of PRISM's symbolic engines, ours where they may take long. */
public class GpuPrismMTBDD extends PrismMTBDD
{
	public static JDDNode Prob0(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDNode b1, JDDNode b2)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob0(trans01, reach, rows, cols, b1, b2);
		return GraphSearch.run("Prob0", new DiagramSearch.Zero(trans01, reach, null, rows, cols, null, b1, b2), "prob0", false);
	}

	public static JDDNode Prob1(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDNode b1, JDDNode b2, JDDNode no)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob1(trans01, reach, rows, cols, b1, b2, no);
		return sure("Prob1", trans01, reach, rows, cols, null, b1, b2, no);
	}

	public static JDDNode Prob0A(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob0A(trans01, reach, rows, cols, nd, b1, b2);
		return GraphSearch.run("Prob0A", new DiagramSearch.Zero(trans01, reach, null, rows, cols, nd, b1, b2), "prob0", false);
	}

	public static JDDNode Prob0E(JDDNode trans01, JDDNode reach, JDDNode nondetMask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob0E(trans01, reach, nondetMask, rows, cols, nd, b1, b2);
		return GraphSearch.run("Prob0E", new DiagramSearch.Zero(trans01, reach, nondetMask, rows, cols, nd, b1, b2), "prob0", true);
	}

	public static JDDNode Prob1A(JDDNode trans01, JDDNode reach, JDDNode nondetMask, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode no, JDDNode b2)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob1A(trans01, reach, nondetMask, rows, cols, nd, no, b2);
		return sure("Prob1A", trans01, reach, rows, cols, nd, reach, b2, no);
	}

	public static JDDNode Prob1E(JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no)
	{
		if (!GraphSearch.concerns(trans01))
			return PrismMTBDD.Prob1E(trans01, reach, rows, cols, nd, b1, b2, no);
		return GraphSearch.run("Prob1E", new DiagramSearch.One(trans01, reach, rows, cols, nd, b1, b2, no), "prob1", false);
	}

	/** Probability 1 is lost by a path, before the target, to where it is 0. */
	private static JDDNode sure(String name, JDDNode trans01, JDDNode reach, JDDVars rows, JDDVars cols, JDDVars nd, JDDNode b1, JDDNode b2, JDDNode no)
	{
		JDDNode remain = JDD.And(b1.copy(), JDD.Not(b2.copy()));
		JDDNode lost = JDD.And(no.copy(), JDD.Not(b2.copy()));
		try {
			return GraphSearch.run(name, new DiagramSearch.Zero(trans01, reach, null, rows, cols, nd, remain, lost), "prob0", false);
		} finally {
			JDD.Deref(remain, lost);
		}
	}
}
