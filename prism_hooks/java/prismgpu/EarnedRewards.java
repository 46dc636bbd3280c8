package prismgpu;

import explicit.MDP;
import explicit.Model;
import explicit.Product;
import explicit.rewards.Rewards;
import explicit.rewards.RewardsExplicit;
import explicit.rewards.RewardsSimple;
import explicit.rewards.StateRewardsArray;
import prism.Evaluator;

/** Rewards of a model that the engines have built. They cannot be changed, and cross only where PRISM's own code reads them. */
final class EarnedRewards extends RewardsExplicit<Double> implements Unread.Reader
{
	private final Model<Double> model;
	/** Null once the engines have let go of the model. */
	private HeldRewards held;
	private final boolean ofChoices;
	/** Null until they have crossed. */
	private RewardsExplicit<Double> crossed;

	EarnedRewards(Model<Double> model, Earning earning, Evaluator<Double> evaluator)
	{
		this.model = model;
		held = earning.held;
		ofChoices = earning.ofChoices;
		setEvaluator(evaluator);
		Unread.note(earning.modelId, this);
	}

	@Override
	public void read()
	{
		crossed();
		held = null;
	}

	/** The rewards of a model where the engines hold them; null where they do not, or are another model's. */
	static HeldRewards of(Model<?> model, Rewards<?> rewards)
	{
		return rewards instanceof EarnedRewards && ((EarnedRewards) rewards).model == model ? ((EarnedRewards) rewards).held : null;
	}

	@Override
	public boolean hasTransitionRewards()
	{
		return ofChoices;
	}

	@Override
	public Double getStateReward(int s)
	{
		return crossed().getStateReward(s);
	}

	@Override
	public Double getTransitionReward(int s, int i)
	{
		return ofChoices ? crossed().getTransitionReward(s, i) : getEvaluator().zero();
	}

	@Override
	public RewardsExplicit<Double> liftFromModel(Product<?> product)
	{
		return crossed().liftFromModel(product);
	}

	private RewardsExplicit<Double> crossed()
	{
		if (crossed != null)
			return crossed;
		int n = model.getNumStates();
		RewardsExplicit<Double> rewards = ofChoices ? new RewardsSimple<>(n) : new StateRewardsArray(n);
		rewards.setEvaluator(getEvaluator());
		double[] states = held.ofStates();
		double[] choices = ofChoices ? held.ofChoices() : null;
		int choice = 0;
		for (int s = 0; s < n; s++) {
			if (states[s] != 0.0)
				rewards.setStateReward(s, states[s]);
			int last = choice + (ofChoices ? ((MDP<Double>) model).getNumChoices(s) : 0);
			for (int i = 0; choice < last; i++, choice++) {
				if (choices[choice] != 0.0)
					rewards.setTransitionReward(s, i, choices[choice]);
			}
		}
		return crossed = rewards;
	}
}
