package prismgpu;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import parser.State;
import parser.VarList;
import prism.Accuracy;
import prism.Interval;
import prism.ModelGenerator;
import prism.PrismException;
import prism.Result;

/** The states that sampled paths begin in, and what their results come to together: as in PRISM's model checking, the range of values, and for a bound whether it holds in all of them. */
final class InitialStates
{
	/** More are not simulated one after the other. */
	static final int MOST_STATES = 1000;

	/** PRISM looks for them among all values of the variables, which it keeps. */
	private static final double MOST_VALUES = 1e6;

	private InitialStates()
	{
	}

	/**
	 * The states that paths begin in; null for the model's own initial state, and where there are too many.
	 * @param named Where paths are to begin; null for the model's initial states
	 */
	static List<State> of(ModelGenerator<Double> model, State named) throws PrismException
	{
		List<State> alone = Collections.singletonList(named);
		if (named != null || model.hasSingleInitialState())
			return alone;
		VarList variables = model.createVarList();
		double values = 1;
		for (int i = 0; i < variables.getNumVars(); i++)
			values *= (double) variables.getHigh(i) - variables.getLow(i) + 1;
		if (values > MOST_VALUES)
			return alone;
		List<State> found = model.getInitialStates();
		return found.isEmpty() || found.size() > MOST_STATES ? alone : found;
	}

	/** The results of a property in each of several initial states as one. */
	static Result together(List<Result> results)
	{
		double low = Double.POSITIVE_INFINITY;
		double high = Double.NEGATIVE_INFINITY;
		double width = 0;
		double failing = 0;
		boolean all = true;
		boolean numbers = false;
		for (Result result : results) {
			Object value = result.getResult();
			if (!(value instanceof Boolean || value instanceof Double))
				return result;
			Accuracy accuracy = result.getAccuracy();
			if (accuracy != null) {
				width = Math.max(width, accuracy.getErrorBound());
				failing += 1 - accuracy.getProbability();
			}
			if (value instanceof Boolean) {
				all &= (Boolean) value;
			} else {
				numbers = true;
				low = Math.min(low, (Double) value);
				high = Math.max(high, (Double) value);
			}
		}
		Result result = numbers ? new Result(new Interval((Double) low, (Double) high)) : new Result(all);
		Accuracy accuracy = new Accuracy(Accuracy.AccuracyLevel.PROBABLY_BOUNDED, width, Accuracy.AccuracyType.ABSOLUTE);
		// Each value is wrong with its probability, so that one of them is with their sum at most.
		accuracy.setProbability(new BigDecimal(Math.max(0, 1 - failing)).round(new MathContext(12)).doubleValue());
		result.setAccuracy(accuracy);
		return result;
	}

	/** A result as it is printed; the ends of a range have one accuracy. */
	static String text(Result result)
	{
		if (!(result.getResult() instanceof Interval))
			return result.getResultAndAccuracy();
		Accuracy accuracy = result.getAccuracy();
		return result.getResult() + " (+/- " + accuracy.getErrorBound() + " with probability " + accuracy.getProbability() + " in all initial states)";
	}

	/** Results of properties in each state, state by state, as those of the properties. */
	static Result[] together(Result[][] found)
	{
		if (found.length == 1)
			return found[0];
		Result[] results = new Result[found[0].length];
		for (int k = 0; k < results.length; k++) {
			List<Result> each = new ArrayList<>();
			for (Result[] state : found)
				each.add(state[k]);
			results[k] = together(each);
		}
		return results;
	}
}
