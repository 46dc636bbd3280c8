package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import prism.OpRelOpBound;
import prism.PrismException;
import symbolic.model.ProbModel;
import symbolic.states.StateValues;

/**
 * The long run of a Markov chain under PRISM's symbolic engines, as one question; null means that
 * PRISM's own code must put it together, and then nothing has been given up.
 */
final class LongRun
{
	private LongRun()
	{
	}

	/** @param init Cleared with an answer */
	static StateValues distribution(boolean continuous, StateValues init, ProbModel model) throws PrismException
	{
		StateValues probs = Symbolic.longRun(continuous, init, model);
		if (probs != null)
			init.clear();
		return probs;
	}

	/**
	 * The probability of a set in the long run, or whether it meets a bound.
	 * @param states The set, given up in any case
	 * @param statesOfInterest Given up with an answer
	 */
	static StateValues probabilities(boolean continuous, OpRelOpBound bound, JDDNode states, ProbModel model, JDDNode statesOfInterest)
			throws PrismException
	{
		StateValues values = Symbolic.average(continuous, bound, states, model);
		JDD.Deref(states);
		if (values != null)
			JDD.Deref(statesOfInterest);
		return values;
	}

	/** @param statesOfInterest Given up with an answer */
	static StateValues rewards(boolean continuous, JDDNode stateRewards, JDDNode transRewards, ProbModel model, JDDNode statesOfInterest)
			throws PrismException
	{
		JDDNode earned = JDD.SumAbstract(JDD.Apply(JDD.TIMES, model.getTrans().copy(), transRewards.copy()), model.getAllDDColVars());
		JDDNode rewards = JDD.Apply(JDD.PLUS, stateRewards.copy(), earned);
		StateValues values = Symbolic.average(continuous, rewards, model);
		JDD.Deref(rewards);
		if (values != null)
			JDD.Deref(statesOfInterest);
		return values;
	}
}
