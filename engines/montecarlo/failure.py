"""What can go wrong on a path."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engines.program.program import State


class FailureKind(StrEnum):
    """The errors of a path; PRISM's simulator reports all but the first."""

    OUT_OF_RANGE = "out of range"
    """An update leaves a variable's range. PRISM's builder refuses such a model; its simulator
    goes on with the value."""
    NOT_FINITE = "not finite"
    """A probability or rate is infinite or not a number."""
    NEGATIVE = "negative"
    """A probability or rate is below 0."""
    ZERO = "zero"
    """All probabilities or rates of an enabled command are 0."""
    SUM = "sum"
    """The probabilities of an enabled command do not sum to 1."""
    EVALUATION = "evaluation"
    """An expression has no value: an overflow of integers, a modulus that is not positive."""
    REWARD_NOT_FINITE = "reward not finite"
    REWARD_NEGATIVE = "reward negative"
    DEADLOCK = "deadlock"
    """A state has no choice, and deadlocks are not to be fixed."""


@dataclass(frozen=True)
class Failure:
    """An error on a path.

    Parameters
    ----------
    kind
        Which error.
    path, step
        On which path, and after how many steps.
    state
        The state that was being left, or entered in the case of rewards.
    command
        Module index and command index, where one is to blame.
    variable
        The variable whose range is left, else None.
    structure, item
        The reward structure and its item, transition items counted after state items.
    value
        The offending value: of the probability, rate, sum, variable or reward.
    reason
        What an expression's evaluation says.
    """

    kind: FailureKind
    path: int
    step: int
    state: State
    command: tuple[int, int] | None = None
    variable: int | None = None
    structure: int | None = None
    item: int | None = None
    value: float | None = None
    reason: str = ""


class PathFailure(RuntimeError):  # noqa: N818 (it is a failure of the model, not of the program)
    """A path met an error; the paths before it have none.

    Parameters
    ----------
    failure
        Where and what.
    """

    def __init__(self, failure: Failure) -> None:
        place = f"path {failure.path}, step {failure.step}, state {failure.state}"
        super().__init__(f"{failure.kind} at {place} {failure.reason}".rstrip())
        self.failure = failure

    def __reduce__(self) -> tuple[type[PathFailure], tuple[Failure]]:
        # an exception is rebuilt from its text alone otherwise
        return PathFailure, (self.failure,)
