package prismgpu;

import java.util.BitSet;

import explicit.MDP;
import explicit.ZeroRewardECQuotient;
import explicit.rewards.MDPRewards;
import prism.PrismComponent;
import prism.PrismException;

/** PRISM's search for end components without reward, of which most models have none. */
public final class ZeroRewardEnds
{
	private ZeroRewardEnds()
	{
	}

	/** @return null where there are no such components */
	public static <Value> ZeroRewardECQuotient<Value> getQuotient(PrismComponent parent, MDP<Value> mdp, BitSet restrict, MDPRewards<Value> rewards) throws PrismException
	{
		HeldRewards held = EarnedRewards.of(mdp, rewards);
		if (held != null && Hooks.answersGraphs(mdp) && areNone(parent, mdp, restrict, rewards))
			return null;
		return ZeroRewardECQuotient.getQuotient(parent, mdp, restrict, rewards);
	}

	@SuppressWarnings("unchecked")
	private static boolean areNone(PrismComponent parent, MDP<?> mdp, BitSet restrict, MDPRewards<?> rewards) throws PrismException
	{
		Problem problem = new Problem("zero-reward end components", parent.getLog(), Extract.of((MDP<Double>) mdp)).within(restrict);
		problem.earningByChoices((MDP<Double>) mdp, (MDPRewards<Double>) rewards);
		Hooks.answer(problem);
		if (problem.error != null)
			throw new PrismException(problem.error);
		return problem.refusal == null && problem.numComponents == 0;
	}
}
