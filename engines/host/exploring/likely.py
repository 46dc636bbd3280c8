"""The compiled library's search for the likely states of a program alone."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p

import numpy as np

from engines.arrays import INT32_MAX, MaskArray
from engines.errors import DeviceMemoryError
from engines.host.compiled.library import INDICES, MASKS, Function
from engines.host.exploring.explorer import WORDS, SearchReport, Status
from engines.host.exploring.tables import HostProgram
from engines.program.packing import Packing, Words
from engines.program.program import Program

_START = Function(
    "pg_explore_likely_start",
    c_int32,
    *(HostProgram, WORDS, c_int64, c_double, c_int64, POINTER(c_void_p)),
)
_SEARCH = Function("pg_explore_likely", c_int32, c_void_p, c_double, c_int64, INDICES, WORDS)
_STATES = Function("pg_explore_likely_states", None, c_void_p, WORDS, MASKS)
_RELEASE = Function("pg_explore_likely_release", None, c_void_p)


class LikelyExplorer:
    """The states that a program reaches with at least some estimated probability.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    initial
        Packed states where the search begins, all as likely.
    threshold
        A state's choices are looked at when the probability with which it has been reached by
        then, along paths of states that are looked at once, is not below it.
    memory_bytes
        What the states may take.

    Raises
    ------
    DeviceMemoryError
        If the first do not fit.
    """

    def __init__(
        self,
        program: Program,
        packing: Packing,
        initial: Words,
        threshold: float,
        memory_bytes: int,
    ) -> None:
        self._words, self._memory_bytes = packing.words, memory_bytes
        self._tables = HostProgram.of(program, packing)
        self._handle = c_void_p()
        status = _START(
            *(self._tables, np.ascontiguousarray(initial), len(initial)),
            *(threshold, memory_bytes, ctypes.byref(self._handle)),
        )
        self._check(status, 0, 0)
        self._release = weakref.finalize(self, _RELEASE, self._handle)

    def search(self, seconds: float, most_explored: int = INT32_MAX) -> SearchReport:
        """Go on searching.

        Parameters
        ----------
        seconds
            About how long.
        most_explored
            Of how many states the choices are looked at.

        Raises
        ------
        DeviceMemoryError
            If the states outgrow the memory.
        """
        numbers = np.zeros(6, dtype=np.int64)
        fault = np.zeros(self._words, dtype=np.uint64)
        status = _SEARCH(self._handle, seconds, most_explored, numbers, fault)
        self._check(status, numbers[0], numbers[2])
        return SearchReport.of(status, numbers, fault)

    def states(self, met: int) -> tuple[Words, MaskArray]:
        """Return all states in PRISM's order, and which of them were not explored.

        Parameters
        ----------
        met
            How many there are.
        """
        states = np.empty((met, self._words), dtype=np.uint64)
        unexplored = np.empty(met, dtype=bool)
        _STATES(self._handle, states, unexplored)
        # The last key that is given counts first.
        order = np.lexsort(states.T[::-1])
        return states[order], unexplored[order]

    def close(self) -> None:
        """Give the memory of the search back."""
        self._release()

    def _check(self, status: int, met: int, lacking: int) -> None:
        if status == Status.NO_MEMORY:
            wanted = f"{lacking} bytes more" if lacking else "more memory"
            raise DeviceMemoryError(
                f"the likely states of the model do not fit into memory: {met} were found, and "
                f"{wanted} would be needed; they may take {self._memory_bytes} bytes"
            )
