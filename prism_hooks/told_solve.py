"""A solve as PRISM's log tells of it: what the lines of its engines are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import MaskArray
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel
from engines.model.result import SolveResult
from engines.systems.one_sided import Direction
from prism_hooks.questions import Question
from prism_hooks.report import Ending

COUNTED = 1 << 21
"""Entries of the largest matrix, and states of the largest vector, whose distinct values and
diagonal are counted: in a tenth of a second at most. Larger ones have PRISM's lines of storage that
is not compact, the diagonal among the entries."""

CONFIGURED = "Note: Interval iteration is configured to"

UNTIL = ("reachability", "until", "least reward")
TOTAL = "total reward"
STEADY_STATE = "steady state"
LONG_RUN = ("long-run average", "long-run distribution")


@dataclass(frozen=True)
class Asked:
    """A solve, as far as PRISM's lines tell of it.

    Parameters
    ----------
    task
        The name that `prismgpu.Problem` gives it.
    model
        Its model, an embedded chain where that is solved.
    question
        What is asked.
    ending
        What ends its sweeps.
    environment
        What the user asked for; its method is ours to choose where none was named.
    nodes
        Of a model out of a diagram, the diagram's.
    bottom_seconds
        What the search for its bottom components took.
    """

    task: str
    model: ExplicitModel
    question: Question
    ending: Ending
    environment: SolverEnvironment
    nodes: int = 0
    bottom_seconds: float = 0.0

    @property
    def method(self) -> Method:
        """The method that the user named."""
        return self.environment.method

    @property
    def is_until(self) -> bool:
        """Whether values of some states are solved for, a greatest total reward among them."""
        least = self.question.direction is Direction.MINIMISE
        return self.task in UNTIL or (self.task == TOTAL and not least)

    @property
    def bounds_probabilities(self) -> bool:
        """Whether interval iteration is PRISM's: of rewards, the first bounds are our own."""
        return self.is_until and self.question.rewards is None

    @property
    def counted(self) -> bool:
        """Whether the arrays are small enough to be looked through."""
        return max(self.model.matrix.num_entries, self.model.num_states) <= COUNTED


@dataclass(frozen=True)
class EngineLines:
    """The lines of one solve.

    Parameters
    ----------
    before
        Printed before it; empty for nothing.
    after
        Returns what is printed after it; empty for nothing.
    """

    before: str
    after: Callable[[SolveResult], str]


def entries_of(model: ExplicitModel, states: MaskArray) -> int:
    """Return how many entries the rows of some states have.

    Parameters
    ----------
    model
        A model of any kind.
    states
        Shape (states,).
    """
    offsets = model.matrix.row_offsets
    if model.row_group_offsets is not None:
        offsets = offsets[model.row_group_offsets]
    return int(np.diff(offsets)[states].sum())


def summed(result: SolveResult) -> dict[str, Any] | None:
    """Return the details of a sum of powers; None where there was nothing to sum.

    Parameters
    ----------
    result
        A finished solve.
    """
    kinds = (Kind.POWERS_SUMMED, Kind.POWERS_SQUARED)
    for event in result.events:
        if event.kind in kinds:
            return dict(event.details)
    return None


def width_line(asked: Asked, result: SolveResult, form: str, what: str = "") -> str:
    """Return PRISM's line on how far apart the bounds of interval iteration are at its end.

    Parameters
    ----------
    asked, result
        The solve.
    form
        How the engine prints a number.
    what
        A word that the engine has before "diff"; empty for none.
    """
    words = [what, "" if asked.environment.absolute else "relative", "diff"]
    return (
        f"Max {' '.join(filter(None, words))} between upper and lower bound on convergence: "
        f"{result.change:{form}}"
    )
