package prismgpu;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

import io.ModelExportFormat;
import io.ModelExportTask;
import io.ModelExportTask.ModelExportEntity;
import parser.ast.Expression;
import parser.type.TypeDouble;
import prism.ModelType;
import prism.Prism;
import prism.Prism.ModelBuildType;
import prism.Prism.PrismEngine;
import prism.PrismException;
import prism.PrismNotSupportedException;
import prism.PrismSettings;

/**
 * Which engine a model is built and checked by where the user named none: PRISM's explicit engine, whose models
 * our explorer builds, unless something on a fixed list needs decision diagrams. Then it is PRISM's default engine,
 * and the log says why. The list is all that is here; what the command line, the model and the property say decides,
 * never the clock or the memory that is free. A model that the explorer gives up is built anew as a diagram.
 */
final class EngineChoice
{
	/** What only PRISM's symbolic engines know, by the switch or the construct, and why. */
	private static final Map<String, Predicate<GpuPrism>> NEED_DIAGRAMS = new LinkedHashMap<>();

	static {
		// explicit.ProbModelChecker refuses it.
		NEED_DIAGRAMS.put("model checking under fairness (-fair)", prism -> prism.getFairness());
		// explicit.ProbModelChecker refuses the methods that go by the blocks of the hybrid engine's matrices.
		NEED_DIAGRAMS.put("a block-wise method of the hybrid engine (-pgs, -psor, ...)",
				prism -> prism.getSettings().getString(PrismSettings.PRISM_LIN_EQ_METHOD).contains("Pseudo"));
		// simulator.ModulesFileModelGenerator, by which the explicit engine reads models, refuses it.
		NEED_DIAGRAMS.put("system ... endsystem", prism -> prism.getPRISMModel().getSystemDefn() != null);
		// PrismCL refuses it for the explicit engine, which has -exportstrat.
		NEED_DIAGRAMS.put("-exportadv", prism -> changed(prism, PrismSettings.PRISM_EXPORT_ADV));
		// What they print or write is of PRISM's own solvers, in the order that diagrams are in.
		NEED_DIAGRAMS.put("-exportiterations", prism -> prism.getSettings().getBoolean(PrismSettings.PRISM_EXPORT_ITERATIONS));
		NEED_DIAGRAMS.put("an export of the product with an automaton (-exportprodtrans, ...)", prism -> prism.getExportTarget()
				|| prism.getExportProductTrans() || prism.getExportProductStates() || prism.getExportProductVector());
		// The format is that of the hybrid engine: blocks of a diagram.
		NEED_DIAGRAMS.put("-gpuformat hybrid", prism -> Hooks.backend.multipliesByDiagrams());
		// Settings and switches that nothing but diagrams, and their solvers, have.
		NEED_DIAGRAMS.put("-noreach", prism -> !prism.getDoReach());
		NEED_DIAGRAMS.put("-nobscc", prism -> !prism.getBSCCComp());
		NEED_DIAGRAMS.put("-zerorewardcheck", prism -> prism.getCheckZeroLoops());
		NEED_DIAGRAMS.put("-frontier", prism -> prism.getReachMethod() != Prism.REACH_BFS);
		NEED_DIAGRAMS.put("-o2", prism -> prism.getOrdering() != 1);
		needsDiagrams("-sccmethod", PrismSettings.PRISM_SCC_METHOD);
		needsDiagrams("-symm", PrismSettings.PRISM_SYMM_RED_PARAMS);
		needsDiagrams("-sumroundoff", PrismSettings.PRISM_SUM_ROUND_OFF);
		needsDiagrams("-nocompact", PrismSettings.PRISM_COMPACT);
		needsDiagrams("-sbl", PrismSettings.PRISM_NUM_SB_LEVELS);
		needsDiagrams("-sbmax", PrismSettings.PRISM_SB_MAX_MEM);
		needsDiagrams("-gsl", PrismSettings.PRISM_NUM_SOR_LEVELS);
		needsDiagrams("-gsmax", PrismSettings.PRISM_SOR_MAX_MEM);
		needsDiagrams("-cuddmaxmem", PrismSettings.PRISM_CUDD_MAX_MEM);
		needsDiagrams("-cuddepsilon", PrismSettings.PRISM_CUDD_EPSILON);
		needsDiagrams("-ddsanity", PrismSettings.PRISM_JDD_SANITY_CHECKS);
		needsDiagrams("-ddextrastatevars", PrismSettings.PRISM_DD_EXTRA_STATE_VARS);
		needsDiagrams("-ddextraactionvars", PrismSettings.PRISM_DD_EXTRA_ACTION_VARS);
		needsDiagrams("-extraddinfo", PrismSettings.PRISM_EXTRA_DD_INFO);
		needsDiagrams("-extrareachinfo", PrismSettings.PRISM_EXTRA_REACH_INFO);
	}

