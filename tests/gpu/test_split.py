"""The split method: a matrix that stays in the host's memory is swept as one on the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.split import SplitSweeper, bytes_beside
from engines.cuda.sweeper import device_bytes
from engines.errors import DeviceMemoryError
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.events import told
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.engines import models
from tests.gpu import big

SIZE = 40_000
SWEEPS = 75


def memory_for(system, share):
    """Memory for the vectors and for a share of what a solve takes beside them."""
    beside = bytes_beside(system)
    return beside + int(share * (device_bytes(system) - beside))


def swept(system, matrix_format, memory):
    sweeper = CudaEngine(0, matrix_format, memory).sweeper(system, -1.0, False)
    changes = sweeper.run(SWEEPS)
    return sweeper, changes, sweeper.residual(), sweeper.values()


def chain(scaling):
    model = big.random_rates(1, SIZE)
    return SweepSystem(model.matrix, np.linspace(1.0, 2.0, SIZE), scaling=scaling)


def choices(direction):
    model = big.random_mdp(2, SIZE)
    return SweepSystem(
        model.matrix,
        np.linspace(0.0, 1.0, SIZE),
        group_offsets=model.row_group_offsets,
        direction=direction,
    )


SYSTEMS = {
    "power": lambda: replace(chain(Scaling.NONE), omega=0.9),
    "Jacobi": lambda: chain(Scaling.DIAGONAL),
    "balance": lambda: chain(Scaling.BALANCE),
    "offset": lambda: replace(chain(Scaling.NONE), offset=np.linspace(0.0, 1.0, SIZE)),
    "minimum": lambda: choices(Direction.MINIMISE),
    "maximum": lambda: choices(Direction.MAXIMISE),
}


@pytest.mark.parametrize("share", [0.25, 0.6])
@pytest.mark.parametrize("matrix_format", [Format.CSR, Format.VALUES, Format.AUTO])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_iterates_as_on_the_device(name, matrix_format, share):
    system = SYSTEMS[name]()
    whole, changes, residual, values = swept(system, matrix_format, None)
    parts, changes_split, residual_split, values_split = swept(
        system, matrix_format, memory_for(system, share)
    )
    assert not isinstance(whole, SplitSweeper)
    assert isinstance(parts, SplitSweeper)
    assert "copied from the host's memory in each iteration" in told(parts.cost.events)
    np.testing.assert_allclose(values_split, values, rtol=1e-12)
    np.testing.assert_allclose(changes_split, changes, rtol=1e-6, atol=1e-12)
    assert residual_split == pytest.approx(residual, rel=1e-6, abs=1e-12)


def test_the_memory_is_kept_to(gpu):
    system = chain(Scaling.NONE)
    memory = memory_for(system, 0.25)
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        sweeper = SplitSweeper(system, -1.0, False, 0, Format.CSR, memory=memory)
        sweeper.run(3)
        used = pool.used_bytes()
    # CuPy rounds each of a few dozen arrays up to 512 bytes.
    assert used <= memory + 2**16


def test_a_solve_ends_at_the_same_sweep():
    settings = SolverEnvironment(device=DeviceChoice.GPU, method=Method.JOR)
    model = big.random_rates(3, SIZE)
    everywhere = np.ones(SIZE, np.bool_)
    whole = solve_steady_state(model, everywhere, settings)
    memory = memory_for(SweepSystem(model.matrix, np.ones(SIZE), scaling=Scaling.BALANCE), 0.25)
    parts = solve_steady_state(model, everywhere, replace(settings, device_memory=memory))
    assert "split into" in parts.note
    assert parts.iterations == whole.iterations
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-9)


def test_blocks_that_stay_leave_room_for_those_that_travel():
    system = chain(Scaling.NONE)
    travelling = []
    for memory in (memory_for(system, 0.25), memory_for(system, 0.5), memory_for(system, 4.0)):
        sweeper = SplitSweeper(system, -1.0, False, 0, Format.CSR, memory=memory)
        travelling.append(len(sweeper._parcels))
    assert travelling[0] > travelling[1] > travelling[2] == 0


def test_no_room_beside_the_vectors_is_an_error():
    system = chain(Scaling.NONE)
    with pytest.raises(DeviceMemoryError, match="leave no room for the matrix"):
        CudaEngine(0, Format.CSR, bytes_beside(system)).sweeper(system, -1.0, False)


def test_an_answer_does_not_depend_on_the_memory():
    ruin = models.until(models.gamblers_ruin(3000, 0.4), models.mask(3001, [3000]))
    settings = SolverEnvironment(device=DeviceChoice.GPU, method=Method.JACOBI)
    system = SweepSystem(ruin.model.matrix, ruin.start)
    memory = memory_for(system, 0.3)
    whole = solve_reachability(ruin.model, ruin.unknown, ruin.start, settings)
    parts = solve_reachability(
        ruin.model, ruin.unknown, ruin.start, replace(settings, device_memory=memory)
    )
    assert parts.cost.engine.startswith("GPU")
    assert parts.iterations == whole.iterations
    np.testing.assert_array_equal(parts.values, whole.values)
