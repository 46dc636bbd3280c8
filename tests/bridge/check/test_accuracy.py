"""How accurate values are said to be, and what that allows to compare."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.check.accuracy import Accuracy, compare
from bridge.check.outcome import Outcome
from engines.errors import ConvergenceError
from engines.model.decided import decided_complements, decided_values


def test_remarks_on_accuracy_are_prism_s():
    assert Accuracy(0.0).remark(0.5) == "exact floating point"
    assert Accuracy(1e-6, absolute=False).remark(0.5) == ("+/- 5.0E-7 estimated; rel err 1.0E-6")
    assert Accuracy(1e-6, guaranteed=True).remark(0.5) == "+/- 1.0E-6; rel err 2.0E-6"
    assert Accuracy(1e-6).remark(float("inf")) == "+/- 1.0E-6 estimated; rel err 0.0"


def test_values_are_compared_only_as_far_as_their_accuracy_reaches():
    values = np.array([0.2, 0.4999, np.inf])
    accuracy = Accuracy(1e-6, absolute=False)
    assert compare(values, ">=", 0.5, accuracy).tolist() == [False, False, True]
    assert compare(values, "<", 0.5, None).tolist() == [True, True, False]
    with pytest.raises(ConvergenceError, match=r"value 0\.4999 is not enough to compare"):
        compare(values, ">=", 0.4999, accuracy)
    assert compare(values, ">=", 0.4999, Accuracy(0.0)).tolist() == [False, True, True]


def test_what_rounding_may_have_moved_past_a_bound_is_refused_without_its_exact_value():
    values = np.array([0.2, 0.30000000000000004, 1.0])
    with pytest.raises(ConvergenceError, match=r"not enough to compare to bound 0\.3"):
        compare(values, "<=", 0.3, Accuracy(0.0), lambda _: None)
    assert compare(values, "<=", 0.31, Accuracy(0.0), lambda _: None).tolist() == [1, 1, 0]
    # Of the graph, PRISM's numbers are taken as they are.
    assert compare(values, ">=", 1.0, Accuracy(0.0), lambda _: None).tolist() == [0, 0, 1]


def test_a_complement_is_rounded():
    one = Outcome(np.array([1e-18, 0.0]), Accuracy(1e-25, complements=(0.0,))).one_minus()
    assert one.numbers.tolist() == [1.0, 1.0]
    assert one.accuracy.error > 1e-18
    assert Outcome(np.array([0.5]), Accuracy(0.0)).one_minus().accuracy.error == 0.0


def test_decided_values_have_no_error():
    accuracy = Accuracy(1e-6, decided=(0.0, np.inf), complements=(1.0,))
    assert accuracy.remark(np.inf) == "exact floating point"
    assert accuracy.remark(0.0) == "exact floating point"
    assert accuracy.remark(1.0) == "+/- 1.0E-6 estimated; rel err 1.0E-6"
    assert accuracy.errors(np.array([0.0, 0.5, np.inf])).tolist() == [0.0, 1e-6, 0.0]
    assert compare(np.array([0.0, np.inf]), "<=", 0.0, accuracy).tolist() == [True, False]


def test_a_complement_is_decided_as_far_as_no_tiny_probability_is_rounded_off():
    assert decided_values(np.array([0.0, 1.0, 0.5]), np.array([True, True, False])) == (0.0, 1.0)
    assert decided_values(np.array([0.0, 1.0, 1.0]), np.array([True, True, False])) == (0.0,)
    assert decided_complements(np.array([0.0, 1.0, 0.5]), (0.0, 1.0)) == (1.0, 0.0)
    assert decided_complements(np.array([0.0, 1.0, 1e-20]), (0.0, 1.0)) == (0.0,)
