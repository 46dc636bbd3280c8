package prismgpu;

import dv.DoubleVector;
import jdd.JDD;
import jdd.JDDNode;
import prism.OpRelOpBound;
import prism.PrismException;
import symbolic.model.ProbModel;
import symbolic.states.StateValues;
import symbolic.states.StateValuesDV;
import symbolic.states.StateValuesMTBDD;

/**
 * The long run of a Markov chain under PRISM's symbolic engines, as one question; null means that
 * PRISM's own code must put it together, and then nothing has been given up. Of a chain that is known
 * to end in one small component, that alone is asked about.
 */
final class LongRun
{
	private static final String AVERAGE = "long-run average", DISTRIBUTION = "long-run distribution";

	private LongRun()
	{
	}

	/** Whether PRISM's own code is to put the long run together, and the engines solve what it consists of. */
	static boolean isPutTogether(boolean continuous, ProbModel model) throws PrismException
	{
		if (Hooks.backend == null)
			return false;
		Problem problem = Symbolic.ofChain(AVERAGE, continuous, model);
		problem.verbose = Symbolic.prism.getVerbose();
		return Hooks.backend.putsTogether(problem);
	}

	/** PRISM's own code, which gives the states of interest up. */
	interface Work
	{
		StateValues run(JDDNode statesOfInterest) throws PrismException;
	}

	/**
	 * What PRISM's own code finds; null where the long run is one question, which is also asked where
	 * that is too near to a bound to be compared.
	 * @param statesOfInterest Given up with values, as with an error of that code
	 */
	static StateValues putTogether(boolean continuous, ProbModel model, JDDNode statesOfInterest, Work work) throws PrismException
	{
		if (!isPutTogether(continuous, model))
			return null;
		boolean isOpen = false;
		try {
			StateValues values = work.run(statesOfInterest.copy());
			isOpen = Comparison.isNear(values);
			if (!isOpen)
				return values;
			values.clear();
			return null;
		} finally {
			if (!isOpen)
				JDD.Deref(statesOfInterest);
		}
	}

	/** @param init Cleared with an answer */
	static StateValues distribution(boolean continuous, StateValues init, ProbModel model) throws PrismException
	{
		if (Hooks.backend == null || !(init instanceof StateValuesDV))
			return null;
		BottomChain bottom = BottomChain.of(continuous, model);
		StateValues probs = bottom == null ? fromStart(continuous, (StateValuesDV) init, model) : fromAnywhere(bottom, model);
		if (probs != null)
			init.clear();
		return probs;
	}

	/** A question about all states. */
	private static Problem whole(String task, boolean continuous, ProbModel model) throws PrismException
	{
		Problem problem = Symbolic.ofChain(task, continuous, model);
		Symbolic.countStep(problem, model.getTrans(), model.getAllDDRowVars(), model.getAllDDColVars());
		return problem;
	}

	private static StateValues fromStart(boolean continuous, StateValuesDV init, ProbModel model) throws PrismException
	{
		Problem problem = whole(DISTRIBUTION, continuous, model);
		problem.sought = "probability";
		problem.parts.startAddress = init.getDoubleVector().getPtr();
		return Symbolic.answered(problem, model, values -> values);
	}

	private static StateValues fromAnywhere(BottomChain bottom, ProbModel model) throws PrismException
	{
		Problem problem = Symbolic.about(DISTRIBUTION, bottom.chain, bottom.trans);
		DoubleVector start = new DoubleVector(problem.numStates);
		try {
			start.setElement(0, 1.0);
			problem.parts.startAddress = start.getPtr();
			return Symbolic.answered(problem, model, values -> bottom.spread(values, model));
		} finally {
			start.clear();
		}
	}

	/**
	 * The probability of a set in the long run, or whether it meets a bound.
	 * @param states The set, given up in any case
	 * @param statesOfInterest Given up with an answer
	 */
	static StateValues probabilities(boolean continuous, OpRelOpBound bound, JDDNode states, ProbModel model, JDDNode statesOfInterest)
			throws PrismException
	{
		StateValues values = released(states, statesOfInterest, () -> average(continuous, states, model, "probability"));
		if (values == null)
			return null;
		JDD.Deref(statesOfInterest);
		return compared(bound, values, model);
	}

	/** The values, or where they meet a bound. @param values Given up with a bound */
	static StateValues compared(OpRelOpBound bound, StateValues values, ProbModel model) throws PrismException
	{
		if (bound.isNumeric())
			return values;
		Comparison.comparable(values, model);
		JDDNode met = JDD.And(values.getBDDFromInterval(bound.getRelOp(), bound.getBound()), model.getReach().copy());
		values.clear();
		return new StateValuesMTBDD(met, model);
	}

	/** @param statesOfInterest Given up with an answer */
	static StateValues rewards(boolean continuous, JDDNode stateRewards, JDDNode transRewards, ProbModel model, JDDNode statesOfInterest)
			throws PrismException
	{
		JDDNode earned = JDD.SumAbstract(JDD.Apply(JDD.TIMES, model.getTrans().copy(), transRewards.copy()), model.getAllDDColVars());
		JDDNode rewards = JDD.Apply(JDD.PLUS, stateRewards.copy(), earned);
		StateValues values = released(rewards, statesOfInterest, () -> average(continuous, rewards, model, "Reward"));
		if (values == null)
			return null;
		JDD.Deref(statesOfInterest);
		return Comparison.comparable(values, model);
	}

	/** Asks, and gives up what was asked about; with an error, as with an answer, the states of interest too. */
	private static StateValues released(JDDNode asked, JDDNode statesOfInterest, Hooks.Work<StateValues> work) throws PrismException
	{
		try {
			return work.run();
		} catch (PrismException e) {
			JDD.Deref(statesOfInterest);
			throw e;
		} finally {
			JDD.Deref(asked);
		}
	}

	/** The averages of rewards of states. @param sought What PRISM's log calls that of a component */
	private static StateValues average(boolean continuous, JDDNode rewards, ProbModel model, String sought) throws PrismException
	{
		if (Hooks.backend == null)
			return null;
		BottomChain bottom = BottomChain.of(continuous, model);
		Problem problem = bottom == null ? whole(AVERAGE, continuous, model) : Symbolic.about(AVERAGE, bottom.chain, bottom.trans);
		problem.parts.stateRewards = new Diagram(rewards);
		problem.sought = bottom == null ? sought : null;
		return Symbolic.answered(problem, model, values -> bottom == null ? values : everywhere(values, model));
	}

	/** The value of a chain that all states end in. @param values That of each of its states, all the same; given up */
	private static DoubleVector everywhere(DoubleVector values, ProbModel model) throws PrismException
	{
		double value = values.getElement(0);
		values.clear();
		DoubleVector spread = Symbolic.vector((int) model.getODD().getNumStates());
		spread.setAllElements(value);
		return spread;
	}
}
