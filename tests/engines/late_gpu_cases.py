"""Questions on which solves go over from a CPU to a GPU, and what says that they have."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from engines.cuda import driver
from engines.devices import choice
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.solve import late_gpu
from engines.systems.one_sided import Direction

SMALL = 50
"""Entries from which on a GPU may serve, so that small models do."""


def nothing_is_open(monkeypatch, sweeps, entries, *, factors=0):
    """Let no GPU be in use, and solves of so many entries go over to one after so many sweeps."""
    monkeypatch.setattr(driver, "_used", threading.Event())
    monkeypatch.setattr(choice, "GPU_ENTRIES", SMALL)
    monkeypatch.setattr(choice, "ENTRIES_BEFORE_GPU", sweeps * entries)
    monkeypatch.setattr(late_gpu, "GPU_ENTRIES_AT_START", factors)


def slow_walk(size, stay=0.5):
    """To and fro between two ends, at which it stays."""
    inner = np.arange(1, size - 1)
    columns = np.stack([inner - 1, inner, inner + 1], axis=1).ravel()
    values = np.tile([(1.0 - stay) / 2, stay, (1.0 - stay) / 2], size - 2)
    offsets = np.concatenate(([0], np.arange(1, 3 * (size - 2) + 2, 3), [3 * (size - 2) + 2]))
    matrix = CsrMatrix(
        offsets.astype(np.int32),
        np.concatenate(([0], columns, [size - 1])).astype(np.int32),
        np.concatenate(([1.0], values, [1.0])),
        size,
    )
    return ExplicitModel(ModelKind.DTMC, matrix)


def ruin(environment, size=100, kind=ModelKind.DTMC):
    """Solve for the probability of the upper end; it is linear in the state."""
    model, direction = slow_walk(size), None
    if kind is ModelKind.MDP:
        groups = np.arange(size + 1, dtype=np.int32)
        model = replace(model, kind=kind, row_group_offsets=groups)
        direction = Direction.MAXIMISE
    unknown = np.ones(size, dtype=np.bool_)
    unknown[[0, -1]] = False
    start = np.zeros(size)
    start[-1] = 1.0
    result = solve_reachability(model, unknown, start, environment, direction=direction)
    return result, np.arange(size) / (size - 1.0)


def entries_of_ruin(size=100):
    """Return how many entries its system has."""
    return 3 * (size - 2)


def birth_and_death(environment, size=200, up=0.9):
    """Solve for the long run of a queue; it is geometric."""
    states = np.arange(size)
    rows = np.concatenate((states[:-1], states[1:]))
    columns = np.concatenate((states[1:], states[:-1]))
    values = np.concatenate((np.full(size - 1, up), np.ones(size - 1)))
    order = np.lexsort((columns, rows))
    offsets = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=size), out=offsets[1:])
    matrix = CsrMatrix(offsets, columns[order].astype(np.int32), values[order], size)
    model = ExplicitModel(ModelKind.CTMC, matrix)
    result = solve_steady_state(model, np.ones(size, dtype=np.bool_), environment)
    exact = up**states
    return result, exact / exact.sum()


AUTOMATIC = SolverEnvironment(device=DeviceChoice.AUTO)


def begun_on_cpu(result):
    """The sweeps that the CPU made before a GPU went on, as the first event tells."""
    event = result.events[0]
    return event.kind is Kind.BEGAN_ON_CPU and dict(event.details)["sweeps"]
