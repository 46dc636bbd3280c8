"""Loading what solves on the CPU will want, ahead of the first of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engines.formats.csr import CsrMatrix
from engines.model import ExplicitModel, ModelKind


def steps() -> Iterator[None]:
    """Load SciPy, then numba and its compiled kernels, pausing after each piece.

    Nothing is compiled: where numba has no kernels in its cache, they wait for the solve that
    wants them. On a host with one core nothing is loaded, since nothing would run beside it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores == 1:
        return
    for module in ("scipy.sparse", "numba", "engines.cpu.kernels", "engines.cpu.graph_kernels"):
        importlib.import_module(module)
        yield
    from engines.cpu import graph_kernels

    kernel = graph_kernels.closures.close_some
    if any(Path(kernel.stats.cache_path).glob(f"*{kernel.py_func.__name__}*.nbi")):
        _load_kernels()
        yield


def _load_kernels() -> None:
    """Run the kernels of a graph search, whose first call also starts numba's own machinery."""
    from engines.cpu.graph import CpuGraph

    matrix = CsrMatrix(np.arange(2, dtype=np.int32), np.zeros(1, dtype=np.int32), np.ones(1), 1)
    graph = CpuGraph(ExplicitModel(ModelKind.DTMC, matrix), compiled=True)
    graph.may_reach(np.ones(1, dtype=np.bool_), np.ones(1, dtype=np.bool_))
