package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import explicit.CTMC;
import explicit.DTMC;
import explicit.MDP;
import explicit.StateModelChecker;
import explicit.rewards.ConstructRewards;
import explicit.rewards.Rewards;
import parser.ast.ExpressionLabel;
import prism.Prism;
import prism.PrismException;
import prism.PrismNotSupportedException;
import prism.RewardGenerator;

/** A model that PRISM has built, read for the Python API: one array a crossing. */
public final class BuiltModel
{
	private final Prism prism;
	private final explicit.Model<Double> model;

	@SuppressWarnings("unchecked")
	public BuiltModel(Prism prism)
	{
		this.prism = prism;
		model = (explicit.Model<Double>) prism.getBuiltModelExplicit();
	}

	public Extract transitions() throws PrismException
	{
		Extract extract;
		if (model instanceof MDP)
			extract = Extract.of((MDP<Double>) model);
		else if (model instanceof CTMC)
			extract = Extract.of((CTMC<Double>) model);
		else if (model instanceof DTMC)
			extract = Extract.of((DTMC<Double>) model);
		else
			throw new PrismNotSupportedException("no arrays are made of models of type " + model.getModelType());
		extract.read();
		return extract;
	}

	public long[] initialStates()
	{
		BitSet initial = new BitSet();
		for (int s : model.getInitialStates())
			initial.set(s);
		return initial.toLongArray();
	}

	public String[] labelNames() throws PrismException
	{
		List<String> names = new ArrayList<>(List.of("init", "deadlock"));
		names.addAll(prism.getModelInfo().getLabelNames());
		return names.toArray(new String[0]);
	}

	public long[] label(String name) throws PrismException
	{
		StateModelChecker mc = StateModelChecker.createModelChecker(prism.getModelType(), prism);
		mc.setModelCheckingInfo(prism.getModelInfo(), null, prism.getRewardGenerator());
		return mc.checkExpression(model, new ExpressionLabel(name), null).getBitSet().toLongArray();
	}

	public String[] rewardNames() throws PrismException
	{
		return prism.getRewardInfo().getRewardStructNames().toArray(new String[0]);
	}

	public double[] stateRewards(int structure) throws PrismException
	{
		Rewards<Double> rewards = rewards(structure);
		double[] values = new double[model.getNumStates()];
		for (int s = 0; s < values.length; s++)
			values[s] = rewards.getStateReward(s);
		return values;
	}

	/** Rewards of each choice of an MDP, state rewards left out. */
	public double[] choiceRewards(int structure) throws PrismException
	{
		MDP<?> mdp = (MDP<?>) model;
		Rewards<Double> rewards = rewards(structure);
		double[] values = new double[mdp.getNumChoices()];
		int row = 0;
		for (int s = 0; s < mdp.getNumStates(); s++)
			for (int i = 0; i < mdp.getNumChoices(s); i++)
				values[row++] = rewards.getTransitionReward(s, i);
		return values;
	}

	@SuppressWarnings("unchecked")
	private Rewards<Double> rewards(int structure) throws PrismException
	{
		ConstructRewards construct = new ConstructRewards(prism);
		return construct.buildRewardStructure(model, (RewardGenerator<Double>) prism.getRewardGenerator(), structure);
	}
}
