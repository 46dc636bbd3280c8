package prismgpu;

import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

import explicit.CTMC;
import explicit.DTMC;
import explicit.DTMCSparse;
import explicit.MDP;
import explicit.MDPSparse;
import prism.PrismException;
import prism.PrismNotSupportedException;

/** An explicit model of PRISM's as primitive arrays, one array a crossing. */
public final class Extract extends ModelSource
{
	public int[] rowOffsets;
	public int[] columns;
	public double[] values;
	/** For each state its first choice, and one past the last; null without choices. */
	public int[] groupOffsets;

	private final explicit.Model<?> model;
	private int size;

	private static final List<WeakReference<Object>> known = new ArrayList<>();
	private static final List<Long> ids = new ArrayList<>();

	private Extract(String kind, explicit.Model<?> model)
	{
		super(idOf(model), kind, model.getNumStates());
		this.model = model;
	}

	static Extract of(DTMC<Double> dtmc)
	{
		return new Extract("DTMC", dtmc);
	}

	static Extract of(CTMC<Double> ctmc)
	{
		return new Extract("CTMC", ctmc);
	}

	static Extract of(MDP<Double> mdp)
	{
		return new Extract("MDP", mdp);
	}

	/** The arrays of a model whose kind is known only when it is there. */
	static Extract of(explicit.Model<?> model) throws PrismException
	{
		if (model instanceof MDP)
			return new Extract("MDP", model);
		if (model instanceof CTMC)
			return new Extract("CTMC", model);
		if (model instanceof DTMC)
			return new Extract("DTMC", model);
		throw new PrismNotSupportedException("no arrays are made of models of type " + model.getModelType());
	}

	/** Identity, not equality: PRISM's models compare by content. */
	static synchronized long idOf(Object model)
	{
		Iterator<WeakReference<Object>> references = known.iterator();
		Iterator<Long> numbers = ids.iterator();
		while (references.hasNext()) {
			Object other = references.next().get();
			long number = numbers.next();
			if (other == model)
				return number;
			if (other == null) {
				references.remove();
				numbers.remove();
			}
		}
		long number = nextId();
		know(model, number);
		return number;
	}

	/** Whether a model has an id. */
	static synchronized boolean isKnown(Object model)
	{
		return known.stream().anyMatch(reference -> reference.get() == model);
	}

	/** Gives a model an id that ModelSource.nextId gave. */
	static synchronized void know(Object model, long number)
	{
		known.add(new WeakReference<>(model));
		ids.add(number);
	}

	/** Forgets the id of a model whose numbers have changed: it gets another. */
	static synchronized void forget(Object model)
	{
		for (int i = known.size() - 1; i >= 0; i--) {
			if (known.get(i).get() == model) {
				known.remove(i);
				ids.remove(i);
			}
		}
	}

	@Override
	void read()
	{
		if (rowOffsets != null)
			return;
		if (model instanceof BuiltMDP)
			((BuiltMDP) model).read();
		if (model instanceof MDPSparse && readSparse("rowStarts", "choiceStarts", "cols", "nonZeros"))
			return;
		if (model instanceof DTMCSparse && readSparse(null, "rows", "columns", "probabilities"))
			return;
		if (model instanceof MDP)
			readChoices(cast((MDP<?>) model));
		else
			readRows();
	}

	/** PRISM's sparse classes hold these very arrays; where their names differ, they are walked. */
	private boolean readSparse(String groups, String rows, String cols, String probabilities)
	{
		try {
			groupOffsets = groups == null ? null : (int[]) field(groups);
			columns = (int[]) field(cols);
			values = (double[]) field(probabilities);
			rowOffsets = (int[]) field(rows);
			return true;
		} catch (ReflectiveOperationException | ClassCastException e) {
			groupOffsets = null;
			return false;
		}
	}

	private Object field(String name) throws ReflectiveOperationException
	{
		Class<?> type = model instanceof MDPSparse ? MDPSparse.class : DTMCSparse.class;
		Field field = type.getDeclaredField(name);
		field.setAccessible(true);
		return field.get(model);
	}

	private void readRows()
	{
		start(numStates);
		if (model instanceof CTMC) {
			CTMC<Double> ctmc = cast((CTMC<?>) model);
			for (int s = 0; s < numStates; s++) {
				Iterator<java.util.Map.Entry<Integer, Double>> transitions = ctmc.getTransitionsIterator(s);
				while (transitions.hasNext()) {
					java.util.Map.Entry<Integer, Double> entry = transitions.next();
					add(entry.getKey(), entry.getValue());
				}
				rowOffsets[s + 1] = size;
			}
		} else {
			DTMC<Double> dtmc = cast((DTMC<?>) model);
			for (int s = 0; s < numStates; s++) {
				dtmc.forEachDoubleTransition(s, (from, to, probability) -> add(to, probability));
				rowOffsets[s + 1] = size;
			}
		}
		trim();
	}

	private void readChoices(MDP<Double> mdp)
	{
		start(mdp.getNumChoices());
		groupOffsets = new int[numStates + 1];
		int row = 0;
		for (int s = 0; s < numStates; s++) {
			int choices = mdp.getNumChoices(s);
			for (int i = 0; i < choices; i++) {
				mdp.forEachDoubleTransition(s, i, (from, to, probability) -> add(to, probability));
				rowOffsets[++row] = size;
			}
			groupOffsets[s + 1] = row;
		}
		trim();
	}

	private void start(int rows)
	{
		int capacity = Math.max(16, model.getNumTransitions());
		columns = new int[capacity];
		values = new double[capacity];
		rowOffsets = new int[rows + 1];
		size = 0;
	}

	private void add(int column, double value)
	{
		if (size == columns.length) {
			if (size == Integer.MAX_VALUE - 8)
				throw new OutOfMemoryError("more transitions than a Java array holds");
			int larger = (int) Math.min(Integer.MAX_VALUE - 8L, 2L * size);
			columns = Arrays.copyOf(columns, larger);
			values = Arrays.copyOf(values, larger);
		}
		columns[size] = column;
		values[size++] = value;
	}

	private void trim()
	{
		if (size < columns.length) {
			columns = Arrays.copyOf(columns, size);
			values = Arrays.copyOf(values, size);
		}
	}

	@SuppressWarnings("unchecked")
	private static <M, N> N cast(M model)
	{
		return (N) model;
	}
}
