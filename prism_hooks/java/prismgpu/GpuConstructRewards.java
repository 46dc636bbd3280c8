package prismgpu;

import explicit.MDP;
import explicit.Model;
import explicit.rewards.ConstructRewards;
import explicit.rewards.Rewards;
import prism.PrismComponent;
import prism.PrismException;
import prism.RewardGenerator;
import prismgpu.ExpressionText.Unwritable;
import simulator.ModulesFileModelGenerator;

/** PRISM's construction of rewards, which the engines find in the states of a model that they have built. */
public class GpuConstructRewards extends ConstructRewards
{
	public GpuConstructRewards(PrismComponent parent)
	{
		super(parent);
	}

	@Override
	@SuppressWarnings("unchecked")
	public <Value> Rewards<Value> buildRewardStructure(Model<Value> model, RewardGenerator<Value> rewardGen, int r) throws PrismException
	{
		Rewards<Double> rewards = null;
		if (concerns(model, rewardGen, r))
			rewards = built((Model<Double>) model, (ModulesFileModelGenerator<Double>) rewardGen, r);
		return rewards == null ? super.buildRewardStructure(model, rewardGen, r) : (Rewards<Value>) rewards;
	}

	/** Whether the rewards are a double each state, or each state and choice. */
	private boolean concerns(Model<?> model, RewardGenerator<?> rewardGen, int r)
	{
		if (Hooks.backend == null || allowNegative || !(rewardGen instanceof ModulesFileModelGenerator))
			return false;
		boolean summed = expectedRewards || model instanceof MDP || !rewardGen.rewardStructHasTransitionRewards(r);
		return summed && Extract.isKnown(model) && rewardGen.getRewardEvaluator().one() instanceof Double;
	}

	private static Rewards<Double> built(Model<Double> model, ModulesFileModelGenerator<Double> modelGen, int r) throws PrismException
	{
		Earning earning;
		try {
			earning = new Earning(Extract.idOf(model), ProgramText.ofRewards(modelGen, r));
		} catch (Unwritable e) {
			return null;
		}
		Hooks.earn(earning);
		if (earning.error != null)
			throw new PrismException(earning.error);
		return earning.held == null ? null : new EarnedRewards(model, earning, modelGen.getRewardEvaluator());
	}
}
