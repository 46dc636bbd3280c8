"""The CPU engine: SciPy for small models, numba on all cores for large ones."""
