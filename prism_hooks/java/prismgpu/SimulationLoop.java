package prismgpu;

import java.util.List;

import parser.State;
import prism.ModelGenerator;
import prism.PrismException;
import prism.PrismLog;
import prism.PrismUtils;
import prism.RewardGenerator;
import simulator.method.ACIconfidence;
import simulator.method.ACIwidth;
import simulator.method.APMCMethod;
import simulator.method.CIconfidence;
import simulator.method.CIwidth;
import simulator.method.SimulationMethod;
import simulator.sampler.Sampler;

/**
 * Has paths sampled by the engines, a batch at a time, and shows them to PRISM's methods in order: the
 * outcome is that of a loop over single paths, whatever the batches are.
 */
final class SimulationLoop
{
	private static final int FIRST_BATCH = 1 << 10;
	private static final int LARGEST_BATCH = 1 << 20;
	/** From so many paths on, a method that fixes their number is shown whole batches: it prints each tenth. */
	private static final int LEAST_TOGETHER = 1000;
	private static final String UNDECIDED =
			"One or more of the properties being sampled could not be checked on a sample. Consider increasing the maximum path length";

	private final Sampling sampling;
	private final List<Sampler> samplers;
	private final long pathLimit;
	private final ModelGenerator<Double> model;
	private final RewardGenerator<Double> rewards;
	private final PrismLog log;

	/** The number of paths that the methods fix beforehand; 0 if they do not. */
	private int wanted;
	private int paths;
	private double totalLength;
	private long minLength = Long.MAX_VALUE;
	private long maxLength;
	private int percent;

	/** @param sampling What is sampled; null if every property ended in an error */
	SimulationLoop(Sampling sampling, List<Sampler> samplers, long pathLimit, ModelGenerator<Double> model, RewardGenerator<Double> rewards, PrismLog log)
	{
		this.sampling = sampling;
		this.samplers = samplers;
		this.pathLimit = pathLimit;
		this.model = model;
		this.rewards = rewards;
		this.log = log;
	}

	/** The engines' methods that judge the samplers; null if PRISM's do. */
	static EngineMethod[] engineMethods(List<Sampler> samplers)
	{
		EngineMethod[] methods = new EngineMethod[samplers.size()];
		for (int k = 0; k < methods.length; k++) {
			if (!(samplers.get(k).getSimulationMethod() instanceof EngineMethod))
				return null;
			methods[k] = (EngineMethod) samplers.get(k).getSimulationMethod();
		}
		return methods;
	}

	/** Prints what is simulated how; a method of the engines has its parameters from them. */
	void introduce(SimulationMethod asked)
	{
		boolean ours = sampling != null && sampling.methods != null;
		SimulationMethod method = ours ? sampling.methods[0] : asked;
		log.println("\nSimulation method: " + method.getName() + " (" + method.getFullName() + ")");
		log.println("Simulation method parameters: " + method.getParametersString());
		log.println("Simulation parameters: max path length=" + pathLimit);
	}

	/** Samples until every method has enough. */
	void run() throws PrismException
	{
		if (sampling == null)
			return;
		long timer = System.currentTimeMillis();
		log.print("\nSampling progress: [");
		log.flush();
		if (sampling.methods == null)
			judgeByPrism();
		else
			judgeByEngines();
		log.println(" 100% ]");
		double seconds = (System.currentTimeMillis() - timer) / 1000.0;
		log.println("\nSampling complete: " + paths + " iterations in " + seconds + " seconds (average " + PrismUtils.formatDouble(2, seconds / paths) + ")");
		log.println("Path length statistics: average " + PrismUtils.formatDouble(2, totalLength / paths) + ", min " + minLength + ", max " + maxLength);
		if (sampling.methods != null) {
			for (EngineMethod method : sampling.methods) {
				if (!method.remark.isEmpty())
					log.println("prism-gpu: " + method.remark);
			}
		}
		if (!sampling.remark.isEmpty())
			log.println("prism-gpu: " + sampling.remark);
	}

	private void judgeByPrism() throws PrismException
	{
		wanted = fixedNumber(samplers);
		sampling.counted = wanted >= LEAST_TOGETHER;
		int batch = 0;
		while (!allDone()) {
			batch = nextBatch(batch);
			sample(paths, batch);
			if (sampling.counted)
				judgeTogether();
			else
				judge();
		}
	}

	/** Has all of it done at once: the engines sample and judge. */
	private void judgeByEngines() throws PrismException
	{
		sample(0, Integer.MAX_VALUE);
		paths = sampling.numGood;
		if (sampling.failure != null)
			throw failure();
		totalLength = sampling.totalLength;
		minLength = sampling.minLength;
		maxLength = sampling.maxLength;
	}

	private boolean allDone()
	{
		// Every method is asked, because the answer is what it remembers of the paths.
		boolean done = true;
		for (Sampler sampler : samplers)
			done &= sampler.getSimulationMethod().shouldStopNow(paths, sampler);
		return done;
	}

