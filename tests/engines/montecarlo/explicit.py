"""Exact answers on small programs: all states, by products of all enabled commands.

Nothing here knows of plans, units or draws: it is the semantics as the manual has it, and linear
algebra.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import expm

from engines.montecarlo.questions import (
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    ReachabilityReward,
    Until,
)
from engines.program.evaluate import evaluate, holds, number
from engines.program.program import ModelKind


def choices(program, state):
    """The choices of a state: action and a list of (weight, target) each."""
    found = []
    for module in program.modules:
        for command in module.commands:
            if command.action is None and holds(command.guard, state):
                found.append((None, _outcomes(state, [command])))
    for action, members in enumerate(program.synchronising):
        enabled = [
            [c for c in program.modules[m].commands if c.action == action and holds(c.guard, state)]
            for m in members
        ]
        if members:
            for together in itertools.product(*enabled):
                found.append((action, _outcomes(state, together)))
    return found


def _outcomes(state, commands):
    outcomes = []
    for updates in itertools.product(*(command.updates for command in commands)):
        weight, target = 1.0, list(state)
        for update in updates:
            weight *= number(update.weight, state)
            for assignment in update.assignments:
                target[assignment.variable] = int(evaluate(assignment.value, state))
        if weight > 0.0:
            outcomes.append((weight, tuple(target)))
    return outcomes


def _reward(items, state):
    return sum(number(item.value, state) for item in items if holds(item.guard, state))


class Explicit:
    """The chain of a program: `matrix` is P of a DTMC, R of a CTMC; a deadlock is never left."""

    def __init__(self, program):
        self.program = program
        self.discrete = program.kind is ModelKind.DTMC
        initial = program.initial_states or (program.default_state,)
        self.states, entries, earned = {}, [], []
        for state in initial:
            self.states.setdefault(state, len(self.states))
        self.start = np.zeros(0)
        waiting = list(self.states)
        for state in waiting:
            options = choices(program, state)
            share = 1.0 / len(options) if self.discrete and options else 1.0
            gains = np.zeros(len(program.reward_structures))
            for action, outcomes in options:
                total = sum(weight for weight, _ in outcomes) * share
                for r, structure in enumerate(program.reward_structures):
                    items = [x for x in structure.transitions if x.action == action]
                    gains[r] += total * _reward(items, state)
                for weight, target in outcomes:
                    if target not in self.states:
                        self.states[target] = len(self.states)
                        waiting.append(target)
                    entries.append((self.states[state], self.states[target], weight * share))
            if not options and self.discrete:
                entries.append((self.states[state], self.states[state], 1.0))
            earned.append(gains)
        n = len(self.states)
        self.matrix = np.zeros((n, n))
        for row, column, weight in entries:
            self.matrix[row, column] += weight
        self.earned = np.array(earned).reshape(n, -1)
        self.start = np.zeros(n)
        self.start[: len(initial)] = 1.0 / len(initial)

    def where(self, expression):
        return np.array([holds(expression, state) for state in self.states])

    def rates(self, structure):
        """State rewards plus the expected transition reward, a step or a unit of time."""
        items = self.program.reward_structures[structure].states
        return (
            np.array([_reward(items, state) for state in self.states]) + self.earned[:, structure]
        )

    def state_rewards(self, structure):
        items = self.program.reward_structures[structure].states
        return np.array([_reward(items, state) for state in self.states])

    def generator(self, absorbing=None):
        matrix = self.matrix.copy()
        if absorbing is not None:
            matrix[absorbing] = 0.0
        return matrix - np.diag(matrix.sum(axis=1))

    def answer(self, question):
        return float(self.start @ self.values(question))

    def values(self, question):
        match question:
            case Until(negated=True):
                opposite = Until(question.left, question.right, question.bounds)
                return 1.0 - self.values(opposite)
            case Next(target=target, negated=negated):
                embedded = self.matrix / np.maximum(self.matrix.sum(axis=1), 1e-300)[:, None]
                stuck = self.matrix.sum(axis=1) == 0.0
                value = np.where(stuck, self.where(target), embedded @ self.where(target))
                return 1.0 - value if negated else value
            case Monitor():
                return self._monitor(question)
            case Until():
                return self._until(question)
            case CumulativeReward(structure=s, bound=bound):
                return self._cumulative(self.rates(s), bound)
            case InstantaneousReward(structure=s, time=time):
                return self._after(time) @ self.state_rewards(s)
            case ReachabilityReward(structure=s, target=target):
                return self._reach(self.rates(s), self.where(target))

    def _after(self, time, absorbing=None):
        if not self.discrete:
            return expm(self.generator(absorbing) * time)
        matrix = self.matrix.copy()
        if absorbing is not None:
            matrix[absorbing] = np.eye(len(matrix))[absorbing]
        return np.linalg.matrix_power(matrix, int(time))

    def _monitor(self, question):
        """From each state, with the letters that are left to be read."""
        letters = sum(self.where(atom).astype(int) << j for j, atom in enumerate(question.atoms))
        moves = np.array(question.transitions)[:, letters]
        verdicts, final = np.array(question.verdicts), np.array(question.final, float)
        everywhere = np.arange(len(letters))
        known = np.broadcast_to(final[:, None], moves.shape)
        for left in range(question.length):
            ahead = known if left == 0 else known @ self.matrix.T
            decided = verdicts[moves]
            known = np.where(decided == 2, ahead[moves, everywhere], decided)
        value = known[question.initial]
        return 1.0 - value if question.negated else value

    def _until(self, question):
        left, right = self.where(question.left), self.where(question.right)
        bounds = question.bounds
        if bounds is None:
            return self._reach_probability(left, right)
        lower, upper = bounds.lower, bounds.upper
        if self.discrete:
            lower, last = bounds.first_step, bounds.last_step
            upper = np.inf if last is None else last
        if lower > upper:
            return np.zeros(len(left))
        if np.isinf(upper):
            value = self._reach_probability(left, right)
        else:
            value = self._after(upper - lower, right | ~left) @ right.astype(float)
        if lower > 0:
            value = self._after(lower, ~left) @ np.where(left, value, 0.0)
            if self.discrete:
                # the right side may hold at the lower bound although the left one does not
                inside = self._after(lower - 1, ~left) @ np.diag(left.astype(float)) @ self.matrix
                value = inside @ np.where(
                    right | left, self._until(_within(question, upper - lower)), 0.0
                )
        return value

    def _reach_probability(self, left, right):
        embedded = self.matrix / np.maximum(self.matrix.sum(axis=1), 1e-300)[:, None]
        able = right.copy()
        for _ in range(len(able)):
            able |= left & (embedded @ able > 0.0)
        open_ = able & ~right
        value = right.astype(float)
        inner = embedded[np.ix_(open_, open_)]
        value[open_] = np.linalg.solve(np.eye(len(inner)) - inner, embedded[open_] @ right)
        return value

    def _cumulative(self, rates, bound):
        n = len(rates)
        if self.discrete:
            total, now = np.zeros(n), np.eye(n)
            for _ in range(int(bound)):
                total += now @ rates
                now = now @ self.matrix
            return total
        block = np.zeros((n + 1, n + 1))
        block[:n, :n], block[:n, n] = self.generator(), rates
        return expm(block * bound)[:n, n]

    def _reach(self, rates, target):
        exits = self.matrix.sum(axis=1)
        embedded = self.matrix / np.maximum(exits, 1e-300)[:, None]
        step = rates if self.discrete else rates / np.maximum(exits, 1e-300)
        inner = embedded[np.ix_(~target, ~target)]
        value = np.zeros(len(rates))
        value[~target] = np.linalg.solve(np.eye(len(inner)) - inner, step[~target])
        return value


def _within(question, upper):
    from engines.montecarlo.questions import Bounds

    return Until(question.left, question.right, Bounds(0.0, upper))
