package prismgpu;

import java.lang.reflect.Field;

import explicit.CTMC;
import explicit.DTMC;
import explicit.DTMCEmbeddedSimple;

/** The CTMC that a DTMC is the embedded chain of, whose arrays it has. */
final class EmbeddedChain
{
	private EmbeddedChain()
	{
	}

	/** The model that the arrays are read from: of an embedded chain, the CTMC. */
	static Extract source(DTMC<Double> dtmc)
	{
		CTMC<Double> ctmc = parent(dtmc);
		return ctmc == null ? Extract.of(dtmc) : Extract.of(ctmc);
	}

	/** Whether the arrays of a DTMC are those of the CTMC that it is the embedded chain of. */
	static boolean is(DTMC<?> dtmc)
	{
		return parent(dtmc) != null;
	}

	/** The CTMC that a DTMC is the embedded chain of, or null. */
	@SuppressWarnings("unchecked")
	static CTMC<Double> parent(DTMC<?> dtmc)
	{
		if (!(dtmc instanceof DTMCEmbeddedSimple))
			return null;
		try {
			Field field = DTMCEmbeddedSimple.class.getDeclaredField("ctmc");
			field.setAccessible(true);
			return (CTMC<Double>) field.get(dtmc);
		} catch (ReflectiveOperationException | ClassCastException e) {
			return null;
		}
	}
}
