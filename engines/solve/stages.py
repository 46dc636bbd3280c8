"""What takes over from sweeps that converge slowly, a class each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import DiagramSystem, System
from engines.errors import DeviceMemoryError
from engines.host.substitution import KERNEL
from engines.methods import coloured_rest
from engines.methods.iterate import Iteration
from engines.methods.levels import solve_by_levels
from engines.methods.stretches import Stretches
from engines.methods.substitution import NAME as WALK
from engines.methods.substitution import Substitution
from engines.model.events import Kind
from engines.model.progress import Progress, SweepReport
from engines.model.result import SolveResult, Status, SweepCost
from engines.proofs.doubling import LateDoubling
from engines.solve.ladder import Answer, Solve
from engines.solve.report import in_unit

LEVELS = "multilevel cycles"
PARTS = "component by component"

FEWEST_STATES_IN_PARTS = 20_000
"""Sweeps of fewer states take no time to speak of."""


@dataclass(frozen=True)
class PartLimits:
    """Which components a system may have that is solved one component after the other.

    Parameters
    ----------
    largest_share
        The share of the states that one may have.
    most_slow
        How many may converge too slowly for sweeps of their own.
    """

    largest_share: float = 1.0
    most_slow: float = np.inf


SolveParts = Callable[[PartLimits], SolveResult]

Direct = Callable[[FloatArray], tuple[FloatArray, float]]
"""Solves directly, from the present iterate to the solution and its estimated relative error."""


class Walk:
    """One walk along the edges, where no state leads back to itself.

    Parameters
    ----------
    substitution
        The walk, which is made as soon as it is asked whether it repays.
    """

    alone, again, sweeps_on = False, True, True

    def __init__(self, substitution: Substitution) -> None:
        self._substitution = substitution

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether the walk has been made."""
        return self._substitution.ends(made, expected)

    def is_due(self, _: Iteration) -> bool:
        """Return whether the walk has been made."""
        return self._substitution.solved is not None

    def run(self, solve: Solve) -> Answer | None:
        """Return the values of the walk, which are the sweeper's iterate."""
        solved = self._substitution.taken()
        if solved is None:
            return None
        how = Kind.SUBSTITUTED(sweeps=solve.outcome.iterations)
        cost = SweepCost((), KERNEL, "csr", solve.sweeper.cost.bytes_per_sweep)
        return Answer(*solved, WALK, cost, in_place=True, event=how)


class ByComponents:
    """One strongly connected component after the other, where none is large and few are slow.

    Parameters
    ----------
    system
        What is solved.
    solve_parts
        Solves it so, within limits, or raises RuntimeError; None where that does not fit.
    """

    alone, again, sweeps_on = False, False, True

    def __init__(self, system: System, solve_parts: SolveParts | None) -> None:
        self._fits = solve_parts is not None and system.num_updates >= FEWEST_STATES_IN_PARTS
        self._solve_parts = solve_parts

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether so many more sweeps take longer than the components."""
        # Found and walked through by one thread, they take as long as some hundred sweeps of two
        # threads, and as some thousand of sixteen.
        after, repay = 256, 2_000
        return self._fits and made >= after and expected > repay

    def is_due(self, _: Iteration) -> bool:
        """Return whether it may be tried: beyond the limits, sweeps go on."""
        return self._fits

    def run(self, solve: Solve) -> Answer | None:
        """Solve them."""
        assert self._solve_parts is not None
        # Each slow one takes a millisecond and more of a direct method.
        limits = PartLimits(largest_share=1 / 32, most_slow=100)
        try:
            found = self._solve_parts(limits)
        except (MemoryError, RuntimeError):
            return None
        if found.status is not Status.CONVERGED:
            return None
        solve.events += found.events
        how = Kind.PARTS_TOOK_OVER(method=solve.method, sweeps=solve.outcome.iterations)
        return Answer(found.values, found.error_estimate, PARTS, found.cost, event=how)


@dataclass(frozen=True)
class _Failure:
    """Why an attempt has failed; not the error itself, which would hold what was made till then."""

    reason: str
    of_device_memory: bool


class Levels:
    """Multilevel cycles, for steady states.

    Parameters
    ----------
    system
        What is solved, before any scaling.
    on_cpu
        Whether the CPU makes the sweeps.
    progress
        Called after each run of cycles, which are counted as sweeps.
    """

    alone, again, sweeps_on = True, False, True

    def __init__(self, system: System, on_cpu: bool, progress: Progress) -> None:
        by_runs = isinstance(system, DiagramSystem) and system.flows is not None and not on_cpu
        self._system = system if by_runs else system.expanded
        self._on_cpu, self._progress = on_cpu, progress

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether so many more sweeps take longer than the cycles."""
        # With more still to come, cycles, their preparation and their confirmation are faster: on
        # tandem networks half a hundred to a hundred of them, each as long as 60 sweeps on a CPU
        # and 200 on a GPU, whose formats make sweeps cheap and cycles not.
        after, repay = 1_024, 5_000 if self._on_cpu else 20_000
        return self._system is not None and made >= after and expected > repay

    def is_due(self, _: Iteration) -> bool:
        """Return whether there are rows to join states by: cycles go on from any iterate."""
        return self._system is not None

    def run(self, solve: Solve) -> Answer | None:
        """Solve by cycles; where the device is too small, without what the sweeps have of it."""
        iterate, gpus = solve.sweeper.values(), solve.sweeper.cost.gpus
        made, swept = solve.outcome.iterations, solve.earlier_seconds + solve.sweeper.seconds

        def tell(report: SweepReport) -> None:
            self._progress(report.within(made, swept + report.seconds))

        found = self._attempt(solve, iterate, tell)
        if isinstance(found, _Failure) and found.of_device_memory:
            solve.give_up_sweeper()
            found = self._attempt(solve, iterate, tell)
            system, absolute = replace(solve.system, start=iterate), solve.environment.absolute
            solve.go_on_with(solve.scheme.sweeper(system, -1.0, absolute))
        if isinstance(found, _Failure):
            solve.events.append(Kind.FAILED(method=LEVELS, reason=found.reason))
            return None
        return Answer(*found, LEVELS, SweepCost(gpus, LEVELS, "csr", 0))

    def _attempt(
        self, solve: Solve, iterate: FloatArray, progress: Progress
    ) -> tuple[FloatArray, float] | _Failure:
        assert self._system is not None
        try:
            how = (self._system, solve.place, solve.environment, iterate)
            return solve_by_levels(*how, progress=progress)
        except (MemoryError, RuntimeError) as error:
            return _Failure(str(error), isinstance(error, DeviceMemoryError))


