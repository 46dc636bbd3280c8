package prismgpu;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The objects of PRISM's whose arrays the engines still hold, unless something has read them. */
public final class Unread
{
	/** Such an object. */
	interface Reader
	{
		/** Gets the arrays that it has not got yet. */
		void read();
	}

	private static final Map<Long, List<WeakReference<Reader>>> ofModels = new HashMap<>();

	private Unread()
	{
	}

	/** Notes an object of a model's; forgets the models whose objects nothing holds any more. */
	static synchronized void note(long modelId, Reader reader)
	{
		for (List<WeakReference<Reader>> readers : ofModels.values())
			readers.removeIf(reference -> reference.get() == null);
		ofModels.values().removeIf(List::isEmpty);
		ofModels.computeIfAbsent(modelId, id -> new ArrayList<>()).add(new WeakReference<>(reader));
	}

	/** Has the objects of a model get their arrays, because the engines are about to let go of it. */
	public static synchronized void settle(long modelId)
	{
		List<WeakReference<Reader>> readers = ofModels.remove(modelId);
		for (WeakReference<Reader> reference : readers == null ? List.<WeakReference<Reader>> of() : readers) {
			Reader reader = reference.get();
			if (reader != null)
				reader.read();
		}
	}
}
