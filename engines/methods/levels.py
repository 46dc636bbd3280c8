"""Steady states by cycles over aggregates of states."""

from __future__ import annotations

from dataclasses import replace

from engines.arrays import INT32_MAX, FloatArray
from engines.devices.levels import levels_on
from engines.diagrams.system import DiagramSystem, System
from engines.errors import UnsupportedError
from engines.methods.confirmation import AutomaticSweeps, ConfirmationTuning, never
from engines.model.environment import SolverEnvironment
from engines.model.progress import Progress
from engines.model.result import Status
from engines.systems.multilevel import MOST_CYCLES, Levels
from engines.systems.one_sided import Place, Scaling, Sweeper


class LevelScheme:
    """Cycles, where the engine itself would make sweeps.

    Parameters
    ----------
    place
        The CPU or a GPU.
    most_memory
        The most bytes of the GPU that the user allows, or None.
    """

    def __init__(self, place: Place, most_memory: int | None = None) -> None:
        self._place, self._most_memory = place, most_memory
        self._made: tuple[System, Levels] | None = None

    def sweeper(self, system: System, stop_below: float, absolute: bool) -> Sweeper:
        """Prepare cycles; see `engines.systems.one_sided.Scheme.sweeper`.

        Parameters
        ----------
        system
            A system for π Q = 0 of one recurrent class, before scaling.
        stop_below
            Not looked at before the end of a run of cycles.
        absolute
            Whether changes are absolute; else relative.

        Returns
        -------
        A sweeper whose sweeps are cycles, at most `CycleTuning.cycles_a_run` a run. For the matrix
        that the last one was made for, the levels are taken over, test and measure with them.

        Raises
        ------
        UnsupportedError
            If the chain cannot be coarsened.
        DeviceMemoryError
            When the device cannot hold the levels.
        """
        _require_balance(system)
        if self._made is not None and self._made[0].matrix is system.matrix:
            return self._made[1].restarted(system.start)
        levels = levels_on(self._place, system, stop_below, absolute, self._most_memory)
        self._made = (system, levels)
        return levels


def solve_by_levels(
    system: System,
    place: Place,
    environment: SolverEnvironment,
    start: FloatArray,
    *,
    progress: Progress | None = None,
) -> tuple[FloatArray, float]:
    """Solve π Q = 0 for one recurrent class by cycles over aggregates of states.

    Parameters
    ----------
    system
        A system with `Scaling.BALANCE`, before scaling.
    place
        Where to solve.
    environment
        Epsilon and its measure, and the memory of the GPU.
    start
        An approximation of π, positive where π is, shape (states,).
    progress
        Called after each run of cycles.

    Returns
    -------
    π, shape (states,), summing to 1, and its estimated relative error.

    Raises
    ------
    RuntimeError
        If the cycles do not converge: sweeps must go on.
    DeviceMemoryError
        When the device cannot hold the levels.
    UnsupportedError
        For other systems, for chains that cannot be coarsened, and for more entries than 32 bits
        number.

    Notes
    -----
    Multiplicative aggregation (Koury, McAllister, Stewart 1984; Horton, Leutenegger 1994): an
    aggregate's states keep their shares, and the chain of aggregates with the flows that these
    shares make is solved, by the same cycle, for what each aggregate has to be multiplied by. So
    the iterate stays positive, and relative errors of rare states fall as those of common ones do.
    States are paired along their strongest transitions, again and again, as in Notay's pairwise
    aggregation (2012). That the cycles have mixed is confirmed from a far start, as for sweeps.
    """
    levels = LevelScheme(place, environment.device_memory)
    limited = replace(environment, max_iterations=MOST_CYCLES, max_iterations_named=True)
    started = replace(system, start=start)
    sweeper = levels.sweeper(started, -1.0, environment.absolute)
    # A far start is as near after as many cycles, or these do not mix.
    tuning = ConfirmationTuning(fewest_sweeps_to_mix=96, sweeps_to_mix=1)
    cycles = AutomaticSweeps(sweeper, levels, started, limited, None, progress, tuning=tuning)
    outcome = cycles.run(never)
    if outcome.status is not Status.CONVERGED:
        raise RuntimeError(
            f"after {outcome.iterations} cycles a cycle still changes {outcome.change:.1e}, "
            f"and the expected error is {outcome.error_estimate:.1e}"
        )
    values = sweeper.values()
    values /= values.sum()
    return values, outcome.error_estimate


def _require_balance(system: System) -> None:
    if system.scaling is not Scaling.BALANCE or system.states is not None:
        raise UnsupportedError("multilevel cycles solve steady states of whole classes only")
    if isinstance(system, DiagramSystem):
        if system.flows is None:
            raise UnsupportedError("multilevel cycles need a matrix, or runs of its rows")
        numbered = system.num_states
    else:
        numbered = max(system.matrix.num_entries, system.num_states)
    if numbered > INT32_MAX:
        raise UnsupportedError("multilevel cycles number entries in 32 bits")
