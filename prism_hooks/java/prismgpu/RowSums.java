package prismgpu;

import java.lang.reflect.Field;

import explicit.DTMCSparse;
import explicit.MDPSparse;
import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDUtils;
import prism.ModelType;
import prism.Prism;
import prism.PrismException;
import symbolic.model.ModelSymbolic;
import symbolic.model.NondetModel;
import symbolic.model.ProbModel;

/** Makes the probabilities of a model that PRISM has built sum to 1, where they do so only roughly. */
final class RowSums
{
	/** A sum this close to 1 is 1 but for rounding; `engines.model.row_sums` says why. */
	private static final double ROUNDED_SUM = 1e-13;
	/** Rates below that do not add up to infinity, however many there are. */
	private static final double LARGE_RATE = 1e290;

	private final Prism prism;
	/** What PRISM lets a sum miss 1 by. */
	private final double tolerance;
	private long count;
	private String first;

	private RowSums(Prism prism)
	{
		this.prism = prism;
		tolerance = prism.getSumRoundOff();
	}

	/** Divides such probabilities by their sum, and says so: whatever reads the model reads the same numbers. */
	static void rescale(Prism prism) throws PrismException
	{
		RowSums sums = new RowSums(prism);
		ModelType type = prism.getBuiltModel() == null ? null : prism.getBuiltModel().getModelType();
		if (type == ModelType.CTMC && prism.getBuiltModel() instanceof ModelSymbolic)
			sums.refuseOverflow((ModelSymbolic) prism.getBuiltModel());
		if (type != ModelType.DTMC && type != ModelType.MDP)
			return;
		if (prism.getBuiltModel() instanceof ModelSymbolic)
			sums.ofDiagrams((ModelSymbolic) prism.getBuiltModel());
		else if (areKnown(prism.getBuiltModel()))
			return;
		else if (prism.getBuiltModel() instanceof DTMCSparse || prism.getBuiltModel() instanceof MDPSparse)
			sums.ofLists((explicit.Model<?>) prism.getBuiltModel());
		sums.tell(type == ModelType.MDP ? "choice" : "state");
	}

	/** Whether the engines, which have built the model, have found its sums to be 1. */
	private static boolean areKnown(prism.Model<?> model)
	{
		return model instanceof BuiltMDP && ((BuiltMDP) model).sumsToOne || model instanceof BuiltDTMC && ((BuiltDTMC) model).sumsToOne;
	}

	private void tell(String name)
	{
		if (count > 0)
			prism.getMainLog().println("\nprism-gpu: the probabilities of " + count + " " + name + (count == 1 ? "" : "s")
					+ " do not sum to 1 and are divided by their sum; the first is " + first);
	}

	private boolean isOff(double sum)
	{
		double distance = Math.abs(sum - 1.0);
		return distance > ROUNDED_SUM && distance <= tolerance;
	}

	private void note(explicit.Model<?> model, int state, int choice, double sum)
	{
		if (count++ > 0)
			return;
		String values = model.getStatesList() == null ? "" : ":" + model.getStatesList().get(state);
		first = (choice < 0 ? "" : "choice " + choice + " of ") + "state " + state + values + ", with sum " + sum;
	}

	// PRISM's explicit engine: the sparse classes, which hold arrays.

	private void ofLists(explicit.Model<?> model)
	{
		boolean hasChoices = model instanceof MDPSparse;
		if (model instanceof BuiltMDP)
			((BuiltMDP) model).read();
		int[] groups, rows;
		double[] values;
		try {
			groups = hasChoices ? (int[]) field(model, "rowStarts") : null;
			rows = (int[]) field(model, hasChoices ? "choiceStarts" : "rows");
			values = (double[]) field(model, hasChoices ? "nonZeros" : "probabilities");
		} catch (ReflectiveOperationException | ClassCastException e) {
			throw new IllegalStateException("the arrays of " + model.getClass().getName() + " cannot be read", e);
		}
		for (int s = 0; s < model.getNumStates(); s++) {
			int begin = hasChoices ? groups[s] : s;
			int end = hasChoices ? groups[s + 1] : s + 1;
			for (int row = begin; row < end; row++)
				ofRow(model, values, rows[row], rows[row + 1], s, hasChoices ? row - begin : -1);
		}
		if (count > 0)
			Extract.forget(model);
	}

