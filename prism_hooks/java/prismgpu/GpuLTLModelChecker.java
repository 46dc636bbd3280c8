package prismgpu;

import java.util.AbstractList;
import java.util.BitSet;
import java.util.List;
import java.util.Vector;

import acceptance.AcceptanceOmega;
import automata.DA;
import explicit.LTLModelChecker;
import explicit.MDP;
import explicit.Model;
import explicit.ModelExplicit;
import parser.State;
import parser.VarList;
import parser.ast.Declaration;
import parser.ast.DeclarationInt;
import parser.ast.Expression;
import prism.ModelType;
import prism.PrismComponent;
import prism.PrismException;

/** LTL on explicit models, whose products with automata are built by the engines. */
public class GpuLTLModelChecker extends LTLModelChecker
{
	public GpuLTLModelChecker(PrismComponent parent)
	{
		super(parent);
	}

	@Override
	@SuppressWarnings("unchecked")
	public <Value, M extends Model<Value>> LTLProduct<M> constructProductModel(DA<BitSet, ? extends AcceptanceOmega> da, M model, Vector<BitSet> labelBS,
			BitSet statesOfInterest) throws PrismException
	{
		ProductConstruction built = built(da, model, labelBS, statesOfInterest);
		if (built == null)
			return super.constructProductModel(da, model, labelBS, statesOfInterest);
		ModelExplicit<Double> product = model instanceof MDP ? new ProductMDP(built, (MDP<Double>) model, da.size()) : new BuiltDTMC(built);
		LTLProduct<M> transformed = new LTLProduct<>((M) product, model, null, da.size(), built.pairs);
		// Where the values of the states of interest are read off: the first nodes are theirs.
		int starts = statesOfInterest == null ? model.getNumStates() : statesOfInterest.cardinality();
		for (int node = 0; node < starts; node++)
			product.addInitialState(node);
		describe(product, (Model<Double>) model, transformed);
		Extract.know(product, built.id);
		AcceptanceOmega acceptance = da.getAcceptance().clone();
		acceptance.lift(new AcceptanceOmega.LiftBitSet()
		{
			@Override
			public BitSet lift(BitSet states)
			{
				return transformed.liftFromAutomaton(states);
			}
		});
		transformed.setAcceptance(acceptance);
		return transformed;
	}

	/** @return null if PRISM's own code must build it */
	private ProductConstruction built(DA<BitSet, ?> da, Model<?> model, List<BitSet> labels, BitSet statesOfInterest) throws PrismException
	{
		// Of other MDPs PRISM leaves out choices that are there twice.
		boolean known = model.getModelType() == ModelType.DTMC || model instanceof BuiltMDP;
		if (!known || !Hooks.answersGraphs(model))
			return null;
		ProductConstruction built = ProductConstruction.of(Extract.of(model), da, labels, statesOfInterest, mainLog);
		if (built == null)
			return null;
		Hooks.build(built);
		if (built.error != null)
			throw new PrismException(built.error);
		if (built.refusal == null)
			return built;
		Hooks.handBack(mainLog, built.refusal);
		return null;
	}

	/** Gives a product what PRISM says of a model beside its transitions. */
	private static void describe(ModelExplicit<Double> product, Model<Double> model, LTLProduct<?> pairs) throws PrismException
	{
		product.setEvaluator(model.getEvaluator());
		if (model.getVarList() != null)
			product.setVarList(variables(model.getVarList(), pairs.getAutomatonSize()));
		if (model.getStatesList() != null)
			product.setStatesList(states(model.getStatesList(), pairs));
		for (String label : model.getLabels())
			product.addLabel(label, pairs.liftFromModel(model.getLabelStates(label)));
		product.copyRewardsMapped(model, rewards -> rewards.liftFromModel(pairs));
	}

	/** The model's variables, after a new one for the state of the automaton. */
	private static VarList variables(VarList given, int automatonSize) throws PrismException
	{
		String name = "_da";
		while (given.exists(name))
			name = "_" + name;
		// A variable has two values at least.
		DeclarationInt range = new DeclarationInt(Expression.Int(0), Expression.Int(Math.max(1, automatonSize - 1)));
		VarList variables = (VarList) given.clone();
		variables.addVarAtStart(new Declaration(name, range), 1);
		return variables;
	}

	private static List<State> states(List<State> ofModel, LTLProduct<?> pairs)
	{
		return new AbstractList<State>()
		{
			@Override
			public int size()
			{
				return pairs.getProductModel().getNumStates();
			}

			@Override
			public State get(int node)
			{
				return new State(new State(1).setValue(0, pairs.getAutomatonState(node)), ofModel.get(pairs.getModelState(node)));
			}
		};
	}
}
