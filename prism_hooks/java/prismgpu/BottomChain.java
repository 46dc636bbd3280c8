package prismgpu;

import java.util.Locale;

import dv.DoubleVector;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import odd.ODDUtils;
import prism.PrismException;
import symbolic.model.ProbModel;

/**
 * The bottom component that all states of a Markov chain end in, as a chain of its own. It is searched for
 * on the diagram, in a time that is short beside that of reading each transition of the whole.
 */
final class BottomChain
{
	/** Smaller or sparser models are read edge by edge as soon as searched. */
	private static final long FEWEST_TRANSITIONS = 100_000;
	private static final int FEWEST_PER_STATE = 16;

	/** The model that was searched last, referenced, and what was found; null for nothing. */
	private static JDDNode searched;
	private static BottomChain found;

	final SymbolicModel chain;
	final JDDNode trans;
	private final JDDNode states;
	private final ODDNode odd;

	private BottomChain(boolean continuous, ProbModel model, JDDNode states) throws PrismException
	{
		this.states = states;
		trans = JDD.Apply(JDD.TIMES, model.getTrans().copy(), states.copy());
		odd = ODDUtils.BuildODD(states, model.getAllDDRowVars());
		chain = SymbolicModel.ofPart(continuous ? "CTMC" : "DTMC", trans, odd, model.getAllDDRowVars(), model.getAllDDColVars(), null);
	}

	/** The chain; null where the model is to be asked about as a whole. */
	static BottomChain of(boolean continuous, ProbModel model) throws PrismException
	{
		ODDNode numbers = model.getODD();
		if (!Symbolic.answersOnDiagrams() || numbers == null)
			return null;
		long transitions = model.getNumTransitionsLong();
		if (transitions < FEWEST_TRANSITIONS || transitions / FEWEST_PER_STATE < numbers.getNumStates())
			return null;
		String kind = continuous ? "CTMC" : "DTMC";
		if (model.getTrans().equals(searched))
			return found;
		long known = SymbolicModel.idOf(kind, model.getTrans(), numbers);
		long begun = System.nanoTime();
		JDDNode states = search(model, new Steps(Hooks.backend.bottomSteps(transitions, known)));
		forget();
		searched = model.getTrans().copy();
		if (states == null)
			return null;
		found = new BottomChain(continuous, model, states);
		if (!Hooks.backend.showsSolves())
			return found;
		String line = "\nprism-gpu: all states end in one component of %d states, found on the diagram in %.3f s";
		Symbolic.prism.getMainLog().println(String.format(Locale.ROOT, line, found.odd.getNumStates(), (System.nanoTime() - begun) / 1e9));
		return found;
	}

	/** Gives up what is kept; to be called before PRISM closes its diagrams' library or builds anew. */
	static void forget()
	{
		if (searched != null)
			JDD.Deref(searched);
		searched = null;
		if (found == null)
			return;
		found.chain.release();
		JDD.Deref(found.trans, found.states);
		ODDUtils.ClearODD(found.odd);
		found = null;
	}

	/**
	 * Values of the model's states: these of the chain's own, in the same order, and 0 elsewhere.
	 * @param values Given up
	 */
	DoubleVector spread(DoubleVector values, ProbModel model) throws PrismException
	{
		DoubleVector spread = new DoubleVector(states, model.getAllDDRowVars(), model.getODD());
		int next = 0;
		for (int state = 0; state < spread.getSize(); state++)
			if (spread.getElement(state) > 0.0)
				spread.setElement(state, values.getElement(next++));
		values.clear();
		return spread;
	}

	/** The states of a bottom component that is not all, and that all states reach; null where there is none or the steps do not suffice. */
	private static JDDNode search(ProbModel model, Steps steps)
	{
		JDDNode trans01 = model.getTrans01(), reach = model.getReach();
		JDDVars rows = model.getAllDDRowVars(), cols = model.getAllDDColVars();
		JDDNode bottom = bottom(trans01, reach.copy(), rows, cols, steps);
		if (bottom == null)
			return null;
		boolean isOnly = !bottom.equals(reach);
		if (isOnly) {
			JDDNode others = SearchInput.unreaching(trans01, reach, null, rows, cols, null, reach, bottom).found(steps);
			isOnly = others != null && others.equals(JDD.ZERO);
			if (others != null)
				JDD.Deref(others);
		}
		if (isOnly)
			return bottom;
		JDD.Deref(bottom);
		return null;
	}

	/**
	 * A bottom component: what a state leads to, once all of it leads back. Else what does not is searched.
	 * @param part States that no edge leaves, given up
	 */
	private static JDDNode bottom(JDDNode trans01, JDDNode part, JDDVars rows, JDDVars cols, Steps steps)
	{
		while (true) {
			JDDNode one = JDD.RestrictToFirst(part.copy(), rows);
			JDDNode unreached = SearchInput.unreached(trans01, part, rows, cols, one).found(steps);
			JDDNode reached = unreached == null ? null : JDD.And(part.copy(), JDD.Not(unreached));
			JDD.Deref(part);
			JDDNode away = reached == null ? null : SearchInput.unreaching(trans01, reached, null, rows, cols, null, reached, one).found(steps);
			JDD.Deref(one);
			if (away != null && away.equals(JDD.ZERO)) {
				JDD.Deref(away);
				return reached;
			}
			if (reached != null)
				JDD.Deref(reached);
			if (away == null)
				return null;
			part = away;
		}
	}
}
