"""Components by the textbook: what the 2014 paper compares its GPU with, on one core.

Strong components by one depth-first search (Tarjan 1972); maximal end components by the basic
algorithm of the paper's section 2.3 (de Alfaro 1997; Baier, Katoen 2008, chapter 10): strong
components, the choices that leave theirs, the states that have none left with those that cannot
avoid them, and again until nothing leaves. Nothing here is arranged for a cache or cleverly left
out: our own engine for the CPU is `engines/host/graph.py`. The loops are those of
`component_textbook.cpp`, which the machine's C++ compiler compiles when they are first wanted.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path

import numpy as np

from engines.host.build import compiler
from engines.model.explicit import ExplicitModel

SOURCE = Path(__file__).with_suffix(".cpp")
OPTIONS = ("-std=c++17", "-O3", "-shared", "-fPIC")


@functools.cache
def loops() -> ctypes.CDLL:
    """Compile the loops, and return them."""
    with tempfile.TemporaryDirectory(prefix="prism-gpu-") as folder:
        file = Path(folder) / "textbook.so"
        subprocess.run([*compiler(), *OPTIONS, "-o", str(file), str(SOURCE)], check=True)
        loaded = ctypes.CDLL(str(file))
    loaded.strong_components.argtypes = (c_int32, *[c_void_p] * 3)
    loaded.rows_into.argtypes = (c_int32, c_int64, *[c_void_p] * 4)
    loaded.rows_into.restype = None
    loaded.end_components.argtypes = (c_int32, *[c_void_p] * 8)
    return loaded


def _addresses(*arrays: np.ndarray) -> list[int]:
    return [array.ctypes.data for array in arrays]


class Textbook:
    """A model's graph, and its components by the textbook.

    Parameters
    ----------
    model
        An MDP; only where its edges lead is looked at.
    """

    def __init__(self, model: ExplicitModel) -> None:
        matrix = model.matrix
        assert model.row_group_offsets is not None
        self._groups, self._rows = (
            np.ascontiguousarray(offsets, dtype=np.int64)
            for offsets in (model.row_group_offsets, matrix.row_offsets)
        )
        self._firsts = self._rows[self._groups]
        self._columns = np.ascontiguousarray(matrix.columns, dtype=np.int32)
        self._num_states = model.num_states

    def strong_components(self) -> tuple[np.ndarray, int]:
        """Return the component of each state, and their number."""
        labels = np.empty(self._num_states, dtype=np.int32)
        graph = _addresses(self._firsts, self._columns, labels)
        return labels, int(loops().strong_components(self._num_states, *graph))

    def turned_round(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return what `end_components` wants prepared: copied columns, rows by target, owners."""
        lengths = np.diff(self._groups)
        owner = np.repeat(np.arange(self._num_states, dtype=np.int32), lengths)
        into_firsts = np.empty(self._num_states + 1, dtype=np.int64)
        into = np.empty(len(self._columns), dtype=np.int32)
        graph = _addresses(self._rows, self._columns, into_firsts, into)
        loops().rows_into(self._num_states, len(owner), *graph)
        return self._columns.copy(), into_firsts, into, owner

    def end_components(
        self, columns: np.ndarray, into_firsts: np.ndarray, into: np.ndarray, owner: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Return the maximal end component of each state, −1 for none, and their number.

        Parameters
        ----------
        columns, into_firsts, into, owner
            What `turned_round` returns; the first is overwritten.
        """
        labels = np.empty(self._num_states, dtype=np.int32)
        graph = (self._groups, self._rows, self._firsts, columns, into_firsts, into, owner, labels)
        return labels, int(loops().end_components(self._num_states, *_addresses(*graph)))
