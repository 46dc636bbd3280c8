"""What happens when the device is too small, is not wanted, or is handed arrays of other types."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from engines.cuda import sweeper as cuda
from engines.cuda.driver import gpu_refusal
from engines.cuda.engine import CudaEngine
from engines.devices.choice import choose_engine
from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.events import told
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Scaling, SweepSystem
from tests.engines import models
from tests.gpu import big

GPU = SolverEnvironment(method=Method.JACOBI, device=DeviceChoice.GPU)
RUIN = models.until(models.gamblers_ruin(50, 0.4), models.mask(51, [50]))


TINY = replace(GPU, device_memory=1000)


def test_a_model_that_does_not_fit_is_solved_on_the_cpu_with_a_note():
    result = solve_reachability(RUIN.model, RUIN.unknown, RUIN.start, TINY)
    assert result.cost.engine == "CPU"
    assert result.status is Status.CONVERGED
    assert "GPU 0: the vectors of 51 states leave no room for the matrix" in result.note
    assert "solving on the CPU" in result.note


def test_an_allocation_that_fails_is_solved_on_the_cpu_with_a_note(gpu):
    def refuse(size):
        raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)

    with gpu.cuda.using_allocator(refuse):
        result = solve_reachability(RUIN.model, RUIN.unknown, RUIN.start, GPU)
    assert result.cost.engine == "CPU"
    assert "ran out of memory" in result.note
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("scaling", Scaling)
@pytest.mark.parametrize("size", [1000, 300_000])
def test_the_estimate_covers_what_a_solve_takes(gpu, scaling, size):
    model = big.random_rates(1, size)
    system = SweepSystem(model.matrix, np.ones(size), scaling=scaling)
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        sweeper = CudaEngine().sweeper(system, -1.0, True)
        sweeper.run(70)
        sweeper.residual()
        taken = pool.total_bytes()
    # CuPy rounds each of a dozen arrays up to 512 bytes, and small pools further.
    assert taken <= 1.1 * cuda.device_bytes(system) + 2**20


def test_nothing_stays_on_the_device_after_a_solve(gpu):
    pool = gpu.cuda.MemoryPool()
    model = big.random_rates(1, 20_000)
    with gpu.cuda.using_allocator(pool.malloc):
        solve_steady_state(model, np.ones(20_000, np.bool_), replace(GPU, method=Method.JOR))
        gpu.cuda.Device().synchronize()
        gc.collect()
        assert pool.used_bytes() == 0


def test_many_solves_do_not_fill_the_device(gpu):
    pool = gpu.cuda.MemoryPool()
    model = big.random_dtmc(1, 20_000)
    unknown = np.arange(20_000) > 1
    start = (np.arange(20_000) == 1).astype(float)
    with gpu.cuda.using_allocator(pool.malloc):
        solve_reachability(model, unknown, start, GPU)
        once = pool.total_bytes()
        for _ in range(10):
            solve_reachability(model, unknown, start, GPU)
        # Each solve has a stream of its own, and CuPy keeps a pool of blocks for each stream.
        assert pool.total_bytes() <= 3 * once


def test_small_models_stay_on_the_cpu_unless_the_gpu_is_asked_for():
    system = SweepSystem(RUIN.model.matrix, RUIN.start)
    automatic = SolverEnvironment(device=DeviceChoice.AUTO)
    assert choose_engine(automatic, system)[0].gpus == ()
    assert choose_engine(GPU, system)[0].gpus == (0,)
    large = SweepSystem(big.random_dtmc(1, 50_000).matrix, np.zeros(50_000))
    assert choose_engine(automatic, large)[0].gpus == (0,)


def test_a_device_that_is_not_there_is_named():
    assert "there is no device 99" in gpu_refusal(99)
    with pytest.raises(UnsupportedError, match="no GPU can be used: there is no device 99"):
        solve_reachability(RUIN.model, RUIN.unknown, RUIN.start, replace(GPU, device_number=99))
    large = SweepSystem(big.random_dtmc(1, 50_000).matrix, np.zeros(50_000))
    engine, events = choose_engine(SolverEnvironment(device_number=99), large)
    assert engine.gpus == ()
    assert told(events).startswith("GPU not used: there is no device 99")


@pytest.mark.parametrize("states_as", [np.int32, np.int64])
def test_arrays_of_other_types_mean_the_same(states_as):
    # 64-bit columns, offsets of either width, a start of booleans.
    matrix = RUIN.model.matrix
    expected = solve_reachability(RUIN.model, RUIN.unknown, RUIN.start, GPU)
    others = {
        "columns": matrix.columns.astype(np.int64),
        "row_offsets": matrix.row_offsets.astype(states_as),
    }
    model = replace(RUIN.model, matrix=replace(matrix, **others))
    result = solve_reachability(model, RUIN.unknown, RUIN.start > 0, GPU)
    np.testing.assert_array_equal(result.values, expected.values)
    everywhere = np.ones(51, dtype=np.bool_)
    cycle = models.cycle(51)
    wide = replace(
        cycle, matrix=replace(cycle.matrix, columns=cycle.matrix.columns.astype(np.int64))
    )
    jor = replace(GPU, method=Method.JOR)
    np.testing.assert_array_equal(
        solve_steady_state(wide, everywhere, jor).values,
        solve_steady_state(cycle, everywhere, jor).values,
    )
