"""Slices and their colours: those of an expanded matrix, and how they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cuda.diagram_colours import divisor
from engines.diagrams.system import DiagramSystem
from engines.host.colours import (
    CPU_SPEED,
    Order,
    SweepSpeed,
    choose_colours,
    congruent_colours,
)
from engines.host.expansion.slices import SliceColours, choose_slices, columns_of, reads_of
from engines.systems.one_sided import SweepSystem
from tests.engines.diagrams.expansion import hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.gpu.hybrids import expanded, random_hybrid


@given(
    rows=st.integers(1, 200), size=st.integers(1, 60), count=st.integers(1, 9),
    order=st.sampled_from(list(Order)),
)  # fmt: skip
def test_colours_are_those_by_congruence(rows, size, count, order):
    colours = SliceColours(rows, size, count, order)
    found = colours.of_rows(np.arange(rows))
    np.testing.assert_array_equal(found, congruent_colours(rows, size, count, order))
    slices = [len(np.unique(np.flatnonzero(found == c) // size)) for c in range(count)]
    assert slices == [max(colours.steps(c), 0) for c in range(count)]


def system_of(seed, some_known):
    hybrid = random_hybrid(seed)
    matrix, _, _ = expanded(hybrid)
    rng = np.random.default_rng(seed)
    size = hybrid.num_states
    states = np.flatnonzero(rng.random(size) < 0.6).astype(np.int32) if some_known else None
    rows = matrix if states is None else matrix.select_rows(states)
    start = np.ones(size)
    return DiagramSystem(hybrid, start, states=states), SweepSystem(rows, start, states=states)


@pytest.mark.parametrize("some_known", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("slice_size", [1, 4, 20])
def test_the_number_of_colours_is_that_chosen_for_the_matrix(slice_size, order, seed, some_known):
    ours, twin = system_of(seed, some_known)
    expected = choose_colours(twin, order, slice_size)
    found = choose_slices(reads_of(ours), order, slice_size, None, CPU_SPEED, 1000)
    assert (found.count, found.slice_size) == (expected.count, slice_size)
    assert found.fresh == pytest.approx(expected.fresh, rel=1e-12)
    assert found.order is expected.order is order


def test_the_columns_of_states_are_those_of_the_matrix():
    hybrid = random_hybrid(3)
    matrix, _, _ = expanded(hybrid)
    chosen = np.array([5, 0, 17, 5], dtype=np.int64)
    owners, columns = columns_of(hybrid, chosen)
    for place, state in enumerate(chosen):
        expected = matrix.columns[matrix.row_offsets[state] : matrix.row_offsets[state + 1]]
        np.testing.assert_array_equal(columns[owners == place], expected)


def test_a_sample_tells_about_as_much_as_all_entries():
    queues = QueueDiagrams(3, 25)
    hybrid = hybrid_matrix(queues.diagram(), queues.numbering())
    system = DiagramSystem(hybrid, np.ones(hybrid.num_states))
    whole, some = reads_of(system, 10**9), reads_of(system, 10_000)
    assert 5_000 < len(some.readers) < 12_000 < len(whole.readers)
    for colours in (SliceColours(whole.rows, 26, 4), SliceColours(whole.rows, 300, 3)):
        assert some.fresh(colours) == pytest.approx(whole.fresh(colours), abs=0.03)
    assert some.backwards() == pytest.approx(whole.backwards(), abs=0.03)


def test_slices_are_chosen_and_dear_colours_are_few():
    queues = QueueDiagrams(3, 25)
    hybrid = hybrid_matrix(queues.diagram(), queues.numbering())
    reads = reads_of(DiagramSystem(hybrid, np.ones(hybrid.num_states)))
    cheap = choose_slices(reads, Order.FORWARDS, None, None, SweepSpeed(0.0, 1e9), 10**6)
    dear = choose_slices(reads, Order.FORWARDS, None, None, SweepSpeed(1.0, 1e9), 10**6)
    assert cheap.fresh >= dear.fresh > 0.0
    assert dear.count == 2 <= cheap.count
    named = choose_slices(reads, Order.FORWARDS, None, 5, CPU_SPEED, 10**6)
    assert named.count == 5
    for wrong in ((0, None), (None, 0)):
        with pytest.raises(ValueError, match="must be at least 1, not 0"):
            choose_slices(reads, Order.FORWARDS, *wrong, CPU_SPEED, 10**6)


@given(number=st.integers(1, 2**31 - 1), dividend=st.integers(0, 2**31 - 1))
def test_the_device_divides_by_multiplying(number, dividend):
    multiplier, shift = divisor(number)
    for value in (
        dividend,
        2**31 - 1,
        dividend // number * number,
        max(dividend // number * number - 1, 0),
    ):
        assert value * multiplier < 2**64
        assert (value * multiplier) >> shift == value // number
