package prismgpu;

import java.util.BitSet;

import explicit.CTMC;
import explicit.CTMCModelChecker;
import explicit.ModelCheckerResult;
import explicit.rewards.MCRewards;
import prism.PrismComponent;
import prism.PrismException;

/** CTMCs: PRISM sends most of their work to the embedded DTMC; the rest is named in the log. */
public class GpuCTMCModelChecker extends CTMCModelChecker
{
	public GpuCTMCModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
	}

	@Override
	public ModelCheckerResult computeTransientBackwardsProbs(CTMC<Double> ctmc, BitSet target, BitSet nonAbs, double t, double[] multProbs)
			throws PrismException
	{
		return Hooks.handBack(mainLog, "a time-bounded until", () -> super.computeTransientBackwardsProbs(ctmc, target, nonAbs, t, multProbs));
	}

	@Override
	public ModelCheckerResult computeCumulativeRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		return Hooks.handBack(mainLog, "a cumulative reward", () -> super.computeCumulativeRewards(ctmc, mcRewards, t));
	}

	@Override
	public ModelCheckerResult computeInstantaneousRewards(CTMC<Double> ctmc, MCRewards<Double> mcRewards, double t) throws PrismException
	{
		return Hooks.handBack(mainLog, "an instantaneous reward", () -> super.computeInstantaneousRewards(ctmc, mcRewards, t));
	}

	@Override
	public ModelCheckerResult computeTransientProbs(CTMC<Double> ctmc, double t, double[] initDist) throws PrismException
	{
		return Hooks.handBack(mainLog, "a transient distribution", () -> super.computeTransientProbs(ctmc, t, initDist));
	}
}
