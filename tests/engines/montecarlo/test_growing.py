"""Bounds on monotone formulas, decided by path prefixes of growing length."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.methods import MethodError
from engines.montecarlo.methods_growing import (
    check_growing_lengths,
    growing_lengths,
    growing_parameters,
)
from engines.montecarlo.monitor import monitor_of
from engines.montecarlo.tally import BooleanOutcomes, PathBatch, PathLengths

HIT = monitor_of(ltl.eventually(ltl.atom("hit")))


def geometric(length, first_path, num_paths, ends=math.inf):
    """Whether an event of probability 0.05 a state has happened within so many states.

    Nothing happens any more after `ends` of them.
    """
    chosen = random.Random(first_path + 7)
    states = min(length, ends)
    hits = [chosen.random() < 1 - 0.95**states for _ in range(num_paths)]
    lengths = PathLengths(num_paths, 1, states - 1)
    outcomes = BooleanOutcomes.of(np.array(hits, np.uint8))
    return PathBatch(first_path, num_paths, (outcomes,), lengths)


def parameters(longest=200, samples=20_000, confidence=0.01):
    return growing_parameters(growing_lengths(4, longest), None, confidence, samples, 0.5)


def test_lengths_double_up_to_the_longest():
    assert growing_lengths(4, 20) == (4, 8, 16, 20)
    assert growing_lengths(7, 7) == (7,)
    with pytest.raises(MethodError, match="8 to 7 are none"):
        growing_lengths(8, 7)


def test_all_lengths_together_have_the_confidence_of_hoeffding_s_bound():
    lengths = growing_lengths(4, 200)
    assert len(lengths) == 7
    exact = math.ceil(math.log(2 * 7 / 0.01) / (2 * 0.02**2))
    fixed = growing_parameters(lengths, 0.02, 0.01, None, 0.5)
    assert (fixed.num_paths, fixed.confidence) == (exact, 0.01)
    assert growing_parameters(lengths, None, 0.01, exact, 0.5).approximation <= 0.02
    assert growing_parameters(lengths, 0.02, None, exact, 0.5).confidence <= 0.01
    assert growing_parameters(lengths, None, None, None, 0.01).approximation == 0.01
    with pytest.raises(MethodError, match="all three"):
        growing_parameters(lengths, 0.1, 0.1, 100, 0.5)
    with pytest.raises(MethodError, match="leave no confidence"):
        growing_parameters(lengths, 0.01, None, 100, 0.5)
    with pytest.raises(MethodError, match="too high"):
        growing_parameters(lengths, 1e-9, None, None, 0.5)


def test_a_bound_holds_at_the_first_length_whose_estimate_is_above_it_less_the_error():
    found = check_growing_lengths(HIT, 0.9, geometric, parameters())
    assert found.holds
    assert [entry.length for entry in found.rounds] == [4, 8, 16, 32, 64]
    for entry in found.rounds:
        assert abs(entry.estimate - (1 - 0.95**entry.length)) <= found.parameters.approximation
    assert "of paths of 64 states" in found.explanation
    # Within the error below the bound is enough, further below is not.
    exact, error = 1 - 0.95**20, found.parameters.approximation
    assert check_growing_lengths(HIT, exact + error / 2, geometric, parameters(20)).holds


def test_a_bound_fails_where_the_longest_paths_are_not_above_it_less_the_error():
    found = check_growing_lengths(HIT, 0.9, geometric, parameters(longest=20))
    assert not found.holds
    assert [entry.length for entry in found.rounds] == [4, 8, 16, 20]
    assert "longer paths, by -simpathlen, may give more" in found.explanation
    limit = 1 - 0.95**20
    error = found.parameters.approximation
    assert not check_growing_lengths(HIT, limit + 2 * error, geometric, parameters(20)).holds


def test_a_bound_fails_at_once_where_no_path_goes_on():
    def ending(*numbers):
        return geometric(*numbers, ends=6)

    found = check_growing_lengths(HIT, 0.9, ending, parameters(longest=10**9))
    assert not found.holds
    # Of 6 states each, and a step for each of the monitor's two states.
    assert [entry.length for entry in found.rounds] == [4, 8]
    assert "each path ended" in found.explanation
    assert "at most" in found.explanation


def test_a_formula_that_so_many_states_decide_needs_no_longer_ones():
    bounded = monitor_of(ltl.eventually(ltl.atom("hit"), (0, 9)))
    found = check_growing_lengths(bounded, 0.99, geometric, parameters())
    assert [entry.length for entry in found.rounds] == [4, 8, 16]
    assert not found.holds


def test_what_the_rule_cannot_decide_is_refused():
    always = monitor_of(ltl.always(ltl.atom("hit")))
    with pytest.raises(MethodError, match="not monotone"):
        check_growing_lengths(always, 0.9, geometric, parameters())
    # With b - ε below 0 any estimate would be above it, 0 among them.
    with pytest.raises(MethodError, match="not above the approximation"):
        check_growing_lengths(HIT, 0.01, geometric, parameters(samples=100))
    for bound in (0.0, 1.1):
        with pytest.raises(MethodError, match="at most 1"):
            check_growing_lengths(HIT, bound, geometric, parameters())
