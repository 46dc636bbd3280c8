"""Solves that begin on the CPU where no GPU is in use yet, and go over to it in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda import driver
from engines.devices import choice, powers
from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.methods import coloured_rest, stretches
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.explicit import ModelKind
from engines.model.result import Status
from engines.questions.bounded import bounded_until
from engines.questions.time_bounded import time_bounded_until
from engines.solve import late_gpu
from tests.engines.late_gpu_cases import (
    AUTOMATIC,
    begun_on_cpu,
    birth_and_death,
    entries_of_ruin,
    nothing_is_open,
    ruin,
    slow_walk,
)

ON_CPU = replace(AUTOMATIC, device=DeviceChoice.CPU)
NAMED = replace(AUTOMATIC, method=Method.JACOBI, epsilon=1e-9, max_iterations=100_000)


class Elsewhere:
    """Sweeps that are the CPU's, and do not look it."""

    def __init__(self, sweeper):
        self._sweeper = sweeper
        self.cost = replace(sweeper.cost, gpus=(0,), kernel="emulated")

    @property
    def seconds(self):
        return self._sweeper.seconds

    def run(self, sweeps):
        return self._sweeper.run(sweeps)

    def residual(self):
        return self._sweeper.residual()

    def values(self):
        return self._sweeper.values()


class EmulatedGpu:
    """An engine that is in use once it has been opened, and counts how often it was."""

    gpus = (0,)

    def __init__(self):
        self.opened = 0
        self.full = False

    def open(self, _environment):
        driver.note_use()
        self.opened += 1
        return self

    def sweeper(self, system, stop_below, absolute):
        if self.full:
            raise DeviceMemoryError("the GPU is full")
        return Elsewhere(CpuEngine().sweeper(system, stop_below, absolute))


@pytest.fixture
def gpu(monkeypatch):
    """Put a GPU that nothing has used into this machine."""
    emulated = EmulatedGpu()
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    monkeypatch.setattr(driver, "gpu_refusal", lambda _number=0: None)
    monkeypatch.setattr(choice, "_cuda_engine", emulated.open)
    return emulated


@pytest.fixture(autouse=True)
def _sweeps_alone(monkeypatch):
    """Leave out what ends a slow solve of a few states before it has made many sweeps."""
    monkeypatch.setattr(stretches, "AFTER", ())


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.MDP])
def test_a_short_solve_opens_no_gpu(gpu, monkeypatch, kind):
    nothing_is_open(monkeypatch, 100_000, entries_of_ruin())
    result, exact = ruin(NAMED if kind is ModelKind.DTMC else AUTOMATIC, kind=kind)
    assert gpu.opened == 0
    assert result.cost.engine == "CPU"
    assert "GPU" not in result.note
    assert result.values == pytest.approx(exact, rel=1e-4)


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.MDP])
@pytest.mark.parametrize("environment", [AUTOMATIC, replace(AUTOMATIC, absolute=True)])
def test_a_long_solve_goes_over_and_is_as_right(gpu, monkeypatch, kind, environment):
    nothing_is_open(monkeypatch, 50, entries_of_ruin())
    result, exact = ruin(environment, kind=kind)
    assert gpu.opened == 1
    assert result.status is Status.CONVERGED
    if not result.finished_by:
        assert result.cost.engine == "CPU and GPU 0"
    assert begun_on_cpu(result) == 50
    assert ", then on GPU 0, " in result.note
    assert result.error_estimate < environment.epsilon
    assert result.values == pytest.approx(exact, rel=1e-6)
    # The next solve finds it in use.
    result, _ = ruin(environment, kind=kind)
    assert gpu.opened == 2
    assert "on the CPU" not in result.note


@pytest.mark.parametrize("sweeps", [1, 7, 1_000])
def test_a_named_method_makes_the_same_sweeps_in_two_places(gpu, monkeypatch, sweeps):
    nothing_is_open(monkeypatch, sweeps, entries_of_ruin())
    result, _ = ruin(NAMED)
    alone, _ = ruin(replace(NAMED, device=DeviceChoice.CPU))
    assert gpu.opened == 1
    assert (result.iterations, result.change) == (alone.iterations, alone.change)
    np.testing.assert_array_equal(result.values, alone.values)
    assert result.seconds >= result.sweeping_seconds


def test_a_limit_of_sweeps_is_that_of_both_together(gpu, monkeypatch):
    nothing_is_open(monkeypatch, 100, entries_of_ruin())
    for limit, opened in ((60, 0), (100, 0), (150, 1)):
        result, _ = ruin(replace(NAMED, max_iterations=limit))
        assert result.status is Status.NOT_CONVERGED
        assert result.iterations == limit
        assert gpu.opened == opened


def test_what_the_gpu_cannot_hold_ends_on_the_cpu(gpu, monkeypatch):
    nothing_is_open(monkeypatch, 100, entries_of_ruin())
    gpu.full = True
    result, _ = ruin(NAMED)
    alone, _ = ruin(replace(NAMED, device=DeviceChoice.CPU))
    assert result.cost.engine == "CPU"
    assert "the GPU is full; solving on the CPU" in result.note
    np.testing.assert_array_equal(result.values, alone.values)


