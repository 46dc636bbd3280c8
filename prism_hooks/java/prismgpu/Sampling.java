package prismgpu;

import java.util.List;

import parser.State;
import prism.PrismLog;

/** Paths of a model, and what each answers to some questions: on its way to the engines, and back. */
public final class Sampling
{
	private static long given;

	// The question.
	/** Never given twice. */
	public final long id;
	/** A ProgramText. */
	public final String program;
	/** A list of QuestionTexts, in JSON. */
	public final String questions;
	/** Steps after which a path ends undecided. */
	public final long pathLimit;
	/** Whether a path ends in a deadlock; else it stays there. */
	public final boolean endsInDeadlocks;
	/** The seed that PRISM was given, or null. */
	public final Long seed;
	/** The engines' methods that judge the paths, one a question; null if PRISM's do. */
	public final EngineMethod[] methods;
	/** How many paths PRISM's methods will want; 0 if nobody knows, and for methods of the engines. */
	public final int numWanted;

	// A part of the work.
	/** Number of the first path, from 0 on, and how many there are; none to see whether it can be done. */
	public long firstPath;
	public int numPaths;
	/** Whether it does to know how many paths gave true, and the sum and the extremes of the lengths. */
	public boolean counted;

	// The answer; with methods of the engines, of all the paths that they take.
	/** For each question what the paths gave, in order: a byte[] with 1 for true, or its Long count; or a double[]. */
	final Object[] outcomes;
	/** The paths before the first that failed; all of them if none did. */
	public int numGood;
	/** The paths' lengths in steps; or, where they are counted or engines judge, their sum and the extremes. */
	public long[] lengths;
	long totalLength;
	long minLength;
	long maxLength;
	/** How the first bad path failed: "undecided", "deadlock" or a text; null if all are good. */
	public String failure;
	/** The last state of the bad path, a value a variable; null if it is not known. */
	public int[] failedIn;
	/** Set instead of an answer: why PRISM's own code must sample. */
	public String refusal;
	/** Set instead of an answer: the text of the PrismException to throw. */
	public String error;
	/** What a reader must know of how the paths came about; empty for nothing. */
	public String remark = "";

	private final PrismLog log;

	Sampling(String program, List<String> questions, long pathLimit, boolean endsInDeadlocks, Long seed, EngineMethod[] methods, int numWanted, PrismLog log)
	{
		id = nextId();
		this.program = program;
		this.questions = "[" + String.join(",", questions) + "]";
		outcomes = new Object[questions.size()];
		this.pathLimit = pathLimit;
		this.endsInDeadlocks = endsInDeadlocks;
		this.seed = seed;
		this.methods = methods;
		this.numWanted = numWanted;
		this.log = log;
	}

	private static synchronized long nextId()
	{
		return ++given;
	}

	/** Fills in the outcomes of a Boolean question. */
	public void setTruths(int question, byte[] truths)
	{
		outcomes[question] = truths;
	}

	/** Fills in how many of the good paths gave true to a Boolean question. */
	public void setCount(int question, long count)
	{
		outcomes[question] = count;
	}

	/** Fills in the outcomes of a question for a reward. */
	public void setValues(int question, double[] values)
	{
		outcomes[question] = values;
	}

	/** Prints a line to PRISM's log. */
	public void say(String line)
	{
		log.println(line);
		log.flush();
	}

	/** Fills in the sum and the extremes of the paths' lengths. */
	public void setLengths(long total, long shortest, long longest)
	{
		totalLength = total;
		minLength = shortest;
		maxLength = longest;
	}

	/** Prints a warning to PRISM's log. */
	public void warn(String text)
	{
		log.printWarning(text);
	}

	/** Prints how much of the work is done. */
	public void showProgress(int percent)
	{
		log.print(" " + percent + "%");
		log.flush();
	}

	/** A number as PRISM prints it. */
	public String text(double number)
	{
		return Double.toString(number);
	}

	/** The state that a path failed in. */
	State failedState(State like)
	{
		State state = new State(like);
		for (int i = 0; i < failedIn.length; i++) {
			boolean isBool = like.varValues[i] instanceof Boolean;
			state.setValue(i, isBool ? (Object) (failedIn[i] != 0) : (Object) failedIn[i]);
		}
		return state;
	}
}
