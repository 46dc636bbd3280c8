package prismgpu;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;

import prism.Model;
import prism.ModelGenerator;
import prism.Prism;
import prism.PrismException;

/** The limit of states that -maxstates sets, where PRISM's own code builds a model. */
final class StateLimit
{
	private StateLimit()
	{
	}

	private static PrismException exceeded()
	{
		return new PrismException("The model has more than " + (long) Hooks.backend.mostStates() + " states, the limit that -maxstates sets");
	}

	/** Refuses a model that is built, and has too many states. */
	static void check(Prism prism) throws PrismException
	{
		Model<?> model = prism.getBuiltModel();
		boolean countless = model instanceof symbolic.model.Model && ((symbolic.model.Model) model).numStatesExceedsInt();
		if (model != null && (countless ? Double.MAX_VALUE : model.getNumStates()) > Hooks.backend.mostStates())
			throw exceeded();
	}

	/** A model generator that refuses to explore more states than there may be. */
	@SuppressWarnings("unchecked")
	static <Value> ModelGenerator<Value> limited(ModelGenerator<Value> generator)
	{
		if (Hooks.backend == null || Double.isInfinite(Hooks.backend.mostStates()))
			return generator;
		double most = Hooks.backend.mostStates();
		long[] explored = new long[1];
		return (ModelGenerator<Value>) Proxy.newProxyInstance(StateLimit.class.getClassLoader(), new Class<?>[] { ModelGenerator.class }, (proxy, method, arguments) -> {
			if (method.getName().equals("exploreState") && ++explored[0] > most)
				throw exceeded();
			try {
				return method.invoke(generator, arguments);
			} catch (InvocationTargetException e) {
				throw e.getCause();
			}
		});
	}
}
