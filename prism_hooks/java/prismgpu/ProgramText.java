package prismgpu;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;

import parser.State;
import parser.VarList;
import parser.ast.Command;
import parser.ast.DeclarationBool;
import parser.ast.DeclarationInt;
import parser.ast.DeclarationIntUnbounded;
import parser.ast.Expression;
import parser.ast.LabelList;
import parser.ast.Module;
import parser.ast.ModulesFile;
import parser.ast.RewardStruct;
import parser.ast.Update;
import parser.ast.Updates;
import prism.ModelGenerator;
import prism.ModelType;
import prism.PrismException;
import prismgpu.ExpressionText.Unwritable;
import simulator.ModulesFileModelGenerator;

/**
 * The model that PRISM's simulator or its explicit engine would explore, as JSON: its constants, formulas
 * and renamed modules are expanded already.
 * <pre>
 * {"kind": "dtmc", "checked": true, "actions": [name], "modules": [module], "rewards": [structure],
 *  "variables": [{"name", "type", "low", "high", "initial", "module"}], "labels": [[name, value]],
 *  "init": condition}
 * module     {"name", "alphabet": [action], "commands": [command]}
 * command    {"action", "guard", "updates": [[probability, [variable, value]...]]}
 * structure  {"name", "states": [[guard, value]], "transitions": [[action, guard, value]]}
 * </pre>
 * Actions are numbers from 1 on, 0 for none; a module -1 means a global variable; the range of an
 * unbounded variable is null. Guards, probabilities and values are ExpressionText's. A program to sample
 * has no labels; one to build has no rewards, and a condition where the model has init ... endinit.
 */
public final class ProgramText
{
	private final StringBuilder out = new StringBuilder();

	private ProgramText()
	{
	}

	/**
	 * The program of a model to sample paths of.
	 * @param initial Where paths begin; null for the model's initial state
	 * @param checked Whether probabilities that do not sum to 1 are an error
	 */
	public static String of(ModelGenerator<Double> generator, State initial, boolean checked) throws PrismException, Unwritable
	{
		ModulesFile modules = modules(generator);
		ModelType type = modules.getModelType();
		if (type == ModelType.MDP && !checked)
			throw new Unwritable("a model of type " + type + " without checks of probabilities");
		// PRISM's simulator resolves the choices of an MDP uniformly, which is what a DTMC's are.
		ModelType sampled = type == ModelType.MDP ? ModelType.DTMC : type;
		ProgramText text = new ProgramText();
		text.model(modules, sampled, generator.createVarList(), initial == null ? generator.getInitialState() : initial, checked);
		text.out.append(",\"rewards\":[");
		for (int i = 0; i < modules.getNumRewardStructs(); i++)
			text.rewards(modules.getRewardStruct(i), modules.getSynchs());
		return text.out.append("]}").toString();
	}

	/**
	 * The program of a model to build.
	 * @param checked Whether probabilities that do not sum to 1 are an error
	 */
	static String toBuild(ModelGenerator<Double> generator, boolean checked) throws PrismException, Unwritable
	{
		ModulesFile modules = modules(generator);
		Expression condition = modules.getInitialStates();
		ProgramText text = new ProgramText();
		text.model(modules, modules.getModelType(), generator.createVarList(), condition == null ? generator.getInitialState() : null, checked);
		text.out.append(",\"rewards\":[],\"labels\":[");
		LabelList labels = modules.getLabelList();
		for (int i = 0; i < labels.size(); i++) {
			text.separate().append('[').append(quoted(labels.getLabelName(i))).append(',');
			ExpressionText.write(labels.getLabel(i), text.out);
			text.out.append(']');
		}
		text.out.append(']');
		if (condition != null) {
			text.out.append(",\"init\":");
			ExpressionText.write(condition, text.out);
		}
		return text.out.append('}').toString();
	}

	/** A program without commands, of one reward structure. */
	static String ofRewards(ModulesFileModelGenerator<Double> generator, int structure) throws PrismException, Unwritable
	{
		ModulesFile modules = modules(generator);
		ProgramText text = new ProgramText();
		text.head(modules, modules.getModelType(), generator.createVarList(), null, false);
		text.out.append(",\"modules\":[],\"rewards\":[");
		text.rewards(modules.getRewardStruct(structure), modules.getSynchs());
		return text.out.append("]}").toString();
	}

	/** What the generator explores: a copy of the model with its constants replaced. */
	private static ModulesFile modules(ModelGenerator<Double> generator) throws PrismException, Unwritable
	{
		if (!(generator instanceof ModulesFileModelGenerator))
			throw new Unwritable("a model that is not in PRISM's language");
		try {
			Field field = ModulesFileModelGenerator.class.getDeclaredField("modulesFile");
			field.setAccessible(true);
			ModulesFile modules = (ModulesFile) field.get(generator);
			if (modules.getSystemDefn() != null)
				throw new Unwritable("a system definition");
			return modules;
		} catch (ReflectiveOperationException e) {
			throw new Unwritable("a model generator of this kind (" + e + ")");
		}
	}

