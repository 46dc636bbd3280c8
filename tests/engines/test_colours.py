"""Colours of Gauss-Seidel: which states are computed together, and who sees fresh values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.host.coloured_sweeper import CpuColourSweeper
from engines.host.colouring import dependencies
from engines.host.colours import (
    Colouring,
    Order,
    SweepSpeed,
    arrange,
    choose_colours,
    congruent_colours,
)
from engines.systems.moves import MOVES, step_keys
from engines.systems.one_sided import Direction, SweepSystem
from tests.engines import models

ORDERS = list(Order)


def chain_system(seed, size=40, omega=1.0, known=True):
    """x = b + A x on most states of a random chain; the others keep their values."""
    rng = np.random.default_rng(seed)
    model = models.random_dtmc(seed, size)
    states = np.flatnonzero(rng.random(size) < 0.8).astype(np.int32) if known else None
    matrix = model.matrix if states is None else model.matrix.select_rows(states)
    offset = rng.uniform(0.0, 1.0, matrix.num_rows)
    return SweepSystem(matrix, rng.uniform(0.5, 2.0, size), offset, states, omega=omega)


def mdp_system(seed, size=30, direction=Direction.MAXIMISE):
    rng = np.random.default_rng(seed)
    model = models.random_mdp(seed, size)
    offset = rng.uniform(0.0, 1.0, model.matrix.num_rows)
    start = rng.uniform(0.0, 1.0, size)
    groups = model.row_group_offsets
    return SweepSystem(model.matrix, start, offset, group_offsets=groups, direction=direction)


def rows_of(system, update):
    """The rows of an update as (offset, [(column, value)])."""
    groups, matrix = system.group_offsets, system.matrix
    rows = [update] if groups is None else range(groups[update], groups[update + 1])
    for row in rows:
        entries = range(matrix.row_offsets[row], matrix.row_offsets[row + 1])
        pairs = [(int(matrix.columns[e]), float(matrix.values[e])) for e in entries]
        yield (0.0 if system.offset is None else float(system.offset[row])), pairs


def state_of(system, update):
    return update if system.states is None else int(system.states[update])


def plain_sweep(system, colours, x):
    """One sweep by plain loops: within a colour all read what was there before the colour."""
    x = list(x)
    for colour in range(max(colours) + 1):
        written = {}
        for update in np.flatnonzero(np.asarray(colours) == colour):
            totals = [b + sum(a * x[j] for j, a in row) for b, row in rows_of(system, update)]
            best = totals[0]
            if system.group_offsets is not None:
                best = (min if system.direction is Direction.MINIMISE else max)(totals)
            state = state_of(system, update)
            written[state] = (1.0 - system.omega) * x[state] + system.omega * best
        for state, value in written.items():
            x[state] = value
    return np.array(x)


def sequential_sweep(system, x, backwards):
    """One sweep of Gauss-Seidel, state by state."""
    updates = range(system.num_updates)
    order = list(reversed(updates)) if backwards else list(updates)
    colours = np.empty(len(order), dtype=int)
    colours[order] = np.arange(len(order))
    return plain_sweep(system, colours, x)


def coloured(system, colours):
    colours = np.asarray(colours, dtype=np.int32)
    return arrange(system, Colouring(colours, int(colours.max()) + 1, 1, 0.0, Order.FORWARDS))


SYSTEMS = [
    pytest.param(chain_system(1), id="chain"),
    pytest.param(chain_system(2, known=False), id="all states"),
    pytest.param(chain_system(3, omega=0.8), id="relaxed"),
    pytest.param(replace(chain_system(4), offset=None), id="no offset"),
    pytest.param(mdp_system(5), id="maximum"),
    pytest.param(mdp_system(6, direction=Direction.MINIMISE), id="minimum"),
]


@pytest.mark.parametrize("count", [1, 2, 5, 60])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_sweep_is_that_of_plain_loops_for_any_colours(system, count):
    colours = np.random.default_rng(count).integers(0, count, system.num_updates)
    _, colours = np.unique(colours, return_inverse=True)
    sweeper = CpuColourSweeper(coloured(system, colours), -1.0, False)
    x = system.start
    for _ in range(3):
        (change,) = sweeper.run(1)
        after = plain_sweep(system, colours, x)
        np.testing.assert_allclose(sweeper.values(), after, rtol=1e-14)
        assert change == pytest.approx(np.max(np.abs(after - x) / np.abs(x)), rel=1e-9)
        x = after
    one_colour = np.zeros(system.num_updates, dtype=int)
    jacobi = plain_sweep(replace(system, omega=1.0), one_colour, x)
    assert sweeper.residual() == pytest.approx(np.max(np.abs(jacobi - x)), rel=1e-9)
    # Asking for the residual leaves no trace.
    sweeper.run(1)
    np.testing.assert_allclose(sweeper.values(), plain_sweep(system, colours, x), rtol=1e-14)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("system", SYSTEMS)
def test_levels_sweep_as_sequential_gauss_seidel_does(system, backwards):
    levels = dependencies(system).levels(backwards)
    sweeper = CpuColourSweeper(coloured(system, levels), -1.0, False)
    x = system.start
    for _ in range(3):
        sweeper.run(1)
        x = sequential_sweep(system, x, backwards)
        np.testing.assert_allclose(sweeper.values(), x, rtol=1e-13)


@pytest.mark.parametrize("pieces", [2, 7])
def test_the_cut_of_the_work_changes_no_bit(monkeypatch, pieces):
    system = arrange(chain_system(8, 300), choose_colours(chain_system(8, 300), Order.FORWARDS))
    whole = CpuColourSweeper(system, -1.0, False)
    monkeypatch.setattr("engines.host.compiled.shares.threads_for", lambda _entries: pieces)
    cut = CpuColourSweeper(system, -1.0, False)
    np.testing.assert_array_equal(whole.run(20), cut.run(20))
    np.testing.assert_array_equal(whole.values(), cut.values())


def test_slices_are_coloured_by_congruence():
    forwards = congruent_colours(10, 2, 3, Order.FORWARDS)
    np.testing.assert_array_equal(forwards, [0, 0, 1, 1, 2, 2, 0, 0, 1, 1])
    backwards = congruent_colours(10, 2, 3, Order.BACKWARDS)
    np.testing.assert_array_equal(backwards, [1, 1, 0, 0, 2, 2, 1, 1, 0, 0])


def plain_share(system, colours):
    """The share of entries between computed states whose value is of an earlier colour."""
    update_of = {state_of(system, update): update for update in range(system.num_updates)}
    fresh = entries = 0
    for update in range(system.num_updates):
        for _, row in rows_of(system, update):
            for column, _ in row:
                other = update_of.get(column, update)
                entries += other != update
                fresh += colours[other] < colours[update]
    return fresh / max(entries, 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_share_of_fresh_entries_is_counted(system, order):
    for keywords in ({}, {"count": 3}, {"slice_size": 4}, {"slice_size": 4, "count": 3}):
        colouring = choose_colours(system, order, **keywords)
        assert colouring.order is order
        assert colouring.slice_size == keywords.get("slice_size", 1)
        assert colouring.fresh == pytest.approx(plain_share(system, colouring.of_update))
        assert set(colouring.of_update) == set(range(colouring.count))
        assert colouring.count <= keywords.get("count", system.num_updates)


@pytest.mark.parametrize("order", ORDERS)
def test_the_predictor_takes_the_number_of_colours_with_most_fresh_entries(order):
    system = chain_system(12, 90)
    best = choose_colours(system, order, slice_size=3)
    for count in range(2, 9):
        other = choose_colours(system, order, slice_size=3, count=count)
        assert best.fresh >= other.fresh


def test_dear_colours_are_few():
    system = models.recurrent(3, 400).matrix
    system = SweepSystem(system, np.ones(400))
    counts = [
        choose_colours(system, Order.FORWARDS, speed=SweepSpeed(seconds, 1e9)).count
        for seconds in (1e-12, 1.0)
    ]
    assert counts[0] > counts[1]
    assert counts[1] <= 8


def plain_weight(system, colours):
    """The same share by weight; the entries of all rows of an update together weigh one."""
    update_of = {state_of(system, update): update for update in range(system.num_updates)}
    fresh = 0.0
    for update in range(system.num_updates):
        entries = [entry for _, row in rows_of(system, update) for entry in row]
        total = sum(value for _, value in entries)
        for column, value in entries:
            other = update_of.get(column, update)
            fresh += value / total * (colours[other] < colours[update])
    return fresh


@given(seed=st.integers(0, 10_000), count=st.integers(1, 9), backwards=st.booleans())
def test_moving_states_never_makes_less_weight_fresh(seed, count, backwards):
    system = chain_system(seed, 25) if seed % 2 else mdp_system(seed, 25)
    reads = dependencies(system)
    colours = np.random.default_rng(seed).integers(0, count, system.num_updates).astype(np.int32)
    before = plain_weight(system, colours)
    reads.move_to_better_colours(colours, count, reads.levels(backwards))
    # Weights are rounded to 2⁻³⁰.
    assert plain_weight(system, colours) >= before - 1e-6
    assert ((colours >= 0) & (colours < count)).all()


def plain_moves(reads, colours, count, levels):
    """The same moves by plain loops over dictionaries of whole weights."""
    weight = {}
    for row in range(reads.updates):
        for entry in range(reads.offsets[row], reads.offsets[row + 1]):
            other = int(reads.reads[entry])
            if other >= 0 and other != row:
                weight[row, other] = weight.get((row, other), 0) + int(reads.weights[entry])
    neighbours = [set() for _ in range(reads.updates)]
    for row, other in weight:
        neighbours[row].add(other)
        neighbours[other].add(row)

    def fresh(row, colour):
        """The weight that is fresh around a state if it has a colour."""
        seen = (weight.get((row, n), 0) for n in neighbours[row] if colours[n] < colour)
        shown = (weight.get((n, row), 0) for n in neighbours[row] if colours[n] > colour)
        return sum(seen) + sum(shown)

    for move in MOVES:
        keys, steps = step_keys(levels, move)
        for step in range(steps):
            wishes = {}
            for row in np.flatnonzero(keys == step).tolist():
                best = max(range(count), key=lambda colour, row=row: (fresh(row, colour), -colour))
                wishes[row] = (fresh(row, best) - fresh(row, colours[row]), -row, best)
            for row, (gain, place, best) in wishes.items():
                others = (wishes[n] for n in neighbours[row] if n in wishes)
                if gain > 0 and all((gain, place) > other[:2] for other in others):
                    colours[row] = best


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 9), backwards=st.booleans())
def test_moves_are_those_of_plain_loops(seed, count, backwards):
    system = chain_system(seed, 25) if seed % 2 else mdp_system(seed, 25)
    reads = dependencies(system)
    levels = reads.levels(backwards)
    colours = np.random.default_rng(seed).integers(0, count, system.num_updates).astype(np.int32)
    wanted = colours.tolist()
    plain_moves(reads, wanted, count, levels)
    reads.move_to_better_colours(colours, count, levels)
    assert colours.tolist() == wanted


@pytest.mark.parametrize("threads", [2, 5])
def test_colours_do_not_depend_on_the_number_of_threads(monkeypatch, threads):
    systems = [chain_system(3, 400), mdp_system(4, 300)]
    alone = [choose_colours(system, Order.FORWARDS) for system in systems]
    for module in ("compiled.shares", "colouring"):
        monkeypatch.setattr(f"engines.host.{module}.threads_for", lambda _entries: threads)
    for system, before in zip(systems, alone, strict=True):
        found = choose_colours(system, Order.FORWARDS)
        np.testing.assert_array_equal(found.of_update, before.of_update)
        assert (found.count, found.fresh) == (before.count, before.fresh)


def test_every_state_has_one_step_of_each_pass_and_bands_go_by_levels():
    levels = np.random.default_rng(0).integers(0, 600, 5_000).astype(np.int32)
    for move in MOVES:
        keys, steps = step_keys(levels, move)
        assert steps == move.bands * move.classes
        assert set(keys % move.classes) == set(range(move.classes))
        bands = keys // move.classes
        assert (np.diff(bands[np.argsort(levels, kind="stable")]) >= 0).all()
        assert bands.max() == move.bands - 1
        # Classes are about equal.
        sizes = np.bincount(keys % move.classes)
        assert sizes.min() > 0.9 * sizes.max()


def test_no_level_is_one_band():
    keys, steps = step_keys(np.zeros(0, dtype=np.int32), MOVES[0])
    assert (len(keys), steps) == (0, MOVES[0].classes)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 9))
def test_arranging_only_renumbers(seed, count):
    system = chain_system(seed, 25) if seed % 2 else mdp_system(seed, 25)
    colours = np.random.default_rng(seed).integers(0, count, system.num_updates)
    _, colours = np.unique(colours, return_inverse=True)
    there = coloured(system, colours)
    np.testing.assert_array_equal(there.in_model_order(there.system.start), system.start)
    assert sorted(there.order) == list(range(system.num_states))
    for position in range(system.num_updates):
        colour = int(np.searchsorted(there.bounds, position, side="right")) - 1
        state = int(there.order[position])
        update = position_of(system, state)
        assert colours[update] == colour
        new_rows = list(rows_of(there.system, position))
        for (b, old), (c, new) in zip(rows_of(system, update), new_rows, strict=True):
            assert b == c
            assert sorted(old) == sorted((int(there.order[column]), value) for column, value in new)
    starts = there.system.matrix.row_offsets
    for row, end in enumerate(there.fresh_ends):
        assert starts[row] <= end <= starts[row + 1]


def position_of(system, state):
    return state if system.states is None else int(np.flatnonzero(system.states == state)[0])


@pytest.mark.parametrize("keywords", [{"slice_size": 0}, {"count": 0}, {"count": -3}])
def test_numbers_below_one_are_refused(keywords):
    with pytest.raises(ValueError, match="at least 1"):
        choose_colours(chain_system(1), Order.FORWARDS, **keywords)
