package prismgpu;

import java.util.ArrayDeque;
import java.util.Deque;
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
 * where graphs are small, or all components are made out by few rounds.
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
		DiagramGraph.Found found = graph == null || isSoonDone(graph.transitions) ? null : graph.bottomComponents(mainLog);
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

	/**
	 * Whether a short search on the diagram finds all components, as PRISM's then does: where they are few, or what is none
	 * is soon trimmed away. What it finds is given up: PRISM's order of components is that of its own search.
	 */
	private boolean isSoonDone(long transitions)
	{
		Steps steps = new Steps(Hooks.backend.searchSteps(transitions, SymbolicModel.NO_ID));
		Deque<JDDNode> parts = new ArrayDeque<>();
		parts.add(reach.copy());
		try {
			while (!parts.isEmpty()) {
				if (!isSoonSplit(parts.pop(), steps, parts))
					return false;
			}
			return true;
		} finally {
			for (JDDNode part : parts)
				JDD.Deref(part);
		}
	}

	/**
	 * Takes one component out of a set of states, and adds the parts that are left; false if the steps do not suffice.
	 * @param part Given up
	 */
	private boolean isSoonSplit(JDDNode part, Steps steps, Deque<JDDNode> parts)
	{
		JDDNode states = SearchInput.trimmed(trans01, part, allDDRowVars, allDDColVars).found(steps);
		JDD.Deref(part);
		if (states == null)
			return false;
		if (states.equals(JDD.ZERO)) {
			JDD.Deref(states);
			return true;
		}
		JDDNode one = JDD.RestrictToFirst(states.copy(), allDDRowVars);
		JDDNode unreached = null, unreaching = null;
		try {
			unreached = SearchInput.unreached(trans01, states, allDDRowVars, allDDColVars, one).found(steps);
			if (unreached != null)
				unreaching = SearchInput.unreaching(trans01, states, null, allDDRowVars, allDDColVars, null, states, one).found(steps);
			if (unreaching == null)
				return false;
			// What is reached and reaches is the component; no other one has states of two of these parts.
			parts.push(JDD.And(unreached.copy(), unreaching.copy()));
			parts.push(JDD.And(unreached.copy(), JDD.Not(unreaching.copy())));
			parts.push(JDD.And(JDD.Not(unreached.copy()), unreaching.copy()));
			return true;
		} finally {
			JDD.Deref(one, states);
			for (JDDNode found : new JDDNode[] {unreached, unreaching})
				if (found != null)
					JDD.Deref(found);
		}
	}
}
