package prismgpu;

/** How many steps searches on diagrams may still make together: as many in each run, which seconds are not. */
final class Steps
{
	/** Those that are left. */
	private double left;

	Steps(double most)
	{
		left = most;
	}

	/** Has a search go on until its fixpoint or until none are left; returns whether it is the fixpoint. */
	boolean suffice(DiagramSearch search)
	{
		double before = search.steps();
		boolean complete = search.run(left);
		left -= search.steps() - before;
		return complete;
	}
}
