"""Slow sweeps of Jacobi's that go on in colours: right, proven, and only where that repays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.methods import coloured_rest, stretches
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.solve import system as solve
from tests.engines import models

ENVIRONMENT = SolverEnvironment(device=DeviceChoice.CPU)
WENT_ON = "switched to Gauss-Seidel"
WITHOUT_END = 30
"""The random chain of this seed has no absorbing state."""


def ring(size, leave):
    """Round a ring, until one of two ends is reached, each as likely as the other."""
    states = np.arange(size)
    after = (states + 1) % size
    columns = np.stack([after, np.full(size, size), np.full(size, size + 1)], axis=1)
    values = np.tile([1.0 - leave, leave / 2, leave / 2], (size, 1))
    offsets = np.append(np.arange(0, 3 * size + 1, 3), [3 * size + 1, 3 * size + 2])
    columns = np.append(columns.ravel(), [size, size + 1])
    matrix = CsrMatrix(
        offsets.astype(np.int32),
        columns.astype(np.int32),
        np.append(values.ravel(), [1.0, 1.0]),
        size + 2,
    )
    computed = np.append(np.ones(size, dtype=bool), [False, False])
    start = np.append(np.zeros(size), [1.0, 0.0])
    return ExplicitModel(ModelKind.DTMC, matrix), computed, start


def scipy_matrix(matrix):
    shape = (matrix.num_rows, matrix.num_columns)
    return csr_array((matrix.values, matrix.columns, matrix.row_offsets), shape=shape)


def exactly(model, computed, start, rewards):
    places = np.flatnonzero(computed)
    matrix = model.matrix
    rows = scipy_matrix(matrix)[places]
    right = rows[:, ~computed] @ start[~computed]
    right = right if rewards is None else right + rewards[places]
    values = start.copy()
    values[places] = spsolve((eye_array(len(places)) - rows[:, places]).tocsc(), right)
    return values


@pytest.fixture(autouse=True)
def _no_stretches(monkeypatch):
    """Leave out GMRES, which comes first and would end most of these."""
    monkeypatch.setattr(stretches, "AFTER", ())


@pytest.fixture
def from_the_first(monkeypatch):
    """Let every chain go on in colours after its first batches."""
    monkeypatch.setattr(coloured_rest, "COLOURS_AFTER", 16)
    monkeypatch.setattr(coloured_rest, "COLOURS_REPAY", 0)
    monkeypatch.setattr(coloured_rest, "SMALLEST_COLOURED", 0)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_slow_ring_goes_on_in_colours(backwards):
    model, computed, start = ring(60_000, 1e-3)
    if backwards:
        # The same ring with its states numbered from the other end.
        matrix, size = model.matrix, 60_000
        renamed = np.append(np.arange(size)[::-1], [size, size + 1])
        whole = csr_array(scipy_matrix(matrix)[renamed][:, renamed])
        matrix = CsrMatrix(
            whole.indptr.astype(np.int32), whole.indices.astype(np.int32), whole.data, size + 2
        )
        model = ExplicitModel(ModelKind.DTMC, matrix)
    result = solve_reachability(model, computed, start, ENVIRONMENT)
    assert result.status is Status.CONVERGED
    assert WENT_ON in result.note
    assert ("forwards" if backwards else "backwards") in result.note
    assert "by colours" in result.cost.format
    assert result.values[:-2] == pytest.approx(np.full(60_000, 0.5), rel=2e-6)
    assert result.error_estimate < ENVIRONMENT.epsilon
    # Jacobi alone takes ln ε / ln ρ, about 14,000.
    assert coloured_rest.COLOURS_AFTER <= result.iterations < 4_000
    assert result.sweeping_seconds < result.seconds


def test_named_methods_and_small_or_quick_systems_stay_with_their_sweeps():
    for size, leave, environment in [
        (60_000, 1e-3, SolverEnvironment(method=Method.JACOBI, device=DeviceChoice.CPU)),
        (5_000, 1e-3, ENVIRONMENT),
        (60_000, 1e-2, ENVIRONMENT),
    ]:
        result = solve_reachability(*ring(size, leave), environment)
        assert WENT_ON not in result.note, (size, leave)


def test_without_room_for_colours_the_sweeps_go_on(monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 3 GiB")

    monkeypatch.setattr(coloured_rest, "coloured_sweeps", full)
    model, computed, start = ring(60_000, 1e-3)
    result = solve_reachability(model, computed, start, ENVIRONMENT)
    assert result.status is Status.CONVERGED
    assert result.values[:-2] == pytest.approx(np.full(60_000, 0.5), rel=2e-6)
    assert WENT_ON not in result.note


def test_what_a_full_gpu_leaves_to_the_cpu_is_coloured_there(monkeypatch):
    class FullEngine(CpuEngine):
        name = "GPU"

        def sweeper(self, *_):
            raise DeviceMemoryError("GPU 0 ran out of memory")

    monkeypatch.setattr(solve, "choose_engine", lambda *_: (FullEngine(), ""))
    result = solve_reachability(*ring(60_000, 1e-3), ENVIRONMENT)
    assert result.status is Status.CONVERGED
    assert "solving on the CPU" in result.note
    assert WENT_ON in result.note


@pytest.mark.usefixtures("from_the_first")
def test_where_colours_are_slow_too_elimination_has_the_last_word():
    size = 12_000
    model = models.gamblers_ruin(size)
    computed = np.ones(model.num_states, dtype=bool)
    computed[[0, -1]] = False
    start = np.zeros(model.num_states)
    start[-1] = 1.0
    result = solve_reachability(model, computed, start, ENVIRONMENT)
    assert result.status is Status.CONVERGED
    assert "solved by elimination without subtraction" in result.note
    assert result.values == pytest.approx(np.linspace(0.0, 1.0, model.num_states), rel=1e-6)


@pytest.mark.usefixtures("from_the_first")
@pytest.mark.parametrize(
    ("seed", "rewarded", "absolute"),
    [(seed, seed % 2 > 0, seed % 4 > 1) for seed in range(61) if seed != WITHOUT_END],
)
def test_random_chains_are_right_and_their_errors_bounds(seed, rewarded, absolute):
    rng = np.random.default_rng(seed)
    model = models.random_dtmc(seed, size=int(rng.integers(20, 120)), absorbing=0.1)
    ends = np.flatnonzero(
        [model.matrix.columns[model.matrix.row_offsets[s]] == s for s in range(model.num_states)]
        & (model.matrix.row_lengths() == 1)
    )
    computed = np.ones(model.num_states, dtype=bool)
    computed[ends] = False
    reach = _reaching(model, ends)
    computed &= reach
    start = np.zeros(model.num_states)
    rewards = None
    if rewarded:
        # Of states that reach an end for sure; the others earn nothing here.
        rewards = np.where(computed, rng.uniform(0.0, 3.0, model.num_states), 0.0)
    else:
        start[ends[::2]] = 1.0
    environment = SolverEnvironment(device=DeviceChoice.CPU, absolute=absolute, epsilon=1e-9)
    result = solve_reachability(model, computed, start, environment, rewards=rewards)
    wanted = exactly(model, computed, start, rewards)
    assert (WENT_ON in result.note) is (result.iterations > coloured_rest.COLOURS_AFTER)
    assert result.status is Status.CONVERGED
    off = np.abs(result.values - wanted)
    if not absolute:
        off = off[wanted > 0.0] / wanted[wanted > 0.0]
    assert np.max(off, initial=0.0) <= result.error_estimate + 1e-12
    assert result.error_estimate < environment.epsilon


def _reaching(model, ends):
    whole = scipy_matrix(model.matrix)
    reached = np.zeros(model.num_states, dtype=bool)
    reached[ends] = True
    for _ in range(model.num_states):
        reached |= whole @ reached > 0.0
    return reached
