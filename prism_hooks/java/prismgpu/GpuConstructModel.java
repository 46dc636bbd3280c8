package prismgpu;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

import explicit.ConstructModel;
import explicit.Model;
import explicit.ModelExplicit;
import parser.State;
import parser.Values;
import parser.VarList;
import prism.ModelGenerator;
import prism.ModelType;
import prism.PrismComponent;
import prism.PrismException;
import prism.PrismSettings;
import prismgpu.ExpressionText.Unwritable;
import simulator.ModulesFileModelGenerator;

/** PRISM's construction of explicit models, whose states and transitions are found by the engines. */
public class GpuConstructModel extends ConstructModel
{
	/** Whether what is refused here is built by PRISM's default engine, not by the explicit one. */
	private final boolean mayStartAnew;

	public GpuConstructModel(PrismComponent parent) throws PrismException
	{
		super(parent);
		mayStartAnew = GpuPrism.explores(parent);
	}

	@Override
	@SuppressWarnings("unchecked")
	public <Value> Model<Value> constructModel(ModelGenerator<Value> modelGen, boolean justReach) throws PrismException
	{
		Model<Double> model = justReach || !concerns(modelGen) ? null : built((ModelGenerator<Double>) modelGen);
		return model == null ? super.constructModel(StateLimit.limited(modelGen), justReach) : (Model<Value>) model;
	}

	/** Whether it is a model in PRISM's language, over doubles, that is wanted as PRISM wants it for checking. */
	private boolean concerns(ModelGenerator<?> modelGen)
	{
		if (Hooks.backend == null || !Hooks.backend.leftToPrism().isEmpty())
			return false;
		ModelType type = modelGen.getModelType();
		boolean known = type == ModelType.DTMC || type == ModelType.CTMC || type == ModelType.MDP;
		boolean usual = findDeadlocks && sortStates && buildSparse && distinguishActions;
		return known && usual && modelGen.getClass() == ModulesFileModelGenerator.class && modelGen.getEvaluator().one() instanceof Double;
	}

	/** The model that the engines build; null, after a line on why, if PRISM's own code must. */
	private Model<Double> built(ModelGenerator<Double> modelGen) throws PrismException
	{
		long timer = System.currentTimeMillis();
		Construction construction;
		try {
			String program = ProgramText.toBuild(modelGen, getSettings().getBoolean(PrismSettings.PRISM_DO_PROB_CHECKS));
			construction = new Construction(program, mayStartAnew, modelGen.containsUnboundedVariables(), mainLog);
		} catch (Unwritable e) {
			return refused(e.getMessage());
		}
		Hooks.build(construction);
		if (construction.error != null) {
			construction.breakOff();
			throw new PrismException(construction.error);
		}
		// Diagrams take other models, and have other words; none for variables without bounds.
		if (construction.faultyState != null && (!mayStartAnew || modelGen.containsUnboundedVariables()))
			look(modelGen, PackedStates.of(construction.faultyState, modelGen.createVarList()));
		BitSet deadlocks = construction.deadlocks == null ? new BitSet() : BitSet.valueOf(construction.deadlocks);
		if (construction.refusal == null && !fixDeadlocks && !deadlocks.isEmpty())
			construction.refusal = "deadlocks that are not to be fixed";
		if (construction.refusal != null) {
			construction.breakOff();
			return refused(construction.refusal);
		}
		construction.end();
		mainLog.println("Reachable states exploration and model construction done in " + (System.currentTimeMillis() - timer) / 1000.0 + " secs.");
		mainLog.println("Sorting reachable states list...");
		if (!construction.remark.isEmpty())
			mainLog.println("prism-gpu: " + construction.remark);
		return model(construction, modelGen, deadlocks);
	}

	/** Leaves a model to PRISM: to its default engine, or, after a line on why, to its explicit one. */
	private Model<Double> refused(String reason)
	{
		if (mayStartAnew)
			throw new StartAnew(reason);
		mainLog.println("prism-gpu: built by PRISM: " + reason);
		return null;
	}

	/** Looks at a state as PRISM would, for the error that it finds there. */
	private static void look(ModelGenerator<Double> modelGen, State state) throws PrismException
	{
		modelGen.exploreState(state);
		for (int i = 0; i < modelGen.getNumChoices(); i++) {
			for (int j = 0; j < modelGen.getNumTransitions(i); j++)
				modelGen.computeTransitionTarget(i, j);
		}
		for (int i = 0; i < modelGen.getNumLabels(); i++)
			modelGen.isLabelTrue(i);
	}

	private Model<Double> model(Construction built, ModelGenerator<Double> modelGen, BitSet deadlocks) throws PrismException
	{
		ModelExplicit<Double> model = withTransitions(built, modelGen);
		VarList variables = modelGen.createVarList();
		statesList = new PackedStates(built, variables);
		model.setEvaluator(modelGen.getEvaluator());
		model.setVarList(variables);
		model.setStatesList(statesList);
		model.setConstantValues(new Values(modelGen.getConstantValues()));
		model.setActions(modelGen.getActions());
		if (!deadlocks.isEmpty())
			model.getActionList().addAction(null);
		deadlocks.stream().forEach(model::addDeadlockState);
		BitSet.valueOf(built.initial).stream().boxed().sorted(Comparator.comparingLong(s -> placeAmongAll(s, variables))).forEach(model::addInitialState);
		for (int i = 0; attachLabels && i < built.labels.size(); i++)
			model.addLabel(modelGen.getLabelName(i), built.labels.get(i));
		Extract.know(model, built.id);
		return model;
	}

	/** Where a state comes in VarList.getAllStates, in whose order PRISM adds initial states. */
	private long placeAmongAll(int state, VarList variables)
	{
		Object[] values = statesList.get(state).varValues;
		long place = 0;
		long count = 1;
		for (int v = 0; v < values.length; v++) {
			long size = 1L + variables.getHigh(v) - variables.getLow(v);
			int value = values[v] instanceof Boolean ? ((Boolean) values[v] ? 1 : 0) : (int) values[v] - variables.getLow(v);
			// A state stays where it is for a variable's least value; those of the others go to the end.
			if (value > 0)
				place = count + place * (size - 1) + value - 1;
			count *= size;
		}
		return place;
	}

	private static ModelExplicit<Double> withTransitions(Construction built, ModelGenerator<Double> modelGen)
	{
		// The list has null as well where some commands have no action.
		List<Object> names = new ArrayList<>(modelGen.getActions());
		names.removeIf(Objects::isNull);
		if (modelGen.getModelType() == ModelType.MDP)
			return new BuiltMDP(built, names);
		if (modelGen.getModelType() == ModelType.CTMC)
			return new ArrayCTMC(built, names);
		return new BuiltDTMC(built, names);
	}
}
