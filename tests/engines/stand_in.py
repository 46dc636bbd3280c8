"""Loops like a host's, made of numba's, for tests of when they are used."""

from __future__ import annotations

import numpy as np

from engines.cpu import (
    engine,
    kernels,
    substitution_kernels,
    uniformise_kernels,
)
from engines.cpu.graph import CpuGraph
from engines.cpu.substitution import substitute_with
from engines.formats.csr import CsrMatrix
from engines.model import ExplicitModel, ModelKind


class StandIn:
    """Loops like a host's, made of numba's on one thread; they note what they are asked for."""

    name = "Stand-in"

    def __init__(self, room=True):
        self.room = room
        self.patient = True
        self.asked = []
        self.threads = []

    def sweeps(self, system, pieces):
        self.asked.append("sweeps")
        assert pieces[0] == 0
        assert pieces[-1] == system.num_updates
        return Sweeps(self, system) if self.room else None

    def powers(self, problem, pieces):
        self.asked.append("powers")
        assert pieces[-1] == problem.system.num_updates
        return Powers(self, problem) if self.room else None

    def strong_components(self, starts, targets, within):
        self.asked.append("components")
        if not self.room:
            return None
        groups = np.arange(len(starts), dtype=np.int32)
        ones = np.ones(len(targets))
        edges = CsrMatrix(starts, targets, ones, len(within))
        graph = CpuGraph(ExplicitModel(ModelKind.MDP, edges, groups))
        return graph.strong_components(within)[0].astype(np.int32)

    def closures(self, groups, offsets, columns, num_states):
        self.asked.append("closures")
        ones = np.ones(len(columns))
        matrix = CsrMatrix(offsets, columns, ones, num_states)
        kind = ModelKind.DTMC if groups is None else ModelKind.MDP
        model = ExplicitModel(kind, matrix, groups)
        return Closures(self, CpuGraph(model)) if self.room else None


class Sweeps:
    def __init__(self, owner, system):
        self._owner, self._system = owner, system

    def repeat(self, changes, stop_below, omega, x, x_new, absolute, threads):
        self._owner.threads.append(threads)
        arrays = engine._numba_arrays(self._system)
        if self._system.group_offsets is not None:
            return kernels.repeat_groups(changes, stop_below, *arrays, x, x_new, absolute)
        return kernels.repeat_rows(changes, stop_below, *arrays, omega, x, x_new, absolute)

    def substitute(self, x):
        self._owner.asked.append("substitution")
        found = substitute_with(substitution_kernels.substitute, self._system, x)
        if found.values is None:
            return -1.0
        x[:] = found.values
        return found.error


class Closures:
    def __init__(self, owner, graph):
        self._owner, self._graph = owner, graph

    def reached_from(self, sources):
        self._owner.asked.append("reached")
        return self._graph.reached_from(sources)

    def may_reach(self, goal, through):
        self._owner.asked.append("may")
        return self._graph.may_reach(goal, through)

    def must_approach(self, goal, through):
        self._owner.asked.append("must")
        return self._graph.must_approach(goal, through)

    def can_force(self, goal, through):
        self._owner.asked.append("force")
        return self._graph.can_force(goal, through) if self._owner.patient else None

    def end_components(self, restrict, choices):
        self._owner.asked.append("ends")
        if not self._owner.patient:
            return None
        labels, _, usable = self._graph.end_components(restrict, choices)
        return labels.astype(np.int32), usable


class Powers:
    def __init__(self, owner, problem):
        self._owner, self._problem = owner, problem

    def add(self, coefficients, x, x_new, total, threads):
        self._owner.threads.append(threads)
        system, matrix = self._problem.system, self._problem.system.matrix
        states = np.empty(0, dtype=np.int32) if system.states is None else system.states
        rows, columns = kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns)
        parts = (rows, columns, matrix.values, states, self._problem.stay, self._problem.rate)
        return uniformise_kernels.add_powers(*parts, coefficients, x, x_new, total)
