package prismgpu;

import java.io.File;
import java.io.FileNotFoundException;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;

import explicit.ProbModelChecker;
import io.ModelExportOptions;
import io.ModelExportTask;
import parser.State;
import parser.Values;
import parser.ast.Expression;
import parser.ast.ModulesFile;
import parser.ast.PropertiesFile;
import parser.ast.Property;
import prism.ModelGenerator;
import prism.ModelInfo;
import prism.ModelType;
import prism.Prism;
import prism.PrismComponent;
import prism.PrismException;
import prism.PrismLangException;
import prism.PrismLog;
import prism.PrismSettings;
import prism.Result;
import prism.ResultsCollection;
import prism.UndefinedConstants;
import simulator.method.SimulationMethod;

/** PRISM with the engines inside. */
public class GpuPrism extends Prism
{
	private static final String MULTI_OBJECTIVE = "multi-objective model checking";
	/** As engines/process/timeline.py has it. */
	private static final String PARSING = "parsing";
	/** Why the model that was built cannot be checked; null if it can. */
	private PrismException refusal;
	private final EngineChoice choice = new EngineChoice(this);
	/** Whether a model is being built. */
	private boolean builds;
	/** Why the export at hand needs diagrams; null for none. */
	private String exported;
	/** Lines on a property that is about to be checked, which stand under its heading; null where they are printed at once. */
	private List<String> held;
	/** Whether PRISM is to print the heading of a property next. */
	private boolean heading;
	/** Whether a model that is built now has an engine chosen first; while a property is checked, it has one. */
	private boolean choosing = true;

	public GpuPrism(PrismLog mainLog)
	{
		super(mainLog);
		Symbolic.prism = this;
	}

	@Override
	public void initialise() throws PrismException
	{
		// What another machine solves is taken down by the checkers of the explicit engine.
		if (Hooks.exchange != null && Hooks.backend.mayChooseEngine() && getEngine() == Prism.HYBRID)
			setEngine(Prism.EXPLICIT);
		super.initialise();
		choice.begin();
		Backend backend = Hooks.backend;
		if (backend == null)
			return;
		if (!backend.header().isEmpty())
			getMainLog().println(backend.header());
		if (!backend.leftToPrism().isEmpty())
			Hooks.handBack(getMainLog(), backend.leftToPrism());
	}

	@Override
	public void loadUserSettingsFile(File settingsFile)
	{
		if (settingsFile != null)
			choice.read(settingsFile);
		super.loadUserSettingsFile(settingsFile);
	}

	@Override
	public void closeDown(boolean check)
	{
		SymbolicModel.releaseAll();
		String summary = Hooks.backend == null ? "" : Hooks.backend.summary();
		if (!summary.isEmpty())
			getMainLog().println("\n" + summary);
		String unprinted = KnownAccuracy.lineOnUnprinted();
		if (!unprinted.isEmpty())
			getMainLog().println(unprinted);
		Hooks.closing();
		super.closeDown(check);
		if (Symbolic.prism == this)
			Symbolic.prism = null;
	}

	@Override
	public void buildModelIfRequired() throws PrismException
	{
		if (!modelIsBuilt())
			SymbolicModel.releaseAll();
		String before = HeapLimit.begin(HeapLimit.BUILDING);
		if (choosing)
			choice.choose(exported);
		boolean wasBuilt = modelIsBuilt();
		build(super::buildModelIfRequired);
		if (!wasBuilt)
			rescale();
		else if (refusal != null)
			throw refusal;
		HeapLimit.begin(before);
	}

	@Override
	public void buildModel() throws PrismException
	{
		choice.choose((String) null);
		build(super::buildModel);
		rescale();
	}

	/** Whether the explorer is at work by our choice, and may leave a model to PRISM's default engine. */
	static boolean explores(PrismComponent parent)
	{
		return parent instanceof GpuPrism && ((GpuPrism) parent).choice.explores();
	}

