"""What a program does in a state, evaluated in plain Python: the transitions and the rewards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from engines.program.expressions import (
    Binary,
    Call,
    Conditional,
    Expression,
    Literal,
    Type,
    Unary,
    Variable,
)
from engines.program.program import Command, ModelKind, Program, RewardStructure

OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a == b,
}
FUNCTIONS = {
    "min": lambda *a: min(a),
    "max": lambda *a: max(a),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda a: math.floor(a + 0.5),
    "pow": lambda a, b: a**b,
    "mod": lambda a, b: a % b,
    "log": lambda a, b: math.log(a) / math.log(b),
}


def value(expression: Expression, state: Sequence[int]) -> float:
    """Return an expression's value."""
    match expression:
        case Literal(value=constant):
            return constant
        case Variable(index=index, type=kind):
            return bool(state[index]) if kind is Type.BOOL else state[index]
        case Unary(operator=operator, operand=operand):
            inner = value(operand, state)
            return not inner if operator.value == "!" else -inner
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return value(then if value(condition, state) else otherwise, state)
        case Call(function=function, arguments=arguments):
            return FUNCTIONS[function.value](*(value(part, state) for part in arguments))
        case Binary(operator=operator, left=left, right=right):
            return _binary(operator.value, left, right, state)
    raise AssertionError(expression)


def _binary(operator: str, left: Expression, right: Expression, state: Sequence[int]) -> float:
    first = value(left, state)
    if operator == "&":
        return bool(first and value(right, state))
    if operator == "|":
        return bool(first or value(right, state))
    if operator == "=>":
        return bool(not first or value(right, state))
    second = value(right, state)
    if operator == "/":
        try:
            return first / second
        except ZeroDivisionError:
            return math.nan if first == 0 else math.copysign(math.inf, first)
    return OPERATORS[operator](first, second)


def choices(program: Program, state: Sequence[int]) -> list[tuple[int | None, list[Command]]]:
    """Return the choices of a state: an action, and the commands that take part."""
    enabled = [
        [command for command in module.commands if value(command.guard, state)]
        for module in program.modules
    ]
    found: list[tuple[int | None, list[Command]]] = [
        (None, [command]) for own in enabled for command in own if command.action is None
    ]
    for action, modules in enumerate(program.synchronising):
        if not modules:
            continue
        parts = [[c for c in enabled[m] if c.action == action] for m in modules]
        found += [(action, list(chosen)) for chosen in itertools.product(*parts)]
    return found


def transitions(
    program: Program, state: Sequence[int]
) -> list[tuple[float, tuple[int, ...], tuple[float, ...]]]:
    """Return weights, targets and the rewards earned; a DTMC's weights sum to 1."""
    found = []
    for action, commands in choices(program, state):
        earned = tuple(
            transition_reward(structure, action, state) for structure in program.reward_structures
        )
        for updates in itertools.product(*(command.updates for command in commands)):
            weight = math.prod(value(update.weight, state) for update in updates)
            target = list(state)
            if weight > 0:
                for assignment in itertools.chain(*(update.assignments for update in updates)):
                    target[assignment.variable] = int(value(assignment.value, state))
                found.append((weight, tuple(target), earned))
    if program.kind is ModelKind.DTMC:
        total = sum(weight for weight, _, _ in found)
        found = [(weight / total, target, earned) for weight, target, earned in found]
    return found


def transition_reward(
    structure: RewardStructure, action: int | None, state: Sequence[int]
) -> float:
    """Return what a transition under an action earns."""
    items = [item for item in structure.transitions if item.action == action]
    return sum(value(item.value, state) for item in items if value(item.guard, state))


def state_reward(structure: RewardStructure, state: Sequence[int]) -> float:
    """Return what a state earns."""
    return sum(value(item.value, state) for item in structure.states if value(item.guard, state))
