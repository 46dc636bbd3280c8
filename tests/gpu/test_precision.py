"""Sweeps in single precision on the GPU: within their bound in every format, and then in double."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.several import SeveralEngine
from engines.errors import UnsupportedError
from engines.host.engine import CpuEngine
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.result import Status
from engines.solve.system import solve_system
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.precision import DOWN, TO_NEAREST
from tests.gpu.test_formats import MATRICES, systems

FORMATS = [f for f in Format if f not in (Format.AUTO, Format.SEGMENTS, Format.PANELS)]
OWN_VALUES = ("csr",)
GPU = SolverEnvironment(device=DeviceChoice.GPU, max_iterations=100_000)
CPU = replace(GPU, device=DeviceChoice.CPU)
NAMES = ("33 states", "tandem-like", "uneven", "dense rows", "rows of warps", "random")
every_format = pytest.mark.parametrize("matrix_format", FORMATS)


def single_and_exact(system, matrix_format, *, nearest, factor=1.0):
    """Sweeps in single precision on the GPU, and the same in double precision on the CPU."""
    double = CudaEngine(0, matrix_format).sweeper(system, -1.0, False)
    single = double.in_single(-1.0, nearest, factor)
    return double, single, CpuEngine().sweeper(system, -1.0, False)


def expect_within_bound(single, exact, *, nearest, sweeps=(1, 2, 70, 130)):
    unit = TO_NEAREST if nearest else DOWN
    assert single.rounding == unit * (2 if single.cost.format in OWN_VALUES else 1)
    made = 0
    for count in sweeps:
        changes = single.run(count)
        assert len(changes) == count
        exact.run(count)
        made += count
        found, values = single.values(), exact.values()
        bound = np.expm1((made + 2) * (single.rounding + 2.0**-40))
        # The last states of a row's subset never change and are rounded once.
        assert np.all(np.abs(found - values) <= bound * values + 1e-30)
        if not nearest:
            assert np.all(found <= values * (1.0 + made * 2.0**-40))


@every_format
@pytest.mark.parametrize("nearest", [False, True], ids=["down", "nearest"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("offsets")
def test_sweeps_of_chains_stay_within_their_bound(name, matrix_format, nearest):
    for _, system in systems(MATRICES[name]()):
        _, single, exact = single_and_exact(system, matrix_format, nearest=nearest)
        expect_within_bound(single, exact, nearest=nearest)


@every_format
@pytest.mark.parametrize("direction", list(Direction))
def test_sweeps_of_choices_stay_within_their_bound(direction, matrix_format):
    matrix = MATRICES["tandem-like"]()
    groups = np.arange(0, matrix.num_rows + 1, 2, dtype=np.int32)
    size = matrix.num_rows
    offset = np.arange(size) % 3 / 4.0
    states = np.arange(0, size, 2, dtype=np.int32)
    system = SweepSystem(
        *(matrix, np.zeros(size), offset, states), group_offsets=groups, direction=direction
    )
    _, single, exact = single_and_exact(system, matrix_format, nearest=False)
    expect_within_bound(single, exact, nearest=False)


@every_format
def test_what_single_precision_has_found_is_handed_over(matrix_format):
    systems_of = dict(systems(MATRICES["tandem-like"]()))
    system = systems_of["subset"]
    double, single, _ = single_and_exact(system, matrix_format, nearest=False)
    for sweeps in (3, 4):
        single.run(sweeps - 1)
        before = single.values()
        single.run(1)
        double.go_on_from(single)
        found = double.values()
        fixed = np.ones(system.num_states, np.bool_)
        fixed[system.states] = False
        np.testing.assert_array_equal(found[fixed], system.start[fixed])
        mean = (single.values() + before) / 2.0
        np.testing.assert_array_equal(found[~fixed], mean[~fixed])
    double.run(3)
    np.testing.assert_array_equal(double.values()[fixed], system.start[fixed])


def test_a_factor_leaves_relative_changes_as_they_are():
    system = dict(systems(MATRICES["tandem-like"]()))["balance"]
    _, plain, _ = single_and_exact(system, Format.PATTERNS, nearest=True)
    _, raised, _ = single_and_exact(system, Format.PATTERNS, nearest=True, factor=2.0**90)
    # Beyond these, some values are so small that their changes are cut.
    np.testing.assert_array_equal(plain.run(20), raised.run(20))
    np.testing.assert_array_equal(plain.values(), raised.values())


@every_format
def test_a_test_that_is_met_stops_the_sweeps(matrix_format):
    system = dict(systems(MATRICES["tandem-like"]()))["jacobi"]
    double = CudaEngine(0, matrix_format).sweeper(system, -1.0, False)
    changes = double.in_single(1e-4, False).run(2000)
    assert changes[-1] < 1e-4 <= changes[:-1].min()
    again = double.in_single(-1.0, False).run(2000)
    np.testing.assert_array_equal(changes, again[: len(changes)])
    # At the end nothing moves any more, or by roundings only.
    assert again[-1] <= 8 * DOWN


@pytest.mark.parametrize("method", [Method.JACOBI, Method.AUTO])
@pytest.mark.parametrize("name", ["offset", "jacobi"])
@pytest.mark.parametrize("matrix_format", [Format.AUTO, Format.CSR, Format.PATTERNS])
def test_mixed_precision_reaches_the_answer_of_double(name, method, matrix_format):
    system = replace(dict(systems(MATRICES["tandem-like"]()))[name], start=np.zeros(3000))
    settings = replace(GPU, method=method, epsilon=1e-10, matrix_format=matrix_format)
    double = solve_system(system, settings, "m")
    mixed = solve_system(system, replace(settings, precision=Precision.MIXED), "m")
    single = solve_system(system, replace(settings, precision=Precision.SINGLE), "m")
    assert double.status is mixed.status is Status.CONVERGED
    # The sweeps in double precision at the end may meet the test of a named method.
    assert single.status is Status.CHANGE_ONLY or method is Method.JACOBI
    there = double.values > 0.0
    exact = double.values[there]
    assert np.max(np.abs(mixed.values[there] / exact - 1.0)) < 1e-9
    error = np.max(np.abs(single.values[there] / exact - 1.0))
    assert error <= single.error_estimate
    assert single.error_estimate >= single.rounding > 1e-9
    assert "iterations in single precision, then" in mixed.note
    cpu = solve_system(system, replace(settings, device=DeviceChoice.CPU), "m")
    assert np.max(np.abs(mixed.values[there] / cpu.values[there] - 1.0)) < 1e-9


def test_sums_of_segments_and_split_matrices_say_that_they_stay_in_double_precision():
    system = dict(systems(MATRICES["tandem-like"]()))["offset"]
    sweeper = CudaEngine(0, Format.SEGMENTS).sweeper(system, -1.0, False)
    with pytest.raises(UnsupportedError, match="segments are swept in double"):
        sweeper.in_single(-1.0, False)
    several = SeveralEngine((0, 0)).sweeper(system, -1.0, False)
    with pytest.raises(UnsupportedError, match="several GPUs"):
        several.in_single(-1.0, False)
    settings = replace(GPU, matrix_format=Format.SEGMENTS, precision=Precision.MIXED)
    rising = replace(system, start=np.zeros(3000))
    result = solve_system(rising, settings, "m")
    assert "-gpuprecision mixed: sums of segments" in result.note
    assert result.status is Status.CONVERGED


def test_memory_that_ends_leaves_double_precision(gpu, monkeypatch):
    system = dict(systems(MATRICES["tandem-like"]()))["offset"]
    error = gpu.cuda.memory.OutOfMemoryError(1, 1)

    def fail(*_):
        raise error

    monkeypatch.setattr("engines.cuda.sweeper.narrowed", fail)
    settings = replace(GPU, precision=Precision.MIXED)
    result = solve_system(replace(system, start=np.zeros(3000)), settings, "m")
    assert "ran out of memory" in result.note
    assert "computed in double precision" in result.note
    assert result.status is Status.CONVERGED