	/** The settings of a run without switches. */
	private static final PrismSettings DEFAULTS = new PrismSettings();

	/** Why exports of components need diagrams. */
	static final String COMPONENTS = "an export of components in the order of PRISM's default engine";

	private static final String ENGINE_LINE = PrismSettings.PRISM_ENGINE + "=";

	private final GpuPrism prism;
	private boolean namedInFile;
	/** Whether the user left the engine to us. */
	private boolean free;
	/** Whether the explicit engine is set because we chose it. */
	private boolean chosen;

	EngineChoice(GpuPrism prism)
	{
		this.prism = prism;
	}

	private static void needsDiagrams(String what, String setting)
	{
		NEED_DIAGRAMS.put(what, prism -> changed(prism, setting));
	}

	private static boolean changed(GpuPrism prism, String setting)
	{
		return !value(prism.getSettings(), setting).equals(value(DEFAULTS, setting));
	}

	/** A setting's value; all types but its own have the same one for every setting. */
	private static List<Object> value(PrismSettings settings, String name)
	{
		return List.of(settings.getString(name), settings.getInteger(name), settings.getDouble(name), settings.getBoolean(name));
	}

	/** Notes whether a file of settings names an engine. */
	void read(File settings)
	{
		try (var lines = Files.lines(settings.toPath(), StandardCharsets.ISO_8859_1)) {
			namedInFile |= lines.anyMatch(line -> line.startsWith(ENGINE_LINE));
		} catch (IOException e) {
			// PRISM makes the file then, of its defaults.
		}
	}

	/** Decides whether there is anything to choose in this run, whose settings are complete. */
	void begin()
	{
		Backend backend = Hooks.backend;
		boolean ours = backend != null && Hooks.exchange == null && backend.leftToPrism().isEmpty() && backend.mayChooseEngine();
		boolean plain = prism.getEngine() == Prism.HYBRID && prism.getSettings().getString(PrismSettings.PRISM_HEURISTIC).equals("None");
		free = ours && plain && !namedInFile;
	}

	/** Whether the explorer is at work by our choice, and may leave the model to PRISM's default engine. */
	boolean explores()
	{
		return chosen;
	}

	/** Sets the engine for a property. */
	void choose(Expression property) throws PrismException
	{
		if (prism.getBuiltModelType() == ModelBuildType.EXPLICIT || !leavesDiagrams(property))
			choose(reason(property));
		else
			set(false);
	}

	/**
	 * Sets the engine for what comes next.
	 * @param reason Why this needs diagrams; null where it does not
	 */
	void choose(String reason) throws PrismException
	{
		if (!free)
			return;
		boolean explores = concerned() && prism.getBuiltModelType() != ModelBuildType.SYMBOLIC;
		String needed = !explores || reason != null ? reason : reasonForDiagrams();
		if (explores && needed != null)
			prism.say("\nprism-gpu: PRISM's default engine is used: " + needed + " needs decision diagrams");
		set(explores && needed == null);
	}

	private void set(boolean explores) throws PrismException
	{
		// PRISM itself may have set another engine for a model that is not ours.
		if (explores || chosen)
			prism.setEngine(explores ? Prism.EXPLICIT : Prism.HYBRID);
		chosen = explores;
	}

