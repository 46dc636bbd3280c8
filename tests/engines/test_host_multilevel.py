"""Compiled cycles over aggregates: plain loops are the oracle, to the last bit on any threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engines.host.aggregates import NONE, Aggregates, Chain, entries_by_column
from engines.host.compiled import shares
from engines.host.multilevel import Coarsening, HostCycle, HostCycles, Level, set_coarse_flows

OMEGA, FLOOR, LARGEST = 0.85, 1e-3, 1.4
ENOUGH = 0.25
THREADS = {
    "one thread": lambda _: 1,
    "threads": lambda _: 3,
    "threads on large levels": lambda entries: 3 if entries > 800 else 1,
}


@pytest.fixture(params=THREADS)
def threads(request, monkeypatch):
    """Let levels have threads by their entries."""
    monkeypatch.setattr(shares, "threads_for", THREADS[request.param])


def chain_of(states, alike=False):
    """A ring with random flows besides, which may all be alike."""
    random = np.random.default_rng(5)
    rows = []
    for row in range(states):
        others = random.integers(0, states, random.integers(0, 5)).tolist()
        rows.append(sorted({(row + 1) % states, *others} - {row}))
    columns = np.array([column for row in rows for column in row], dtype=np.int32)
    offsets = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int32)
    values = np.ones(len(columns)) if alike else random.uniform(0.1, 10.0, len(columns))
    out = np.zeros(states)
    np.add.at(out, columns, values)
    return Chain(offsets, columns, values, out)


def entries_of(chain, row):
    """The places of a row's entries."""
    return range(int(chain.offsets[row]), int(chain.offsets[row + 1]))


def waits(aggregate, number):
    """On which side an aggregate is in a round."""
    cut = 2**32 - 1
    bits = (aggregate * 2654435761 + number * 2246822519) & cut
    bits = ((bits ^ (bits >> 15)) * 2246822519) & cut
    bits = ((bits ^ (bits >> 13)) * 3266489917) & cut
    return (bits >> 16) & 1 == 1


def wish(chain, members, of, partner, target, number):
    """Whom an aggregate chooses, or None, and how strongly it is tied."""
    best, strongest, chosen = np.float32(0), np.float32(0), None
    for row in members[target]:
        for entry in entries_of(chain, row):
            column = chain.columns[entry]
            value, source = chain.values[entry], of[column]
            strength = np.float32(value / chain.out[column] + value / chain.out[row])
            strongest = max(strongest, strength)
            free = source not in partner and waits(source, number)
            if free and source != target and strength > best:
                best, chosen = strength, source
    return (chosen if float(best) >= ENOUGH * float(strongest) else None), best


def paired(chain, members, rounds):
    """The members of aggregates once pairs of them are joined."""
    of = {state: number for number, group in enumerate(members) for state in group}
    partner = {}
    for number in rounds:
        accepted = {}
        for target in range(len(members)):
            if target in partner or waits(target, number):
                continue
            source, strength = wish(chain, members, of, partner, target, number)
            if source is not None and strength >= accepted.get(source, (0.0, None))[0]:
                accepted[source] = (strength, target)
        for source, (_, target) in accepted.items():
            partner[source], partner[target] = target, source
    return [
        group + (members[partner[one]] if one in partner else [])
        for one, group in enumerate(members)
        if partner.get(one, one) >= one
    ]


def joined(chain, steps=2):
    """Aggregates as they are made, and their members by plain loops."""
    aggregates = Aggregates(chain)
    members = [[state] for state in range(len(chain.out))]
    for step in range(steps):
        rounds = range(6 * step, 6 * step + 6)
        aggregates.pair(rounds, ENOUGH)
        members = paired(chain, members, rounds)
    return aggregates, members


def coarsened(chain):
    """How a level's states are joined, with no flows yet."""
    aggregates, _ = joined(chain)
    count = len(aggregates.members)
    offsets, columns, adds_to = aggregates.entries()
    coarse = Chain(offsets, columns, np.full(len(columns), np.nan), np.full(count, np.nan))
    by_source = entries_by_column(columns, count)
    return Coarsening(aggregates.members, aggregates.aggregate, adds_to, coarse, *by_source)


def levels_of(chain, most):
    """Levels down to one of so few states."""
    levels = []
    while len(chain.out) > most:
        level = Level(chain, coarsened(chain), not levels)
        set_coarse_flows(level, np.ones(len(chain.out)))
        levels.append(level)
        chain = level.below.chain
    return [*levels, Level(chain, None, not levels)]


def plain_flows(chain, x, below):
    """The values and sums of the coarse chain."""
    values = [0.0] * len(below.chain.values)
    for row in range(len(x)):
        for entry in entries_of(chain, row):
            if below.adds_to[entry] != NONE:
                values[below.adds_to[entry]] += float(chain.values[entry]) * x[chain.columns[entry]]
    out = [0.0] * len(below.chain.out)
    for entry, column in enumerate(below.chain.columns):
        out[column] += values[entry]
    return np.array(values), np.array(out)


