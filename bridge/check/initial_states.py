"""The states that sampled paths begin in, without PRISM, and what their results come to together.

As in model checking, values in several initial states are a range, and a bound holds if it holds
in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.check.model_text import SimulatedModel
from bridge.language.ast import Value
from bridge.language.text import Range, double_text, value_text
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.initial import initial_states as packed_initial_states
from engines.program.packing import Packing
from engines.program.program import State

MOST_STATES = 1000
"""More are not simulated one after the other."""


@dataclass(frozen=True)
class SimulationResult:
    """What a property came to.

    Parameters
    ----------
    value
        A number, a range, a truth value, or a text that begins with "Error".
    text
        It as PRISM prints it, with its interval; empty for an error.
    half_width, confidence
        The largest distance to an end of the interval, and how probable an error is.
    """

    value: Value | Range | str
    text: str
    half_width: float = 0.0
    confidence: float = 0.0


def initial_states(model: SimulatedModel, constants: Mapping[str, Value]) -> list[State] | None:
    """Return the states that ``init … endinit`` describes, the first variable changing first.

    Parameters
    ----------
    model
        The model.
    constants
        The values of all its constants.

    Returns
    -------
    The states; None where each variable has its own initial value.

    Raises
    ------
    InvalidModelError
        If there is none, or the condition has no value in some state.
    UnsupportedError
        If there are too many, or too many states among which they are to be found.
    """
    if model.outline.initial is None:
        return None
    program = model.built_program(constants, checked=True)
    packing = Packing.of(program)
    found = packed_initial_states(program, packing)
    if not len(found):
        raise InvalidModelError("Empty set of initial states")
    if len(found) > MOST_STATES:
        raise UnsupportedError(f"simulation from more initial states than {MOST_STATES}")
    return sorted(map(packing.state, found), key=lambda state: state[::-1])


def beginning_in(program: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return a program whose paths begin in another state.

    Parameters
    ----------
    program
        As `SimulatedModel.program` returns it.
    state
        The values of its variables.
    """
    variables = [
        {**variable, "initial": value}
        for variable, value in zip(program["variables"], state, strict=True)
    ]
    return {**program, "variables": variables}


def together(results: Sequence[SimulationResult]) -> SimulationResult:
    """Return the results of one property in several initial states as one.

    Parameters
    ----------
    results
        One a state, at least one.
    """
    if len(results) == 1:
        return results[0]
    for result in results:
        if isinstance(result.value, str | tuple):
            return result
    # Each value is wrong with its probability, so that one of them is with their sum at most.
    probability = float(f"{max(0.0, 1.0 - sum(x.confidence for x in results)):.12g}")
    width = max(result.half_width for result in results)
    values = [result.value for result in results]
    shown = double_text(probability)
    if isinstance(values[0], bool):
        every = all(values)
        text = f"{value_text(every)} (with probability {shown})"
        return SimulationResult(every, text, width, 1.0 - probability)
    ends = min(map(float, values)), max(map(float, values))  # type: ignore[arg-type]
    text = (
        f"[{double_text(ends[0])},{double_text(ends[1])}] (+/- {double_text(width)} with "
        f"probability {shown} in all initial states)"
    )
    return SimulationResult(ends, text, width, 1.0 - probability)
