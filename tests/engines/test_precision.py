"""Sweeps in single precision stay within their bound; mixed precision reaches double's answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.host.single_sweeper import CpuSingleSweeper, narrowed
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import SolveResult, Status
from engines.proofs.doubling import LateDoubling
from engines.questions.bounded import bounded_until
from engines.questions.long_run import long_run_rewards
from engines.questions.steady_state import solve_steady_state
from engines.questions.until import until_probabilities
from engines.solve.system import solve_system
from engines.systems.one_sided import Direction, HasSingle, Scaling, SweepSystem
from engines.systems.precision import DOWN, TO_NEAREST
from prism_hooks.claims import claim_of
from tests.engines import models

CPU = SolverEnvironment(device=DeviceChoice.CPU, max_iterations=200_000)
NAMED = replace(CPU, method=Method.JACOBI)


def random_rows(size, seed, *, leave=0.05, length=5):
    """Rows that lose a share of their mass."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, size, (size, length)), axis=1)
    values = rng.uniform(0.1, 1.0, columns.shape)
    values *= (1.0 - leave) / values.sum(axis=1, keepdims=True)
    offsets = np.arange(size + 1, dtype=np.int32) * length
    return CsrMatrix(offsets, columns.ravel().astype(np.int32), values.ravel(), size)


def absorbing(size=60, seed=1, **options):
    """Until probabilities that rise from 0."""
    offset = np.where(np.arange(size) % 7 == 0, 0.05, 0.01)
    return SweepSystem(random_rows(size, seed, **options), np.zeros(size), offset)


def choices(direction, size=40, seed=3):
    """Two rows to a state; states 4 k and 4 k + 1 form end components of the second choices."""
    matrix = random_rows(2 * size, seed)
    matrix = CsrMatrix(matrix.row_offsets, matrix.columns % size, matrix.values, size)
    dense = np.zeros((2 * size, size))
    np.add.at(dense, (matrix.row_of_entry(), matrix.columns), matrix.values)
    offset = np.where(np.arange(2 * size) % 7 == 0, 0.05, 0.01)
    for state in range(0, size - 1, 4):
        for one, other in ((state, state + 1), (state + 1, state)):
            dense[2 * one + 1] = 0.0
            dense[2 * one + 1, other] = 1.0
            offset[2 * one + 1] = 0.0
    rows = [{int(c): float(row[c]) for c in np.flatnonzero(row)} for row in dense]
    groups = np.arange(size + 1, dtype=np.int32) * 2
    return SweepSystem(
        *(models.csr(rows, size), np.zeros(size), offset),
        group_offsets=groups,
        direction=direction,
    )


def queue(size=40, arrival=0.4):
    """The balance equations of an M/M/1 queue, and their solution."""
    rows = [
        {k: v for k, v in ((i - 1, 1.0), (i + 1, arrival)) if 0 <= k < size} for i in range(size)
    ]
    exact = arrival ** np.arange(size)
    system = SweepSystem(
        models.csr(rows, size), np.full(size, 1.0 / size), scaling=Scaling.BALANCE, omega=0.9
    )
    return system, exact / exact.sum()


def relative_error(found, exact):
    assert np.all(found[exact == 0.0] == 0.0)
    return float(np.max(np.abs(found[exact > 0.0] / exact[exact > 0.0] - 1.0)))


def error_of(found, exact, absolute):
    return float(np.max(np.abs(found - exact))) if absolute else relative_error(found, exact)


