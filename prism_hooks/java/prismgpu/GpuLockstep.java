package prismgpu;

import java.util.Vector;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import prism.PrismComponent;
import prism.PrismException;
import prism.PrismSettings;
import symbolic.comp.SCCComputerLockstep;

/**
 * Bottom strongly connected components of graphs in diagrams. PRISM's search is kept where it is short:
 * where graphs are small, or are one component that few rounds make out.
 */
public class GpuLockstep extends SCCComputerLockstep
{
	public GpuLockstep(PrismComponent parent, JDDNode reach, JDDNode trans01, JDDVars allDDRowVars, JDDVars allDDColVars) throws PrismException
	{
		super(parent, reach, trans01, allDDRowVars, allDDColVars);
	}

	@Override
	public void computeBSCCs() throws PrismException
	{
		DiagramGraph graph = DiagramGraph.of(trans01, reach, allDDRowVars, allDDColVars, null, DiagramGraph.FEWEST_STATES);
		DiagramGraph.Found found = graph == null || isSoonOne(graph.transitions) ? null : graph.bottomComponents(mainLog);
		if (found == null) {
			super.computeBSCCs();
			return;
		}
		sccs = new Vector<>(found.components);
		bsccs = new Vector<>(found.components);
		notInBSCCs = found.rest;
		int bits = allDDRowVars.n();
		mainLog.print("\nSCCs: " + found.numStrong + ", BSCCs: " + bsccs.size());
		mainLog.println(", non-BSCC states: " + JDD.GetNumMintermsString(notInBSCCs, bits));
		if (!getSettings().getBoolean(PrismSettings.PRISM_VERBOSE) && bsccs.size() > 10) {
			mainLog.print("BSCC sizes: More than 10 BSCCs, use verbose mode to view sizes for all.\n");
			return;
		}
		StringBuilder sizes = new StringBuilder("BSCC sizes:");
		for (int i = 0; i < bsccs.size(); i++)
			sizes.append(" ").append(i + 1).append(":").append(JDD.GetNumMintermsString(bsccs.get(i), bits));
		mainLog.println(sizes);
	}

	/** Whether a short search on the diagram shows that all states are one component. */
	private boolean isSoonOne(long transitions)
	{
		double seconds = Hooks.backend.searchSeconds(transitions, SymbolicModel.NO_ID);
		JDDNode one = JDD.RestrictToFirst(reach.copy(), allDDRowVars);
		try {
			return isSoonEmpty(new DiagramSearch.Unreached(trans01, reach, allDDRowVars, allDDColVars, one), seconds)
					&& isSoonEmpty(new DiagramSearch.Zero(trans01, reach, null, allDDRowVars, allDDColVars, null, reach, one), seconds);
		} finally {
			JDD.Deref(one);
		}
	}

	/** Whether a search soon finds that there are no such states; it is given up. */
	private static boolean isSoonEmpty(DiagramSearch search, double seconds)
	{
		try {
			if (!search.run(seconds))
				return false;
			JDDNode states = search.result();
			boolean none = states.equals(JDD.ZERO);
			JDD.Deref(states);
			return none;
		} finally {
			search.clear();
		}
	}
}
