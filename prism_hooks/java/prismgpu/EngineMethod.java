package prismgpu;

import parser.ast.Expression;
import parser.ast.ExpressionProb;
import parser.ast.ExpressionQuant;
import parser.ast.ExpressionReward;
import parser.ast.RelOp;
import prism.Accuracy;
import prism.Accuracy.AccuracyLevel;
import prism.Accuracy.AccuracyType;
import prism.PrismException;
import simulator.method.SimulationMethod;
import simulator.sampler.Sampler;

/** A method that PRISM does not have: the engines say when there are enough paths, and what they mean. */
public final class EngineMethod extends SimulationMethod
{
	// The question.
	/** Whether the property is an R operator. */
	public boolean ofRewards;
	/** Whether the property compares with a bound, which bound, and whether it is a lower one. */
	public boolean bounded;
	public boolean atLeast;
	public double bound;

	// The engines' answer, before there are paths and after.
	public String name;
	public String fullName;
	public String parameters;
	/** The estimate, the largest distance to an end of its interval, and how probable an error is. */
	public double estimate;
	public double halfWidth;
	public double confidence;
	/** Whether the bound holds: 1 for true, 0 for false; -1 where the paths do not tell. */
	public int decision;
	/** What a reader must know of the result; empty for nothing. */
	public String remark = "";
	/** What the result means, in a sentence. */
	public String explanation;

	EngineMethod(String name)
	{
		this.name = name;
		fullName = name;
		parameters = "none";
	}

	@Override
	public String getName()
	{
		return name;
	}

	@Override
	public String getFullName()
	{
		return fullName;
	}

	@Override
	public void reset()
	{
	}

	@Override
	public void computeMissingParameterBeforeSim()
	{
	}

	@Override
	public void setExpression(Expression expr) throws PrismException
	{
		if (!(expr instanceof ExpressionProb || expr instanceof ExpressionReward))
			throw new PrismException("Cannot approximate " + expr + " using simulation");
		ExpressionQuant operator = (ExpressionQuant) expr;
		RelOp relOp = operator.getRelOp();
		ofRewards = expr instanceof ExpressionReward;
		bounded = operator.getBound() != null;
		if (bounded) {
			atLeast = relOp.isLowerBound();
			bound = operator.getBound().evaluateDouble();
		}
	}

	@Override
	public void computeMissingParameterAfterSim()
	{
	}

	@Override
	public Object getMissingParameter()
	{
		return estimate;
	}

	@Override
	public String getParametersString()
	{
		return parameters;
	}

	@Override
	public boolean shouldStopNow(int iters, Sampler sampler)
	{
		throw new IllegalStateException("the engines say when there are enough paths");
	}

	@Override
	public int getProgress(int iters, Sampler sampler)
	{
		return 0;
	}

	@Override
	public Object getResult(Sampler sampler) throws PrismException
	{
		if (!bounded)
			return estimate;
		if (decision < 0)
			throw new PrismException("Approximation is not precise enough to get a result");
		return decision == 1;
	}

	@Override
	public Accuracy getResultAccuracy(Sampler sampler)
	{
		Accuracy accuracy = new Accuracy(AccuracyLevel.PROBABLY_BOUNDED, bounded ? 0.0 : halfWidth, AccuracyType.ABSOLUTE);
		accuracy.setProbability(1.0 - confidence);
		return accuracy;
	}

	@Override
	public String getResultExplanation(Sampler sampler)
	{
		return explanation;
	}

	@Override
	public SimulationMethod clone()
	{
		EngineMethod method = new EngineMethod(name);
		method.fullName = fullName;
		method.parameters = parameters;
		return method;
	}
}
