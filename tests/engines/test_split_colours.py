"""Gauss-Seidel in colours that come to a GPU part by part: the plan, and an emulated GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.colour_parts import (
    LEAST_WINDOW,
    fewest_colours,
    parts_of_colour,
    plan_parts,
    rows_of_colour,
    sums_bytes,
)
from engines.cuda.split_colours import (
    SplitColourSweeper,
    choose_split_colours,
    split_by_colours,
)
from engines.errors import DeviceMemoryError
from engines.host.coloured_sweeper import CpuColourSweeper
from engines.host.colours import Order, arrange, choose_colours
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.systems.one_sided import Direction, SweepSystem
from tests.engines import emulated_gpus

SIZE = 3 * LEAST_WINDOW + 137
SWEEPS = 6


@pytest.fixture(params=[0, 1])
def gpu(monkeypatch, request):
    """An emulated GPU that does what is queued in an order drawn at random."""
    emulated_gpus.forget()
    yield emulated_gpus.emulate(monkeypatch, 1, seed=request.param)
    emulated_gpus.forget()


def drawn(seed, choices=False, offset=False, states=None):
    """A contracting system of rows of 0 to 4 entries, and one row that reads everything."""
    rng = np.random.default_rng(seed)
    groups = None
    rows = updates = SIZE if states is None else len(states)
    if choices:
        counts = rng.integers(1, 3, updates)
        groups = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        rows = int(groups[-1])
    lengths = rng.integers(0, 4, rows)
    lengths[rows // 2] = SIZE
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    columns = rng.integers(0, SIZE, offsets[-1]).astype(np.int32)
    columns[offsets[rows // 2] : offsets[rows // 2 + 1]] = np.arange(SIZE)
    values = rng.random(offsets[-1]) / (1 + np.repeat(lengths, lengths))
    return SweepSystem(
        CsrMatrix(offsets, columns, values, SIZE),
        rng.random(SIZE) + 0.5,
        offset=rng.random(rows) if offset else None,
        states=states,
        group_offsets=groups,
        direction=Direction.MINIMISE if choices else None,
    )


SYSTEMS = {
    "plain": lambda: drawn(1),
    "offset, relaxed": lambda: replace(drawn(2, offset=True), omega=0.9),
    "choices": lambda: drawn(3, choices=True, offset=True),
    "some states": lambda: drawn(4, states=np.arange(5, SIZE, 2, dtype=np.int32)),
}


def memory_with_x(system, colouring, room):
    """Memory for x, the sums, and so much for parts."""
    rows = np.bincount(colouring.of_update)
    if system.group_offsets is not None:
        rows = np.bincount(colouring.of_update, weights=np.diff(system.group_offsets))
    return 8 * (SIZE + int(rows.max())) + room


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("x_stays", [True, False])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_sweeps_of_the_cpu_whatever_comes_first(name, x_stays):
    system = SYSTEMS[name]()
    colouring = choose_colours(system, Order.FORWARDS, 64, 3)
    memory = memory_with_x(system, colouring, 60_000 if x_stays else 7_000)
    split = split_by_colours(system, colouring, memory)
    assert split.plan.x_stays is x_stays
    assert split.plan.device_bytes <= memory
    assert sum(map(len, split.parcels)) > 6
    sweeper = SplitColourSweeper(split, -1.0, False, 0)
    assert 0 < sweeper.travelling_bytes <= split.matrix_bytes
    whole = CpuColourSweeper(arrange(system, colouring), -1.0, False)
    np.testing.assert_allclose(sweeper.run(SWEEPS), whole.run(SWEEPS), rtol=1e-9)
    np.testing.assert_allclose(sweeper.values(), whole.values(), rtol=1e-12)
    assert sweeper.residual() == pytest.approx(whole.residual(), rel=1e-9)
    # The residual leaves the iterate as it is.
    np.testing.assert_allclose(sweeper.run(1), whole.run(1), rtol=1e-9)
    line = told(sweeper.cost.events)
    assert "copied from the host's memory in each sweep" in line
    assert f"x in {split.plan.segments} segment" in line


@pytest.mark.usefixtures("gpu")
def test_it_stops_at_the_sweep_that_meets_the_test():
    system = drawn(5)
    colouring = choose_colours(system, Order.FORWARDS, 64, 3)
    split = split_by_colours(system, colouring, memory_with_x(system, colouring, 60_000))
    changes = CpuColourSweeper(arrange(system, colouring), -1.0, False).run(20)
    threshold = float(changes[7]) * 1.001
    sweeper = SplitColourSweeper(split, threshold, False, 0)
    first = int((changes < threshold).argmax()) + 1
    assert len(sweeper.run(20)) == first
    values = sweeper.values()
    assert sweeper.run(5) == pytest.approx(changes[first - 1 : first], rel=1e-9)
    np.testing.assert_array_equal(sweeper.values(), values)


@pytest.mark.usefixtures("gpu")
def test_parts_that_stay_do_not_travel():
    system = drawn(6)
    colouring = choose_colours(system, Order.FORWARDS, 64, 3)
    travelling = []
    for room in (30_000, 60_000, 1_000_000):
        split = split_by_colours(system, colouring, memory_with_x(system, colouring, room))
        travelling.append(SplitColourSweeper(split, -1.0, False, 0).travelling_bytes)
    assert travelling[0] > travelling[1] > travelling[2] == 0


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("window", [LEAST_WINDOW, SIZE])
def test_the_parts_of_all_colours_are_the_matrix_and_fit_their_buffers(name, window):
    system = SYSTEMS[name]()
    coloured = arrange(system, choose_colours(system, Order.BACKWARDS, 16, 4))
    plan = replace(plan_parts(SIZE, SIZE, 1 << 20), window=window, buffer_bytes=4096)
    matrix = coloured.system.matrix
    found = np.zeros((matrix.num_rows, 2))
    x = np.random.default_rng(0).random(SIZE)
    for colour in range(4):
        first, _ = rows_of_colour(coloured, colour)
        for part in parts_of_colour(coloured, colour, plan):
            assert part.packed_bytes <= 4096
            rows = first + part.first_row + np.repeat(np.arange(part.rows), np.diff(part.offsets))
            products = part.values * x[part.columns + part.segment * plan.window]
            np.add.at(found, (rows, 0), products)
            np.add.at(found, (rows, 1), 1)
    np.testing.assert_array_equal(found[:, 1], matrix.row_lengths())
    row_of = np.repeat(np.arange(matrix.num_rows), matrix.row_lengths())
    wanted = np.bincount(row_of, matrix.values * x[matrix.columns], matrix.num_rows)
    np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("states", "slices", "colours", "wanted"),
    # The thesis's Kanban with t=4, 454,475 states: whole slices of a colour.
    [(454_475, 64, 2, 3551 * 64 * 8), (454_475, 64, 8, 888 * 64 * 8), (1, 64, 5, 512)],
)
def test_the_sums_take_what_equation_4_1_says(states, slices, colours, wanted):
    assert sums_bytes(states, slices, colours) == wanted


@pytest.mark.parametrize("room", [512, 4096, 100_000, 1_000_000])
@pytest.mark.parametrize("states", [1, 63, 64, 65, 10_000])
def test_no_smaller_number_of_colours_fits(states, room):
    count = fewest_colours(states, 64, room)
    assert sums_bytes(states, 64, count) <= room
    assert count == 2 or sums_bytes(states, 64, count - 1) > room


def test_colours_are_those_of_the_device_where_their_sums_fit_else_the_fewest():
    system = drawn(7)
    usual = choose_colours(system, Order.FORWARDS)
    enough = choose_split_colours(system, Order.FORWARDS, None, None, 1 << 20)
    np.testing.assert_array_equal(enough.of_update, usual.of_update)
    memory = 24_000
    few = choose_split_colours(system, Order.FORWARDS, 64, None, memory)
    assert few.count == fewest_colours(SIZE, 64, memory // 4)
    assert np.bincount(few.of_update).max() * 8 <= sums_bytes(SIZE, 64, few.count) <= memory // 4
    assert choose_split_colours(system, Order.FORWARDS, 64, 5, memory).count == 5


def test_too_little_memory_for_any_plan_is_an_error():
    with pytest.raises(DeviceMemoryError, match="hold neither"):
        plan_parts(SIZE, 100, 20_000)
    with pytest.raises(DeviceMemoryError, match="a slice of 64"):
        fewest_colours(SIZE, 64, 511)
