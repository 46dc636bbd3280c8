package prismgpu;

import java.util.BitSet;

import explicit.CTMC;
import explicit.CTMCModelChecker;
import explicit.Model;
import explicit.ModelCheckerResult;
import explicit.StateValues;
import explicit.rewards.MCRewards;
import parser.ast.Expression;
import prism.PrismComponent;
import prism.PrismException;
import prism.Result;

/** CTMCs: PRISM sends most of their work to the embedded DTMC; the rest is named in the log. */
public class GpuCTMCModelChecker extends CTMCModelChecker
{
	public GpuCTMCModelChecker(PrismComponent parent) throws PrismException
	{
		super(parent);
	}

	@Override
	public <Value> Result check(Model<Value> model, Expression expr) throws PrismException
	{
		if (Hooks.exchange == null)
			return super.check(model, expr);
		result = new Result();
		Operators.start(this, model, expr, propertiesFile);
		return Hooks.exchange.collects() ? result : super.check(model, expr);
	}

	@Override
	public StateValues checkExpression(Model<?> model, Expression expr, BitSet statesOfInterest) throws PrismException
	{
		StateValues answer = Operators.answer(this, model, expr, propertiesFile);
		return answer != null ? answer : super.checkExpression(model, expr, statesOfInterest);
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