	private void ofRow(explicit.Model<?> model, double[] values, int begin, int end, int state, int choice)
	{
		double sum = 0.0;
		for (int i = begin; i < end; i++)
			sum += values[i];
		if (!isOff(sum))
			return;
		note(model, state, choice, sum);
		for (int i = begin; i < end; i++)
			values[i] /= sum;
	}

	private static Object field(explicit.Model<?> model, String name) throws ReflectiveOperationException
	{
		Field field = (model instanceof MDPSparse ? MDPSparse.class : DTMCSparse.class).getDeclaredField(name);
		field.setAccessible(true);
		return field.get(model);
	}

	// PRISM's symbolic engines.

	private void ofDiagrams(ModelSymbolic model)
	{
		JDDNode sums = JDD.SumAbstract(model.getTrans().copy(), model.getAllDDColVars());
		if (JDD.FindMax(sums) - 1.0 <= ROUNDED_SUM && 1.0 - JDD.FindMinPositive(sums) <= ROUNDED_SUM) {
			JDD.Deref(sums);
			return;
		}
		JDDNode rounded = JDD.Interval(sums.copy(), 1.0 - ROUNDED_SUM, 1.0 + ROUNDED_SUM);
		JDDNode off = JDD.And(JDD.Interval(sums.copy(), 1.0 - tolerance, 1.0 + tolerance), JDD.Not(rounded));
		if (!off.equals(JDD.ZERO)) {
			note(model, sums, off);
			JDDNode divisors = JDD.ITE(off.copy(), sums.copy(), JDD.Constant(1));
			model.resetTrans(JDD.Apply(JDD.DIVIDE, model.getTrans().copy(), divisors.copy()));
			JDDNode[] parts = model instanceof ProbModel ? ((ProbModel) model).getTransPerAction() : null;
			for (int i = 0; parts != null && i < parts.length; i++)
				parts[i] = JDD.Apply(JDD.DIVIDE, parts[i], divisors.copy());
			JDD.Deref(divisors);
		}
		JDD.Deref(off, sums);
	}

	/** PRISM would divide rates by infinity, and find that nothing can be reached. */
	private void refuseOverflow(ModelSymbolic model) throws PrismException
	{
		if (JDD.FindMax(model.getTrans()) < LARGE_RATE)
			return;
		JDDNode exits = JDD.SumAbstract(model.getTrans().copy(), model.getAllDDColVars());
		JDDNode infinite = JDD.GreaterThan(exits.copy(), Double.MAX_VALUE);
		boolean overflows = !infinite.equals(JDD.ZERO);
		if (overflows)
			note(model, exits, infinite);
		JDD.Deref(exits, infinite);
		if (overflows)
			throw new PrismException("The exit rate overflows: " + first
					+ ", which is more than the largest double; use a longer unit of time");
	}

	private void note(ModelSymbolic model, JDDNode sums, JDDNode off)
	{
		JDDVars rows = model.getAllDDRowVars();
		JDDVars choices = model instanceof NondetModel ? ((NondetModel) model).getAllDDNondetVars() : new JDDVars();
		JDDNode states = JDD.ThereExists(off.copy(), choices);
		int index = ODDUtils.GetIndexOfFirstFromDD(states, model.getODD(), rows);
		JDDNode state = JDD.RestrictToFirst(states, rows);
		String name = "state " + index + ":" + model.convertBddToState(state);
		JDDNode ofState = JDD.Apply(JDD.TIMES, JDD.Apply(JDD.TIMES, sums.copy(), off.copy()), state);
		first = (choices.n() > 0 ? "a choice of " : "") + name + ", with sum " + JDD.FindMax(ofState);
		count = (long) JDD.GetNumMinterms(off, rows.n() + choices.n());
		JDD.Deref(ofState);
	}
}
