"""Filters: from a value for every state to the result of a property."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.accuracy import TESTING, Accuracy
from bridge.check.outcome import Outcome, everywhere
from bridge.language.ast import (
    Binary,
    Conditional,
    Expression,
    Filter,
    Function,
    Identifier,
    Label,
    Literal,
    Parentheses,
    Probability,
    SteadyState,
    Unary,
    Value,
)
from bridge.language.evaluate import Scope
from bridge.language.text import Range, value_text
from engines.arrays import MaskArray
from engines.errors import InvalidModelError

if TYPE_CHECKING:
    from bridge.check.checker import Checker

INIT = Label("init")
EVERYWHERE = Literal(True, "true")
SHOWN = 10
"""States that a filter for a minimum or maximum shows at most."""
KEEP_THE_VECTOR = ("print", "printall", "argmin", "argmax")


@dataclass(frozen=True)
class Filtered:
    """What a filter gives.

    Parameters
    ----------
    vector
        The values that the filter has as an expression itself.
    value
        The single result; None where the filter has none.
    accuracy
        That of the single result.
    """

    vector: Outcome
    value: Value | Range | None = None
    accuracy: Accuracy | None = None


def with_default_filter(
    expression: Expression, kind: str, initial_states: int, scope: Scope
) -> Filter:
    """Return a property with the filter that PRISM puts around it where it has none.

    Parameters
    ----------
    expression
        The property.
    kind
        Its type: "bool", "int" or "double".
    initial_states
        How many initial states the model has.
    scope
        What its names stand for.
    """
    if has_one_value(expression, scope):
        if isinstance(expression, Filter):
            return expression
        return Filter("first", expression, INIT, explicit=False)
    if kind == "bool":
        return Filter("forall", expression, INIT, explicit=False)
    name = "state" if initial_states == 1 else "range"
    return Filter(name, expression, INIT, explicit=False)


def has_one_value(expression: Expression, scope: Scope = Scope()) -> bool:
    """Return whether an expression has the same value in every state, by its form.

    Parameters
    ----------
    expression
        The expression.
    scope
        The constants and formulas that are known.
    """
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Literal():
                pass
            case Identifier(name) if name in scope.constants:
                pass
            case Identifier(name) if name in scope.formulas:
                waiting.append(scope.formulas[name])
            case Filter(kind) if kind not in KEEP_THE_VECTOR:
                pass
            case Parentheses(operand) | Unary(_, operand):
                waiting.append(operand)
            case Binary(_, left, right):
                waiting += (left, right)
            case Conditional(condition, then, otherwise):
                waiting += (condition, then, otherwise)
            case Function(_, arguments):
                waiting += arguments
            case _:
                return False
    return True


def apply_filter(checker: Checker, node: Filter) -> Filtered:
    """Evaluate a filter, and print what PRISM prints of it.

    Parameters
    ----------
    checker
        Evaluates what is in the filter.
    node
        The filter.

    Raises
    ------
    InvalidModelError
        When no state satisfies it, or a state filter does not select exactly one, or the filter
        does not fit the type of the values.
    """
    chosen = EVERYWHERE if node.states is None else node.states
    states = checker.mask(chosen)
    if not states.any():
        raise InvalidModelError("Filter satisfies no states")
    count = int(np.count_nonzero(states))
    if chosen != INIT and node.explicit:
        checker.log(f"\nStates satisfying filter {chosen}: {count}")
    if node.kind == "state" and count != 1:
        raise InvalidModelError(
            f'Filter should be satisfied in exactly 1 state (but "{chosen}" is true in {count} '
            "states)"
        )
    outcome = checker.outcome(node.operand)
    return _Application(checker, node, chosen, states, outcome).result()


class _Application:
    def __init__(
        self,
        checker: Checker,
        node: Filter,
        chosen: Expression,
        states: MaskArray,
        outcome: Outcome,
    ) -> None:
        self._checker = checker
        self._node = node
        self._chosen = chosen
        self._states = states
        self._outcome = outcome
        self._selected = outcome.values[states]
        self._all = chosen == EVERYWHERE
        self._where = "all states" if self._all else "states satisfying filter"

    def result(self) -> Filtered:
        handlers = {
            "min": self._extreme,
            "max": self._extreme,
            "argmin": self._argument,
            "argmax": self._argument,
            "count": self._count,
            "sum": self._sum,
            "avg": self._average,
            "first": self._first,
            "state": self._first,
            "range": self._range,
            "forall": self._forall,
            "exists": self._exists,
            "print": self._print,
            "printall": self._print,
        }
        handler = handlers.get(self._node.kind)
        if handler is None:
            raise InvalidModelError(f'Unrecognised filter type "{self._node.kind}"')
        return handler()

    def _single(self, value: Value, accuracy: Accuracy | None = None) -> Filtered:
        vector = everywhere(value, len(self._states))
        return Filtered(Outcome(vector, accuracy), value, accuracy)

    def _summed(self, value: Value, times: int) -> Filtered:
        accuracy = self._outcome.accuracy
        # A sum may be less known than what it is of, or have overflowed.
        if accuracy is None or np.any(self._selected < 0.0) or not np.isfinite(value):
            return self._single(value)
        return self._single(value, accuracy.of_sum(float(value), len(self._selected), times))

    def _python(self, value: object) -> Value:
        number: Value = value.item() if isinstance(value, np.generic) else value  # type: ignore[assignment]
        return number

    def _extreme_value(self) -> Value:
        minimum = self._node.kind in ("min", "argmin")
        return self._python(self._selected.min() if minimum else self._selected.max())

    def _extreme(self) -> Filtered:
        value = self._extreme_value()
        name = "Minimum" if self._node.kind == "min" else "Maximum"
        log = self._checker.log
        log(f"\n{name} value over {self._where}: {value_text(value)}")
        match = self._close_to(value)
        approximately = "(approximately) " if self._outcome.values.dtype.kind == "f" else ""
        count = int(np.count_nonzero(match))
        text = f"\nThere are {count} states with {approximately}this value"
        if count > SHOWN and not self._checker.verbose:
            log(
                f"{text}.\nThe first {SHOWN} states are displayed below. To view them all, "
                "enable verbose mode or use a print filter."
            )
            self._print_states(match, SHOWN)
        else:
            log(f"{text}:")
            self._print_states(match)
        return self._single(value, self._accuracy_of_extremes())

    def _accuracy_of_extremes(self) -> Accuracy | None:
        """Return that of the least and greatest value, beyond which one with an error may lie."""
        accuracy, operand = self._outcome.accuracy, self._node.operand
        if accuracy is None:
            return None
        while isinstance(operand, Parentheses):
            operand = operand.operand
        most = 1.0 if isinstance(operand, Probability | SteadyState) else np.inf
        decided = tuple(value for value in accuracy.decided if value in (0.0, most))
        return replace(accuracy, decided=decided)

    def _argument(self) -> Filtered:
        value = self._extreme_value()
        name = "minimum" if self._node.kind == "argmin" else "maximum"
        match = self._close_to(value)
        self._checker.log(
            f"\n{name.capitalize()} value over {self._where}: {value_text(value)}\n"
            f"Number of states with {name} value: {int(np.count_nonzero(match))}"
        )
        return Filtered(Outcome(match))

    def _close_to(self, value: Value) -> MaskArray:
        """Return the states of the filter whose value cannot be told from the given one."""
        values = self._outcome.values
        if values.dtype.kind != "f":
            match: MaskArray = (values == value) & self._states
            return match
        accuracy = self._outcome.accuracy
        if accuracy is None or (accuracy.error > 0 and not accuracy.guaranteed):
            accuracy = TESTING
        numbers = self._outcome.numbers
        with np.errstate(invalid="ignore"):
            near = np.abs(numbers - float(value)) <= accuracy.errors(numbers)
        close: MaskArray = (near | (numbers == value)) & self._states
        return close

    def _count(self) -> Filtered:
        value = int(np.count_nonzero(self._selected))
        also = "" if self._all else " also in filter"
        self._checker.log(f"\nCount of satisfying states{also}: {value}")
        return self._single(value)

    def _sum(self) -> Filtered:
        with np.errstate(over="ignore"):
            value = self._python(self._selected.sum())
        self._checker.log(f"\nSum over {self._where}: {value_text(value)}")
        return self._summed(value, len(self._selected))

    def _average(self) -> Filtered:
        with np.errstate(over="ignore"):
            value = float(self._selected.mean(dtype=np.float64))
        self._checker.log(f"\nAverage over {self._where}: {value_text(value)}")
        return self._summed(value, 1)

    def _first(self) -> Filtered:
        value = self._python(self._selected[0])
        initial = self._checker.model.initial_states
        if self._chosen == INIT:
            one = int(np.count_nonzero(initial)) == 1
            where = "the initial state" if one else "first initial state"
        elif self._node.kind == "state":
            where = "the filter state"
        else:
            where = "the first state" if self._all else "first state satisfying filter"
        self._checker.log(f"\nValue in {where}: {value_text(value)}")
        return self._single(value, self._outcome.accuracy)

    def _range(self) -> Filtered:
        low, high = self._python(self._selected.min()), self._python(self._selected.max())
        where = "initial states" if self._chosen == INIT else self._where
        self._checker.log(f"\nRange of values over {where}: {value_text((low, high))}")
        return Filtered(self._outcome, (low, high), self._accuracy_of_extremes())

    def _forall(self) -> Filtered:
        value = bool(self._selected.all())
        satisfied, count = int(np.count_nonzero(self._selected)), len(self._selected)
        if self._chosen == INIT:
            whole = f"of {count} initial states"
        else:
            whole = f"of all {count} states" if self._all else f"of {count} filter states"
        self._checker.log(f"\nProperty satisfied in {satisfied} {whole}.")
        return self._single(value)

    def _exists(self) -> Filtered:
        value = bool(self._selected.any())
        kind = "state" if self._all else "filter state"
        quantity = f"at least one {kind}" if value else f"no {kind}s"
        self._checker.log(f"\nProperty satisfied in {quantity}")
        return self._single(value)

    def _print(self) -> Filtered:
        log, everything = self._checker.log, self._node.kind == "printall"
        if self._outcome.values.dtype == bool:
            also = ":" if self._all else f" that are also in filter {self._chosen}:"
            log(f"\nSatisfying states{also}")
            self._print_states(self._states & np.asarray(self._outcome.values, dtype=bool))
        else:
            which = "including zeros" if everything else "non-zero only"
            log(f"\nResults ({which}) for filter {self._chosen}:")
            shown = self._states if everything else self._states & (self._outcome.values != 0)
            self._checker.print_vector(self._outcome.values, shown)
        return Filtered(self._outcome)

    def _print_states(self, states: MaskArray, limit: int | None = None) -> None:
        self._checker.print_vector(None, states, limit)