class Gmres:
    """GMRES over stretches of sweeps; what rounding has spoilt is kept for the end.

    Parameters
    ----------
    stretches
        The stretches, which know what they would cost.
    """

    alone, again = False, True

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches

    @property
    def sweeps_on(self) -> bool:
        """Whether nothing was kept."""
        return self._stretches.best is None

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether so many more sweeps take longer than stretches."""
        return self._stretches.repay(made, expected)

    def is_due(self, outcome: Iteration) -> bool:
        """Return whether stretches may be tried after these sweeps."""
        return self._stretches.are_due(outcome.iterations)

    def run(self, solve: Solve) -> Answer | None:
        """Solve by GMRES."""
        found = self._stretches.attempt(solve.sweeper, solve.outcome.iterations)
        return None if found is None else Answer(*found, self._stretches.description, in_place=True)


class Coloured:
    """Gauss-Seidel in colours on the CPU, from where Jacobi's sweeps have come.

    Parameters
    ----------
    system
        What is solved.
    stretches
        Those of `Gmres`: what they have kept comes first.
    walk
        That of `Walk`, which lets go of the sweeps that are replaced.
    """

    alone, again, sweeps_on = False, False, True

    def __init__(self, system: System, stretches: Stretches, walk: Substitution) -> None:
        self._system, self._stretches, self._walk = system, stretches, walk

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether so many more sweeps take longer than those in colours."""
        return coloured_rest.repays(self._system, made, expected)

    def is_due(self, outcome: Iteration) -> bool:
        """Return whether they repay, and nothing else was kept."""
        kept = self._stretches.best is not None
        return not kept and coloured_rest.repays(self._system, outcome.iterations, np.inf)

    def run(self, solve: Solve) -> Answer | None:
        """Replace the sweeper; the sweeps that go on are those in colours."""
        plain = self._system.expanded
        assert solve.sweeps is not None
        assert plain is not None
        made, absolute = solve.outcome.iterations, solve.environment.absolute
        iterate = solve.sweeper.values()
        self._walk.forbid()
        try:
            coloured, colours = coloured_rest.coloured_sweeps(plain, iterate, absolute)
        except MemoryError as error:
            solve.events.append(Kind.NO_ROOM_FOR_COLOURS(reason=str(error)))
            return None
        went_on = {"method": solve.method, "sweeps": made, **dict(colours.details)}
        solve.events.append(Kind.COLOURS_TOOK_OVER(**went_on))
        solve.give_up_sweeper()
        solve.go_on_with(coloured)
        late = LateDoubling(absolute, made)
        solve.sweeps = replace(solve.sweeps, doubling=late, others_confirm=False)
        return None


class DirectMethod:
    """Elimination, or policy iteration.

    Parameters
    ----------
    direct
        Solves.
    name
        What the log calls it.
    looked_at
        Sweeps after which it may take over.
    slow_after
        Sweeps still to be expected from which on it does.
    stretches
        Those of `Gmres`: where they have kept something, no more sweeps are made.
    """

    alone, again = False, False

    def __init__(
        self, direct: Direct, name: str, looked_at: int, slow_after: int, stretches: Stretches
    ) -> None:
        self._direct, self._name = direct, name
        self._looked_at, self._slow_after, self._stretches = looked_at, slow_after, stretches

    @property
    def sweeps_on(self) -> bool:
        """Whether GMRES has kept nothing."""
        return self._stretches.best is None

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether too many more sweeps are expected."""
        return made >= self._looked_at and (expected == np.inf or expected > self._slow_after)

    def is_due(self, _: Iteration) -> bool:
        """Return True: a direct method goes on from any iterate."""
        return True

    def run(self, solve: Solve) -> Answer | None:
        """Solve directly."""
        try:
            found = in_unit(self._direct(solve.sweeper.values()), solve.environment)
        except (MemoryError, RuntimeError) as error:
            solve.events.append(Kind.FAILED(method=self._name, reason=str(error)))
            return None
        return Answer(*found, self._name, SweepCost((), "elimination", "csr", 0))
