"""Gauss-Seidel in colours on the GPU makes the CPU's sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.devices.colours import GaussSeidelScheme
from engines.host.colours import Order
from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.model.events import told
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.gpu import big


def steady(size, seed=1, omega=1.0):
    """π Q = 0 from the uniform start."""
    matrix = big.random_rates(seed, size).matrix
    return SweepSystem(matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE, omega=omega)


def ends(size, per_row=4, omega=1.0):
    """The probability to end in state 1, with a reward on the way."""
    matrix = big.random_dtmc(size, size, per_row).matrix
    states = np.arange(2, size, dtype=np.int32)
    start = np.zeros(size)
    start[1] = 1.0
    offset = np.linspace(0.0, 1.0, size - 2)
    matrix = matrix.select_rows(states)
    return SweepSystem(matrix, start, offset, states, scaling=Scaling.DIAGONAL, omega=omega)


def decisions(size, direction):
    model = big.random_mdp(size, size)
    start = np.random.default_rng(0).uniform(0.5, 1.0, size)
    offset = np.random.default_rng(1).uniform(0.0, 5.0, model.matrix.num_rows)
    # States 0 and 1 stay for ever.
    offset[:2] = 0.0
    groups = model.row_group_offsets
    return SweepSystem(model.matrix, start, offset, group_offsets=groups, direction=direction)


SYSTEMS = {
    "steady": lambda: steady(1025),
    "steady, large": lambda: steady(40_000),
    "steady, relaxed": lambda: steady(3_000, omega=0.9),
    "two states": lambda: steady(2),
    "ends": lambda: ends(5_000),
    "ends, relaxed": lambda: ends(257, omega=1.1),
    "warps": lambda: ends(3_000, 40),
    "maximum": lambda: decisions(20_000, Direction.MAXIMISE),
    "minimum": lambda: decisions(257, Direction.MINIMISE),
}


def sweepers(system, stop_below=-1.0, absolute=False, order=Order.FORWARDS, colours=5, slices=None):
    """Plain sweeps on the CPU and on the GPU, in the same colours."""
    engines = [GaussSeidelScheme(e, order, slices, colours) for e in (CpuEngine(), CudaEngine())]
    coloured = engines[0].coloured(scaled(system), order)
    return [engine.prepared(coloured, stop_below, absolute) for engine in engines]


def expect_equal(cpu, gpu, rtol=1e-10):
    assert gpu.cost.engine.startswith("GPU")
    np.testing.assert_allclose(gpu.values(), cpu.values(), rtol=rtol, atol=1e-300)
    scale = 1.0 + np.abs(cpu.values()).max()
    assert gpu.residual() == pytest.approx(cpu.residual(), rel=1e-6, abs=1e-12 * scale)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.usefixtures("offsets")
def test_sweeps_are_the_cpu_s(name, order):
    cpu, gpu = sweepers(SYSTEMS[name](), order=order)
    # One, a stretch and a bit, several stretches: graphs from both vectors, and loose launches.
    for count in (1, 70, 200, 3):
        one, other = cpu.run(count), gpu.run(count)
        assert len(one) == len(other) == count
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-12)
        expect_equal(cpu, gpu)


@pytest.mark.parametrize("colours", [1, 2, 8, 64, 1000])
def test_any_number_of_colours(colours):
    cpu, gpu = sweepers(steady(5_000), colours=colours, slices=3)
    np.testing.assert_allclose(gpu.run(150), cpu.run(150), rtol=1e-5, atol=1e-12)
    expect_equal(cpu, gpu)


def test_rows_of_thousands_of_entries_are_taken_by_blocks():
    model = big.dense_row(100_000)
    size = model.num_states
    states = np.arange(2, size, dtype=np.int32)
    start = np.zeros(size)
    start[1] = 1.0
    system = SweepSystem(
        model.matrix.select_rows(states), start, None, states, scaling=Scaling.DIAGONAL
    )
    # Rows are short but for one, so that a thread takes each; these are long as a mean.
    cpu, gpu = sweepers(system)
    np.testing.assert_allclose(gpu.run(20), cpu.run(20), rtol=1e-5, atol=1e-12)
    expect_equal(cpu, gpu, rtol=1e-9)
    dense = ends(2_200, 2_100)
    cpu, gpu = sweepers(dense)
    assert gpu.cost.kernel == "rows_of_colour_by_block"
    np.testing.assert_allclose(gpu.run(70), cpu.run(70), rtol=1e-4, atol=1e-10)
    expect_equal(cpu, gpu)


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("name", ["steady", "ends", "maximum"])
def test_the_iterate_is_that_of_the_first_sweep_that_meets_the_test(name, absolute):
    system = SYSTEMS[name]()
    cpu, gpu = sweepers(system, 1e-7, absolute)
    one, other = cpu.run(4_000), gpu.run(4_000)
    assert len(one) == len(other) < 4_000
    assert other[-1] < 1e-7
    expect_equal(cpu, gpu, 1e-9)
    # Asked again, it stays there.
    before = gpu.values()
    assert len(gpu.run(100)) == 1
    np.testing.assert_array_equal(gpu.values(), before)


def test_watched_sweeps_leave_a_swing():
    size = 30_000
    # A cycle of unequal rates.
    rates = 1.0 + 0.5 * (np.arange(size) % 5)
    successor = (np.arange(size) + 1) % size
    model = big.from_triples(big.random_rates(0, 2).kind, size, np.arange(size), successor, rates)
    system = SweepSystem(model.matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE)
    found = []
    for engine in (CpuEngine(), CudaEngine()):
        sweeper = GaussSeidelScheme(engine, Order.BACKWARDS, 1, 2).sweeper(system, 1e-8, False)
        made = 0
        while made < 300:
            made += len(sweeper.run(300 - made))
        found.append((told(sweeper.events), sweeper.values()))
    assert "oscillating" in found[0][0]
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)


@pytest.mark.usefixtures("poison")
def test_no_memory_is_read_before_it_is_written():
    for name in ("steady", "ends", "maximum"):
        cpu, gpu = sweepers(SYSTEMS[name]())
        cpu.run(66)
        gpu.run(66)
        expect_equal(cpu, gpu)


def test_two_solves_give_the_same_bits():
    first, second = (sweepers(steady(20_000))[1] for _ in range(2))
    np.testing.assert_array_equal(first.run(130), second.run(130))
    np.testing.assert_array_equal(first.values(), second.values())
