package prismgpu;

/** What the engines do for PRISM; implemented in Python. */
public interface Backend
{
	/** Solves the problem and fills in its answer, its refusal or its error; throws nothing but what CUDD ends PRISM with. */
	void solve(Problem problem);

	/** Builds a model and fills in its arrays, its refusal or its error; throws nothing. */
	void build(Construction construction);

	/** Builds a product and fills in its arrays, its refusal or its error; throws nothing. */
	void buildProduct(ProductConstruction construction);

	/** Finds the rewards of a model that was built here and fills them in, or an error, or nothing; throws nothing. */
	void earn(Earning earning);

	/** Samples paths and fills in their outcomes, its refusal or its error; throws nothing. */
	void sample(Sampling sampling);

	/** The method of the engines that judges simulated paths; empty for PRISM's own. */
	String simulationMethod();

	/** That method and its parameters as they were typed; empty for PRISM's own, which takes its parameters itself. */
	String simulationWords();

	/** What was asked of a simulation that PRISM does not have, such as "by the method growing"; empty for nothing. */
	String onlySampledHere();

	/** Whether PRISM's engine setting may be changed to explicit, because the user named none. */
	boolean mayChooseEngine();

	/** Whether the long run of a problem's model, or its total rewards, are to be put together from solves as PRISM does it, because the user named its engine and its method. */
	boolean putsTogether(Problem problem);

	/** Whether what is printed behind results is PRISM's, because the user named its engine and its method. */
	boolean printsAsPrism();

	/** Whether the user named the format that multiplies by a diagram's blocks. */
	boolean multipliesByDiagrams();

	/** How many states a model may have that is built; infinite without a limit. */
	double mostStates();

	/** From how many states and transitions on the engines do such a task on a graph. */
	long smallestGraph(String task);

	/**
	 * How many steps a search on the diagram of so many transitions may take before the engines search the graph.
	 * @param modelId The model, whose graph they may have by now; a negative number for none
	 */
	double searchSteps(long transitions, long modelId);

	/** The same of a search for the one component that all states of so large a Markov chain end in. */
	double bottomSteps(long transitions, long modelId);

	/** A search in diagrams that has not begun; null where PRISM's library hides what it needs. */
	DiagramSearch search(SearchInput input);

	/** Whether the user asked for a line on each solve. */
	boolean showsSolves();

	/** What the user named that PRISM's own code does as a whole, such as "simulation"; empty for nothing. */
	String leftToPrism();

	/** The line below PRISM's own header; empty for none. */
	String header();

	/** The lines that close the log; empty for none. */
	String summary();

	/** Notes a property that is begun. @param constants Such as N=3,T=0.5 */
	void begin(String property, String constants);

	/** Notes the result of the property that was begun last. */
	void ended(String value);

	/** Notes that a part of the run begins, by its name in engines/process/timeline.py, within another. */
	void beginPart(String name);

	/** Notes that the part that was begun last ends. */
	void endPart();

	/** Notes that PRISM closes down. */
	void closing();

	/** Ends the process; returns never. */
	void end(int code);
}
