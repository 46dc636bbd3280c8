package prismgpu;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

import explicit.Model;
import prism.PrismLog;

/** The predecessors of a model's states, which PRISM relates to them before it searches. */
final class Predecessors
{
	/** The models of whose predecessors PRISM's log has told. */
	private static final List<WeakReference<Model<?>>> RELATED = new ArrayList<>();

	private Predecessors()
	{
	}

	/** Has the engines find the predecessors of a model's states before the first search, and prints PRISM's line on them. */
	static void find(Model<?> model, PrismLog log, Supplier<Extract> source)
	{
		RELATED.removeIf(known -> known.get() == null);
		if (RELATED.stream().anyMatch(known -> known.get() == model))
			return;
		RELATED.add(new WeakReference<>(model));
		log.print("Calculating predecessor relation for " + model.getModelType().fullName() + "...  ");
		long timer = System.currentTimeMillis();
		// Where that fails, the search does too, and says so.
		Hooks.answer(new Problem("predecessors", log, source.get()));
		log.println("done (" + (System.currentTimeMillis() - timer) / 1000.0 + " seconds)");
	}
}
