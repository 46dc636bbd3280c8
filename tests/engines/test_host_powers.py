"""Compiled sums of powers: plain loops are the oracle, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from engines.host import power_sums as uniformise
from engines.host.power_sums import PowerSumTuning
from engines.host.powers import HostPowers
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.power_sums import PowerSum

TYPES = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
}
RATE = 6.5
COEFFICIENTS = np.array([0.0, 0.25, 0.0, 0.5, 1 / 3, 0.125])


def chain(wide="narrow"):
    """Rates of some states to others, and what of each stays."""
    random = np.random.default_rng(11)
    states, rows = 60, 40
    lengths = random.integers(0, 8, rows)
    offset_type, column_type = TYPES[wide]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_type)
    columns = random.integers(0, states, offsets[-1]).astype(column_type)
    matrix = CsrMatrix(offsets, columns, random.random(offsets[-1]), states)
    computed = random.permutation(states)[:rows]
    return SweepSystem(matrix, random.random(states), states=computed), random.random(rows)


def chain_of(system, stay, rate=RATE):
    return PowerSum(system, stay, rate, 0, np.ones(1), 0.0)


def plain_sums(system, stay, coefficients):
    """The vector and the total after each sweep, number by number."""
    x, total = system.start.copy(), np.zeros(system.num_updates)
    offsets = system.matrix.row_offsets
    for coefficient in coefficients:
        after = x.copy()
        for row, state in enumerate(system.states):
            inflow = 0.0
            for entry in range(offsets[row], offsets[row + 1]):
                inflow += float(system.matrix.values[entry]) * x[system.matrix.columns[entry]]
            after[state] = stay[row] * x[state] + inflow / RATE
            total[row] += coefficient * after[state]
        x = after
        yield x, total


@pytest.mark.parametrize("wide", TYPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_sum_is_that_of_plain_loops(wide, threads):
    system, stay = chain(wide)
    powers = HostPowers(chain_of(system, stay))
    powers._shares.threads = threads
    powers._shares.bounds = np.linspace(0, system.num_updates, 7).astype(np.int64)
    vectors, total = [system.start.copy(), system.start.copy()], np.zeros(40)
    every = plain_sums(system, stay, COEFFICIENTS)
    for part in (COEFFICIENTS[:1], COEFFICIENTS[1:]):
        assert powers.add(part, *vectors, total) == (len(part), False, 0)
        for _ in part:
            x, expected = next(every)
        vectors = vectors[:: -1 if len(part) % 2 else 1]
        np.testing.assert_array_equal(vectors[0], x)
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_sum_ends_where_nothing_changes_any_more(threads, start):
    """What a line of states hands on has left it after as many sweeps as it has states to go."""
    size = 5
    matrix = CsrMatrix(
        np.minimum(np.arange(size + 1), size - 1), np.arange(1, size), np.ones(4), size
    )
    x = np.eye(size)[start]
    powers = HostPowers(chain_of(SweepSystem(matrix, x), np.zeros(size), 1.0))
    powers._shares.threads, powers._shares.bounds = threads, np.array([0, 2, size])
    total = np.zeros(size)
    assert powers.add(np.ones(20), x.copy(), x.copy(), total) == (start + 2, True, start + 2)
    np.testing.assert_array_equal(total, np.arange(size) < start)


def test_a_sum_that_ends_early_takes_the_weights_to_come():
    """All states are 1 from the first sweep on; batches make no difference."""
    matrix = CsrMatrix(np.arange(3), np.array([1, 0]), np.ones(2), 2)
    system = SweepSystem(matrix, np.ones(2))
    problem = PowerSum(system, np.full(2, 0.5), 2.0, 3, np.array([0.5, 0.25, 0.125]), 0.0625)
    done = uniformise.sum_powers(problem, None, PowerSumTuning(batch_work=0, fewest_sweeps=1))
    assert done.sweeps == 1
    np.testing.assert_array_equal(done.values, np.full(2, 3 * 0.0625 + 0.875))


@pytest.mark.parametrize(
    ("share", "least"), [(1e-3, 0.0), (1e-7, 0.0), (0.0, 1e-3), (0.0, 1e-7), (1e-4, 1e-4)]
)
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_the_first_sweep_that_changes_less_is_noted(share, least, batch):
    size = 30
    columns, rates = np.append(np.arange(1, size), 0), np.linspace(1.0, 3.0, size)
    system = SweepSystem(
        CsrMatrix(np.arange(size + 1), columns, rates, size), np.linspace(1.0, 1.5, size)
    )
    stay = 1.0 - rates / 3.5
    problem = PowerSum(system, stay, 3.5, 0, np.ones(4000), 0.0, share, least)
    x, steady = system.start, 0
    for sweep in range(1, 4000):
        after = stay * x + rates * x[columns] / 3.5
        if not steady and np.all(np.abs(after - x) <= share * x + least):
            steady = sweep
        x = after
    tuning = PowerSumTuning(batch_work=0, fewest_sweeps=batch)
    assert uniformise.sum_powers(problem, None, tuning).steady == steady > 10


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_batches_make_no_difference(sweeps):
    system, stay = chain()
    weights = np.random.default_rng(2).random(9)
    problem = PowerSum(system, stay, RATE, 4, weights, 0.5)
    whole = uniformise.sum_powers(problem, None)
    tuning = PowerSumTuning(batch_work=0, fewest_sweeps=sweeps)
    parts = uniformise.sum_powers(problem, None, tuning)
    assert parts.sweeps == whole.sweeps == problem.last == 12
    np.testing.assert_array_equal(parts.values, whole.values)
    *_, (_, expected) = plain_sums(system, stay, problem.coefficients(1, 13))
    expected += 0.5 * system.start[system.states]
    np.testing.assert_allclose(whole.values, expected, rtol=1e-14)


def test_what_does_not_fit_is_refused():
    system, stay = chain()
    with pytest.raises(ValueError, match="diagonal"):
        HostPowers(chain_of(system, stay[1:]))
    groups = np.arange(41)
    for other in (
        SweepSystem(system.matrix, system.start, np.ones(40), system.states),
        SweepSystem(
            system.matrix,
            system.start,
            states=system.states,
            group_offsets=groups,
            direction=Direction.MINIMISE,
        ),
    ):
        with pytest.raises(ValueError, match="neither offsets nor choices"):
            HostPowers(chain_of(other, stay))
    powers, x = HostPowers(chain_of(system, stay)), system.start.copy()
    for vectors in ((x[1:], x, np.zeros(40)), (x, x[1:], np.zeros(40)), (x, x, np.zeros(60))):
        with pytest.raises(ValueError, match="vectors of"):
            powers.add(np.ones(1), *vectors)
