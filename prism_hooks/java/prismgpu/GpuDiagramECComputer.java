package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import jdd.JDDVars;
import prism.PrismComponent;
import prism.PrismException;
import symbolic.comp.ECComputerDefault;

/** Maximal end components of graphs in diagrams. */
public class GpuDiagramECComputer extends ECComputerDefault
{
	public GpuDiagramECComputer(PrismComponent parent, JDDNode reach, JDDNode trans, JDDNode trans01, JDDVars allDDRowVars, JDDVars allDDColVars,
			JDDVars allDDNondetVars) throws PrismException
	{
		super(parent, reach, trans, trans01, allDDRowVars, allDDColVars, allDDNondetVars);
	}

	@Override
	public void computeMECStates() throws PrismException
	{
		computeMECStates(null, null);
	}

	@Override
	public void computeMECStates(JDDNode restrict) throws PrismException
	{
		computeMECStates(restrict, null);
	}

	@Override
	public void computeMECStates(JDDNode restrict, JDDNode accept) throws PrismException
	{
		DiagramGraph graph = DiagramGraph.of(trans01, reach, allDDRowVars, allDDColVars, allDDNondetVars, DiagramGraph.FEWEST_STATES_OF_END_COMPONENTS);
		DiagramGraph.Found found = graph == null ? null : graph.endComponents(restrict, accept, mainLog);
		if (found == null) {
			super.computeMECStates(restrict, accept);
			return;
		}
		JDD.Deref(found.rest);
		mecs = found.components;
	}
}
