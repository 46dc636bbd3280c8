"""GMRES over stretches of sweeps on a GPU: the host's steps, and values within the proven error."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.several import SeveralEngine, SeveralSweeper
from engines.cuda.space import DeviceSpace
from engines.cuda.split import SplitSweeper, bytes_beside
from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.host.space import HostSpace
from engines.methods import stretches
from engines.methods.gmres import solve_by_stretches
from engines.methods.stretches import NAME
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.events import told
from engines.model.result import Status
from engines.solve import system as solve
from engines.solve.system import solve_system
from engines.systems.space import MOST_DIRECTIONS
from tests.engines.gmres_cases import CASES, exactly, ladder, two_valleys
from tests.engines.test_gmres import off

pytestmark = pytest.mark.gpu

NAMED = SolverEnvironment(
    method=Method.GMRES, device=DeviceChoice.GPU, max_iterations=200_000, max_iterations_named=True
)


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("case", CASES)
def test_values_are_within_the_error_that_is_proven(case):
    system = CASES[case]()
    result = solve_system(system, NAMED, Method.GMRES)
    exact = exactly(system)
    assert result.cost.engine.startswith("GPU")
    assert (result.status is Status.CONVERGED) == (result.error_estimate <= NAMED.epsilon)
    assert result.error_estimate < 1e-4
    assert off(result.values, exact) <= result.error_estimate + 1e-15 * np.max(
        exact[np.isfinite(exact)]
    )


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("case", ["two valleys", "ladder", "known states"])
@pytest.mark.parametrize("sweeps", [64, 7])
def test_the_steps_are_those_of_the_host(case, sweeps):
    system = CASES[case]()
    spaces = []
    for engine in (CudaEngine(), CpuEngine()):
        sweeper = engine.sweeper(system, -1.0, False)
        space = sweeper.space(system)
        space.begin(sweeps)
        spaces.append((space, sweeper))
    assert isinstance(spaces[0][0], DeviceSpace)
    # Later steps divide by what earlier ones have left, so that digits part.
    for step in range(3):
        ours, theirs = (space.stretch(sweeps) for space, _ in spaces)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 * 10**step, atol=1e-9)
        ours, theirs = (sweeper.values() for _, sweeper in spaces)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 * 10**step, atol=1e-12)
        for space, _ in spaces:
            space.combine()


@pytest.mark.usefixtures("poison")
def test_directions_are_forgotten_and_stretches_lengthened():
    system = two_valleys(50, 1e-3)
    sweeper = CudaEngine().sweeper(system, -1.0, False)
    space = sweeper.space(system)
    space.begin(2)
    for _ in range(MOST_DIRECTIONS + 3):
        seen = space.stretch(2)
        space.combine()
    space.forget()
    again = space.stretch(2)
    assert again.change <= seen.change
    space.lengthen(2)
    longer = space.stretch(4)
    assert longer.reach < again.reach
    least = CpuEngine().sweeper(system, -1.0, False)
    least.run(4)
    np.testing.assert_allclose(space._least.get(), least.values(), rtol=1e-12)


@pytest.mark.parametrize("matrix_format", [Format.CSR, Format.VALUES, Format.PATTERNS])
def test_formats(matrix_format):
    system = ladder(40, 0.6)
    sweeper = CudaEngine(matrix_format=matrix_format).sweeper(system, -1.0, False)
    found = solve_by_stretches(system, sweeper, NAMED, 100_000)
    assert off(sweeper.values(), exactly(system)) <= found.error


@pytest.mark.usefixtures("poison")
def test_two_solves_give_the_same_digits():
    first, second = (
        solve_system(two_valleys(300, 1e-5), NAMED, Method.GMRES).values for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_slow_automatic_solve_ends_by_it(monkeypatch):
    monkeypatch.setattr(solve, "SMALL_SYSTEM", 10)
    system = two_valleys(300, 1e-5)
    result = solve_system(system, SolverEnvironment(device=DeviceChoice.GPU), "Jacobi")
    assert result.status is Status.CONVERGED
    assert result.finished_by.startswith(NAME)
    assert result.cost.engine.startswith("GPU")
    assert off(result.values, exactly(system)) <= result.error_estimate < 1e-6


def test_blocks_on_several_devices_and_in_the_hosts_memory():
    system = two_valleys(200, 1e-4)
    shared = SeveralEngine((0, 0)).sweeper(system, -1.0, False)
    assert isinstance(shared, SeveralSweeper)
    split = SplitSweeper(system, -1.0, False, 0, Format.CSR, bytes_beside(system) + 30_000)
    # No room for vectors: the host keeps them.
    limited = CudaEngine(most_memory=100_000).sweeper(system, -1.0, False)
    assert all(isinstance(each.space(system), HostSpace) for each in (shared, split, limited))
    assert "combined on the CPU" in told(limited.cost.events)
    for sweeper in (shared, split, limited):
        found = solve_by_stretches(system, sweeper, NAMED, 10_000)
        assert found.sweeps < 2_000
        assert off(sweeper.values(), exactly(system)) <= found.error


def test_two_devices(devices):
    system = two_valleys(200, 1e-4)
    sweeper = SeveralEngine(devices).sweeper(system, -1.0, False)
    found = solve_by_stretches(system, sweeper, NAMED, 10_000)
    assert off(sweeper.values(), exactly(system)) <= found.error


def test_a_device_too_full_leaves_the_sweeps_as_they_are(monkeypatch):
    def full(*_):
        raise DeviceMemoryError("GPU 0 ran out of memory")

    monkeypatch.setattr(solve, "SMALL_SYSTEM", 10)
    monkeypatch.setattr(stretches, "REPAY", 0)
    monkeypatch.setattr(DeviceSpace, "stretch", full)
    system = two_valleys(60, 0.05)
    result = solve_system(system, SolverEnvironment(device=DeviceChoice.GPU), "Jacobi")
    assert "ran out of memory" in result.note
    assert result.status is Status.CONVERGED
    assert off(result.values, exactly(system)) <= max(result.error_estimate, 1e-9)
