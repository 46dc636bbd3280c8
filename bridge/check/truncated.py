"""Bounds of answers about models whose unlikely states were left unexplored.

Nothing is known of what happens after an unexplored state. So each question is asked twice: once
as if all that comes after such a state were lost, which no answer is below, and once as if it were
won, which no answer is above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.check.checker import Checker
from bridge.check.outcome import Outcome
from bridge.language.ast import (
    Expression,
    Filter,
    Label,
    LongRun,
    Parentheses,
    Probability,
    Quantifier,
    Reward,
    SteadyState,
    Strategy,
    Value,
)
from bridge.language.text import Range, value_text
from bridge.model import UnexploredStates
from engines.errors import ConvergenceError, UnsupportedError
from engines.exploration.build import UNEXPLORED
from prism_hooks.claims import ROUNDING_OF_STEPS

OPERATORS = (Probability, Reward, SteadyState, Quantifier, Filter, Strategy)


@dataclass(frozen=True)
class BoundedResult:
    """What is known of a property's result.

    Parameters
    ----------
    value
        A truth value, or the bounds of a number: of the least and the greatest one where there are
        several initial states.
    text
        The same, as the report shows it.
    proven
        Whether the bounds are, rounding included, or errors in them are estimates.
    """

    value: Value | Range
    text: str
    proven: bool = True


def check_between(checker: Checker, expression: Expression) -> BoundedResult:
    """Return bounds of a property's result, or its truth value where they decide it.

    Parameters
    ----------
    checker
        Has the model, with unexplored states, and its settings.
    expression
        P or R, with a bound or without one, of a formula without such operators.

    Raises
    ------
    UnsupportedError
        For other properties.
    ConvergenceError
        Where the bounds do not decide; and as `Checker.check`.
    """
    if any(isinstance(x, Label) and x.name == UNEXPLORED for x in expression.walk()):
        # It is about the model as it was built.
        result = checker.check(expression)
        proven = result.accuracy is None or result.accuracy.guaranteed
        return BoundedResult(result.value, result.text, proven)
    states = checker.model.unexplored
    assert states is not None
    operator = _operator(checker, expression)
    environment = checker.environment
    if environment.automatic:
        # Else errors would be estimates.
        environment = replace(environment, bounds=True)
    lost, won = (
        replace(checker, environment=environment, unexplored=UnexploredStates(states, won))
        for won in (False, True)
    )
    initial = checker.model.initial_states
    below, above = (_at(each.outcome(operator), initial) for each in (lost, won))
    count = int(np.count_nonzero(states))
    if operator.threshold.bound is not None:
        return _decided(below, above, count)
    least, greatest = below.least, above.greatest
    if isinstance(operator, Probability):
        greatest = min(greatest, 1.0)
    value: Range = (max(least, 0.0), greatest)
    proven = below.guaranteed and above.guaranteed
    how = "proven" if proven else "estimated"
    return BoundedResult(value, f"{value_text(value)} ({how}; {_unexplored(count)})", proven)


def _operator(checker: Checker, expression: Expression) -> Probability | Reward:
    """Return the only operator of a property; raises where there are others."""
    while isinstance(expression, Parentheses):
        expression = expression.operand
    nested = [
        node
        for node in expression.walk()
        if node is not expression
        and (isinstance(node, OPERATORS) or (isinstance(node, Label) and checker.is_property(node)))
    ]
    averages = isinstance(expression, Reward) and isinstance(expression.body, LongRun)
    if nested or averages or not isinstance(expression, Probability | Reward):
        raise UnsupportedError(
            f"{expression}: -gputruncate bounds P and R alone, without other operators in them and "
            "without R [ S ]"
        )
    return expression


@dataclass(frozen=True)
class _Bounds:
    """The values of the initial states, with their errors taken off and added."""

    values: np.ndarray
    least: float
    greatest: float
    guaranteed: bool


def _at(outcome: Outcome, initial: np.ndarray) -> _Bounds:
    values, accuracy = outcome.numbers[initial], outcome.accuracy
    if accuracy is None:
        errors, guaranteed = np.zeros(len(values)), False
    else:
        guaranteed = accuracy.guaranteed or accuracy.error == 0.0
        # Values that are exact but for rounding are told to be without error.
        errors = accuracy.at_least(ROUNDING_OF_STEPS).errors(values)
    return _Bounds(
        values, float(np.min(values - errors)), float(np.max(values + errors)), guaranteed
    )


def _unexplored(count: int) -> str:
    return f"{count} state{'s' if count != 1 else ''} unexplored"


def _decided(below: _Bounds, above: _Bounds, count: int) -> BoundedResult:
    """Return whether all initial states satisfy a bound, in either case."""
    truths = {bool(each.values.all()) for each in (below, above)}
    if len(truths) > 1:
        raise ConvergenceError(
            f"Whether it holds depends on states that were not explored ({count}); a smaller "
            "probability for -gputruncate explores more"
        )
    (truth,) = truths
    return BoundedResult(truth, f"{value_text(truth)} ({_unexplored(count)})")
