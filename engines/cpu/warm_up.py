"""Loading what solves on the CPU will want, ahead of the first of them."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator

from engines.cpu.chunks import num_cores

MOST_STATES_WITHOUT = 500_000
"""Models of so few states are solved without numba or a GPU, by the host's loops, in less time than
those take to load; where a solve turns out to be long, they are loaded beside it."""


class ModelsMet:
    """Which models have been asked about: small ones want nothing that takes time to load."""

    def __init__(self) -> None:
        self._any = False
        self._large = threading.Event()
        self._long_solve = threading.Event()

    def meet(self, num_states: int) -> None:
        """Note that a model is asked about.

        Parameters
        ----------
        num_states
            Its number of states.
        """
        self._any = True
        if num_states > MOST_STATES_WITHOUT:
            self._large.set()

    def meet_long_solve(self) -> None:
        """Note that a solve has swept for so long that numba or a GPU would repay loading."""
        self._long_solve.set()
        self._large.set()

    def wait_for_long_solve(self, seconds: float) -> None:
        """Return once there is one, or after so many seconds.

        Parameters
        ----------
        seconds
            How long to wait at most.
        """
        self._long_solve.wait(seconds)

    def wait_while_small(self) -> None:
        """Return at once if none has been asked about, which is being built then; else with the
        first large one, or the first long solve."""
        if self._any:
            self._large.wait()


MET = ModelsMet()
"""The models of this process."""


def steps() -> Iterator[None]:
    """Load numba and its compiled kernels, then SciPy, pausing after each piece.

    Nothing is compiled: where numba has no kernels in its cache, they wait for the solve that
    wants them. On a host with one core nothing is loaded, since nothing would run beside it.
    """
    if num_cores() == 1:
        return
    for module in ("numba", "engines.cpu.kernels"):
        importlib.import_module(module)
        yield
    # Only larger systems that are solved by LU want this.
    importlib.import_module("scipy.sparse")
    _loaded_all.append("all")
    yield


_loaded: list[str] = []
_loaded_all: list[str] = []


def kernels_ready() -> bool:
    """Return whether the kernels of sweeps on one thread are loaded: they cost nothing to use."""
    return bool(_loaded)


def has_finished() -> bool:
    """Return whether all is loaded that is to be loaded ahead: the rest waits for its solve."""
    return bool(_loaded_all)
