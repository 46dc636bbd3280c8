"""Numerical engines over arrays; they know neither PRISM nor Java."""

from engines.jit_folder import keep_numba_private

keep_numba_private()
