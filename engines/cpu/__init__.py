"""The CPU engine: SciPy or the loops of its host for small models, numba for large ones."""
