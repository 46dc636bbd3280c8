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

/** PRISM's statistics over paths that have been sampled elsewhere, in order. */
interface PathOutcomes
{
	/** Adds the outcome of a path to the statistics. */
	void add(Object outcomes, int path);

	/** Adds the outcomes of so many paths, the first ones; what comes of it is what it is one by one. */
	void addAll(Object outcomes, int paths);

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

		/** @param outcomes How many are true, a Long */
		@Override
		public void addAll(Object outcomes, int paths)
		{
			int given = ((Long) outcomes).intValue();
			numSamples += paths;
			numTrue += negated ? paths - given : given;
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
		public void addAll(Object outcomes, int paths)
		{
			double[] values = (double[]) outcomes;
			for (int i = 0; i < paths; i++) {
				value = values[i];
				updateStats();
			}
		}

		@Override
		public boolean update(Path path, ModelGenerator modelGen) throws PrismException
		{
			throw new PrismException("These paths are sampled by the engines");
		}
	}
}
