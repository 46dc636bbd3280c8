"""Gauss-Seidel in colours that come part by part makes the sweeps of colours on the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.colour_engine import CudaColourEngine
from engines.cuda.colour_parts import BESIDE
from engines.cuda.split_colours import SplitColoured, SplitColourSweeper
from engines.errors import DeviceMemoryError
from engines.host.colours import Order
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.events import told
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.gpu import big
from tests.gpu.test_gauss_seidel import decisions, ends, steady

SIZE = 40_000
SWEEPS = 40
SYSTEMS = {
    "steady": lambda: steady(SIZE),
    "steady, relaxed": lambda: steady(SIZE, omega=0.9),
    "ends": lambda: ends(SIZE),
    "ends, relaxed": lambda: ends(SIZE, omega=1.1),
    "warps": lambda: ends(20_000, 40),
    "maximum": lambda: decisions(SIZE, Direction.MAXIMISE),
    "minimum": lambda: decisions(SIZE, Direction.MINIMISE),
}


def swept(system, memory, order=Order.FORWARDS, colours=5):
    engine = CudaColourEngine(0, order, None, colours, memory)
    coloured = engine.coloured(system, order)
    sweeper = engine.prepared(coloured, -1.0, False)
    changes = sweeper.run(SWEEPS)
    return coloured, sweeper, changes, sweeper.residual(), sweeper.values()


def bytes_of_matrix(system):
    return 12 * system.matrix.num_entries


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("share", ["x stays", "x travels"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_sweeps_are_those_on_the_device(name, share, order):
    system = SYSTEMS[name]()
    whole = swept(system, None, order)
    memory = 8 * system.num_states + 4 * system.matrix.num_rows + bytes_of_matrix(system) // 8
    if share == "x travels":
        engine = CudaColourEngine(0, order, None, 5, memory)
        # Beside the sums of a colour there is room for three quarters of x.
        sums = engine.coloured(system, order).plan.sums
        memory = BESIDE + 8 * sums + 6 * system.num_states
    parts = swept(system, memory, order)
    assert not isinstance(whole[0], SplitColoured)
    assert isinstance(parts[0], SplitColoured)
    assert parts[0].plan.x_stays is (share == "x stays")
    np.testing.assert_allclose(parts[2], whole[2], rtol=1e-5, atol=1e-12)
    assert parts[3] == pytest.approx(whole[3], rel=1e-5, abs=1e-12)
    np.testing.assert_allclose(parts[4], whole[4], rtol=1e-10, atol=1e-300)
    assert "copied from the host's memory in each sweep" in told(parts[1].cost.events)


def test_a_chain_four_times_the_memory_ends_at_the_same_sweep():
    model = big.random_rates(3, SIZE)
    everywhere = np.ones(SIZE, np.bool_)
    settings = SolverEnvironment(device=DeviceChoice.GPU, method=Method.GAUSS_SEIDEL)
    whole = solve_steady_state(model, everywhere, settings)
    memory = bytes_of_matrix(SweepSystem(model.matrix, np.ones(SIZE))) // 4
    parts = solve_steady_state(model, everywhere, replace(settings, device_memory=memory))
    assert parts.cost.engine == "GPU 0"
    assert "the colours are split into" in parts.note
    assert parts.iterations == whole.iterations
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-9)


def test_the_memory_is_kept_to(gpu):
    system = ends(SIZE)
    memory = 20 * SIZE
    engine = CudaColourEngine(0, Order.FORWARDS, None, 5, memory)
    coloured = engine.coloured(system, Order.FORWARDS)
    assert coloured.plan.device_bytes <= memory
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        sweeper = SplitColourSweeper(coloured, -1.0, False, 0)
        sweeper.run(3)
        assert pool.used_bytes() <= memory + BESIDE


def test_no_room_for_a_slice_is_an_error():
    system = replace(ends(5_000), scaling=Scaling.DIAGONAL)
    with pytest.raises(DeviceMemoryError):
        CudaColourEngine(0, Order.FORWARDS, most_memory=4_000).coloured(system, Order.FORWARDS)
