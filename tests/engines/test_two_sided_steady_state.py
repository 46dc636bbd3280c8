"""Long-run averages between bounds, against elimination over the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.environment import DeviceChoice, Method
from engines.environment import SolverEnvironment as Environment
from engines.two_sided_steady_state import long_run_average_bounds
from tests.engines import exact, models

CPU = Environment(device=DeviceChoice.CPU)


def recurrent(seed, size=8):
    """Rows with a cycle through all states."""
    rng = np.random.default_rng(seed)
    rows = []
    for state in range(size):
        targets = {int(t) for t in rng.integers(0, size, 3)} | {(state + 1) % size}
        weights = {t: int(rng.integers(1, 40)) for t in sorted(targets)}
        rows.append({t: Fraction(w, sum(weights.values())) for t, w in weights.items()})
    return rows


def average(rows, sojourns, weights):
    """The average by the stationary distribution of the jumps: visits between visits of state 0."""
    size = len(rows)
    turned = [{} for _ in range(size)]
    for state, row in enumerate(rows):
        for after, part in row.items():
            turned[after][state] = part
    others = list(range(1, size))
    visits = exact.solve(turned, others, {s: rows[0].get(s, Fraction(0)) for s in others})
    visits[0] = Fraction(1)
    time = sum(visits[s] * sojourns[s] for s in range(size))
    return sum(visits[s] * sojourns[s] * weights[s] for s in range(size)) / time


def assert_encloses(result, members, value, epsilon):
    lower, upper = result.bounds
    assert (lower[members] == lower[members][0]).all()
    assert (lower[~members] == 0.0).all()
    low, up = float(lower[members][0]), float(upper[members][0])
    assert Fraction(low) <= value <= Fraction(up)
    assert up - low <= 2.5 * epsilon * low
    assert abs(result.values[members][0] - float(value)) <= result.error_estimate * low * 1.001


@pytest.mark.parametrize("method", [Method.AUTO, Method.OPTIMISTIC])
@pytest.mark.parametrize("seed", range(6))
def test_steps(device, seed, method):
    rows = recurrent(seed)
    weights = exact.random_payments(seed, len(rows))
    weights[2] = Fraction(3)
    environment = Environment(method=method, device=device)
    members = np.ones(len(rows), dtype=bool)
    result = long_run_average_bounds(exact.dtmc(rows), members, exact.array(weights), environment)
    value = average(rows, [Fraction(1)] * len(rows), weights)
    assert_encloses(result, members, value, 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_time(device, seed):
    rows = recurrent(seed)
    rates = [Fraction(s + 1, 2) for s in range(len(rows))]
    scaled = [
        {t: float(p * rate) for t, p in row.items()} for row, rate in zip(rows, rates, strict=True)
    ]
    weights = [Fraction(s % 3 == 0) for s in range(len(rows))]
    members = np.ones(len(rows), dtype=bool)
    environment = Environment(device=device)
    result = long_run_average_bounds(
        models.ctmc(scaled), members, exact.array(weights), environment
    )
    value = average(rows, [1 / rate for rate in rates], weights)
    assert_encloses(result, members, value, 1e-6)


def test_nearly_uncoupled_blocks():
    model = models.uncoupled_blocks()
    size = model.num_states
    weights = np.arange(size) < 4
    members = np.ones(size, dtype=bool)
    result = long_run_average_bounds(model, members, weights.astype(float), CPU)
    matrix = model.matrix
    rates = [{} for _ in range(size)]
    for k, row in enumerate(matrix.row_of_entry()):
        rates[row][int(matrix.columns[k])] = Fraction(float(matrix.values[k]))
    exits = [sum(row.values()) for row in rates]
    rows = [{t: r / e for t, r in row.items()} for row, e in zip(rates, exits, strict=True)]
    value = average(rows, [1 / e for e in exits], [Fraction(int(w)) for w in weights])
    assert_encloses(result, members, value, 1e-6)


def test_one_of_several_components():
    model = models.several_bsccs()
    members = models.mask(8, [3, 4, 5])
    result = long_run_average_bounds(model, members, models.mask(8, [4]).astype(float), CPU)
    inner = [{1: Fraction(7, 10), 2: Fraction(3, 10)}, {0: Fraction(1)}]
    inner.append({0: Fraction(1, 10), 2: Fraction(9, 10)})
    value = average(inner, [Fraction(1)] * 3, [Fraction(0), Fraction(1), Fraction(0)])
    assert_encloses(result, members, value, 1e-6)
    alone = long_run_average_bounds(model, models.mask(8, [6]), np.arange(8.0), CPU)
    assert alone.bounds[0][6] == alone.bounds[1][6] == 6.0


def test_what_is_no_component_of_a_chain_is_refused():
    model = models.several_bsccs()
    with pytest.raises(ValueError, match="left"):
        long_run_average_bounds(model, models.mask(8, [0, 1]), np.ones(8), CPU)
    with pytest.raises(ValueError, match="no state"):
        long_run_average_bounds(model, models.mask(8, []), np.ones(8), CPU)
    with pytest.raises(ValueError, match="MDP"):
        long_run_average_bounds(models.end_components(), models.mask(5, [3]), np.ones(5), CPU)