def test_a_long_run_goes_over(gpu, monkeypatch):
    nothing_is_open(monkeypatch, 64, 398 + 200 * choice.ROW_IN_ORDER)
    result, exact = birth_and_death(replace(AUTOMATIC, epsilon=1e-10))
    assert gpu.opened == 1
    assert begun_on_cpu(result) == 64
    assert result.values == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        {"device": DeviceChoice.GPU},
        {"precision": Precision.MIXED},
        {"matrix_format": Format.CSR},
        {"num_devices": 2},
        {"method": Method.GAUSS_SEIDEL},
        {"method": Method.GMRES},
    ],
)
def test_what_is_asked_of_a_gpu_or_may_differ_there_is_solved_in_one_place(
    gpu, monkeypatch, change
):
    assert gpu.opened == 0
    nothing_is_open(monkeypatch, 50, 300)
    assert late_gpu.environment_before(AUTOMATIC, _system()) is not None
    assert late_gpu.environment_before(replace(AUTOMATIC, **change), _system()) is None


def test_so_is_what_is_too_small_or_too_large_for_both(gpu, monkeypatch):
    nothing_is_open(monkeypatch, 50, 300)
    assert late_gpu.environment_before(AUTOMATIC, _system(10)) is None
    monkeypatch.setattr(choice, "GPU_ENTRIES_AT_ONCE", 100)
    assert late_gpu.environment_before(AUTOMATIC, _system()) is None
    monkeypatch.setattr(choice, "GPU_ENTRIES_AT_ONCE", 1_000_000)
    assert late_gpu.environment_before(AUTOMATIC, _system()) is not None
    with monkeypatch.context() as with_large_models:
        with_large_models.setattr(choice, "MOST_STATES_WITHOUT", 10)
        assert late_gpu.environment_before(AUTOMATIC, _system()) is None
    gpu.open(AUTOMATIC)
    assert late_gpu.environment_before(AUTOMATIC, _system()) is None


@pytest.mark.usefixtures("never_at_once")
def test_the_cpu_does_not_begin_what_a_gpu_could_not_go_on_with(gpu, monkeypatch):
    """Colours and factors: both come before the solve would go over."""
    monkeypatch.setattr(coloured_rest, "COLOURS_AFTER", 16)
    monkeypatch.setattr(coloured_rest, "COLOURS_REPAY", 0)
    monkeypatch.setattr(coloured_rest, "SMALLEST_COLOURED", 0)
    nothing_is_open(monkeypatch, 3_000, entries_of_ruin())
    result, exact = ruin(AUTOMATIC)
    assert gpu.opened == 1
    assert result.finished_by == "elimination without subtraction"
    assert begun_on_cpu(result) == 3000
    assert "Gauss-Seidel" not in result.note
    assert result.values == pytest.approx(exact, rel=1e-6)
    # Factors of what a GPU is not patient with are the CPU's from the first.
    nothing_is_open(monkeypatch, 3_000, entries_of_ruin(), factors=10_000)
    result, exact = ruin(AUTOMATIC)
    assert gpu.opened == 1
    assert result.finished_by == "elimination without subtraction"
    assert result.values == pytest.approx(exact, rel=1e-9)


def test_a_known_number_of_sweeps_decides_beforehand(gpu, monkeypatch):
    model, size = slow_walk(100), 100
    target = np.arange(size) == size - 1
    remain = np.arange(size) > 0
    nothing_is_open(monkeypatch, 50, entries_of_ruin())
    short = bounded_until(model, remain, target, 50, AUTOMATIC)
    assert (gpu.opened, short.cost.engine) == (0, "CPU")
    long = bounded_until(model, remain, target, 51, AUTOMATIC)
    assert (gpu.opened, long.cost.engine) == (1, "GPU 0")
    alone = bounded_until(model, remain, target, 51, ON_CPU)
    np.testing.assert_array_equal(long.values, alone.values)


def test_so_does_a_known_number_of_terms(gpu, monkeypatch):
    asked = []

    def choose(environment, system, sweeps):
        asked.append(sweeps)
        return choice.choose_engine(replace(environment, device=DeviceChoice.CPU), system)

    monkeypatch.setattr(powers, "choose_engine", choose)
    model = replace(slow_walk(100), kind=ModelKind.CTMC)
    target, remain = np.arange(100) == 99, np.arange(100) > 0
    result = time_bounded_until(model, remain, target, 0.0, 10.0, AUTOMATIC)
    assert asked == [result.iterations]
    assert result.iterations > 10
    nothing_is_open(monkeypatch, 200, 196)
    assert choice.least_gpu_entries(200) == 197
    assert choice.least_gpu_entries(400) == 99
    assert choice.least_gpu_entries(1) == 39_201
    gpu.open(AUTOMATIC)
    assert choice.least_gpu_entries(1) == choice.GPU_ENTRIES


def _system(size=100):
    from engines.systems.one_sided import SweepSystem

    return SweepSystem(slow_walk(size).matrix, np.zeros(size))


def test_the_environment_of_the_first_sweeps_is_the_users_but_for_place_and_limit(gpu, monkeypatch):
    assert gpu.opened == 0
    nothing_is_open(monkeypatch, 50, _system().matrix.num_entries)
    wanted = SolverEnvironment(epsilon=1e-9, absolute=True, method=Method.JOR, omega=0.8)
    before = late_gpu.environment_before(wanted, _system())
    assert before is not None
    assert (before.device, before.sweep_limit) == (DeviceChoice.CPU, 50)
    same = replace(before, device=wanted.device, max_iterations=10_000, max_iterations_named=False)
    assert same == wanted
