"""A solve as a ladder of stages: sweeps first, and what takes over where they converge slowly.

Sweeps go on until they have converged or a stage takes over. A stage returns an answer, or leaves
the iterate to further sweeps. Stages are asked in order; one that has had its turn is gone, with
all before it, unless it may try again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.methods.confirmation import AutomaticSweeps
from engines.methods.iterate import Iteration
from engines.model.environment import SolverEnvironment
from engines.model.events import Event
from engines.model.result import Status, SweepCost
from engines.systems.one_sided import Place, Scheme, Sweeper


def nothing_swept() -> Iteration:
    """Return the outcome of no sweep at all."""
    return Iteration(Status.NOT_CONVERGED, 0, np.inf, np.inf, given_up=True)


@dataclass
class Solve:
    """What the stages of a solve hand on.

    Parameters
    ----------
    system, place, scheme, environment
        What is solved, before any scaling; where; by which sweeps; what the user asked for.
    method
        What the log calls the sweeps.
    sweeper
        Holds the iterate.
    sweeps
        Sweeps it, and confirms the result; None for a named method.
    outcome
        How the sweeps have ended so far.
    events
        What has happened, for the log.
    earlier_seconds
        Of sweeps by sweepers that have been replaced.
    others_confirm
        Whether what is prepared to confirm a result makes other sweeps of the system.
    """

    system: System
    place: Place
    scheme: Scheme[Any]
    environment: SolverEnvironment
    method: str
    sweeper: Sweeper
    sweeps: AutomaticSweeps | None = None
    outcome: Iteration = field(default_factory=nothing_swept)
    events: list[Event] = field(default_factory=list)
    earlier_seconds: float = 0.0
    others_confirm: bool = False

    def give_up_sweeper(self) -> None:
        """Let go of the sweeper and of its memory; another one has to follow."""
        self.earlier_seconds += self.sweeper.seconds
        del self.sweeper
        if self.sweeps is not None:
            del self.sweeps.sweeper

    def go_on_with(self, sweeper: Sweeper) -> None:
        """Take a sweeper in place of the one that was given up.

        Parameters
        ----------
        sweeper
            Holds the iterate.
        """
        self.sweeper = sweeper
        if self.sweeps is not None:
            self.sweeps.sweeper = sweeper


@dataclass(frozen=True)
class Answer:
    """What a stage has found.

    Parameters
    ----------
    values
        Shape (states,).
    error
        A bound or an estimate of their error, in the measure that the environment asks for.
    name
        What has found them, for the log.
    cost
        What that moved; None for what the sweeps moved.
    in_place
        Whether the sweeper's iterate is this.
    event
        How they were found; None for the place of sweeps that converge slowly.
    """

    values: FloatArray
    error: float
    name: str
    cost: SweepCost | None = None
    in_place: bool = False
    event: Event | None = None


class Stage(Protocol):
    """A way to go on from sweeps that converge slowly."""

    @property
    def alone(self) -> bool:
        """Whether later stages are not asked while this one is to come."""

    @property
    def again(self) -> bool:
        """Whether it may have another turn."""

    @property
    def sweeps_on(self) -> bool:
        """After a turn in vain: whether sweeps go on before the next stage has its turn."""

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether sweeps are to be given up for this.

        Parameters
        ----------
        made, expected
            Sweeps made, and how many more are expected.
        """

    def is_due(self, outcome: Iteration) -> bool:
        """Return whether it can go on from sweeps that were given up."""

    def run(self, solve: Solve) -> Answer | None:
        """Go on; return the answer, or None where sweeps or other stages must."""


class Ladder:
    """The stages that are left, in their order.

    Parameters
    ----------
    stages
        The stages.
    """

    def __init__(self, *stages: Stage) -> None:
        self.stages = list(stages)

    def put_behind(self, kind: type[Stage], stage: Stage) -> None:
        """Add a stage whose turn comes next to that of a kind which is there.

        Parameters
        ----------
        kind
            The class of the stage before it.
        stage
            The stage.
        """
        kinds = [type(each) for each in self.stages]
        self.stages.insert(kinds.index(kind) + 1, stage)

    def takes_over(self, made: int, expected: float) -> bool:
        """Return whether sweeps are to be given up.

        Parameters
        ----------
        made, expected
            Sweeps made, and how many more are expected.
        """
        for stage in self.stages:
            if stage.takes_over(made, expected):
                return True
            if stage.alone:
                return False
        return False

    def climb(self, solve: Solve) -> Answer | None:
        """Let each stage take over in its turn from sweeps that were given up.

        Parameters
        ----------
        solve
            A solve whose sweeps have been made, as far as `takes_over` lets them.

        Returns
        -------
        What a stage has found, or None: then the sweeps' iterate is the result.
        """
        assert solve.sweeps is not None
        while solve.outcome.given_up:
            stage = next((stage for stage in self.stages if stage.is_due(solve.outcome)), None)
            if stage is None:
                return None
            answer = stage.run(solve)
            if answer is not None:
                return answer
            if not stage.again:
                del self.stages[: self.stages.index(stage) + 1]
            if stage.sweeps_on:
                solve.outcome = solve.sweeps.run(self.takes_over, solve.outcome)
        return None
