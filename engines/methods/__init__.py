"""Methods of solution, and the sweeps between two looks."""