	/**
	 * Has a checker list what PRISM's default engine lists: the first of the states that have a result, and all with
	 * -verbose. PRISM's explicit engine lists all of them anyhow, at any verbosity but this.
	 */
	static void listAsByDefault(ProbModelChecker checker, PrismComponent parent)
	{
		if (explores(parent) && !parent.getSettings().getBoolean(PrismSettings.PRISM_VERBOSE))
			checker.setVerbosity(0);
	}

	/** PRISM's own building of a model. */
	private interface Building
	{
		void run() throws PrismException;
	}

	/** Has PRISM build a model, if need be by its default engine in place of the one that was chosen. */
	private void build(Building building) throws PrismException
	{
		Hooks.beginPart("building the model");
		builds = true;
		try {
			building.run();
		} catch (StartAnew e) {
			choice.giveUp(e.getMessage());
			building.run();
		} finally {
			builds = false;
			Hooks.endPart();
		}
	}

	/** A fault in the text itself keeps the explorer from it; the default engine has words of its own, or none. */
	@Override
	public ModelGenerator<?> getModelGenerator() throws PrismException
	{
		try {
			return super.getModelGenerator();
		} catch (PrismException e) {
			if (builds && choice.explores())
				throw new StartAnew("the model has a fault");
			throw e;
		}
	}

	@Override
	public ModulesFile parseModelFile(File file, ModelType typeOverride) throws FileNotFoundException, PrismLangException
	{
		Hooks.beginPart(PARSING);
		try {
			return super.parseModelFile(file, typeOverride);
		} finally {
			Hooks.endPart();
		}
	}

	@Override
	public PropertiesFile parsePropertiesFile(ModelInfo info, File file, boolean tidy) throws FileNotFoundException, PrismLangException
	{
		Hooks.beginPart(PARSING);
		try {
			return super.parsePropertiesFile(info, file, tidy);
		} finally {
			Hooks.endPart();
		}
	}

	/** Checks something of a model, if need be by PRISM's default engine in place of the one that was chosen. */
	private <T> T attempt(Hooks.Work<T> work) throws PrismException
	{
		boolean before = choosing;
		choosing = false;
		try {
			return choice.attempt(work);
		} finally {
			choosing = before;
		}
	}

	private void rescale() throws PrismException
	{
		refusal = null;
		if (Hooks.backend == null || !Hooks.backend.leftToPrism().isEmpty())
			return;
		try {
			StateLimit.check(this);
			RowSums.rescale(this);
		} catch (PrismException e) {
			refusal = e;
			throw e;
		}
	}

	@Override
	public Result modelCheck(PropertiesFile propertiesFile, Property prop) throws PrismException
	{
		Symbolic.prism = this;
		Hooks.startProperty();
		HeapLimit.begin(HeapLimit.CHECKING);
		if (Hooks.exchange != null)
			return exchange(propertiesFile, prop);
		held = new ArrayList<>();
		try {
			nameAdaptiveUniformisation();
			nameOtherModels();
			if (Hooks.backend != null && Expression.containsMultiObjective(prop.getExpression()))
				Hooks.handBack(getMainLog(), MULTI_OBJECTIVE);
			begin(prop.getExpression().toString(), propertiesFile == null ? null : propertiesFile.getConstantValues());
			choice.choose(prop.getExpression());
			heading = true;
		} finally {
			if (!heading)
				printHeld();
		}
		Result result = attempt(() -> super.modelCheck(propertiesFile, prop));
		Hooks.sayDecided(getMainLog());
		KnownAccuracy.note(result);
		Hooks.ended(result.getResult());
		return result;
	}

	/** What PRISM asks for first once it has printed the heading of a property. */
	@Override
	public ModelType getModelType()
	{
		if (heading) {
			heading = false;
			printHeld();
		}
		return super.getModelType();
	}

	private void printHeld()
	{
		List<String> lines = held;
		held = null;
		for (String line : lines)
			getMainLog().println(line);
	}

	/** Prints a line, under the heading of the property that it is about. */
	void say(String line)
	{
		if (held == null)
			getMainLog().println(line);
		else
			held.add(line);
	}