	private void model(ModulesFile modules, ModelType type, VarList variables, State initial, boolean checked) throws Unwritable
	{
		head(modules, type, variables, initial, checked);
		out.append(",\"modules\":[");
		for (int i = 0; i < modules.getNumModules(); i++)
			module(modules.getModule(i), modules.getSynchs());
		out.append(']');
	}

	private void head(ModulesFile modules, ModelType type, VarList variables, State initial, boolean checked) throws Unwritable
	{
		if (type != ModelType.DTMC && type != ModelType.CTMC && type != ModelType.MDP)
			throw new Unwritable("a model of type " + type);
		out.append("{\"kind\":").append(quoted(type.name().toLowerCase())).append(",\"checked\":").append(checked);
		out.append(",\"variables\":[");
		for (int i = 0; i < variables.getNumVars(); i++)
			variable(variables, i, initial == null ? variables.getLow(i) : initial.varValues[i]);
		out.append("],\"actions\":[");
		for (String action : modules.getSynchs())
			separate().append(quoted(action));
		out.append(']');
	}

	private void variable(VarList variables, int i, Object initial) throws Unwritable
	{
		Object declared = variables.getDeclarationType(i);
		boolean bounded = declared instanceof DeclarationInt;
		boolean isBool = declared instanceof DeclarationBool;
		if (!bounded && !isBool && !(declared instanceof DeclarationIntUnbounded))
			throw new Unwritable("a variable of the type " + declared);
		separate().append("{\"name\":").append(quoted(variables.getName(i)));
		out.append(",\"type\":").append(isBool ? "\"bool\"" : "\"int\"");
		out.append(",\"low\":").append(bounded || isBool ? variables.getLow(i) : null);
		out.append(",\"high\":").append(bounded || isBool ? variables.getHigh(i) : null);
		out.append(",\"initial\":").append(initial);
		out.append(",\"module\":").append(variables.getModule(i)).append('}');
	}

	private void module(Module module, List<String> actions) throws Unwritable
	{
		separate().append("{\"name\":").append(quoted(module.getName()));
		// A module blocks the actions of its alphabet that no command of its own has.
		out.append(",\"alphabet\":[");
		for (String action : module.getAllSynchs())
			separate().append(actions.indexOf(action) + 1);
		out.append("],\"commands\":[");
		for (int i = 0; i < module.getNumCommands(); i++)
			command(module.getCommand(i));
		out.append("]}");
	}

	private void command(Command command) throws Unwritable
	{
		separate().append("{\"action\":").append(command.getSynchIndex()).append(",\"guard\":");
		ExpressionText.write(command.getGuard(), out);
		out.append(",\"updates\":[");
		Updates updates = command.getUpdates();
		for (int i = 0; i < updates.getNumUpdates(); i++) {
			separate().append('[');
			if (updates.getProbability(i) == null)
				out.append("[1.0]");
			else
				ExpressionText.write(updates.getProbability(i), out);
			Update update = updates.getUpdate(i);
			for (int j = 0; j < update.getNumElements(); j++) {
				out.append(",[").append(update.getVarIndex(j)).append(',');
				ExpressionText.write(update.getExpression(j), out);
				out.append(']');
			}
			out.append(']');
		}
		out.append("]}");
	}

	private void rewards(RewardStruct structure, List<String> actions) throws Unwritable
	{
		List<Integer> states = new ArrayList<>();
		List<Integer> transitions = new ArrayList<>();
		for (int i = 0; i < structure.getNumItems(); i++)
			(structure.getRewardStructItem(i).isTransitionReward() ? transitions : states).add(i);
		separate().append("{\"name\":").append(quoted(structure.getName())).append(",\"states\":[");
		for (int i : states) {
			separate().append('[');
			item(structure, i);
		}
		out.append("],\"transitions\":[");
		for (int i : transitions) {
			// 0 is for commands without an action; an action that no command has earns nothing.
			String action = structure.getSynch(i);
			int index = action.isEmpty() ? 0 : actions.indexOf(action) + 1;
			if (!action.isEmpty() && index == 0)
				continue;
			separate().append('[').append(index).append(',');
			item(structure, i);
		}
		out.append("]}");
	}

	private void item(RewardStruct structure, int i) throws Unwritable
	{
		ExpressionText.write(structure.getStates(i), out);
		out.append(',');
		ExpressionText.write(structure.getReward(i), out);
		out.append(']');
	}

	/** Appends a comma between the entries of a list. */
	private StringBuilder separate()
	{
		char last = out.charAt(out.length() - 1);
		if (last != '[' && last != ',')
			out.append(',');
		return out;
	}

	private static String quoted(String text)
	{
		StringBuilder quoted = new StringBuilder("\"");
		for (char c : text.toCharArray()) {
			if (c == '"' || c == '\\' || c < ' ')
				quoted.append(String.format("\\u%04x", (int) c));
			else
				quoted.append(c);
		}
		return quoted.append('"').toString();
	}
}
