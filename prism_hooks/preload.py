"""Small things that a first solve would otherwise load, while PRISM parses and builds."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np

from engines.diagrams.room import available_host_bytes
from prism_hooks import java_loops
from prism_hooks.crossing import FEWEST_BYTES, java_doubles, java_integers, numpy_array


def steps() -> Iterator[None]:
    """Load them into Python, and show JPype what it will meet in the running JVM.

    Pauses after each piece. Java's loops are not run: compiled over small systems, they would be
    slow on larger ones.
    """
    # With it NumPy sees PRISM's native vectors.
    importlib.import_module("numpy.ctypeslib")
    available_host_bytes()
    yield
    # Of arrays, and of the stage by which they cross.
    numbers = np.zeros(FEWEST_BYTES // 4, dtype=np.int32)
    numpy_array(java_integers(numbers), np.int32)
    numpy_array(java_doubles(numbers.astype(np.float64)), np.float64)
    yield
    for _ in java_loops.load_classes():
        yield
