"""Whether a chain has a single recurrent class, seen on its diagram without a matrix.

The graph is walked through the jobs and blocks of the hybrid representation, along transitions and
against them: each entry is looked at once a walk, and a walk takes some five bytes a state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import MaskArray
from engines.cuda.driver import driver_present, gpu_refusal
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.hybrid import HostHybrid
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.events import Events, Kind

MOST_WALKS = 64
"""So many states are tried, each farther along than the one before, until one is recurrent."""


@dataclass(frozen=True)
class RecurrentClass:
    """The only recurrent class of a chain, reached with probability 1 from everywhere.

    Parameters
    ----------
    members
        Its states, shape (states,); None for all.
    size
        How many they are.
    state
        One of them.
    events
        What happened in the search, for the log.
    """

    members: MaskArray | None
    size: int
    state: int
    events: Events = ()


def recurrent_class(
    rates: HybridMatrix, into: HybridMatrix, environment: SolverEnvironment | None = None
) -> RecurrentClass | str:
    """Return the recurrent class of a chain, or why it has not a single one.

    Parameters
    ----------
    rates, into
        The transitions out of each state and, transposed, into each state, without choices. A
        state without any loops.
    environment
        Which device may walk; None for the CPU.

    Notes
    -----
    A finite chain has one recurrent class exactly if some state can be reached from all states; the
    class is then what that state reaches. Every state reaches a recurrent one, so the search goes
    from a state that cannot be reached again to one of the farthest that it leads to.
    """
    forwards, backwards = _Walks(rates, environment), _Walks(into, environment)
    state = 0
    for _ in range(MOST_WALKS):
        leading, _ = backwards.reached_from(state)
        if leading.all():
            members, _ = forwards.reached_from(state)
            size = int(np.count_nonzero(members))
            events = backwards.events or forwards.events
            return RecurrentClass(None if size == len(members) else members, size, state, events)
        reached, farthest = forwards.reached_from(state)
        ahead = reached & ~leading
        if not ahead.any():
            missed = int(np.argmin(leading))
            return (
                f"state {missed} does not reach state {state}, which is recurrent: there is more "
                "than one bottom strongly connected component"
            )
        state = farthest if ahead[farthest] else int(np.flatnonzero(ahead)[-1])
    return f"after {MOST_WALKS} walks through the diagram no recurrent state was met"


class _Walks:
    """Walks through a graph, on a GPU where that repays and one can."""

    def __init__(self, hybrid: HybridMatrix, environment: SolverEnvironment | None) -> None:
        self._hybrid = hybrid
        self._host = HostHybrid.of(hybrid)
        self._device = environment if _repays(hybrid, environment) else None
        self.events: Events = ()
        """Why a GPU did not walk that was to."""

    def reached_from(self, state: int) -> tuple[MaskArray, int]:
        """Return what a state leads to, shape (states,), and one of the farthest states."""
        if self._device is not None:
            from engines.cuda.diagram_reach import reached_on_device

            try:
                where = (self._device.device_number, self._device.device_memory)
                return reached_on_device(self._hybrid, state, *where)
            except (DeviceMemoryError, UnsupportedError) as error:
                self.events = (Kind.SEARCHED_ON_CPU(reason=str(error)),)
                self._device = None
        return self._host.reached_from(state)


def _repays(hybrid: HybridMatrix, environment: SolverEnvironment | None) -> bool:
    if environment is None or environment.device is DeviceChoice.CPU:
        return False
    # From so many states on a GPU walks sooner than a CPU, which takes 12 ns an entry and more.
    least_states = 200_000
    if environment.device is DeviceChoice.AUTO and hybrid.num_states < least_states:
        return False
    return driver_present() and gpu_refusal(environment.device_number) is None
