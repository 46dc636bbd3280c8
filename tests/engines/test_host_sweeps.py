"""Compiled sweeps: plain loops over doubles are the oracle, threads do not change a bit."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from engines.host.compiled.library import DOUBLES, Function
from engines.host.sweeps import HostSweeps
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Direction, SweepSystem


def _system(choices, wide, direction=Direction.MAXIMISE):
    """A system whose rows have from no to seven entries, some for states that no row computes."""
    random = np.random.default_rng(3)
    states, updates = 60, 40
    each = np.ones(updates, dtype=int) if not choices else random.integers(1, 4, updates)
    lengths = random.integers(0, 8, each.sum())
    offset_type, column_type = {
        "narrow": (np.int32, np.int32),
        "wide offsets": (np.int64, np.int32),
        "wide": (np.int64, np.int64),
    }[wide]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_type)
    columns = random.integers(0, states, offsets[-1]).astype(column_type)
    matrix = CsrMatrix(offsets, columns, random.random(offsets[-1]) / 8, states)
    groups = np.concatenate([[0], np.cumsum(each)]) if choices else None
    return SweepSystem(
        matrix,
        random.random(states),
        offset=random.random(len(lengths)),
        states=random.permutation(states)[:updates],
        group_offsets=groups,
        direction=direction if choices else None,
    )


def _plain(system, x, omega):
    """One sweep, number by number."""
    after, change = x.copy(), 0.0
    groups = system.group_offsets
    for update in range(system.num_updates):
        rows = [update] if groups is None else range(groups[update], groups[update + 1])
        sums = []
        for row in rows:
            total = float(system.offset[row])
            for entry in range(system.matrix.row_offsets[row], system.matrix.row_offsets[row + 1]):
                total += float(system.matrix.values[entry]) * x[system.matrix.columns[entry]]
            sums.append(total)
        best = min(sums) if system.direction is Direction.MINIMISE else max(sums)
        state = system.states[update]
        if omega != 1.0:
            best = (1.0 - omega) * x[state] + omega * best
        change = max(change, abs(best - x[state]) / abs(x[state]))
        after[state] = best
    return after, change


@pytest.mark.parametrize("wide", ["narrow", "wide offsets", "wide"])
@pytest.mark.parametrize(
    ("choices", "direction", "omega"),
    [
        (False, None, 1.0),
        (False, None, 0.9),
        (True, Direction.MINIMISE, 1.0),
        (True, Direction.MAXIMISE, 1.0),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_sweep_is_that_of_plain_loops(choices, direction, omega, wide, threads):
    system = _system(choices, wide, direction)
    sweeps = HostSweeps(system)
    sweeps._shares.threads = threads
    sweeps._shares.bounds = np.linspace(0, system.num_updates, 7).astype(np.int64)
    x, x_new, changes = system.start.copy(), system.start.copy(), np.empty(5)
    assert sweeps.repeat(changes, -1.0, omega, x, x_new, False) == 5
    expected, seen = system.start.copy(), []
    for _ in range(5):
        expected, change = _plain(system, expected, omega)
        seen.append(change)
    np.testing.assert_array_equal(x_new, expected)
    np.testing.assert_array_equal(changes, seen)


@pytest.mark.parametrize("threads", [1, 2])
def test_sweeps_end_with_the_first_small_change(threads):
    system = _system(False, "narrow")
    sweeps = HostSweeps(system)
    sweeps._shares.threads = threads
    sweeps._shares.bounds = np.array([0, 20, 40])
    x, x_new, changes = system.start.copy(), system.start.copy(), np.empty(500)
    made = sweeps.repeat(changes, 1e-6, 1.0, x, x_new, True)
    assert 2 < made < 500
    assert changes[made - 1] < 1e-6 <= changes[: made - 1].min()


def test_what_is_no_number_is_no_change():
    """0/0 and ∞ − ∞ count as none; a rise from 0 is infinite."""
    matrix = CsrMatrix(np.arange(3), np.arange(2), np.ones(2), 2)
    for start, expected in (([0.0, 1.0], 0.0), ([math.inf, 1.0], 0.0)):
        start, changes = np.array(start), np.empty(1)
        HostSweeps(SweepSystem(matrix, start)).repeat(
            changes, -1.0, 1.0, start.copy(), start.copy(), False
        )
        assert changes[0] == expected
    rise = SweepSystem(matrix, np.zeros(2), offset=np.array([0.0, 0.5]))
    HostSweeps(rise).repeat(changes, -1.0, 1.0, np.zeros(2), np.zeros(2), False)
    assert changes[0] == math.inf


def test_arrays_of_the_wrong_kind_are_refused():
    function = Function("pg_release", None, DOUBLES)
    for wrong in (np.zeros(2, dtype=np.float32), np.zeros((2, 2))[:, 0], np.zeros(3, dtype=int)):
        with pytest.raises(ctypes.ArgumentError, match="contiguous array of float64"):
            function(wrong)
