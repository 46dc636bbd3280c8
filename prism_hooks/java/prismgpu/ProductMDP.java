package prismgpu;

import java.util.List;

import explicit.MDP;

/** The product of an MDP and an automaton, whose states have the choices of the MDP's. */
final class ProductMDP extends BuiltMDP
{
	private final MDP<Double> model;
	private final int[] pairs;
	private final int automatonSize;

	/** @param automatonSize How many states the automaton has */
	ProductMDP(ProductConstruction built, MDP<Double> model, int automatonSize)
	{
		super(built);
		this.model = model;
		pairs = built.pairs;
		this.automatonSize = automatonSize;
	}

	@Override
	public List<Object> findActionsUsed()
	{
		return model.findActionsUsed();
	}

	@Override
	public boolean onlyNullActionUsed()
	{
		return model.onlyNullActionUsed();
	}

	@Override
	public Object getAction(int s, int i)
	{
		return model.getAction(pairs[s] / automatonSize, i);
	}
}
