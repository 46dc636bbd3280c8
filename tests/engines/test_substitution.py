"""Solves by one walk: right to the error they tell, only where states do not lead back."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest

from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.host.substitution import substitute
from engines.methods import substitution
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.engines import models

ON_CPU = SolverEnvironment(device=DeviceChoice.CPU)


def forwards(seed, size, *, choices=1, loops=0.3):
    """A model whose states, in a random order, lead to later ones and to themselves.

    Not every state has an equation: the last ones, and some others, are known.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    states = [[] for _ in range(size)]
    for place, state in enumerate(order):
        for _ in range(rng.integers(1, choices + 1)):
            later = order[place + 1 :]
            if not len(later):
                states[state].append({int(state): 1.0})
                continue
            successors = rng.choice(later, size=min(rng.integers(1, 5), len(later)), replace=False)
            if rng.random() < loops:
                successors = np.append(successors, state)
            weights = rng.uniform(0.05, 1.0, len(successors))
            weights /= weights.sum()
            states[state].append(
                {int(s): float(p) for s, p in zip(successors, weights, strict=True)}
            )
    known = rng.random(size) < 0.1
    known[order[-1]] = True
    if choices == 1:
        return models.dtmc([row for (row,) in states]), known
    return models.mdp(states), known


def system_of(model, known, seed, *, offset, direction=None):
    """The equations of the states that are not known."""
    rng = np.random.default_rng(seed)
    start = np.where(known, rng.random(model.num_states), 0.0)
    states = np.flatnonzero(~known).astype(np.int32)
    groups = model.row_group_offsets
    rows, cut = states, None
    if groups is not None:
        rows = np.concatenate([np.arange(groups[s], groups[s + 1]) for s in states])
        cut = np.concatenate(([0], np.cumsum(np.diff(groups)[states]))).astype(np.int32)
    matrix = model.matrix.select_rows(rows)
    earned = rng.uniform(0.0, 3.0, len(rows)) if offset else None
    chain = groups is None
    scaling = Scaling.DIAGONAL if chain else Scaling.NONE
    return SweepSystem(
        matrix, start, earned, states, scaling=scaling, group_offsets=cut, direction=direction
    )


def exact(system):
    """The solution in rational arithmetic, by recursion: states lead only to later ones."""
    matrix, groups = system.matrix, system.group_offsets
    group_of = {int(state): group for group, state in enumerate(system.states)}
    found = {}
    pick = min if system.direction is Direction.MINIMISE else max

    def value(state):
        if state not in group_of:
            return Fraction(float(system.start[state]))
        if state not in found:
            group = group_of[state]
            rows = [group] if groups is None else range(groups[group], groups[group + 1])
            found[state] = pick(row_value(state, row) for row in rows)
        return found[state]

    def row_value(state, row):
        total = Fraction(0 if system.offset is None else float(system.offset[row]))
        own = Fraction(0)
        for entry in range(matrix.row_offsets[row], matrix.row_offsets[row + 1]):
            column, weight = int(matrix.columns[entry]), Fraction(float(matrix.values[entry]))
            if column == state:
                own += weight
            else:
                total += weight * value(column)
        return total / (1 - own)

    return [value(state) for state in range(system.num_states)]


def worst_error(values, solution):
    """The largest relative error of values; those of 0 must be 0."""
    worst = 0.0
    for one, other in zip(values, solution, strict=True):
        if other == 0:
            assert one == 0.0
        else:
            worst = max(worst, float(abs(Fraction(float(one)) / other - 1)))
    return worst


FIRST = substitution.AFTER

CASES = [(None, 1), (Direction.MINIMISE, 3), (Direction.MAXIMISE, 3)]


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize(("direction", "choices"), CASES, ids=["chain", "min", "max"])
@pytest.mark.parametrize("seed", range(8))
def test_values_are_right_to_the_error_that_is_told(seed, direction, choices, offset):
    model, known = forwards(seed, 40, choices=choices)
    system = system_of(model, known, seed, offset=offset, direction=direction)
    solution = exact(system)
    for form in (system, scaled(system)):
        values, error = substitute(form, system.start)
        assert worst_error(values, solution) <= error < 1e-11


def test_the_error_grows_with_the_length_of_a_path():
    size = 3_000
    rows = [{k + 1: 0.9, size + 1: 0.1} for k in range(size)]
    model = models.dtmc([*rows, {size: 1.0}, {size + 1: 1.0}])
    known = models.mask(size + 2, [size, size + 1])
    system = system_of(model, known, 0, offset=True)
    values, error = substitute(scaled(system), system.start)
    assert worst_error(values[::100], exact_line(system)[::100]) <= error
    assert size * 2.0**-53 < error < 20 * size * 2.0**-53


def exact_line(system):
    """The solution of a line of states, the last one first: too long for recursion."""
    values = [Fraction(float(x)) for x in system.start]
    for state in range(len(system.states) - 1, -1, -1):
        first, behind = system.matrix.row_offsets[state : state + 2]
        values[state] = Fraction(float(system.offset[state])) + sum(
            Fraction(float(system.matrix.values[e])) * values[system.matrix.columns[e]]
            for e in range(first, behind)
        )
    return values


@pytest.mark.parametrize(
    "rows",
    [
        [{1: 0.5, 2: 0.5}, {0: 0.5, 2: 0.5}, {2: 1.0}],
        [{1: 1.0}, {1: 1.0}, {2: 1.0}],
        [{1: 0.5, 2: 0.5}, {3: 0.5, 2: 0.5}, {2: 1.0}, {0: 1.0}],
    ],
    ids=["two states", "nothing but itself", "three states"],
)
def test_states_that_need_each_other_are_found(rows):
    model = models.dtmc(rows)
    system = system_of(model, models.mask(len(rows), [2]), 0, offset=False)
    assert substitute(system, system.start) is None