def plain_sweep(chain, x, least, most):
    """One sweep of relaxed Jacobi."""
    after = []
    for row, before in enumerate(x):
        total = 0.0
        for entry in entries_of(chain, row):
            total += float(chain.values[entry]) * x[chain.columns[entry]]
        out = float(chain.out[row])
        value = (1.0 - OMEGA) * before + OMEGA * (total / out) if out > 0.0 else before
        after.append(value if math.isnan(value) else min(max(value, least), most))
    return after


def plain_elimination(chain):
    """The values of a chain's states by elimination, with the same total flow."""
    size = len(chain.out)
    flows = [[0.0] * size for _ in range(size)]
    for row in range(size):
        for entry in entries_of(chain, row):
            flows[chain.columns[entry]][row] = float(chain.values[entry])
    for last in range(size - 1, 0, -1):
        leaving = 0.0
        for column in range(last):
            leaving += flows[last][column]
        for row in range(last):
            share = flows[row][last] / leaving if leaving > 0.0 else 0.0
            flows[row][last] = share
            for column in range(last):
                flows[row][column] += share * flows[last][column]
    x = [1.0]
    for state in range(1, size):
        total = 0.0
        for before in range(state):
            total += x[before] * flows[before][state]
        x.append(total)
    wanted = made = 0.0
    for state in range(size):
        wanted += float(chain.out[state])
        made += x[state] * float(chain.out[state])
    return [value * (wanted / made) for value in x]


def plain_cycle(chain, belows, x, before, after, least=FLOOR, most=math.inf):
    """A cycle over a chain and those below it."""
    if not belows:
        return plain_elimination(chain)
    for _ in range(before):
        x = plain_sweep(chain, x, least, most)
    below = belows[0]
    values, out = plain_flows(chain, x, below)
    coarse = Chain(below.chain.offsets, below.chain.columns, values, out)
    ones = [1.0] * len(out)
    correction = plain_cycle(coarse, belows[1:], ones, before, after, 1.0 / LARGEST, LARGEST)
    x = [value * correction[below.aggregate[state]] for state, value in enumerate(x)]
    x = [value if math.isnan(value) else min(max(value, least), most) for value in x]
    for _ in range(after):
        x = plain_sweep(chain, x, least, most)
    return x


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("alike", [False, True])
def test_aggregates_are_those_of_plain_loops(alike):
    chain = chain_of(300, alike)
    aggregates, members = joined(chain)
    found = [group[group != NONE].tolist() for group in aggregates.members]
    assert found == members
    assert {len(group) for group in members} >= {2, 3, 4}
    for number, group in enumerate(members):
        assert all(aggregates.aggregate[state] == number for state in group)


@pytest.mark.usefixtures("threads")
def test_a_strongest_neighbour_that_is_taken_leaves_a_state_alone():
    """Weak ties to others than a member will not do, however many rounds there are."""
    chain = Chain(
        np.array([0, 1, 3, 5, 6], dtype=np.int32),
        np.array([1, 0, 2, 1, 3, 2], dtype=np.int32),
        np.array([1.0, 1.0, 0.01, 0.01, 1.0, 1.0]),
        np.array([1.0, 1.01, 1.01, 1.0]),
    )
    aggregates = Aggregates(chain)
    aggregates.pair(range(12), ENOUGH)
    assert aggregates.members.tolist() == [[0, 1], [2, 3]]
    aggregates.pair(range(12), ENOUGH)
    assert aggregates.members.tolist() == [[0, 1, NONE, NONE], [2, 3, NONE, NONE]]
    aggregates.pair(range(12), 0.0)
    assert aggregates.members.shape == (1, 8)


def test_entries_lead_between_aggregates_in_the_order_in_which_members_have_them():
    chain = chain_of(200)
    aggregates, members = joined(chain)
    offsets, columns, adds_to = aggregates.entries()
    for target, group in enumerate(members):
        wanted = []
        for row in group:
            for entry in entries_of(chain, row):
                source = int(aggregates.aggregate[chain.columns[entry]])
                if source == target:
                    assert adds_to[entry] == NONE
                    continue
                if source not in wanted:
                    wanted.append(source)
                assert adds_to[entry] == offsets[target] + wanted.index(source)
        assert columns[offsets[target] : offsets[target + 1]].tolist() == wanted
    assert offsets[-1] == len(columns)


def test_entries_by_column_keep_their_order():
    columns = np.array([3, 0, 3, 1, 0, 3], dtype=np.int32)
    starts, found = entries_by_column(columns, 5)
    assert starts.tolist() == [0, 2, 3, 3, 6, 6]
    assert found.tolist() == [1, 4, 3, 0, 2, 5]


@pytest.mark.usefixtures("threads")
def test_coarse_flows_are_those_of_plain_loops():
    chain = chain_of(300)
    x = np.random.default_rng(1).uniform(0.1, 2.0, 300)
    level = Level(chain, coarsened(chain), True)
    for factor in (3.0, 1.0):
        set_coarse_flows(level, factor * x)
    values, out = plain_flows(chain, x.tolist(), level.below)
    np.testing.assert_array_equal(level.below.chain.values, values)
    np.testing.assert_array_equal(level.below.chain.out, out)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("before", "after"), [(2, 2), (0, 4), (2, 0)])
