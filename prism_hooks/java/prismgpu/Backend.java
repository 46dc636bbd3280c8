package prismgpu;

/** What the engines do for PRISM; implemented in Python. */
public interface Backend
{
	/** Solves the problem and fills in its answer, its refusal or its error; throws nothing but what CUDD ends PRISM with. */
	void solve(Problem problem);

	/** Whether PRISM's engine setting may be changed to explicit, because the user named none. */
	boolean mayChooseEngine();

	/** What the user named that PRISM's own code does as a whole, such as "simulation"; empty for nothing. */
	String leftToPrism();
}