LONG = 2_500


def long_model(*, back=0.0, choices=1):
    """A line, each state of which may fail; the first may be come back to from the last."""
    size = LONG
    fail, goal = size, size + 1
    states = []
    for k in range(size):
        on = k + 1 if k + 1 < size else goal
        row = {on: 0.999, fail: 0.001}
        if k == size - 1 and back:
            row = {on: 1.0 - back, 0: back}
        states.append([row, {on: 0.9985, fail: 0.0015}][:choices])
    states += [[{fail: 1.0}], [{goal: 1.0}]]
    return models.mdp(states) if choices > 1 else models.dtmc([row for (row,) in states])


def solved(model, environment, direction=None):
    unknown = models.mask(LONG + 2, range(LONG))
    start = np.zeros(LONG + 2)
    start[-1] = 1.0
    return solve_reachability(model, unknown, start, environment, direction=direction)


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("direction", [None, Direction.MINIMISE, Direction.MAXIMISE])
def test_a_solve_of_our_choice_ends_by_a_walk(direction, absolute):
    model = long_model(choices=1 if direction is None else 2)
    environment = SolverEnvironment(device=DeviceChoice.CPU, absolute=absolute)
    result = solved(model, environment, direction)
    assert result.finished_by == substitution.NAME
    assert result.status is Status.CONVERGED
    assert result.iterations == FIRST
    assert result.cost.kernel == "compiled"
    assert "graph is acyclic: solved by back-substitution after 64 iterations" in result.note
    best = 0.9985 if direction is Direction.MINIMISE else 0.999
    expected = best ** np.arange(LONG, 0, -1)
    np.testing.assert_allclose(result.values[:LONG], expected, rtol=1e-11)
    assert result.residual < 1e-15
    assert result.error_estimate < 1e-11


@pytest.mark.parametrize("reason", ["a cycle", "a named method", "few states", "few sweeps"])
def test_else_sweeps_go_on(monkeypatch, reason):
    environment, model = ON_CPU, long_model(back=0.5 if reason == "a cycle" else 0.0)
    if reason == "a named method":
        environment = SolverEnvironment(method=Method.JACOBI, device=DeviceChoice.CPU)
    elif reason == "few states":
        monkeypatch.setattr(substitution, "FEWEST_STATES", LONG + 1)
    elif reason == "few sweeps":
        monkeypatch.setattr(substitution, "AFTER", 10_000_000)
    result = solved(model, environment)
    assert substitution.NAME not in (result.finished_by, result.note)
    assert result.iterations > FIRST
    if reason != "a named method":
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize("method", [Method.AUTO, Method.JACOBI])
def test_sweeps_are_held_only_as_long_as_a_walk_may_follow(method):
    model, known = forwards(1, 2_400)
    system = system_of(model, known, 1, offset=True)
    environment = SolverEnvironment(method=method, device=DeviceChoice.CPU)
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    gone = weakref.ref(sweeper)
    attempt = substitution.Substitution(system, environment, sweeper, 1e-8)
    del sweeper
    gc.collect()
    held = gone() is not None
    assert held == (method is Method.AUTO)
    attempt.forbid()
    gc.collect()
    assert gone() is None
    assert not attempt.ends(64, np.inf)
    assert attempt.taken() is None


def test_negative_numbers_are_swept():
    model = long_model()
    states = np.arange(LONG, dtype=np.int32)
    matrix = model.matrix.select_rows(states)
    start = np.zeros(LONG + 2)
    start[-1] = 1.0
    for offset, usable in ((np.full(LONG, 1.0), True), (np.full(LONG, -1.0), False)):
        system = SweepSystem(matrix, start, offset, states)
        sweeper = CpuEngine().sweeper(system, -1.0, False)
        attempt = substitution.Substitution(system, ON_CPU, sweeper, 1e-8)
        assert not attempt.ends(63, np.inf)
        assert not attempt.ends(64, 64.0)
        assert attempt.ends(64, np.inf) is usable
        assert (attempt.solved is not None) is usable


def test_an_error_that_is_too_large_is_no_end():
    model, known = forwards(1, 2_400)
    system = system_of(model, known, 1, offset=True)
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    environment = SolverEnvironment(epsilon=1e-16, device=DeviceChoice.CPU)
    for accepted, small_enough in ((0.0, False), (1e-8, True)):
        attempt = substitution.Substitution(system, environment, sweeper, accepted)
        assert attempt.ends(64, np.inf) is small_enough
        assert (attempt.solved is not None) is small_enough


@pytest.mark.parametrize("precision", [Precision.SINGLE, Precision.MIXED])
def test_after_sweeps_in_single_precision_as_well(precision):
    environment = SolverEnvironment(device=DeviceChoice.CPU, precision=precision)
    result = solved(long_model(), environment)
    np.testing.assert_allclose(result.values[:LONG], 0.999 ** np.arange(LONG, 0, -1), rtol=1e-5)
    assert result.status is Status.CONVERGED


def test_strategies_are_those_of_the_values():
    model = long_model(choices=2)
    assert isinstance(model, ExplicitModel)
    unknown = models.mask(LONG + 2, range(LONG))
    start = np.zeros(LONG + 2)
    start[-1] = 1.0
    for direction, choice in ((Direction.MINIMISE, 1), (Direction.MAXIMISE, 0)):
        result = solve_reachability(
            model, unknown, start, ON_CPU, direction=direction, want_strategy=True
        )
        assert result.finished_by == substitution.NAME
        assert set(result.strategy[:LONG] - 2 * np.arange(LONG)) == {choice}
