package prismgpu;

import java.util.ArrayList;
import java.util.List;

import parser.State;
import parser.Values;
import parser.ast.Expression;
import parser.ast.LabelList;
import parser.ast.PropertiesFile;
import prism.ModelType;
import prism.PrismComponent;
import prism.PrismException;
import prism.PrismSettings;
import prism.Result;
import prism.ResultsCollection;
import prism.UndefinedConstants;
import prismgpu.ExpressionText.Unwritable;
import simulator.SimulatorEngine;
import simulator.method.SimulationMethod;
import simulator.sampler.Sampler;

/**
 * PRISM's simulator, whose sampling for approximate model checking is done by the engines. Exploring
 * paths is PRISM's own, and its methods judge the outcomes: when to stop, the result, its interval.
 */
public class GpuSimulatorEngine extends SimulatorEngine
{
	/** The seed that PRISM was given, or null. */
	private Long seed;

	/** A property on its way through a simulation. */
	private static final class Checked
	{
		/** Its statistics, and what it asks of each path; null if it ended in an error. */
		private Sampler sampler;
		private String question;
		/** Why the engines cannot answer it; null if they can. */
		private Unwritable reason;
		private PrismException error;
	}

	public GpuSimulatorEngine(PrismComponent parent)
	{
		super(parent);
	}

	@Override
	public void setRandomNumberGeneratorSeed(int seed)
	{
		this.seed = (long) seed;
		super.setRandomNumberGeneratorSeed(seed);
	}

	@Override
	public Result[] modelCheckMultipleProperties(PropertiesFile propertiesFile, List<Expression> exprs, State initialState, long maxPathLength,
			SimulationMethod simMethod) throws PrismException
	{
		simMethod.computeMissingParameterBeforeSim();
		SimulationMethod method = method(simMethod);
		Result[] results = simulated(initialState, maxPathLength, method, () -> {
			List<Checked> checked = new ArrayList<>();
			for (Expression expr : exprs)
				checked.add(checked(expr, propertiesFile, method));
			return checked;
		});
		if (results == null)
			return super.modelCheckMultipleProperties(propertiesFile, exprs, initialState, maxPathLength, simMethod);

		ModelType type = getModel().getModelType();
		if (type.nondeterministic() && type.removeNondeterminism() != type)
			mainLog.println("Warning: Nondeterminism in " + type.name() + " was resolved uniformly");
		if (results.length == 1) {
			if (!(results[0].getResult() instanceof PrismException))
				mainLog.println("\nResult: " + InitialStates.text(results[0]));
			return results;
		}
		mainLog.println("\nResults:");
		for (int i = 0; i < results.length; i++)
			mainLog.println(exprs.get(i) + " : " + InitialStates.text(results[i]));
		return results;
	}

	@Override
	public void modelCheckExperiment(PropertiesFile propertiesFile, UndefinedConstants undefinedConstants, ResultsCollection resultsCollection,
			Expression expr, State initialState, long maxPathLength, SimulationMethod simMethod) throws PrismException, InterruptedException
	{
		simMethod.computeMissingParameterBeforeSim();
		SimulationMethod method = method(simMethod);
		List<Values> constants = new ArrayList<>();
		int n = undefinedConstants.getNumPropertyIterations();
		Result[] results = simulated(initialState, maxPathLength, method, () -> {
			List<Checked> checked = new ArrayList<>();
			constants.clear();
			// The last step brings the constants back to where PRISM's own code would begin.
			for (int i = 0; i < n; i++, undefinedConstants.iterateProperty()) {
				Values values = undefinedConstants.getPFConstantValues();
				constants.add(values);
				propertiesFile.setSomeUndefinedConstants(values);
				checked.add(checked(expr, propertiesFile, method));
			}
			return checked;
		});
		if (results == null) {
			super.modelCheckExperiment(propertiesFile, undefinedConstants, resultsCollection, expr, initialState, maxPathLength, simMethod);
			return;
		}
		mainLog.println("\nResults:");
		for (int i = 0; i < results.length; i++) {
			resultsCollection.setResult(undefinedConstants.getMFConstantValues(), constants.get(i), results[i].getResult());
			mainLog.println(constants.get(i) + " : " + InitialStates.text(results[i]));
		}
	}

	/** Prepares what is asked, anew for each initial state. */
	private interface Asked
	{
		List<Checked> prepare() throws PrismException;
	}

	/** The results of what is asked, over all initial states; null, after a line on why, if PRISM's own code must find them. */
	private Result[] simulated(State initialState, long maxPathLength, SimulationMethod method, Asked asked) throws PrismException
	{
		List<State> states = InitialStates.of(getModel(), initialState);
		Result[][] found = new Result[states.size()][];
		for (int i = 0; i < found.length; i++) {
			List<Checked> checked = asked.prepare();
			if (found.length > 1 && i > 0)
				mainLog.println();
			SimulationLoop loop = loop(checked, states.get(i), found.length > 1, maxPathLength);
			if (loop == null)
				return null;
			loop.introduce(method);
			found[i] = results(checked, loop);
			if (found.length > 1) {
				for (Result result : found[i])
					mainLog.println("\nIn initial state " + states.get(i).toString(getModel()) + ": " + InitialStates.text(result));
			}
		}
		return InitialStates.together(found);
	}

