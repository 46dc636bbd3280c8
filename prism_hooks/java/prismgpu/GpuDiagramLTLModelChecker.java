package prismgpu;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import acceptance.AcceptanceBuchiDD;
import acceptance.AcceptanceGenRabinDD;
import acceptance.AcceptanceOmegaDD;
import acceptance.AcceptanceRabinDD;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import prism.PrismComponent;
import prism.PrismException;
import symbolic.comp.LTLModelChecker;
import symbolic.model.NondetModel;

/**
 * LTL on models in diagrams. What is reached is one set of states: a diagram for each accepting end component, of which
 * PRISM tests one after the other, takes minutes where there are many. States from which one is surely reached may be in
 * that set: the probabilities are the same.
 */
public class GpuDiagramLTLModelChecker extends LTLModelChecker
{
	/** Of larger products the log does not count PRISM's rounds; see COUNTED_AS_PRISM in sets.py. */
	private static final long MOST_COUNTED = 1 << 21;

	public GpuDiagramLTLModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
	}

	@Override
	public JDDNode findAcceptingECStates(AcceptanceOmegaDD acceptance, NondetModel model, JDDVars daDDRowVars, JDDVars daDDColVars, boolean fairness)
			throws PrismException
	{
		JDDNode states = fairness ? null : accepting(acceptance, model);
		return states != null ? states : super.findAcceptingECStates(acceptance, model, daDDRowVars, daDDColVars, fairness);
	}

	/**
	 * States from which the condition can be met with probability 1, all those of accepting end components among them; null where
	 * PRISM's own code is to find them.
	 */
	private JDDNode accepting(AcceptanceOmegaDD acceptance, NondetModel model) throws PrismException
	{
		List<Pair> pairs = Symbolic.answersOnDiagrams() ? pairs(acceptance) : null;
		if (pairs == null)
			return null;
		JDDNode union = JDD.Constant(0);
		try {
			for (Pair pair : pairs) {
				JDDNode within = JDD.And(model.getReach().copy(), JDD.Not(pair.never.copy()));
				JDDNode states;
				try {
					states = onDiagram(pair, within, model);
					if (states == null)
						states = edgeByEdge(pair, within, model);
				} finally {
					JDD.Deref(within);
				}
				if (states == null) {
					JDD.Deref(union);
					return null;
				}
				union = JDD.Or(union, states);
			}
		} finally {
			for (Pair pair : pairs)
				pair.clear();
		}
		return union;
	}

	/**
	 * From these states an accepting end component is reached with probability 1, if they are in none; null where that is not soon
	 * known, or the components themselves are exported, or the choices that lead to them, or the log is to count PRISM's searches.
	 */
	private JDDNode onDiagram(Pair pair, JDDNode within, NondetModel model)
	{
		boolean counts = Hooks.printsAsPrism() && model.getNumTransitionsLong() <= MOST_COUNTED;
		if (Symbolic.prism.getExportTarget() || Symbolic.tellsChoices() || counts)
			return null;
		List<JDDNode> goals = new ArrayList<>();
		for (JDDNode accept : pair.often)
			goals.add(accept == null ? within : accept);
		SearchInput input = SearchInput.recurring(model.getTrans01(), within, model.getAllDDRowVars(), model.getAllDDColVars(), model.getAllDDNondetVars(),
				goals);
		long begun = System.nanoTime();
		JDDNode states = input.found(new Steps(Hooks.backend.searchSteps(model.getNumTransitionsLong(), SymbolicModel.NO_ID)));
		if (states != null && Hooks.backend.showsSolves()) {
			String line = "\nprism-gpu: states that can accept with probability 1: found on the diagram in %.3f seconds";
			mainLog.println(String.format(Locale.ROOT, line, (System.nanoTime() - begun) / 1e9));
		}
		return states;
	}

	/** The states of accepting end components. */
	private JDDNode edgeByEdge(Pair pair, JDDNode within, NondetModel model) throws PrismException
	{
		DiagramGraph graph = DiagramGraph.of(model.getTrans01(), model.getReach(), model.getAllDDRowVars(), model.getAllDDColVars(),
				model.getAllDDNondetVars(), DiagramGraph.FEWEST_STATES_OF_SETS);
		if (graph == null)
			return null;
		JDDNode states = within.copy();
		// Within the components that have states of one set, the components are the same ones.
		for (JDDNode accept : pair.often) {
			JDDNode inside = states;
			try {
				states = graph.endComponentStates(inside, accept, mainLog);
			} finally {
				JDD.Deref(inside);
			}
			if (states == null)
				return null;
		}
		return states;
	}

	/** Sets of which the states of the first must not be seen for ever, and some of each of the others must. */
	private static final class Pair
	{
		final JDDNode never;
		/** One at least; null stands for any state. */
		final List<JDDNode> often = new ArrayList<>();

		/** @param never Given up */
		Pair(JDDNode never)
		{
			this.never = never;
		}

		void clear()
		{
			JDD.Deref(never);
			for (JDDNode accept : often)
				if (accept != null)
					JDD.Deref(accept);
		}
	}

	/** The condition as pairs one of which is to be met, as PRISM has it; null for a type unknown. */
	private static List<Pair> pairs(AcceptanceOmegaDD acceptance)
	{
		List<Pair> pairs = new ArrayList<>();
		switch (acceptance.getType()) {
		case BUCHI:
			Pair only = new Pair(JDD.Constant(0));
			only.often.add(((AcceptanceBuchiDD) acceptance).getAcceptingStates());
			pairs.add(only);
			return pairs;
		case RABIN:
			for (AcceptanceRabinDD.RabinPairDD rabin : (AcceptanceRabinDD) acceptance) {
				Pair pair = new Pair(rabin.getL());
				pair.often.add(rabin.getK());
				pairs.add(pair);
			}
			return pairs;
		case GENERALIZED_RABIN:
			for (AcceptanceGenRabinDD.GenRabinPairDD rabin : (AcceptanceGenRabinDD) acceptance) {
				Pair pair = new Pair(rabin.getL());
				for (int i = 0; i < rabin.getNumK(); i++)
					pair.often.add(rabin.getK(i));
				if (pair.often.isEmpty())
					pair.often.add(null);
				pairs.add(pair);
			}
			return pairs;
		default:
			return null;
		}
	}
}
