"""Default settings where the change of a sweep misleads: right to 1e-5, or not without a warning.

Oracles: closed forms, and Gaussian elimination in fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import DeviceMemoryError
from engines.host.elimination import TooDearError
from engines.host.engine import CpuEngine
from engines.methods.direct import solve_chain
from engines.methods.elimination import EliminatedChain
from engines.methods.iterate import iterate
from engines.model.environment import Method, SolverEnvironment
from engines.model.result import Status
from engines.proofs.doubling import Doubling, rises_from_zero
from engines.proofs.mixing import sweeps_of_memory
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Scaling, SweepSystem
from tests.engines import models
from tests.engines.stationary import eliminated_class

ENOUGH = 1e-5


def solution(rows, right):
    """Solve (I − P) x = right in fractions; the rows are dictionaries of fractions."""
    size = len(rows)
    left = [[Fraction(i == j) - rows[i].get(j, 0) for j in range(size)] for i in range(size)]
    x = list(right)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            if left[row][pivot]:
                factor = left[row][pivot] / left[pivot][pivot]
                for column in range(pivot, size):
                    left[row][column] -= factor * left[pivot][column]
                x[row] -= factor * x[pivot]
    for row in reversed(range(size)):
        known = sum((left[row][j] * x[j] for j in range(row + 1, size)), Fraction(0))
        x[row] = (x[row] - known) / left[row][row]
    return x


def exact_steady_state(rows):
    """Return π of a chain whose rows are dictionaries of rates, by elimination in fractions."""
    size = len(rows)
    rates = [{j: Fraction(v) for j, v in row.items() if j != i} for i, row in enumerate(rows)]
    exits = [sum(row.values()) for row in rates]
    # Visits between two visits of state 0, turned round: y_j = Σ_i y_i p_ij.
    into = [
        {i - 1: rates[i].get(j, Fraction(0)) / exits[i] for i in range(1, size)}
        for j in range(1, size)
    ]
    right = [rates[0].get(j, Fraction(0)) / exits[0] for j in range(1, size)]
    visits = [Fraction(1), *solution(into, right)]
    times = [visit / rate for visit, rate in zip(visits, exits, strict=True)]
    return np.array([float(time / sum(times)) for time in times])


def relative_error(values, expected):
    """Return the largest error relative to the expected value, where that is not 0."""
    there = expected > 0.0
    return float(np.max(np.abs(values - expected)[there] / expected[there]))


def walk(size, up):
    """A walk from 0, where it is reflected, to `size`: one step up with probability `up`."""
    rows = [{1: 1.0}]
    rows += [{i - 1: 1.0 - up, i + 1: up} for i in range(1, size)]
    return models.dtmc([*rows, {size: 1.0}])


def walk_times(size, up):
    """Return the steps to the top of a walk: h_i from i to i + 1 is (1 + (1 − p) h_(i−1)) / p."""
    steps = [Fraction(1)]
    for _ in range(1, size):
        steps.append((1 + (1 - Fraction(up)) * steps[-1]) / Fraction(up))
    times = np.zeros(size + 1)
    total = Fraction(0)
    for state in reversed(range(size)):
        total += steps[state]
        times[state] = float(total)
    return times


@pytest.mark.parametrize(
    ("size", "up"), [(40, 0.5), (400, 0.5), (300, 0.5 + 2.0**-10), (60, 0.25), (40, 2.0**-6)]
)
def test_a_walk_with_little_or_adverse_drift_takes_its_time(device, size, up):
    model = walk(size, up)
    problem = models.Problem(
        model, ~models.mask(size + 1, [size]), np.zeros(size + 1), np.ones(size + 1)
    )
    result = solve_reachability(
        model, problem.unknown, problem.start, SolverEnvironment(device=device), **problem.keywords
    )
    assert result.status is Status.CONVERGED
    assert relative_error(result.values, walk_times(size, up)) < ENOUGH


def coupled_blocks(coupling, lazy, blocks=3, size=5, seed=0):
    """Rows of blocks that hardly ever meet; each moves slowly within itself too."""
    rng = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        for i in range(size):
            inside = rng.integers(1, 64, size).astype(float)
            inside = (1.0 - lazy) * inside / inside.sum()
            inside[(i + 1) % size] += lazy
            row = {block * size + j: float(p) for j, p in enumerate(inside)}
            if rng.random() < 0.6 or i == 0:
                other = int(rng.integers(size)) + size * ((block + 1) % blocks)
                row[other] = coupling * float(rng.uniform(0.5, 1.5))
            rows.append(row)
    return rows


@pytest.mark.parametrize("coupling", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("lazy", [0.0, 0.9, 0.99])
def test_blocks_that_hardly_meet_are_weighed_right(device, coupling, lazy):
    rows = coupled_blocks(coupling, lazy)
    result = solve_steady_state(
        models.ctmc(rows), np.ones(len(rows), dtype=np.bool_), SolverEnvironment(device=device)
    )
    assert result.status is Status.CONVERGED
    assert relative_error(result.values, exact_steady_state(rows)) < ENOUGH


@pytest.mark.parametrize("coupling", [1e-3, 1e-7, 1e-10])
@pytest.mark.parametrize("lazy", [0.0, 0.95])
def test_what_is_decided_in_a_block_that_is_hardly_ever_left_counts(device, coupling, lazy):
    rows = coupled_blocks(coupling, lazy, seed=1)
    size = len(rows)
    for state, row in enumerate(rows):
        # Ends are as rare as changes of the block, but from the first state.
        row[size + state % 2] = coupling / 7.0 if state else 0.5
    scaled = [{j: v / sum(row.values()) for j, v in row.items()} for row in rows]
    model = models.dtmc([*scaled, {size: 1.0}, {size + 1: 1.0}])
    start = models.mask(size + 2, [size]).astype(float)
    unknown = ~models.mask(size + 2, [size, size + 1])
    result = solve_reachability(model, unknown, start, SolverEnvironment(device=device))
    exact_rows, right = [], []
    for row in scaled:
        total = sum(Fraction(v) for v in row.values())
        exact_rows.append({j: Fraction(v) / total for j, v in row.items() if j < size})
        right.append(Fraction(row.get(size, 0)) / total)
    expected = np.array([float(x) for x in solution(exact_rows, right)])
    assert result.status is Status.CONVERGED
    assert relative_error(result.values[:size], expected) < ENOUGH


@pytest.mark.parametrize(("size", "rate"), [(12, 1e-2), (20, 1e-6), (8, 1e-30)])
def test_rare_events_are_relatively_right(device, size, rate):
    model = models.birth_death(size, birth=rate, death=1.0)
    size = model.num_states
    unknown = ~models.mask(size, [0, size - 1])
    start = models.mask(size, [size - 1]).astype(float)
    result = solve_reachability(model, unknown, start, SolverEnvironment(device=device))
    # Gambler's ruin with odds r = death / birth: (r^i − 1) / (r^n − 1).
    odds = 1 / Fraction(rate)
    expected = [(odds**i - 1) / (odds ** (size - 1) - 1) for i in range(size)]
    assert relative_error(result.values, np.array([float(x) for x in expected])) < ENOUGH
    result = solve_steady_state(
        model, np.ones(size, dtype=np.bool_), SolverEnvironment(device=device)
    )
    expected = models.birth_death_answer(size, rate, 1.0)
    assert relative_error(result.values, expected) < ENOUGH


def coins(bound, *biased):
    """The counter of a shared coin: a scheduler chooses how often flips come to nothing."""
    size = 2 * bound + 1
    states = [[{0: 1.0}]]
    for i in range(1, size - 1):
        fair = {i - 1: 0.5, i + 1: 0.5}
        mostly_nothing = {i: 0.75, i - 1: 0.125, i + 1: 0.125}
        states.append([fair, mostly_nothing, *({i - 1: 1.0 - up, i + 1: up} for up in biased)])
    return models.mdp([*states, [{size - 1: 1.0}]])


@pytest.mark.parametrize("bound", [4, 16, 48])
def test_the_slowest_and_the_unluckiest_consensus_have_their_closed_form(device, bound):
    size = 2 * bound + 1
    ends, place = models.mask(size, [0, size - 1]), np.arange(size)
    environment = SolverEnvironment(device=device)
    model = coins(bound)
    rewards = np.ones(model.matrix.num_rows)
    result = solve_reachability(
        model, ~ends, np.zeros(size), environment, rewards=rewards, direction=models.MAX
    )
    # A fair walk takes i (n - i) flips; four times as many where three of four come to nothing.
    np.testing.assert_allclose(result.values, 4.0 * place * (size - 1 - place), rtol=ENOUGH)
    start = models.mask(size, [size - 1]).astype(float)
    model = coins(bound, 0.75)
    result = solve_reachability(model, ~ends, start, environment, direction=models.MIN)
    np.testing.assert_allclose(result.values, place / (size - 1), rtol=ENOUGH)


@pytest.mark.parametrize("leak", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("direction", [models.MIN, models.MAX])
def test_a_policy_that_pays_late_is_not_overlooked(device, leak, direction):
    # At once 0.5; or wait, with probability 1 − leak a step, for 0.9 (or 0.1, for the minimum).
    late = 0.9 if direction is models.MAX else 0.1
    model = models.mdp(
        [
            [{2: 0.5, 3: 0.5}, {1: 1.0}],
            [{1: 1.0 - leak, 2: leak * late, 3: leak * (1.0 - late)}],
            [{2: 1.0}],
            [{3: 1.0}],
        ]
    )
    unknown, start = ~models.mask(4, [2, 3]), models.mask(4, [2]).astype(float)
    result = solve_reachability(
        model, unknown, start, SolverEnvironment(device=device), direction=direction
    )
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values[:2], late, rtol=ENOUGH)


@given(st.integers(0, 10_000), st.floats(0.0, 8.0), st.floats(0.01, 0.99))
def test_twice_as_many_sweeps_bound_the_error(seed, decades, density):
    rng = np.random.default_rng(seed)
    size = 12
    dense = rng.random((size, size)) * (rng.random((size, size)) < density)
    dense *= (1.0 - 10.0**-decades * rng.random((size, 1))) / np.maximum(
        dense.sum(axis=1, keepdims=True), 1e-9
    )
    offset = rng.random(size) * (rng.random(size) < 0.3)
    offset[0] = 1.0
    exact = np.linalg.solve(np.eye(size) - dense, offset)
    doubling, x = Doubling(absolute=False), np.zeros(size)
    for sweep in range(1, 400):
        x = offset + dense @ x
        error = doubling.error(sweep, x)
        if doubling.is_due(sweep):
            doubling.keep(sweep, x)
        there = exact > 1e-12  # Where nothing is earned, the oracle has rounding.
        missing = np.max((exact - x)[there] / exact[there])
        # The elimination that the sweeps are compared with has an error of its own.
        assert missing <= error + 1e-15 * 10.0**decades + 1e-13


def test_only_sweeps_that_rise_from_zero_are_judged_by_their_rise():
    chain = models.csr([{0: 0.5, 1: 0.25}, {0: 0.25, 1: 0.5}])
    zero = np.zeros(2)
    assert rises_from_zero(SweepSystem(chain, zero))
    assert rises_from_zero(SweepSystem(chain, np.ones(2), np.ones(2), scaling=Scaling.DIAGONAL))
    assert not rises_from_zero(SweepSystem(chain, np.ones(2)))
    assert not rises_from_zero(SweepSystem(chain, zero, -np.ones(2)))
    assert not rises_from_zero(SweepSystem(chain, zero, omega=1.5))
    assert not rises_from_zero(SweepSystem(chain, zero, scaling=Scaling.BALANCE))


def test_a_chain_that_has_hardly_begun_is_not_taken_for_converged():
    # State 0 is there at once; what state 1 changes is below any epsilon.
    leak = 2.0**-40
    rows = models.csr([{2: 0.5, 3: 0.5}, {1: 1.0 - 2.0 * leak, 2: leak, 3: leak}], 4)
    start = np.array([0.0, 0.0, 1.0, 0.0])
    system = SweepSystem(rows, start, states=np.arange(2))
    environment = SolverEnvironment(max_iterations=2_000, max_iterations_named=True, absolute=True)
    sweeper = CpuEngine().sweeper(system, -1.0, True)
    outcome = iterate(sweeper, environment, doubling=Doubling(absolute=True))
    assert outcome.change < environment.epsilon
    assert outcome.status is Status.CHANGE_ONLY
    assert outcome.error_estimate > environment.epsilon


@pytest.mark.parametrize("rate", [0.94, 0.945, 0.95, 0.96])
def test_sweeps_stop_at_twice_those_of_a_kept_iterate(rate, monkeypatch):
    system = SweepSystem(models.csr([{0: rate}]), np.zeros(1), np.ones(1))
    rise = Doubling.error
    kept = []

    def sweeps_needed():
        kept.clear()
        sweeper = CpuEngine().sweeper(system, -1.0, False)
        outcome = iterate(sweeper, SolverEnvironment(), doubling=Doubling(absolute=False))
        assert outcome.status is Status.CONVERGED
        assert abs(sweeper.values()[0] * (1.0 - rate) - 1.0) <= outcome.error_estimate
        return outcome.iterations

    def noted(self, iterations, values):
        error = rise(self, iterations, values)
        kept.append(self._before)
        return error

    monkeypatch.setattr(Doubling, "error", noted)
    sooner = sweeps_needed()
    assert sooner == 2 * kept[-1] + 1
    monkeypatch.setattr(Doubling, "sweeps_to_proof", lambda *_: None)
    assert sooner < sweeps_needed()


@pytest.mark.parametrize("coupling", [1.0, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("lazy", [0.0, 0.9])
def test_a_far_start_is_forgotten_as_fast_as_the_chain_mixes(coupling, lazy):
    rows = coupled_blocks(coupling, lazy)
    model, size = models.ctmc(rows), len(rows)
    system = SweepSystem(model.matrix, np.ones(size), scaling=Scaling.BALANCE, omega=0.9)
    dense = np.zeros((size, size))
    np.add.at(dense, (model.matrix.row_of_entry(), model.matrix.columns), model.matrix.values)
    np.fill_diagonal(dense, 0.0)
    iteration = 0.1 * np.eye(size) + 0.9 * dense / dense.sum(axis=1, keepdims=True)
    second = np.sort(np.abs(np.linalg.eigvals(iteration)))[-2]
    memory = sweeps_of_memory(
        system,
        lambda started: CpuEngine().sweeper(started, -1.0, False),
        exact_steady_state(rows),
        0.0,
        4_000,
    )
    assert memory * -np.log(second) > 0.5
    assert memory * -np.log(second) < 5.0 or coupling < 1e-4


@pytest.mark.parametrize("there", ["compares", "does not", "has no room"])
def test_a_far_start_is_compared_where_the_sweeps_are_or_on_the_host(there):
    rows = coupled_blocks(1e-2, 0.0)
    model = models.ctmc(rows)
    system = SweepSystem(model.matrix, np.ones(len(rows)), scaling=Scaling.BALANCE, omega=0.9)
    asked = []

    class Comparing:
        """Sweeps of the CPU that compare, or do not."""

        def __init__(self, started):
            self._plain = CpuEngine().sweeper(started, -1.0, False)
            self.run, self.values = self._plain.run, self._plain.values

        def comparison(self, reference, least):
            asked.append(least)
            if there == "has no room":
                raise DeviceMemoryError("no room for the vector")
            if there == "does not":
                return None
            looked_at = reference > least
            wanted = reference[looked_at]
            return lambda: float(np.abs(self.values()[looked_at] / wanted - 1.0).max())

    def memory(prepare):
        return sweeps_of_memory(system, prepare, exact_steady_state(rows), 0.0, 1_000)

    plain = memory(lambda started: CpuEngine().sweeper(started, -1.0, False))
    assert np.isfinite(plain)
    assert memory(Comparing) == plain
    assert len(asked) == 1


@given(st.integers(0, 10_000), st.floats(0.0, 30.0))
def test_elimination_keeps_every_digit_of_rare_probabilities(seed, decades):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    rows = [
        {j: 2.0 ** -float(rng.integers(0, 1 + int(3.0 * decades))) for j in range(size) if j != i}
        for i in range(size)
    ]
    found = eliminated_class(models.csr(rows))
    np.testing.assert_allclose(found, exact_steady_state(rows), rtol=1e-13)


def test_a_small_chain_that_hardly_ends_keeps_its_digits():
    # Up with probability 2^-40 only: ten such steps in a row take 2^400 steps, all told.
    size = 10
    system = SweepSystem(
        walk(size, 2.0**-40).matrix.select_rows(np.arange(size)),
        np.zeros(size + 1),
        np.ones(size),
        np.arange(size),
    )
    values, error = solve_chain(system)
    assert error < 1e-12
    assert relative_error(values, walk_times(size, 2.0**-40)) < 1e-12


def test_components_one_after_the_other_do_not_fill_up_together():
    rng = np.random.default_rng(2)
    size, blocks = 3_000, 300
    rows = []
    for state in range(size):
        first = state - state % (size // blocks)
        # Within a block anywhere; beyond it anywhere downwards.
        row = dict.fromkeys((first + rng.integers(0, size // blocks, 3)).tolist(), 1.0)
        rows.append({**row, **dict.fromkeys(rng.integers(0, max(first, 1), 3).tolist(), 0.5)})
    leaving = np.ones(size)
    EliminatedChain(models.csr(rows), leaving, most_operations=1e5)
    anywhere = [dict.fromkeys(rng.integers(0, size, 3).tolist(), 1.0) for _ in range(size)]
    with pytest.raises(TooDearError, match="would fill up"):
        EliminatedChain(models.csr(anywhere), leaving, most_operations=1e5)


def test_a_named_method_that_stops_too_soon_says_so(device):
    problem = models.until(models.gamblers_ruin(60), models.mask(61, [60]))
    environment = SolverEnvironment(method=Method.JACOBI, device=device)
    result = solve_reachability(problem.model, problem.unknown, problem.start, environment)
    error = relative_error(result.values, models.gamblers_ruin_answer(60))
    assert result.status is Status.CONVERGED
    assert "the expected relative error is" in result.note
    assert 0.2 * error < result.error_estimate < 5.0 * error
    fast = models.dtmc([{0: 0.1, 1: 0.5, 2: 0.4}, {1: 1.0}, {2: 1.0}])
    problem = models.until(fast, models.mask(3, [1]))
    quick = solve_reachability(problem.model, problem.unknown, problem.start, environment)
    assert quick.note == ""