	private void sample(long first, int number) throws PrismException
	{
		sampling.firstPath = first;
		sampling.numPaths = number;
		Hooks.sample(sampling);
		if (sampling.refusal != null)
			throw new PrismException("Sampling stopped: " + sampling.refusal);
		if (sampling.error != null)
			throw new PrismException(sampling.error);
	}

	/** Shows the batch to the methods, until they have enough. */
	private void judge() throws PrismException
	{
		boolean done = false;
		for (int i = 0; i < sampling.numGood && !done; i++) {
			for (int k = 0; k < samplers.size(); k++)
				((PathOutcomes) samplers.get(k)).add(sampling.outcomes[k], i);
			totalLength += sampling.lengths[i];
			minLength = Math.min(minLength, sampling.lengths[i]);
			maxLength = Math.max(maxLength, sampling.lengths[i]);
			paths++;
			done = allDone();
			if (!done)
				showProgress();
		}
		if (!done && sampling.failure != null)
			throw failure();
	}

	/** Shows the whole batch to methods that ask for nothing before the last path. */
	private void judgeTogether() throws PrismException
	{
		int number = sampling.numGood;
		if (number > 0) {
			for (int k = 0; k < samplers.size(); k++)
				((PathOutcomes) samplers.get(k)).addAll(sampling.outcomes[k], number);
			totalLength += sampling.totalLength;
			minLength = Math.min(minLength, sampling.minLength);
			maxLength = Math.max(maxLength, sampling.maxLength);
			paths += number;
		}
		boolean done = allDone();
		int reached = done ? 90 : (int) (10L * paths / wanted) * 10;
		while (percent < reached) {
			percent += 10;
			log.print(" " + percent + "%");
		}
		log.flush();
		if (!done && sampling.failure != null)
			throw failure();
	}

	private void showProgress()
	{
		int slowest = 100;
		for (Sampler sampler : samplers)
			slowest = Math.min(slowest, sampler.getSimulationMethod().getProgress(paths, sampler));
		if (slowest > percent) {
			percent = slowest;
			log.print(" " + percent + "%");
			log.flush();
		}
	}

	/** What PRISM's own simulator would throw on the first bad path. */
	private PrismException failure() throws PrismException
	{
		int iterations = paths + 1;
		if (sampling.failure.equals("undecided")) {
			log.print(" ...\n\nSampling terminated early after " + iterations + " iterations.\n");
			return new PrismException(UNDECIDED);
		}
		if (sampling.failedIn == null)
			return new PrismException(sampling.failure);
		State state = sampling.failedState(model.getInitialState());
		if (sampling.failure.equals("deadlock")) {
			log.print(" ...\n\nSampling terminated early after " + iterations + " iterations.\n");
			log.println("\nDeadlock found in state " + state);
			return new PrismException("Deadlock state found");
		}
		// PRISM says in its own words, and where in the file, what is wrong in the state.
		explore(state);
		return new PrismException(sampling.failure + " in state " + state.toString(model));
	}

	/** Evaluates all that a simulation does in a state. */
	private void explore(State state) throws PrismException
	{
		model.exploreState(state);
		for (int i = 0; i < model.getNumChoices(); i++) {
			for (int j = 0; j < model.getNumTransitions(i); j++)
				model.computeTransitionTarget(i, j);
			for (int r = 0; r < rewards.getNumRewardStructs(); r++)
				rewards.getStateActionReward(r, state, model.getChoiceAction(i));
		}
		for (int r = 0; r < rewards.getNumRewardStructs(); r++)
			rewards.getStateReward(r, state);
	}

	/** How many paths to sample next: for a method that fixes their number no more than that. */
	private int nextBatch(int last)
	{
		if (wanted > 0)
			return Math.max(1, Math.min(wanted - paths, largestBatch()));
		return last == 0 ? FIRST_BATCH : Math.min(2 * last, largestBatch());
	}

	/** The number of paths that PRISM's method fixes beforehand; 0 if it does not. */
	static int fixedNumber(List<Sampler> samplers)
	{
		SimulationMethod method = samplers.get(0).getSimulationMethod();
		boolean fixed = method instanceof APMCMethod || method instanceof CIwidth || method instanceof CIconfidence || method instanceof ACIwidth
				|| method instanceof ACIconfidence;
		if (!fixed)
			return 0;
		SimulationMethod copy = method.clone();
		long few = 0;
		long enough = 1;
		while (enough < Integer.MAX_VALUE && !copy.shouldStopNow((int) enough, samplers.get(0))) {
			few = enough;
			enough = Math.min(2 * enough, Integer.MAX_VALUE);
		}
		while (enough - few > 1) {
			long middle = (few + enough) / 2;
			if (copy.shouldStopNow((int) middle, samplers.get(0)))
				enough = middle;
			else
				few = middle;
		}
		return (int) enough;
	}

	/** The more is asked of each path, the more room its answers take. */
	private int largestBatch()
	{
		return Math.max(FIRST_BATCH, LARGEST_BATCH / samplers.size());
	}
}