def solution(system):
    dense = np.eye(system.num_states)
    matrix = system.matrix
    np.subtract.at(dense, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return np.linalg.solve(dense, system.offset)


SYSTEMS = {
    "rising": absorbing,
    "jacobi": lambda: replace(absorbing(), scaling=Scaling.DIAGONAL),
    "relaxed": lambda: replace(absorbing(), omega=0.7),
    "some states": lambda: SweepSystem(
        *(random_rows(60, 5).select_rows(np.arange(0, 60, 3)), np.linspace(0.0, 1.0, 60)),
        np.full(20, 1 / 30),
        np.arange(0, 60, 3, dtype=np.int32),
    ),
    "min": lambda: choices(Direction.MINIMISE),
    "max": lambda: choices(Direction.MAXIMISE),
    "balance": lambda: queue()[0],
}


@pytest.mark.parametrize("nearest", [False, True], ids=["down", "nearest"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_each_sweep_rounds_by_no_more_than_its_share(name, nearest):
    system = scaled(SYSTEMS[name]())
    factor = 2.0**80 if name == "balance" else 1.0
    single = CpuSingleSweeper(system, system.start, -1.0, False, nearest, factor)
    double = CpuEngine().sweeper(system, -1.0, False)
    assert single.rounding == 2 * (TO_NEAREST if nearest else DOWN)
    for sweeps in (1, 2, 10, 50, 400):
        single.run(sweeps)
        double.run(sweeps)
        made = {1: 1, 2: 3, 10: 13, 50: 63, 400: 463}[sweeps]
        found, exact = single.values(), double.values()
        # The iterate's own rounding in double precision comes on top.
        bound = np.expm1((made + 1) * (single.rounding + 2.0**-48))
        assert np.all(np.abs(found - exact) <= bound * exact)
        if not nearest:
            assert np.all(found <= exact * (1.0 + made * 2.0**-48))
    # Rounding is there: these are not the double sweeps.
    assert not np.array_equal(found, exact)


def test_numbers_are_rounded_down_or_to_nearest():
    values = np.array([0.0, 1.0, 1.0 + 2.0**-25, 1.0 - 2.0**-25, 1 / 3, 1e-46, 1e39, np.inf])
    down, nearest = narrowed(values, False), narrowed(values, True)
    assert np.all(down.astype(float) <= values)
    assert np.all(np.nextafter(down[:-2], np.float32(np.inf)).astype(float) > values[:-2])
    assert np.isfinite(down[6])
    np.testing.assert_array_equal(down[[0, 1, 2, 3, 7]], [0.0, 1.0, 1.0, 1.0 - 2.0**-24, np.inf])
    np.testing.assert_array_equal(nearest[:4], [0.0, 1.0, 1.0, 1.0])
    assert np.isinf(nearest[6])


def test_the_cpu_says_that_it_sweeps_in_csr():
    settings = replace(NAMED, precision=Precision.MIXED, matrix_format=Format.VALUES)
    result = solve_system(absorbing(), settings, "m")
    assert "-gpuformat values: in single precision the CPU uses csr" in result.note
    assert "-gpuformat" not in solve_system(absorbing(), replace(NAMED), "m").note


def test_sweeps_stop_and_go_on_as_told():
    single = CpuEngine().sweeper(absorbing(), -1.0, True).in_single(1e-3, False)
    changes = single.run(500)
    assert len(changes) < 500
    assert changes[-1] < 1e-3 <= changes[-2]


def test_states_without_a_row_keep_all_their_digits():
    start = np.array([1 / 3, 0.0, 2 / 7])
    system = SweepSystem(models.csr([{0: 0.5, 2: 0.25}], 3), start, states=np.array([1]))
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    assert isinstance(sweeper, HasSingle)
    single = sweeper.in_single(-1.0, False)
    single.run(3)
    sweeper.go_on_from(single)
    np.testing.assert_array_equal(sweeper.values()[[0, 2]], start[[0, 2]])
    assert sweeper.values()[1] == single.values()[1] == np.float64(np.float32(single.values()[1]))


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", [Method.JACOBI, Method.AUTO])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("name", ["rising", "jacobi", "relaxed", "min", "max"])
def test_mixed_precision_reaches_the_answer_of_double(name, epsilon, method, absolute):
    system = SYSTEMS[name]()
    settings = replace(CPU, method=method, epsilon=epsilon, absolute=absolute)
    exact = solve_system(system, replace(CPU, epsilon=1e-14), "double").values
    double = solve_system(system, settings, "double")
    mixed = solve_system(system, replace(settings, precision=Precision.MIXED), "mixed")
    assert double.status is mixed.status is Status.CONVERGED
    assert "iterations in single precision, then" in mixed.note
    # Named methods stop by the change of a sweep, which is below the error.
    error = error_of(double.values, exact, absolute)
    allowed = epsilon if method is Method.AUTO else max(2 * error, 3 * epsilon)
    assert error_of(mixed.values, exact, absolute) <= max(allowed, 1e-13)
    assert mixed.residual <= max(2 * double.residual, 2 * epsilon)
    assert mixed.sweeping_seconds > 0.0


@pytest.mark.parametrize("method", [Method.JOR, Method.AUTO])
def test_mixed_precision_finds_a_steady_state(method):
    system, exact = queue()
    settings = replace(CPU, method=method, epsilon=1e-10, precision=Precision.MIXED)
    result = solve_system(system, settings, "mixed")
    assert result.status is Status.CONVERGED
    found = result.values / result.values.sum()
    assert relative_error(found, exact) < 1e-7 if method is Method.JOR else 1e-10


def test_states_far_below_the_range_of_single_precision_are_found_all_the_same():
    system, exact = queue(size=120, arrival=0.1)
    assert exact.min() < 1e-100
    settings = replace(CPU, method=Method.JOR, epsilon=1e-9)
    single = solve_system(system, replace(settings, precision=Precision.SINGLE), "single")
    assert single.status is Status.CHANGE_ONLY
    assert single.trusted_above > 0.0
    assert "unknown for values below" in single.note
    mixed = solve_system(system, replace(settings, precision=Precision.MIXED), "mixed")
    assert mixed.status is Status.CONVERGED
    assert relative_error(mixed.values / mixed.values.sum(), exact) < 1e-6


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", [Method.JACOBI, Method.AUTO])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("name", ["rising", "jacobi", "relaxed", "min", "max", "balance"])
def test_single_precision_says_how_far_off_it_is(name, epsilon, method, absolute):
    system = SYSTEMS[name]()
    if name == "balance":
        system, exact = queue(size=20)
    else:
        exact = solve_system(system, replace(CPU, epsilon=1e-14), "double").values
    settings = replace(CPU, method=method, epsilon=epsilon, absolute=absolute)
    result = solve_system(system, replace(settings, precision=Precision.SINGLE), "single")
    assert result.status in (Status.CONVERGED, Status.CHANGE_ONLY)
    assert result.iterations < 20_000
    found = result.values
    if name == "balance":
        found = found / found.sum()
    # Far from the end, the contraction of the last sweeps is a guess, as in double precision.
    slack = 3.0 if epsilon == 1e-3 else 1.0
    assert error_of(found, exact, absolute) <= slack * result.error_estimate
    assert "single precision: " in result.note
    if epsilon == 1e-12 and (method is Method.AUTO or result.status is Status.CHANGE_ONLY):
        # Sweeps are not repeated up to the limit where they cannot get there. The few in double
        # precision at the end may bring a named method to the end of its test.
        assert result.status is Status.CHANGE_ONLY
        assert "further iterations come no closer to epsilon 1.0e-12" in result.note
        assert result.remedy == "-gpuprecision mixed goes further"
        result.raise_unless_converged()
    if result.status is Status.CONVERGED and method is Method.AUTO:
        assert result.error_estimate < epsilon


def test_a_limit_that_is_too_low_is_reported_as_ever():
    for precision in Precision:
        settings = replace(NAMED, precision=precision, max_iterations=20, epsilon=1e-9)
        result = solve_system(absorbing(leave=0.001), settings, "few")
        assert result.status is Status.NOT_CONVERGED
        assert result.iterations == 20


def test_what_is_claimed_of_single_precision_covers_its_roundings():
    settings = replace(NAMED, epsilon=1e-6)
    exact = solution(absorbing())
    for precision in Precision:
        result = solve_system(absorbing(), replace(settings, precision=precision), "m")
        claim = claim_of(result, absolute=False, automatic=False)
        assert not claim.guaranteed
        if precision is Precision.SINGLE:
            assert relative_error(result.values, exact) <= claim.error
            assert claim.error == result.error_estimate > result.rounding > 0.0
        else:
            assert result.rounding == 0.0
            assert claim.error == max(10.0 * result.change, result.error_estimate)
    both = SolveResult.combined(result.values, [result, replace(result, rounding=1e-3)], 1e-3)
    assert both.rounding == 1e-3


def test_an_end_component_is_not_lifted_above_its_value():
    """States that hold each other up keep whatever rounding lifts them to."""
    system = choices(Direction.MAXIMISE)
    exact = solve_system(system, replace(CPU, epsilon=1e-14), "double").values
    settings = replace(CPU, method=Method.VALUE_ITERATION, epsilon=1e-13)
    found = solve_system(system, replace(settings, precision=Precision.MIXED), "mixed").values
    assert np.all(found <= exact * (1.0 + 1e-13))


def test_what_swings_near_minus_one_does_not_keep_mixed_precision_from_its_end():
    # Two halves that only lead to each other, and next to nothing that leaves them.
    size, leak = 40, 1e-9
    rng = np.random.default_rng(4)
    rows = []
    for i in range(size):
        to = rng.choice(np.arange(size // 2), 4, replace=False) + (size // 2) * (i < size // 2)
        share = rng.uniform(0.5, 1.0, 4)
        share *= (1.0 - leak) / share.sum()
        rows.append(dict(zip(map(int, to), map(float, share), strict=True)))
    start = np.full(size, 1.0 / size)
    system = SweepSystem(models.csr(rows, size), start, scaling=Scaling.BALANCE)
    flat = replace(system, start=np.ones(size) / size)
    for epsilon in (1e-7, 1e-9):
        settings = replace(NAMED, epsilon=epsilon, max_iterations=20_000)
        double = solve_system(flat, settings, "double")
        mixed = solve_system(flat, replace(settings, precision=Precision.MIXED), "mixed")
        if double.status is Status.CONVERGED:
            assert mixed.status is Status.CONVERGED


def test_sweeps_that_single_precision_has_led_astray_begin_again(monkeypatch):
    system = absorbing()
    astray = CpuEngine().sweeper(system, -1.0, False)

    class Stuck:
        """Sweeps whose changes stay as they are."""

        seconds, cost = 0.0, astray.cost

        def run(self, sweeps):
            return np.full(sweeps, 1e-3)

        def residual(self):
            return 1.0

        def values(self):
            return system.start

        def in_single(self, stop_below, nearest, factor=1.0):
            return astray.in_single(stop_below, nearest, factor)

        def go_on_from(self, single):
            pass

        def stop_at(self, stop_below):
            pass

    prepared = iter([Stuck(), CpuEngine().sweeper(system, 1e-8, False)])
    monkeypatch.setattr("engines.solve.system.sweeper_or_cpu", lambda *_: (next(prepared), ()))
    settings = replace(NAMED, epsilon=1e-8, precision=Precision.MIXED)
    result = solve_system(system, settings, "mixed")
    assert result.status is Status.CONVERGED
    assert "single precision stalled; restarted in double precision" in result.note
    assert relative_error(result.values, solution(system)) < 1e-5


@pytest.mark.parametrize("leave", [0.2, 0.02, 0.002])
@pytest.mark.parametrize("begun", [3, 40, 700])
def test_a_late_start_from_below_is_proven(begun, leave):
    system = absorbing(seed=9, leave=leave)
    exact = solution(system)
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    sweeper.run(begun)
    below = np.floor(sweeper.values() * 2.0**20) / 2.0**20
    sweeper = CpuEngine().sweeper(replace(system, start=below), -1.0, False)
    proof, bounds = LateDoubling(False, begun), []
    for _ in range(60):
        sweeper.run(20)
        begun += 20
        values = sweeper.values()
        bounds.append(proof.error(begun, values))
        assert relative_error(values, exact) <= bounds[-1] + 1e-13
        if proof.is_due(begun):
            proof.keep(begun, values)
    assert bounds[0] == np.inf
    assert bounds[-1] < 1.0
    if leave == 0.2:
        assert bounds[-1] < 1e-9


REFUSED = {
    "swept in colours": (absorbing(), {"method": Method.GAUSS_SEIDEL}),
    "subtract": (replace(absorbing(), omega=1.1), {"method": Method.JOR}),
    "negative": (replace(absorbing(), offset=np.full(60, -0.01)), {"method": Method.JACOBI}),
    "proves": (replace(absorbing(), start=np.ones(60)), {"method": Method.AUTO}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_swept_so_is_computed_in_double_precision_and_says_so(reason):
    system, how = REFUSED[reason]
    settings = replace(CPU, **how)
    double = solve_system(system, settings, "m")
    for precision in (Precision.SINGLE, Precision.MIXED):
        result = solve_system(system, replace(settings, precision=precision), "m")
        np.testing.assert_array_equal(result.values, double.values)
        assert result.iterations == double.iterations
        remark = [part for part in result.note.split("; ") if part.startswith("-gpuprecision")]
        assert f"-gpuprecision {precision}" in remark[0]
        assert reason in result.note
        assert "computed in double precision" in result.note


def test_double_precision_is_what_it_was():
    result = solve_system(absorbing(), NAMED, "m")
    assert "precision" not in result.note
    assert result.remedy == "a smaller -epsilon may help"


def test_bounded_questions_stay_in_double_precision():
    model = models.gamblers_ruin(30)
    everywhere, target = np.ones(31, np.bool_), np.arange(31) == 30
    settings = replace(CPU, precision=Precision.SINGLE)
    result = bounded_until(model, everywhere, target, 5, settings)
    assert "computed in double precision" in result.note
    settings = replace(settings, bounds=True)
    bounds = until_probabilities(model, everywhere, target, settings)
    assert "-gpuprecision single: bounds need every digit" in bounds.note


def test_rare_states_without_digits_hardly_add_to_the_error_of_a_mean():
    size = 120
    rates = [{i + 1: 0.1, i - 1: 1.0} for i in range(size)]
    del rates[0][-1], rates[-1][size]
    model = models.chain(ModelKind.CTMC, rates)
    exact = 0.1 ** np.arange(size) / np.sum(0.1 ** np.arange(size))
    earned = np.arange(size, dtype=float)
    settings = replace(CPU, method=Method.JOR, epsilon=1e-9, precision=Precision.SINGLE)
    result = long_run_rewards(model, RewardStructure("", earned), settings)
    claim = claim_of(result, absolute=False, automatic=False)
    assert not claim.absolute
    assert abs(result.values[0] - exact @ earned) <= claim.error * result.values[0]
    assert claim.error < 1e-3
    assert result.trusted_above == 0.0
    found = solve_steady_state(model, np.ones(size, dtype=bool), settings)
    claim = claim_of(found, absolute=False, automatic=False)
    assert claim.absolute
    assert np.max(np.abs(found.values - exact)) <= claim.error < 1e-3
