package prismgpu;

import jdd.JDD;
import jdd.JDDNode;
import parser.ast.ExpressionLabel;
import prism.ModelType;
import prism.Prism;
import prism.PrismException;
import prism.StateVector;
import symbolic.comp.StateModelChecker;
import symbolic.model.ModelSymbolic;
import symbolic.model.NondetModel;
import symbolic.states.StateValuesDV;
import symbolic.states.StateValuesMTBDD;

/** A model that PRISM has built as a decision diagram, read for the Python API. */
public final class BuiltDiagrams
{
	private final Prism prism;
	private final ModelSymbolic model;

	public BuiltDiagrams(Prism prism)
	{
		this.prism = prism;
		model = (ModelSymbolic) prism.getBuiltModel();
	}

	public SymbolicModel transitions() throws PrismException
	{
		ModelType type = model.getModelType();
		SymbolicModel source = SymbolicModel.of(type.toString(), model.getTrans(), model.getODD(), model.getAllDDRowVars(), model.getAllDDColVars(),
				type == ModelType.MDP ? ((NondetModel) model).getAllDDNondetVars() : null);
		source.read();
		return source;
	}

	public Diagram initialStates()
	{
		return new Diagram(model.getStart());
	}

	public String[] labelNames() throws PrismException
	{
		return Names.ofLabels(prism);
	}

	public Diagram label(String name) throws PrismException
	{
		StateModelChecker mc = StateModelChecker.createModelChecker(model.getModelType(), prism, model, prism.parsePropertiesString(""));
		JDDNode states = mc.checkExpressionDD(new ExpressionLabel(name), model.getReach().copy());
		return read(states);
	}

	public String[] rewardNames() throws PrismException
	{
		return Names.ofRewards(prism);
	}

	/** The rewards of the states alone. */
	public Diagram stateRewards(int structure)
	{
		return new Diagram(model.getStateRewards(structure));
	}

	/** The rewards of the states of a Markov chain, those of its transitions in there as expected values. */
	public Diagram expectedStateRewards(int structure)
	{
		return read(JDD.Apply(JDD.PLUS, model.getStateRewards(structure).copy(), expected(structure)));
	}

	/** Rewards of each choice of an MDP, state rewards left out. */
	public Diagram choiceRewards(int structure)
	{
		return read(expected(structure));
	}

	private JDDNode expected(int structure)
	{
		JDDNode earned = JDD.Apply(JDD.TIMES, model.getTrans().copy(), model.getTransRewards(structure).copy());
		return JDD.SumAbstract(earned, model.getAllDDColVars());
	}

	/** The address of a result's native vector; 0 for a result that is a diagram. */
	public static long addressOf(StateVector result)
	{
		return result instanceof StateValuesDV ? ((StateValuesDV) result).getDoubleVector().getPtr() : 0;
	}

	public static Diagram diagramOf(StateVector result)
	{
		return new Diagram(((StateValuesMTBDD) result).getJDDNode());
	}

	private static Diagram read(JDDNode node)
	{
		Diagram diagram = new Diagram(node);
		JDD.Deref(node);
		return diagram;
	}
}