	/** Does work on a model; where the engine that we chose gives it up, PRISM's default engine does it from the start. */
	<T> T attempt(Hooks.Work<T> work) throws PrismException
	{
		if (!chosen)
			return work.run();
		try {
			return work.run();
		} catch (PrismNotSupportedException e) {
			giveUp("the explicit engine refuses: " + e.getMessage());
		} catch (OutOfMemoryError e) {
			giveUp("Java's heap, of at most " + HeapLimit.megabytes() + " MB (-javamaxmem), is full");
		} catch (RuntimeException e) {
			if (!isFaultOfPrism(e))
				throw e;
			giveUp("PRISM's explicit engine fails: " + e);
		}
		return work.run();
	}

	/** Whether a fault is one of PRISM's own code, as where its explicit engine compares values of states that it has not computed. */
	private static boolean isFaultOfPrism(RuntimeException fault)
	{
		StackTraceElement[] stack = fault.getStackTrace();
		String place = stack.length == 0 ? "" : stack[0].getClassName();
		return place.startsWith("explicit.") || place.startsWith("parser.");
	}

	/** Leaves a model to PRISM's default engine. */
	void giveUp(String reason) throws PrismException
	{
		set(false);
		prism.getMainLog().println("\nprism-gpu: PRISM's default engine starts anew: " + reason);
	}

	/** Whether it is a model of ours: in PRISM's language, not from files, and of a type that the explorer knows. */
	private boolean concerned()
	{
		PrismEngine engine = prism.getCurrentEngine();
		ModelType type = prism.getModelType();
		boolean known = type == ModelType.DTMC || type == ModelType.CTMC || type == ModelType.MDP;
		boolean read = prism.getModelSource() == Prism.ModelSource.PRISM_MODEL && !prism.isModelSourceDigitalClocks();
		return known && read && engine != PrismEngine.EXACT && engine != PrismEngine.PARAM;
	}

	private String reasonForDiagrams()
	{
		for (Map.Entry<String, Predicate<GpuPrism>> entry : NEED_DIAGRAMS.entrySet()) {
			if (entry.getValue().test(prism))
				return entry.getKey();
		}
		return null;
	}

	/** Whether Prism.modelCheck takes the explicit engine instead of diagrams, and must be left to do so: without it, there is none. */
	private boolean leavesDiagrams(Expression property) throws PrismException
	{
		boolean ofChoices = prism.getModelType() == ModelType.MDP && !Expression.containsMultiObjective(property);
		boolean byBounds = prism.getSettings().getBoolean(PrismSettings.PRISM_INTERVAL_ITER) && Expression.containsMinReward(property);
		boolean forChoices = ofChoices && (byBounds || prism.getMDPSolnMethod() != Prism.MDP_VALITER);
		return forChoices || prism.getGenStrat() || Expression.containsNonProbLTLFormula(property);
	}

	/** Why a property needs diagrams; null if it does not. */
	private String reason(Expression property)
	{
		// explicit.StateModelChecker refuses it.
		if (Expression.containsMultiObjective(property))
			return "multi-objective model checking";
		// The explicit engine has other words for them.
		boolean numbers = property.getType() == null || property.getType() instanceof TypeDouble;
		return prism.getStoreVector() && !numbers ? "a vector of truth values or integers, as PRISM's default engine writes it," : null;
	}

	/** Why exports need diagrams; null if they do not. */
	static String reason(List<ModelExportTask> tasks)
	{
		for (ModelExportTask task : tasks) {
			// The explicit engine puts choices, and transitions under different actions, in another order.
			if (task.getEntity() == ModelExportEntity.MODEL || task.getEntity() == ModelExportEntity.TRANSITION_REWARDS)
				return "an export of transitions in the order of PRISM's default engine";
			// explicit.StateModelChecker refuses most other formats.
			if (task.getExportOptions().getFormat() != ModelExportFormat.EXPLICIT)
				return "an export in this format";
		}
		return null;
	}
}
