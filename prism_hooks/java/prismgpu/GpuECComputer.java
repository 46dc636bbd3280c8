package prismgpu;

import java.util.BitSet;
import java.util.List;

import explicit.ECComputer;
import explicit.ECComputerDefault;
import explicit.NondetModel;
import prism.PrismComponent;
import prism.PrismException;

/** Maximal end components of any explicit model with choices, ordered by their smallest states. */
public class GpuECComputer extends ECComputer
{
	private static final String TASK = "end components";

	private final PrismComponent caller;
	private final NondetModel<?> model;
	private List<BitSet> mecs = new ComponentList(new int[0], new int[0]);

	public GpuECComputer(PrismComponent parent, NondetModel<?> model) throws PrismException
	{
		super(parent);
		caller = parent;
		this.model = model;
	}

	@Override
	public void computeMECStates() throws PrismException
	{
		computeMECStates(null, null);
	}

	@Override
	public void computeMECStates(BitSet restrict) throws PrismException
	{
		computeMECStates(restrict, null);
	}

	@Override
	public void computeMECStates(BitSet restrict, BitSet accept) throws PrismException
	{
		mecs = find(restrict, accept);
		if (mecs == null) {
			ECComputer prisms = new ECComputerDefault(this, model);
			prisms.computeMECStates(restrict, accept);
			mecs = prisms.getMECStates();
		}
	}

	@Override
	public List<BitSet> getMECStates()
	{
		return mecs;
	}

	/** @return null if PRISM's own code must find them */
	private ComponentList find(BitSet restrict, BitSet accept) throws PrismException
	{
		if (Graphs.leftToPrism(TASK, caller, model, restrict, mainLog))
			return null;
		if (Graphs.isExport(caller))
			Hooks.sayOnce(mainLog, TASK + " are listed by their smallest states");
		Problem problem = Graphs.problem(TASK, model, restrict, mainLog);
		if (accept != null)
			problem.about(accept);
		return Hooks.components(problem, mainLog);
	}
}
