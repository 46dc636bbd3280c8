"""The end of a solve whose states do not lead back to themselves: one walk instead of sweeps.

Where the states can be put in an order in which each leads only to earlier ones and to itself, so
many sweeps are exact as a path has states. One walk along the edges, depth first, finds the order
and evaluates each state once, or finds two states that lead back to each other: then it ends there.
"""

from __future__ import annotations

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.methods.single import largest_value
from engines.model.environment import SolverEnvironment
from engines.proofs.doubling import is_nonnegative
from engines.systems.one_sided import HasSubstitution, Scaling, Sweeper

NAME = "substitution"

AFTER = 64
"""Sweeps after which the walk follows."""

FEWEST_STATES = 2_000
"""Sweeps of fewer states take no time to speak of."""


class Substitution:
    """The attempt to end a solve of our choice by a walk, made once.

    Parameters
    ----------
    system
        What is solved, before any scaling.
    environment
        Method and epsilon.
    sweeper
        Its sweeps: a walk is made on the host, of what is swept there.
    accepted
        A relative error that is small enough, if above epsilon.
    """

    def __init__(
        self,
        system: System,
        environment: SolverEnvironment,
        sweeper: Sweeper,
        accepted: float,
    ) -> None:
        self._system, self._environment = system, environment
        self._accepted = max(environment.epsilon, accepted)
        large = system.num_updates >= FEWEST_STATES
        usable = environment.automatic and large and system.scaling is not Scaling.BALANCE
        # Others are not held: what they take of a device is wanted back where they are given up.
        self._sweeper = sweeper if usable and isinstance(sweeper, HasSubstitution) else None
        self._tried = False
        self.solved: tuple[FloatArray, float] | None = None
        """Values, shape (states,), and a bound of their error: relative, or absolute if asked."""

    def ends(self, iterations: int, expected: float) -> bool:
        """Return whether the solve is at its end, looking into it where that is worth while.

        Parameters
        ----------
        iterations
            Sweeps made.
        expected
            Sweeps to come.
        """
        due = AFTER <= iterations < expected
        sweeper = self._sweeper
        if sweeper is None or self._tried or not due:
            return False
        self._tried = True
        if not _is_nonnegative(self._system):
            return False
        found = sweeper.substituted()
        if found is None:
            return False
        values, error = found
        if self._environment.absolute:
            error *= largest_value(values, True)
        if not error <= self._accepted:
            return False
        self.solved = (values, error)
        return True

    def taken(self) -> tuple[FloatArray, float] | None:
        """Return what was found, which the sweeps then have as their iterate."""
        if self.solved is not None and self._sweeper is not None:
            self._sweeper.restart(self.solved[0])
        return self.solved

    def forbid(self) -> None:
        """Make no more attempts, and let go of the sweeps: others may follow."""
        self._sweeper = None


def _is_nonnegative(system: System) -> bool:
    offset = system.start if system.offset is None else system.offset
    return all(is_nonnegative(part) for part in (system.matrix.values, offset, system.start))
