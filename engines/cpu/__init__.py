"""The CPU engine: SciPy or the loops of its host for small models, numba for large ones."""

from engines.jit_folder import keep_numba_private

# All kernels of numba are in this package.
keep_numba_private()
