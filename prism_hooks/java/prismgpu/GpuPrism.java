package prismgpu;

import java.io.File;

import io.ModelExportOptions;
import parser.ast.Expression;
import parser.ast.PropertiesFile;
import parser.ast.Property;
import prism.ModelType;
import prism.Prism;
import prism.PrismException;
import prism.PrismLog;
import prism.PrismSettings;
import prism.Result;
import prism.UndefinedConstants;

/** PRISM with the engines inside: chooses the explicit engine where the user named none. */
public class GpuPrism extends Prism
{
	private boolean chosen;

	public GpuPrism(PrismLog mainLog)
	{
		super(mainLog);
	}

	@Override
	public void initialise() throws PrismException
	{
		Backend backend = Hooks.backend;
		chosen = backend != null && backend.mayChooseEngine() && getEngine() == Prism.HYBRID
				&& !getSettings().getBoolean(PrismSettings.PRISM_EXACT_ENABLED);
		if (chosen)
			setEngine(Prism.EXPLICIT);
		super.initialise();
		if (backend != null && !backend.leftToPrism().isEmpty())
			Hooks.handBack(getMainLog(), backend.leftToPrism());
		if (chosen)
			getMainLog().println("prism-gpu: no engine was named; models are built by PRISM's explicit engine instead of hybrid");
	}

	@Override
	public Result modelCheck(PropertiesFile propertiesFile, Property prop) throws PrismException
	{
		Hooks.startProperty();
		if (Hooks.exchange != null)
			return exchange(propertiesFile, prop);
		nameAdaptiveUniformisation();
		nameOtherModels();
		String reason = chosen && getEngine() == Prism.EXPLICIT ? needsSymbolicEngine(prop.getExpression()) : null;
		if (reason == null)
			return super.modelCheck(propertiesFile, prop);
		Hooks.handBack(getMainLog(), reason);
		setEngine(Prism.HYBRID);
		try {
			return super.modelCheck(propertiesFile, prop);
		} finally {
			setEngine(Prism.EXPLICIT);
		}
	}

	@Override
	public prism.StateVector computeSteadyStateProbabilities(File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		return super.computeSteadyStateProbabilities(initDistFile);
	}

	@Override
	public prism.StateVector computeTransientProbabilities(double time, File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		nameAdaptiveUniformisation();
		return super.computeTransientProbabilities(time, initDistFile);
	}

	@Override
	public void exportTransientProbabilities(UndefinedConstants times, File file, ModelExportOptions exportOptions, File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		nameAdaptiveUniformisation();
		super.exportTransientProbabilities(times, file, exportOptions, initDistFile);
	}

	/** Names what PRISM does on a model that it never builds whole, for all properties of a CTMC alike. */
	private void nameAdaptiveUniformisation()
	{
		String method = getSettings().getString(PrismSettings.PRISM_TRANSIENT_METHOD);
		if (getModelType() == ModelType.CTMC && method.equals("Fast adaptive uniformisation"))
			Hooks.handBack(getMainLog(), "fast adaptive uniformisation");
	}

	/** Names models whose solves are not ours; of timed automata, digital clocks make MDPs. */
	private void nameOtherModels()
	{
		ModelType type = getModelType();
		boolean ours = type == ModelType.DTMC || type == ModelType.CTMC || type == ModelType.MDP;
		boolean translated = type == ModelType.PTA && getSettings().getString(PrismSettings.PRISM_PTA_METHOD).equals("Digital clocks");
		Backend backend = Hooks.backend;
		if (backend != null && backend.leftToPrism().isEmpty() && !ours && !translated)
			Hooks.handBack(getMainLog(), "a model of type " + type);
	}

	/** Checks a property whose operators another machine solves. */
	private Result exchange(PropertiesFile propertiesFile, Property prop) throws PrismException
	{
		boolean collects = Hooks.exchange.collects();
		ModelType type = getModelType();
		String reason = needsSymbolicEngine(prop.getExpression());
		if (type != ModelType.DTMC && type != ModelType.CTMC && type != ModelType.MDP)
			reason = "a model of type " + type;
		if (getEngine() != Prism.EXPLICIT)
			reason = "model checking by another engine than the explicit one";
		if (reason != null)
			throw new Refusal(reason + " cannot be done on another machine");
		Operators.startProperty(this);
		Result result;
		try {
			result = super.modelCheck(propertiesFile, prop);
		} catch (PrismException e) {
			// PRISM would go on with the next property; an export is whole or not at all.
			if (collects)
				throw new Refusal(e.getMessage());
			throw e;
		}
		if (!Operators.reached())
			throw new Refusal("this property is checked in a way that cannot be done on another machine: " + prop);
		return result;
	}

	/** What PRISM's explicit engine cannot do and its default engine can; null if nothing. */
	private String needsSymbolicEngine(Expression expression)
	{
		if (Expression.containsMultiObjective(expression))
			return "multi-objective model checking";
		if (getSettings().getBoolean(PrismSettings.PRISM_FAIRNESS))
			return "model checking under fairness";
		return null;
	}
}
