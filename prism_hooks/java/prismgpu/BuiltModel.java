package prismgpu;

import java.util.BitSet;

import explicit.MDP;
import explicit.StateModelChecker;
import explicit.rewards.ConstructRewards;
import explicit.rewards.Rewards;
import parser.ast.ExpressionLabel;
import prism.Prism;
import prism.PrismException;
import prism.RewardGenerator;
import prism.StateVector;

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

	public int numStates()
	{
		return model.getNumStates();
	}

	public Extract transitions() throws PrismException
	{
		Extract extract = Extract.of(model);
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
		return Names.ofLabels(prism);
	}

	public long[] label(String name) throws PrismException
	{
		StateModelChecker mc = StateModelChecker.createModelChecker(prism.getModelType(), prism);
		mc.setModelCheckingInfo(prism.getModelInfo(), null, prism.getRewardGenerator());
		return mc.checkExpression(model, new ExpressionLabel(name), null).getBitSet().toLongArray();
	}

	/** The values of a property of whole numbers. */
	public static int[] integers(StateVector values) throws PrismException
	{
		int[] integers = new int[values.getSize()];
		for (int s = 0; s < integers.length; s++)
			integers[s] = ((Number) values.getValue(s)).intValue();
		return integers;
	}

	/** Values of the model's constants, as PRISM prints them. */
	public String constants()
	{
		return prism.getModelInfo().getConstantValues().toString();
	}

	public String[] rewardNames() throws PrismException
	{
		return Names.ofRewards(prism);
	}

	/** The rewards of the states alone. */
	public double[] stateRewards(int structure) throws PrismException
	{
		return ofStates(rewards(structure, false));
	}

	/** The rewards of the states of a Markov chain, those of its transitions in there as expected values. */
	public double[] expectedStateRewards(int structure) throws PrismException
	{
		return ofStates(rewards(structure, true));
	}

	private double[] ofStates(Rewards<Double> rewards)
	{
		double[] values = new double[model.getNumStates()];
		for (int s = 0; s < values.length; s++)
			values[s] = rewards.getStateReward(s);
		return values;
	}

	/** Rewards of each choice of an MDP, state rewards left out. */
	public double[] choiceRewards(int structure) throws PrismException
	{
		MDP<?> mdp = (MDP<?>) model;
		Rewards<Double> rewards = rewards(structure, false);
		double[] values = new double[mdp.getNumChoices()];
		int row = 0;
		for (int s = 0; s < mdp.getNumStates(); s++)
			for (int i = 0; i < mdp.getNumChoices(s); i++)
				values[row++] = rewards.getTransitionReward(s, i);
		return values;
	}

	@SuppressWarnings("unchecked")
	private Rewards<Double> rewards(int structure, boolean expected) throws PrismException
	{
		ConstructRewards construct = new ConstructRewards(prism);
		construct.setExpectedRewards(expected);
		return construct.buildRewardStructure(model, (RewardGenerator<Double>) prism.getRewardGenerator(), structure);
	}
}