@pytest.mark.parametrize(("states", "levels_wanted"), [(300, 4), (10, 1)])
def test_a_cycle_is_that_of_plain_loops(before, after, states, levels_wanted):
    chain = chain_of(states)
    levels = levels_of(chain, 10)
    assert len(levels) == levels_wanted
    belows = [level.below for level in levels[:-1]]
    cycles = HostCycles(HostCycle.of(OMEGA, FLOOR, LARGEST, before, after), levels)
    x = np.random.default_rng(1).uniform(0.0, 0.01, states)
    kept = x.copy()
    for _ in range(3):
        wanted = plain_cycle(chain, belows, x.tolist(), before, after)
        x_new = cycles.cycle(x)
        np.testing.assert_array_equal(x_new, wanted)
        np.testing.assert_array_equal(x, kept)
        x, kept = x_new, x_new.copy()


def test_the_bounds_of_values_and_corrections_are_met_in_the_cycles_compared():
    """What the test before would not show otherwise."""
    levels = levels_of(chain_of(300), 10)
    cycles = HostCycles(HostCycle.of(OMEGA, FLOOR, LARGEST, 2, 0), levels)
    x = cycles.cycle(np.random.default_rng(1).uniform(0.0, 0.01, 300))
    assert (x == FLOOR).any()
    unbounded = HostCycles(HostCycle.of(OMEGA, FLOOR, 1e50, 2, 0), levels)
    assert not np.array_equal(unbounded.cycle(x), cycles.cycle(x))


@pytest.mark.usefixtures("threads")
def test_what_is_no_number_stays_so():
    levels = levels_of(chain_of(300), 10)
    cycles = HostCycles(HostCycle.of(OMEGA, FLOOR, LARGEST, 2, 2), levels)
    assert np.isnan(cycles.cycle(np.full(300, np.nan))).all()


def test_flows_that_have_vanished_leave_values_as_they_are():
    chain = Chain(
        np.array([0, 0, 1], dtype=np.int32),
        np.array([0], dtype=np.int32),
        np.array([2.0]),
        np.array([2.0, 0.0]),
    )
    members = np.array([[0, 1]], dtype=np.int32)
    coarse = Chain(np.zeros(2, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(1))
    nothing = np.empty(0, dtype=np.int32)
    below = Coarsening(
        *(members, np.zeros(2, np.int32), np.array([NONE], np.int32), coarse),
        *(np.zeros(2, np.int32), nothing),
    )
    levels = [Level(chain, below, True), Level(coarse, None, False)]
    cycles = HostCycles(HostCycle.of(0.5, 0.0, LARGEST, 2, 0), levels)
    assert cycles.cycle(np.array([4.0, 3.0])).tolist() == [1.0, 3.0]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("absolute", [False, True])
def test_changes_are_those_of_values_above_the_least(absolute):
    random = np.random.default_rng(2)
    cycles = HostCycles(HostCycle.of(OMEGA, FLOOR, LARGEST, 2, 2), levels_of(chain_of(300), 300))
    before, made = random.uniform(0.5, 2.0, 300), random.uniform(0.5, 2.0, 300)
    before[7], made[7] = 1e-9, 1e-3
    after = made.copy()
    found = cycles.rescale(before, 0.75, 1e-3, absolute, after)
    np.testing.assert_array_equal(after, made * 0.75)
    changes = abs(after - before) / (1.0 if absolute else before)
    assert changes[7] > 1e5 or absolute
    assert found == np.delete(changes, 7).max()
    for place in (0, 299):
        after = made.copy()
        after[place] = np.nan
        assert math.isnan(cycles.rescale(before, 0.75, 1e-3, absolute, after))


def test_what_does_not_fit_is_refused():
    chain = chain_of(300)
    below = coarsened(chain)
    level, last = Level(chain, below, True), Level(below.chain, None, False)
    how = HostCycle.of(OMEGA, FLOOR, LARGEST, 2, 2)
    cycles = HostCycles(how, [level, last])
    short = np.ones(299)
    for refused in (
        lambda: HostCycle.of(OMEGA, FLOOR, LARGEST, 1, 2),
        lambda: HostCycle.of(OMEGA, FLOOR, LARGEST, 2, -2),
        lambda: HostCycles(how, [level]),
        lambda: HostCycles(how, [level, Level(chain, None, False)]),
        lambda: Level(below.chain, below, False),
        lambda: cycles.cycle(short),
        lambda: cycles.rescale(short, 1.0, 0.0, True, np.ones(300)),
        lambda: set_coarse_flows(level, short),
        lambda: set_coarse_flows(last, np.ones(len(below.chain.out))),
        lambda: Aggregates(Chain(chain.offsets[:-1], chain.columns, chain.values, chain.out)),
        lambda: Aggregates(Chain(chain.offsets, chain.columns[1:], chain.values[1:], chain.out)),
    ):
        with pytest.raises(ValueError, match=r"states|sweeps|level|entries"):
            refused()
    with pytest.raises(TypeError, match="contiguous array of int32"):
        Aggregates(Chain(chain.offsets.astype(np.int64), chain.columns, chain.values, chain.out))
