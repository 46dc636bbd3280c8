"""Colours found and systems arranged on the GPU are the CPU's, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from engines.cuda import colouring
from engines.cuda.colour_engine import CudaColourEngine
from engines.cuda.colouring import ColouringTuning
from engines.cuda.engine import CudaEngine
from engines.cuda.modules import stream
from engines.devices.colours import GaussSeidelScheme
from engines.host.colours import GPU_SPEED, Order, arrange, choose_colours, entries_by_direction
from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.engines import models
from tests.gpu import big
from tests.gpu import test_gauss_seidel as systems
from tests.gpu.test_gauss_seidel import decisions, ends


def steady(size, omega=1.0):
    """π Q = 0, with one entry at most for each row and column: PRISM's models have no more.

    The states are numbered by lot, for few levels.
    """
    system = systems.steady(size, omega=omega)
    given = system.matrix
    lot = np.random.default_rng(size).permutation(size)
    sums = csr_array((given.values, given.columns, given.row_offsets), (size, size))[lot][:, lot]
    sums.sum_duplicates()
    matrix = CsrMatrix(sums.indptr, sums.indices, sums.data, size)
    return replace(system, matrix=matrix)


def chain(size, omega=1.0):
    """A birth-death chain: as many levels as states in one of the orders."""
    matrix = big.birth_death(size).matrix
    return SweepSystem(matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE, omega=omega)


def some_decisions():
    """Every other state of an MDP has choices, the others keep their values."""
    system = decisions(400, Direction.MAXIMISE)
    states = np.arange(1, 400, 2, dtype=np.int32)
    groups = system.group_offsets
    rows = np.concatenate([np.arange(groups[s], groups[s + 1]) for s in states])
    offsets = np.append(0, np.cumsum(np.diff(groups)[states])).astype(np.int32)
    return replace(
        system,
        matrix=system.matrix.select_rows(rows),
        offset=system.offset[rows],
        states=states,
        group_offsets=offsets,
    )


def with_loops(size):
    """x = A x + b in which every state keeps a part of itself, entries in falling order."""
    rng = np.random.default_rng(size)
    rows = [
        {j: float(rng.uniform(0.1, 1.0)) for j in sorted({i, *rng.integers(0, size, 3)})[::-1]}
        for i in range(size)
    ]
    matrix = models.csr(rows)
    matrix = matrix.divide_rows(1.25 * matrix.row_sums())
    return SweepSystem(matrix, rng.random(size), rng.random(size), scaling=Scaling.DIAGONAL)


def without_entries(size):
    offsets = np.zeros(size + 1, dtype=np.int32)
    matrix = CsrMatrix(offsets, np.zeros(0, dtype=np.int32), np.zeros(0), size)
    return SweepSystem(matrix, np.ones(size), np.linspace(0.0, 1.0, size))


def hub(size):
    """All read state 0, which reads all."""
    rows = [dict.fromkeys(range(1, size), 1.0 / size)]
    rows += [{0: 0.5, (i + 1) % size: 0.25} for i in range(1, size)]
    return SweepSystem(models.csr(rows), np.ones(size), np.ones(size))


SYSTEMS = {
    "steady": lambda: steady(1500),
    "steady, relaxed": lambda: steady(700, omega=0.9),
    "two states": lambda: steady(2),
    "one state": lambda: with_loops(1),
    "chain": lambda: chain(150),
    "ends": lambda: ends(1000),
    "warps": lambda: ends(300, 40),
    "loops": lambda: with_loops(900),
    "loops stay": lambda: replace(with_loops(300), scaling=Scaling.NONE, offset=None),
    "no entries": lambda: without_entries(40),
    "hub": lambda: hub(1200),
    "maximum": lambda: decisions(800, Direction.MAXIMISE),
    "some decisions": some_decisions,
}

WANTED = [{}, {"count": 3}, {"count": 90}, {"slice_size": 7}, {"slice_size": 1, "count": 5}]


def on_the_host(system, order, slice_size=None, count=None):
    return arrange(
        scaled(system), choose_colours(scaled(system), order, slice_size, count, GPU_SPEED)
    )


def arranged(engine, system):
    """The system in colours, when all of it is there: readers here are on another stream."""
    found = engine.coloured(system, engine.order)
    stream(0).synchronize()
    return found


def on_the_device(system, order, slice_size=None, count=None, tuning=ColouringTuning()):
    engine = CudaColourEngine(0, order, slice_size, count, tuning=tuning)
    found = arranged(engine, system)
    assert found.events == ()
    return found


def expect_the_same(device, host):
    np.testing.assert_array_equal(device.order.get(), host.order)
    np.testing.assert_array_equal(device.ends, host.bounds)
    of_update = np.unique(device.colouring.of_update.get(), return_inverse=True)[1]
    np.testing.assert_array_equal(of_update, host.colouring.of_update)
    assert device.colouring.fresh == host.colouring.fresh
    assert device.colouring.order is host.colouring.order
    assert device.colouring.count == host.colouring.count
    assert device.colouring.slice_size == host.colouring.slice_size
    system = host.system
    np.testing.assert_array_equal(device.row_offsets.get(), system.matrix.row_offsets)
    np.testing.assert_array_equal(device.fresh_ends.get(), host.fresh_ends)
    np.testing.assert_array_equal(device.columns.get(), system.matrix.columns)
    np.testing.assert_array_equal(device.values.get(), system.matrix.values)
    assert device.longest_row == system.matrix.row_lengths().max()
    for name in ("offset", "group_offsets"):
        ours, theirs = getattr(device, name), getattr(system, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours.get(), theirs)


@pytest.mark.parametrize("wanted", WANTED, ids=str)
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_device_finds_the_host_s_colours_and_order(name, order, wanted):
    system = SYSTEMS[name]()
    expect_the_same(on_the_device(system, order, **wanted), on_the_host(system, order, **wanted))


@pytest.mark.usefixtures("offsets", "poison")
@pytest.mark.parametrize("name", ["steady", "ends", "loops", "some decisions"])
def test_nothing_unwritten_is_read_and_wide_offsets_change_nothing(name):
    system = SYSTEMS[name]()
    expect_the_same(on_the_device(system, Order.FORWARDS), on_the_host(system, Order.FORWARDS))


@pytest.mark.slow
@pytest.mark.parametrize("order", Order)
def test_large_systems_are_coloured_alike(order):
    for system in (steady(300_000), decisions(200_000, Direction.MINIMISE), ends(200_000, 10)):
        expect_the_same(on_the_device(system, order), on_the_host(system, order))


@pytest.mark.parametrize("order", Order)
def test_levels_of_long_chains_are_left_to_the_host(order, monkeypatch):
    system = chain(300)
    wanted = on_the_host(system, order)
    asked, find = [], colouring.find_levels
    monkeypatch.setattr(
        colouring, "find_levels", lambda *given: asked.append(given) or find(*given)
    )
    # Rounds in place follow the order of the threads, so that whether 16 suffice is the device's.
    some, none = ColouringTuning(most_rounds=16), ColouringTuning(most_rounds=0)
    expect_the_same(on_the_device(system, order, tuning=some), wanted)
    before = len(asked)
    expect_the_same(on_the_device(system, order, tuning=none), wanted)
    assert len(asked) == before + 1


def test_more_colours_than_there_is_room_for_are_the_host_s():
    system = steady(500)
    engine = CudaColourEngine(0, Order.FORWARDS, tuning=ColouringTuning(most_colours=6))
    found = arranged(engine, system)
    assert told(found.events) == "colours found on the CPU: there are more than 6"
    wanted = on_the_host(system, Order.FORWARDS)
    np.testing.assert_array_equal(found.order.get(), wanted.order)
    np.testing.assert_array_equal(found.columns.get(), wanted.system.matrix.columns)


def test_without_room_for_the_colours_the_host_finds_them():
    system = steady(3000)
    engine = CudaColourEngine(0, Order.FORWARDS, most_memory=system.bytes_per_sweep + 400_000)
    found = arranged(engine, system)
    assert "colours found on the CPU: GPU 0 has" in told(found.events)
    wanted = on_the_host(system, Order.FORWARDS)
    np.testing.assert_array_equal(found.values.get(), wanted.system.matrix.values)


@pytest.mark.parametrize("name", ["steady", "ends", "loops"])
def test_directions_are_counted(name):
    system = SYSTEMS[name]()
    before, after = entries_by_direction(scaled(system))
    engine = CudaColourEngine(0, Order.FORWARDS)
    engine.coloured(system, Order.FORWARDS)
    assert engine.opposite_is_fresher(system, Order.FORWARDS) == (after > before)
    assert engine.opposite_is_fresher(system, Order.BACKWARDS) == (before > after)
    assert engine._directions == (before, after)


@pytest.mark.parametrize("name", SYSTEMS)
def test_whole_solves_are_the_cpu_s(name):
    system = SYSTEMS[name]()
    found = []
    for engine in (CpuEngine(), CudaEngine()):
        # The same number of colours, though they cost other times on each.
        solve = GaussSeidelScheme(engine, Order.FORWARDS, None, 6)
        sweeper = solve.sweeper(system, -1.0, True)
        changes = sweeper.run(40)
        found.append((told(sweeper.events), changes, sweeper.values()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=1e-9, atol=1e-12)
