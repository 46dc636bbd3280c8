package prismgpu;

import java.util.ArrayList;
import java.util.List;

import prism.Prism;
import prism.PrismException;

/** Names that a model's labels and reward structures have, built or not. */
final class Names
{
	private Names()
	{
	}

	static String[] ofLabels(Prism prism) throws PrismException
	{
		List<String> names = new ArrayList<>(List.of("init", "deadlock"));
		names.addAll(prism.getModelInfo().getLabelNames());
		return names.toArray(new String[0]);
	}

	static String[] ofRewards(Prism prism) throws PrismException
	{
		return prism.getRewardInfo().getRewardStructNames().toArray(new String[0]);
	}
}
