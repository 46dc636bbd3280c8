"""What a program's model is, by plain loops over dictionaries of states.

Written from PRISM's manual and sources, and from nothing of the engines but the values of
expressions.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from engines.program.evaluate import evaluate


class FaultError(Exception):
    """A command has no meaning in a reachable state."""


@dataclass
class PlainModel:
    """A model as lists.

    `choices[i]` are those of the i-th state: an action (None for none) and transitions, a target
    and a weight each, in PRISM's order. A chain has one choice a state, whose transitions have an
    action each.
    """

    states: list[tuple[int, ...]]
    choices: list[list[tuple]]
    deadlocks: list[bool]
    initial: set[tuple[int, ...]] = field(default_factory=set)


def outcomes(command, program, state):
    """The weights and new values of a command's updates, where a weight is not 0."""
    found, total = [], 0.0
    for update in command.updates:
        weight = float(evaluate(update.weight, state))
        if not 0.0 <= weight < math.inf:
            raise FaultError("weight")
        total += weight
        if weight == 0.0:
            continue
        new = {}
        for assignment in update.assignments:
            value = int(evaluate(assignment.value, state))
            declared = program.variables[assignment.variable]
            if not declared.low <= value <= declared.high:
                raise FaultError("range")
            new[assignment.variable] = value
        found.append((weight, new))
    if not found:
        raise FaultError("zero")
    checked = program.kind != "ctmc" and program.probabilities_checked
    if checked and not abs(total - 1.0) / total < 1e-12:
        raise FaultError("sum")
    return found


def choices_of(program, state):
    """The choices of a state: an action each, and weights with targets."""
    enabled = [
        [command for command in module.commands if evaluate(command.guard, state)]
        for module in program.modules
    ]
    together = []
    for commands in enabled:
        together += [(None, [c]) for c in commands if c.action is None]
    for action in range(len(program.actions)):
        taking_part = [m for m, module in enumerate(program.modules) if action in module.actions]
        offered = [[c for c in enabled[m] if c.action == action] for m in taking_part]
        if taking_part:
            # The first module's commands change fastest.
            for combination in itertools.product(*reversed(offered)):
                together.append((action, list(reversed(combination))))
    found = []
    for action, commands in together:
        transitions = [(1.0, {})]
        parts = [outcomes(command, program, state) for command in commands]
        for i, part in enumerate(parts):
            transitions = [
                (weight if i == 0 else weight * before, {**new, **later})
                for weight, later in part
                for before, new in transitions
            ]
        found.append((action, transitions))
    return found


def after(state, new):
    """The state with some values replaced."""
    return tuple(new.get(i, value) for i, value in enumerate(state))


def initial_states(program):
    """The initial states, whichever way the program names them."""
    if program.initial_condition is None:
        return set(program.initial_states or [program.default_state])
    ranges = [range(v.low, v.high + 1) for v in program.variables]
    every = itertools.product(*ranges)
    found = {state for state in every if evaluate(program.initial_condition, state)}
    if not found:
        raise FaultError("initial")
    return found


def plain_model(program):
    """The model of a program; raises `FaultError` and `EvaluationError`."""
    initial = initial_states(program)
    waiting, known = list(initial), {}
    while waiting:
        state = waiting.pop()
        if state in known:
            continue
        known[state] = choices_of(program, state)
        for _, transitions in known[state]:
            waiting += [after(state, new) for _, new in transitions]
    states = sorted(known)
    number = {state: i for i, state in enumerate(states)}
    rows = []
    for state in states:
        choices = [
            (action, [(number[after(state, new)], weight) for weight, new in transitions])
            for action, transitions in known[state]
        ]
        if program.kind == "mdp":
            rows.append(_of_mdp(choices) or [(None, [(number[state], 1.0)])])
        else:
            rows.append([_of_chain(choices, program.kind) or [(number[state], None, 1.0)]])
    return PlainModel(states, rows, [not known[state] for state in states], initial)


def _of_mdp(choices):
    found = []
    for action, transitions in choices:
        merged = {}
        for target, weight in transitions:
            merged[target] = merged[target] + weight if target in merged else weight
        choice = (action, sorted(merged.items()))
        if not any(_same(choice, other) for other in found):
            found.append(choice)
    return found


def _same(a, b):
    return (
        a[0] == b[0]
        and [target for target, _ in a[1]] == [target for target, _ in b[1]]
        and all(abs((x - y) / x) < 1e-12 for (_, x), (_, y) in zip(a[1], b[1], strict=True))
    )


def _of_chain(choices, kind):
    scale = 1.0
    if kind == "dtmc" and choices:
        total = 0.0
        for _, transitions in choices:
            total += sum((weight for _, weight in transitions), 0.0)
        scale = 1.0 / total
    merged = {}
    for action, transitions in choices:
        for target, weight in transitions:
            weight = weight * scale if kind == "dtmc" else weight
            key = (target, action)
            merged[key] = merged[key] + weight if key in merged else weight
    return [(target, action, weight) for (target, action), weight in merged.items()]
