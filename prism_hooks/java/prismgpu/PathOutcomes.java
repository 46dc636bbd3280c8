package prismgpu;

import parser.ast.Expression;
import parser.ast.ExpressionProb;
import prism.ModelGenerator;
import prism.PrismException;
import simulator.Path;
import simulator.method.SimulationMethod;
import simulator.sampler.Sampler;
import simulator.sampler.SamplerBoolean;
import simulator.sampler.SamplerDouble;

/** PRISM's statistics over paths that have been sampled elsewhere: one outcome a path, in order. */
interface PathOutcomes
{
	/** Adds the outcome of a path to the statistics. */
	void add(Object outcomes, int path);

	/** A new one for a property, which the method judges from now on. */
	static Sampler of(Expression property, SimulationMethod method)
	{
		Sampler sampler = property instanceof ExpressionProb ? new Truths() : new Values();
		sampler.setSimulationMethod(method);
		return sampler;
	}

	/** Outcomes that are true or false. */
	final class Truths extends SamplerBoolean implements PathOutcomes
	{
		@Override
		public void add(Object outcomes, int path)
		{
			value = ((byte[]) outcomes)[path] != 0;
			updateStats();
		}

		@Override
		public boolean update(Path path, ModelGenerator modelGen) throws PrismException
		{
			throw new PrismException("These paths are sampled by the engines");
		}
	}

	/** Outcomes that are numbers. */
	final class Values extends SamplerDouble implements PathOutcomes
	{
		@Override
		public void add(Object outcomes, int path)
		{
			value = ((double[]) outcomes)[path];
			updateStats();
		}

		@Override
		public boolean update(Path path, ModelGenerator modelGen) throws PrismException
		{
			throw new PrismException("These paths are sampled by the engines");
		}
	}
}
