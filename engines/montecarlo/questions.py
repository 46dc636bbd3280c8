"""What is asked of each path.

The semantics is that of PRISM's samplers (package `simulator.sampler`), with two additions where
PRISM's would never end: a path that is stuck in a deadlock answers at once, as if it stayed there
for ever, and rewards of its state go on being counted. The operators G, W and R are reduced to
`Until` and negation by who writes the question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.errors import InvalidModelError
from engines.program.expressions import Expression
from engines.program.program import BOOLEAN, ModelKind, Program, check_expression

NO_BOUND = math.inf
"""An upper bound that is none."""


@dataclass(frozen=True)
class Bounds:
    """When the right side of an until may hold: in steps of a DTMC, in time of a CTMC.

    Parameters
    ----------
    lower, upper
        Whole numbers in a DTMC.
    lower_strict, upper_strict
        Whether the bound itself is outside; of no account in a CTMC, where it has probability 0.
    """

    lower: float = 0.0
    upper: float = NO_BOUND
    lower_strict: bool = False
    upper_strict: bool = False

    @property
    def first_step(self) -> int:
        """The first step of a DTMC within the bounds."""
        return int(self.lower) + self.lower_strict

    @property
    def last_step(self) -> int | None:
        """The last step of a DTMC within the bounds; None if there is none."""
        return None if self.upper == NO_BOUND else int(self.upper) - self.upper_strict


@dataclass(frozen=True)
class Until:
    """Whether the left side holds until the right side does.

    Parameters
    ----------
    left, right
        Boolean expressions.
    bounds
        When the right side has to hold; None for whenever. An until without bounds is also false
        where a DTMC's path has made a step with probability 1 from a state to itself; one with
        bounds, even none from above, is not looked at in that way.
    negated
        Whether the answer is to be the opposite.
    """

    left: Expression
    right: Expression
    bounds: Bounds | None = None
    negated: bool = False


@dataclass(frozen=True)
class Next:
    """Whether the state after the first step is in the target."""

    target: Expression
    negated: bool = False


@dataclass(frozen=True)
class Monitor:
    """Whether a deterministic automaton accepts the states of a path, at most so many of them.

    Parameters
    ----------
    atoms
        Atomic propositions; bit j of a letter is the value of atom j.
    transitions
        The successor for each state and letter, one row a state, 2^atoms columns.
    verdicts
        For each state 0 or 1 where it decides for false or true, 2 where more has to be read.
    final
        For each state whether it accepts when `length` letters have been read.
    initial
        The state before the first letter.
    length
        How many states of the path are read, the first included; at least 1. A path that is stuck
        in a deadlock repeats its last state. So does one of a DTMC that has made a step with
        probability 1 from a state to itself: either is answered there and then.
    negated
        Whether the answer is to be the opposite.
    """

    atoms: tuple[Expression, ...]
    transitions: tuple[tuple[int, ...], ...]
    verdicts: tuple[int, ...]
    final: tuple[bool, ...]
    initial: int
    length: int
    negated: bool = False

    @classmethod
    def of_arrays(
        cls,
        atoms: Sequence[Expression],
        transitions: NDArray[np.int32],
        verdicts: NDArray[np.uint8],
        final: NDArray[np.bool_],
        length: int,
    ) -> Monitor:
        """Return the question whether an automaton in arrays accepts; its first state is initial.

        Parameters
        ----------
        atoms, length
            As the class has them.
        transitions, verdicts, final
            Of shapes (states, 2^atoms), (states,) and (states,).
        """
        rows = tuple(tuple(row) for row in transitions.tolist())
        decided, accepts = tuple(verdicts.tolist()), tuple(final.tolist())
        return cls(tuple(atoms), rows, decided, accepts, 0, length)


@dataclass(frozen=True)
class CumulativeReward:
    """The reward gathered up to a bound: so many steps of a DTMC, so much time of a CTMC.

    Parameters
    ----------
    structure
        Index of the reward structure.
    bound
        A whole number in a DTMC.
    """

    structure: int
    bound: float


@dataclass(frozen=True)
class InstantaneousReward:
    """The reward of the state after so many steps of a DTMC, at such a time of a CTMC."""

    structure: int
    time: float


@dataclass(frozen=True)
class ReachabilityReward:
    """The reward gathered before a state of the target is entered."""

    structure: int
    target: Expression


BooleanQuestion = Until | Next | Monitor
RewardQuestion = CumulativeReward | InstantaneousReward | ReachabilityReward
Question = BooleanQuestion | RewardQuestion


def is_bounded(question: Question) -> bool:
    """Return whether so many steps or so much time decide it, whatever the path does.

    Such questions are answered beyond the path limit.
    """
    match question:
        case Until(bounds=bounds):
            return bounds is not None and bounds.upper != NO_BOUND
        case ReachabilityReward():
            return False
        case _:
            return True


def asked_expressions(question: Question) -> tuple[Expression, ...]:
    """Return the Boolean expressions of a question."""
    match question:
        case Until(left=left, right=right):
            return left, right
        case Next(target=target) | ReachabilityReward(target=target):
            return (target,)
        case Monitor(atoms=atoms):
            return atoms
        case _:
            return ()


def check_question(program: Program, question: Question) -> None:
    """Raise unless a question can be asked of the program's paths.

    Raises
    ------
    InvalidModelError
        Saying what is wrong: an index, a type, a bound.
    """
    for expression in asked_expressions(question):
        check_expression(program, expression, BOOLEAN, "an expression of the property")
    discrete = program.kind is ModelKind.DTMC
    match question:
        case Until(bounds=Bounds() as bounds):
            _check_bounds(bounds, discrete)
        case CumulativeReward(bound=bound) | InstantaneousReward(time=bound):
            whole = bound == int(bound) if math.isfinite(bound) else False
            if not math.isfinite(bound) or bound < 0 or (discrete and not whole):
                raise InvalidModelError(f"{bound} is no bound of a reward of a {program.kind}")
        case Monitor():
            _check_monitor(question)
        case _:
            pass
    if isinstance(question, RewardQuestion):
        count = len(program.reward_structures)
        if not 0 <= question.structure < count:
            raise InvalidModelError(
                f"reward structure {question.structure} is not there; the model has {count}"
            )


def _check_bounds(bounds: Bounds, discrete: bool) -> None:
    text = f"{bounds.lower}..{bounds.upper}"
    if not 0 <= bounds.lower < math.inf or not bounds.upper >= 0:
        raise InvalidModelError(f"the bounds {text} of an until are none")
    if not discrete:
        if bounds.upper < bounds.lower or (bounds.upper == 0 and bounds.upper_strict):
            raise InvalidModelError(f"the bounds {text} of an until leave no time")
        return
    for bound in (bounds.lower, bounds.upper):
        if math.isfinite(bound) and bound != int(bound):
            raise InvalidModelError(f"a bound in steps has to be a whole number, not {bound}")
    if bounds.last_step is not None and bounds.last_step < 0:
        raise InvalidModelError("an until of a DTMC has an upper bound below 0")


def _check_monitor(monitor: Monitor) -> None:
    states, letters = len(monitor.transitions), 2 ** len(monitor.atoms)
    shapes = {len(row) for row in monitor.transitions} | {letters}
    if not len(shapes) == 1 or len(monitor.verdicts) != states or len(monitor.final) != states:
        raise InvalidModelError("a monitor's tables do not fit together")
    targets = {target for row in monitor.transitions for target in row} | {monitor.initial}
    if min(targets) < 0 or max(targets) >= states or not set(monitor.verdicts) <= {0, 1, 2}:
        raise InvalidModelError("a monitor's tables name a state or a verdict that is not there")
    if monitor.length < 1:
        raise InvalidModelError("a monitor has to read at least one state")