	@Override
	public Result modelCheckSimulator(PropertiesFile propertiesFile, Expression expr, Values definedPFConstants, State initialState, long maxPathLength,
			SimulationMethod simMethod) throws PrismException
	{
		HeapLimit.begin(HeapLimit.CHECKING);
		begin(expr.toString(), definedPFConstants);
		Result result = super.modelCheckSimulator(propertiesFile, expr, definedPFConstants, initialState, maxPathLength, simMethod);
		Hooks.ended(result.getResult());
		return result;
	}

	@Override
	public void modelCheckSimulatorExperiment(PropertiesFile propertiesFile, UndefinedConstants undefinedConstants, ResultsCollection results, Expression expr,
			State initialState, long maxPathLength, SimulationMethod simMethod) throws PrismException, InterruptedException
	{
		HeapLimit.begin(HeapLimit.CHECKING);
		super.modelCheckSimulatorExperiment(propertiesFile, undefinedConstants, results, expr, initialState, maxPathLength, simMethod);
		int n = results.getNumRangingConstants();
		for (String[] row : results.toArrayList()) {
			StringJoiner constants = new StringJoiner(",");
			for (int i = 0; i < n; i++)
				constants.add(results.getRangingConstants().get(i).getName() + "=" + row[i]);
			Hooks.begin(expr.toString(), constants.toString());
			Hooks.ended(row[n]);
		}
	}

	/** Tells the engines of a question before its solves come to them. @param more Values of constants besides the model's; null for none */
	private void begin(String question, Values more)
	{
		Values constants = getModelInfo() == null ? null : getModelInfo().getConstantValues();
		Hooks.begin(question, Values.toStringConcatenated(constants, more));
	}

	@Override
	public prism.StateVector computeSteadyStateProbabilities(File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		begin("steady-state distribution", null);
		choice.choose((String) null);
		return attempt(() -> super.computeSteadyStateProbabilities(initDistFile));
	}

	@Override
	public prism.StateVector computeTransientProbabilities(double time, File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		nameAdaptiveUniformisation();
		begin("transient distribution", null);
		choice.choose((String) null);
		return attempt(() -> super.computeTransientProbabilities(time, initDistFile));
	}

	@Override
	public void exportTransientProbabilities(UndefinedConstants times, File file, ModelExportOptions exportOptions, File initDistFile) throws PrismException
	{
		Hooks.startProperty();
		nameAdaptiveUniformisation();
		begin("transient distribution", null);
		super.exportTransientProbabilities(times, file, exportOptions, initDistFile);
	}

	@Override
	public void exportBuiltModelTasks(List<ModelExportTask> tasks) throws PrismException
	{
		exported = EngineChoice.reason(tasks);
		try {
			super.exportBuiltModelTasks(tasks);
		} finally {
			exported = null;
		}
	}

	@Override
	public void exportSCCsToFile(int exportType, File file) throws FileNotFoundException, PrismException
	{
		exportComponents(() -> super.exportSCCsToFile(exportType, file));
	}

	@Override
	public void exportBSCCsToFile(int exportType, File file) throws FileNotFoundException, PrismException
	{
		exportComponents(() -> DiagramGraph.export(() -> super.exportBSCCsToFile(exportType, file)));
	}

	@Override
	public void exportMECsToFile(int exportType, File file) throws FileNotFoundException, PrismException
	{
		exportComponents(() -> DiagramGraph.export(() -> super.exportMECsToFile(exportType, file)));
	}

	private void exportComponents(DiagramGraph.Export export) throws FileNotFoundException, PrismException
	{
		exported = EngineChoice.COMPONENTS;
		try {
			export.run();
		} finally {
			exported = null;
		}
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

	/** What PRISM's explicit engine, which alone hands operators over, cannot do; null if nothing. */
	private String needsSymbolicEngine(Expression expression)
	{
		if (Expression.containsMultiObjective(expression))
			return MULTI_OBJECTIVE;
		if (getSettings().getBoolean(PrismSettings.PRISM_FAIRNESS))
			return "model checking under fairness";
		return null;
	}
}