	/** The method that judges: PRISM's, unless one of the engines was named. */
	private static SimulationMethod method(SimulationMethod simMethod)
	{
		String name = Hooks.simulationMethod();
		return name.isEmpty() ? simMethod : new EngineMethod(name);
	}

	/** Prepares a property; what PRISM's simulator would not take is its error. */
	private Checked checked(Expression expr, PropertiesFile propertiesFile, SimulationMethod simMethod)
	{
		Checked checked = new Checked();
		try {
			checkPropertyForSimulation(expr);
			Expression property = replaced(expr, propertiesFile);
			boolean continuous = getModel().getModelType().continuousTime();
			// PRISM's own sampler is made for its verdict on the property.
			if (!QuestionText.isSteppedLtl(property, continuous))
				Sampler.createSampler(property, getModel(), getRewardGenerator());
			SimulationMethod method = simMethod.clone();
			method.setExpression(property);
			checked.question = QuestionText.of(property, getRewardGenerator(), continuous);
			checked.sampler = PathOutcomes.of(property, method);
		} catch (PrismException e) {
			checked.error = e;
		} catch (Unwritable e) {
			checked.reason = e;
		}
		return checked;
	}

	/** A property without references, labels and constants. */
	private Expression replaced(Expression expr, PropertiesFile propertiesFile) throws PrismException
	{
		LabelList labels = propertiesFile == null ? null : propertiesFile.getCombinedLabelList();
		Expression property = (Expression) expr.deepCopy().expandPropRefsAndLabels(propertiesFile, labels);
		property = (Expression) property.replaceConstants(getModel().getConstantValues());
		if (propertiesFile != null)
			property = (Expression) property.replaceConstants(propertiesFile.getConstantValues());
		return (Expression) property.simplify();
	}

	/** The loop over the paths that the engines sample; null, after a line on why, if PRISM's own code must. */
	private SimulationLoop loop(List<Checked> checked, State initialState, boolean oneOfSeveral, long maxPathLength) throws PrismException
	{
		Hooks.startProperty();
		List<Sampler> samplers = new ArrayList<>();
		List<String> questions = new ArrayList<>();
		String reason = reason(initialState);
		for (Checked property : checked) {
			if (property.reason != null)
				reason = property.reason.getMessage();
			if (property.sampler != null) {
				samplers.add(property.sampler);
				questions.add(property.question);
				// A program to sample knows the state alone that its paths begin in.
				if (oneOfSeveral && property.question.contains("\"init\""))
					reason = "the label \"init\" of several initial states";
			}
		}
		Sampling sampling = null;
		if (reason == null && !samplers.isEmpty()) {
			try {
				String program = ProgramText.of(getModel(), initialState, getSettings().getBoolean(PrismSettings.PRISM_DO_PROB_CHECKS));
				boolean endsInDeadlocks = !getSettings().getBoolean(PrismSettings.PRISM_FIX_DEADLOCKS);
				EngineMethod[] methods = SimulationLoop.engineMethods(samplers);
				sampling = new Sampling(program, questions, maxPathLength, endsInDeadlocks, seed, methods, SimulationLoop.fixedNumber(samplers), mainLog);
				Hooks.sample(sampling);
				if (sampling.error != null)
					throw new PrismException(sampling.error);
				reason = sampling.refusal;
			} catch (Unwritable e) {
				reason = e.getMessage();
			}
		}
		String asked = Hooks.onlySampledHere();
		if (reason != null && !asked.isEmpty())
			throw new PrismException("Simulation " + asked + ", which PRISM does not have, is not possible: " + reason);
		if (reason == null)
			return new SimulationLoop(sampling, samplers, maxPathLength, getModel(), getRewardGenerator(), mainLog);
		Hooks.handBack(mainLog, "simulation (" + reason + ")");
		return null;
	}

	/** Why the settings, or where paths begin, keep the engines out; null if they do not. */
	private String reason(State initialState) throws PrismException
	{
		if (Hooks.backend == null || Hooks.exchange != null)
			return "without an engine";
		if (hasStrategyInfo())
			return "under a strategy";
		if (initialState == null && !getModel().hasSingleInitialState())
			return "from more initial states than " + InitialStates.MOST_STATES;
		return null;
	}

	/** Samples, and lets each property's method draw its conclusion. */
	private Result[] results(List<Checked> checked, SimulationLoop loop) throws PrismException
	{
		loop.run();
		Result[] results = new Result[checked.size()];
		for (int i = 0; i < results.length; i++)
			results[i] = result(checked.get(i));
		return results;
	}

	private static Result result(Checked property)
	{
		if (property.error != null)
			return new Result(property.error);
		SimulationMethod method = property.sampler.getSimulationMethod();
		method.computeMissingParameterAfterSim();
		try {
			Result result = new Result(method.getResult(property.sampler));
			result.setAccuracy(method.getResultAccuracy(property.sampler));
			return result;
		} catch (PrismException e) {
			return new Result(e);
		}
	}
}
