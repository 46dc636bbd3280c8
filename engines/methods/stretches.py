"""When a slow solve turns to GMRES over stretches of sweeps, and what comes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.errors import UnsupportedError
from engines.methods.gmres import FIRST_STRETCH, solve_by_stretches
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.progress import Progress, SweepReport
from engines.proofs.doubling import rises_from_zero
from engines.systems.one_sided import Scaling, Sweeper
from engines.systems.space import HasSpace

NAME = "GMRES over stretches of sweeps"

AFTER = (64, 256, 1_024, 4_096, 16_384)
"""Sweeps after which an automatic solve that rises from 0 may turn to GMRES, later ones where it
was in vain before."""

LATE = 1_024
"""On a GPU, and for few rows, it waits for so many: some hundred sweeps take as long there as a
step of its own."""

REPAY = 2
"""How many times the sweeps made must still be expected for it."""


class Stretches:
    """Attempts to end a solve by GMRES.

    Parameters
    ----------
    system
        What is solved, before any scaling.
    environment
        Method, epsilon and limits.
    progress
        Called after each stretch, and by sweeps that follow, with all sweeps made so far.
    accepted
        A relative error that is small enough for a solve of our choice, if above epsilon.
    """

    def __init__(
        self,
        system: System,
        environment: SolverEnvironment,
        progress: Progress | None,
        accepted: float,
    ) -> None:
        self._system, self._environment, self._progress = system, environment, progress
        self._named = environment.method is Method.GMRES
        self._accepted = max(environment.epsilon, accepted)
        self._after: list[int] = [0] if self._named else []
        self.made = 0
        """Sweeps made in stretches, in vain or not."""
        self.stretch = 0
        """Of how many sweeps the last stretch was."""
        self.failure: Events = ()
        """Why the last attempt was in vain, for the log of a solve that had to end otherwise."""
        self.events: Events = ()
        """What the log of any solve tells."""
        self.best: tuple[FloatArray, float] | None = None
        """Values whose error rounding has left too large, and that error."""

    def allow(self, sweeper: Sweeper, before: float) -> None:
        """Allow attempts by an automatic solve, after fewer than so many of its sweeps."""
        if self._system.expanded is None or not isinstance(sweeper, HasSpace):
            return
        fewest_rows = 2_000
        early = sweeper.cost.on_cpu and self._system.num_updates >= fewest_rows
        self._after = [sweeps for sweeps in AFTER if (early or sweeps >= LATE) and sweeps < before]

    def forbid(self) -> None:
        """Make no more attempts."""
        self._after = []

    def repay(self, iterations: int, expected: float) -> bool:
        """Return whether it is time for an attempt, of the sweeps made and those to come."""
        return self.are_due(iterations) and expected > REPAY * iterations

    def are_due(self, iterations: int) -> bool:
        """Return whether so many sweeps are enough for an attempt."""
        return bool(self._after) and iterations >= self._after[0]

    def attempt(self, sweeper: Sweeper, iterations: int) -> tuple[FloatArray, float] | None:
        """Go on from the iterate of so many sweeps.

        Returns
        -------
        Values, shape (states,), and a bound of their error; None, and the sweeps are where they
        were, if the attempt was in vain.
        """
        plain = self._system.expanded
        if plain is None or not isinstance(sweeper, HasSpace):
            raise UnsupportedError(f"{NAME}: these sweeps cannot begin anew")
        self._after = [sweeps for sweeps in self._after if sweeps > iterations]
        values, before = np.array(sweeper.values()), iterations + self.made
        most, stretch = self._environment.sweep_limit - before, FIRST_STRETCH
        if not self._named:
            # As many sweeps were made as so many of its first stretches make.
            first_share = 8
            # For the least iterate, ten steps and a last stretch.
            most, stretch = min(most, iterations + iterations // 2), iterations // first_share
            if most <= 0:
                return None

        def told(report: SweepReport) -> None:
            if self._progress is not None:
                self._progress(replace(report, iterations=before + report.iterations))

        how = (plain, sweeper, self._environment, most)
        try:
            found = solve_by_stretches(*how, stretch=stretch, progress=told)
        except MemoryError as error:
            self.events = (Kind.FAILED(method=NAME, reason=str(error)),)
            sweeper.restart(values)
            return None
        self.made += found.sweeps
        self.stretch, self.failure = found.stretch, ()
        if not found.failure and (self._named or found.error <= self._accepted):
            return sweeper.values(), found.error
        if found.failure:
            self.failure = (Kind.FAILED(method=NAME, reason=found.failure),)
        else:
            self.failure = (Kind.FAILED_BY_ROUNDING(method=NAME, error=found.error),)
            self.best = np.array(sweeper.values()), found.error
            self.forbid()
        sweeper.restart(values)
        return None

    def then(self, report: SweepReport) -> None:
        """Tell of sweeps, those made in stretches before them included."""
        if self._progress is not None:
            self._progress(replace(report, iterations=report.iterations + self.made))

    @property
    def description(self) -> str:
        """What the log calls the way that the solve ended."""
        return f"{NAME}, {self.stretch} each"


def require_solvable(system: System) -> None:
    """Raise `UnsupportedError` for equations that GMRES over stretches of sweeps does not solve.

    Parameters
    ----------
    system
        Before any scaling.
    """
    if system.has_choices:
        raise UnsupportedError("GMRES is for Markov chains, not for MDPs")
    if system.scaling is Scaling.BALANCE:
        raise UnsupportedError("GMRES solves until and rewards; for steady states try multilevel")
    if not rises_from_zero(system):
        raise UnsupportedError("GMRES needs equations x = b + A x without negative numbers")
