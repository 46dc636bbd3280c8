"""Filters over values that are not exact: which count as equal, and what is said of a result."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bridge.check.accuracy import Accuracy
from bridge.check.filters import apply_filter, has_one_value
from bridge.check.outcome import Outcome
from bridge.language.ast import Filter, Literal
from bridge.language.evaluate import Scope
from bridge.language.parser import parse_property

ANYTHING = Literal(True, "true")


def apply(kind, values, accuracy=None, operand=ANYTHING):
    values = np.array(values)
    checker = SimpleNamespace(
        mask=lambda _: np.ones(len(values), dtype=bool),
        outcome=lambda _: Outcome(values, accuracy),
        log=lambda _: None,
        print_vector=lambda *_: None,
        verbose=False,
        model=SimpleNamespace(initial_states=np.arange(len(values)) == 0),
    )
    return apply_filter(checker, Filter(kind, operand, None))


@pytest.mark.parametrize(
    ("accuracy", "equal"),
    [
        (None, [True, True, False]),
        (Accuracy(1e-9, absolute=False), [True, True, False]),
        (Accuracy(1e-9, absolute=False, guaranteed=True), [True, False, False]),
        (Accuracy(1e-4, absolute=False, guaranteed=True), [True, True, True]),
        (Accuracy(0.0), [True, False, False]),
    ],
)
def test_an_estimated_error_is_not_trusted_to_tell_values_apart(accuracy, equal):
    values = [1.0, 1.0 - 5e-6, 1.0 - 2e-5]
    assert apply("argmax", values, accuracy).vector.values.tolist() == equal


@pytest.mark.parametrize(
    ("kind", "near", "equal"),
    [("argmax", 0.905, False), ("argmax", 0.91, True), ("argmin", 1.105, True)],
)
def test_a_relative_error_is_that_of_the_value_compared(kind, near, equal):
    found = apply(kind, [1.0, near], Accuracy(0.1, absolute=False, guaranteed=True))
    assert found.vector.values.tolist() == [True, equal]


@pytest.mark.parametrize("kind", ["state", "first", "min", "max", "range"])
def test_what_takes_values_as_they_are_has_their_accuracy(kind):
    accuracy = Accuracy(1e-7)
    assert apply(kind, [0.5], accuracy).accuracy == accuracy
    assert apply(kind, [0.5]).accuracy is None


@pytest.mark.parametrize(
    ("kind", "accuracy", "least"),
    [
        ("avg", Accuracy(1e-7), 1e-7),
        ("sum", Accuracy(1e-7), 3e-7),
        ("sum", Accuracy(1e-7, absolute=False, guaranteed=True), 1e-7),
        ("avg", Accuracy(0.0), 3e-12),
        ("sum", Accuracy(0.0), 9e-12),
        # What is decided of a value is not decided of a mean.
        ("avg", Accuracy(1e-7, decided=(2.0,)), 1e-7),
    ],
)
def test_sums_add_up_absolute_errors_and_roundings(kind, accuracy, least):
    found = apply(kind, [1.0, 2.0, 3.0], accuracy).accuracy
    assert least < found.error < 1.001 * least
    assert found.guaranteed == accuracy.guaranteed
    assert not found.decided


@pytest.mark.parametrize(
    ("text", "kept"), [("(P=? [ F true ])", (0.0, 1.0)), ("R=? [ C ]", (0.0, np.inf))]
)
@pytest.mark.parametrize("kind", ["min", "max", "range"])
def test_beyond_a_decided_extreme_another_value_may_lie_but_at_the_ends(kind, text, kept):
    accuracy = Accuracy(1e-7, decided=(0.0, 0.5, 1.0, np.inf))
    found = apply(kind, [0.5, 0.6], accuracy, parse_property(text))
    assert found.accuracy.decided == kept


@pytest.mark.parametrize("kind", ["sum", "avg"])
@pytest.mark.parametrize("values", [[1.0, np.inf], [1e308, 1e308], [1.0, -0.5]])
def test_nothing_is_known_of_sums_that_are_infinite_or_of_both_signs(kind, values):
    assert apply(kind, values, Accuracy(1e-7)).accuracy is None


@pytest.mark.parametrize(
    ("ends", "accuracy", "end"),
    [
        ((1.0, 2.0), Accuracy(0.1, absolute=False), 2.0),
        ((1.0, 2.0), Accuracy(0.1), 1.0),
        ((0.0, 2.0), Accuracy(0.1, decided=(0.0,)), 2.0),
        ((0.0, 2.0), Accuracy(np.inf, decided=(0.0,)), 2.0),
        ((0.5, 1.0), Accuracy(0.1, absolute=False, decided=(1.0,)), 0.5),
    ],
)
def test_behind_a_range_stands_the_larger_error_of_its_ends(ends, accuracy, end):
    assert accuracy.less_known(ends) == end


@pytest.mark.parametrize(
    ("kind", "single"),
    [*((kind, True) for kind in ("min", "max", "count", "sum", "avg", "first", "range", "state")),
     *((kind, False) for kind in ("argmin", "argmax", "print", "printall"))],
)  # fmt: skip
def test_which_filters_have_one_value(kind, single):
    assert has_one_value(parse_property(f"filter({kind}, s)")) is single


@pytest.mark.parametrize(
    ("text", "single"), [("K+1", True), ("f>K", True), ("g", False), ("s+K", False), ("K+h", False)]
)
def test_constants_and_formulas_of_them_have_one_value(text, single):
    formulas = {"f": parse_property("K*2"), "g": parse_property("f+s")}
    scope = Scope(constants={"K": 1}, formulas=formulas)
    assert has_one_value(parse_property(text), scope) is single
