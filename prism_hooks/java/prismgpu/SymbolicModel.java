package prismgpu;

import java.util.ArrayDeque;
import java.util.Deque;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import odd.ODDNode;
import odd.ODDUtils;
import prism.PrismException;

/** A model of PRISM's symbolic engines: the diagram of its transitions and the numbers of its states. */
public final class SymbolicModel extends ModelSource
{
	/** No model's number. */
	static final long NO_ID = -1;
	/** Models whose diagrams stay referenced, so that equal pointers mean equal models. */
	private static final int KEPT = 2;
	/** Sets and values of more states are left to Python, and to PRISM's own vectors: what their paths share is noted in Java's heap. */
	private static final int MOST_BY_PATHS = 1 << 22;
	/** Bytes that a state of which nothing is shared may take there, and the part of the heap that all may take. */
	private static final long BYTES_A_STATE = 128;
	private static final int SHARE_OF_HEAP = 8;
	/** A numbering of more nodes is not kept. */
	private static final int MOST_NODES_KEPT = 1 << 20;
	private static final Deque<SymbolicModel> kept = new ArrayDeque<>();

	/** Variables of the state that a transition starts in, of the one it leads to, and of choices. */
	public final int[] rows;
	public final int[] columns;
	/** Null for a Markov chain. */
	public final int[] choices;
	/** Null until they are read, and once they are copied. */
	public Diagram transitions;
	public Numbering numbering;
	/** The numbering of a small model, which stays, once it is known whether the model is one. */
	private Numbering small;
	private boolean isNumbered;

	private final JDDNode trans;
	private ODDNode odd;

	private SymbolicModel(String kind, JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet)
	{
		super(nextId(), kind, (int) odd.getNumStates());
		this.trans = trans.copy();
		this.odd = odd;
		this.rows = indices(rows);
		columns = indices(cols);
		choices = nondet == null ? null : indices(nondet);
	}

	/**
	 * The model with these transitions, the same as before where it has been asked for lately.
	 * @param nondet Null for a Markov chain
	 */
	static SymbolicModel of(String kind, JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet) throws PrismException
	{
		ODDUtils.checkInt(odd, "Cannot solve models");
		SymbolicModel model = find(kind, trans, odd);
		if (model == null)
			model = new SymbolicModel(kind, trans, odd, rows, cols, nondet);
		kept.remove(model);
		kept.addLast(model);
		if (kept.size() > KEPT)
			kept.removeFirst().release();
		return model;
	}

	/** The number of the model with these transitions where it has been asked for lately, else `NO_ID`. */
	static long idOf(String kind, JDDNode trans, ODDNode odd)
	{
		SymbolicModel model = odd == null ? null : find(kind, trans, odd);
		return model == null ? NO_ID : model.id;
	}

	private static SymbolicModel find(String kind, JDDNode trans, ODDNode odd)
	{
		for (SymbolicModel model : kept) {
			if (model.trans.equals(trans) && model.kind.equals(kind) && model.numStates == odd.getNumStates()) {
				// Every state has a transition, so that the numbers are the same; but a model that is built again has
				// them elsewhere, and PRISM has given up those of the first.
				model.odd = odd;
				return model;
			}
		}
		return null;
	}

	/** A graph, or a part of a model, to be released by who asks for it. @param nondet Null where there are no choices */
	static SymbolicModel ofPart(String kind, JDDNode trans, ODDNode odd, JDDVars rows, JDDVars cols, JDDVars nondet)
	{
		return new SymbolicModel(kind, trans, odd, rows, cols, nondet);
	}

	/** Gives up all references; to be called before PRISM closes its diagrams' library or builds anew. */
	static void releaseAll()
	{
		DiagramGraph.forget();
		BottomChain.forget();
		while (!kept.isEmpty())
			kept.removeFirst().release();
	}

	void release()
	{
		JDD.Deref(trans);
	}

	@Override
	void read()
	{
		if (transitions != null)
			return;
		numbers();
		if (numbering == null)
			numbering = small == null ? new Numbering(odd, rows.length) : small;
		transitions = new Diagram(trans);
	}

	/** Gives up the arrays, which Python has copied; they are read again where they are wanted again. */
	public void forget()
	{
		transitions = null;
		numbering = null;
	}

	/** The numbers of the states; null for a large model. */
	Numbering numbers()
	{
		boolean hasRoom = BYTES_A_STATE * numStates <= Runtime.getRuntime().maxMemory() / SHARE_OF_HEAP;
		if (isNumbered || numStates > MOST_BY_PATHS || !hasRoom)
			return small;
		isNumbered = true;
		// One of too many nodes stays until the model has been read, which is what follows.
		numbering = new Numbering(odd, rows.length);
		small = numbering.counts.length <= MOST_NODES_KEPT ? numbering : null;
		return small;
	}

	/** The indices of variables in the diagrams' library. */
	static int[] indices(JDDVars vars)
	{
		int[] indices = new int[vars.n()];
		for (int i = 0; i < indices.length; i++)
			indices[i] = vars.getVarIndex(i);
		return indices;
	}
}
