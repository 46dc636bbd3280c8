"""What is wrong with the commands in one state, in PRISM's words.

Whoever explores a program in bulk only notices that a state has a fault; this looks at that state
again, one command after the other in PRISM's order.

Source: `simulator.Updater` of PRISM for the words. Variables out of range its explicit engine lets
pass; its symbolic engines refuse them, as is done here in the words of `parser.ast.UpdateElement`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engines.errors import InvalidModelError
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate, holds, number
from engines.program.expressions import Expression, Type
from engines.program.order import Alternatives, alternatives
from engines.program.program import Command, ModelKind, Program, State

SUM_TOLERANCE = 1e-12
"""How far a sum of probabilities may be from 1, relative to it; PRISM's `epsilonDouble`."""


def weights_in_order(weights: Sequence[float | None], summed: bool) -> bool:
    """Return whether one command's probabilities or rates are what PRISM takes, in any state.

    Parameters
    ----------
    weights
        One an update; None where it depends on the state.
    summed
        Whether they have to sum to 1.
    """
    total = 0.0
    for weight in weights:
        if weight is None or not 0.0 <= weight < math.inf:
            return False
        total += weight
    if total == 0.0:
        return False
    return not summed or _is_one(total)


@dataclass(frozen=True)
class Culprit:
    """A command, or an assignment in it.

    Parameters
    ----------
    name
        For messages.
    module, command
        The module's index, and the command's in it.
    assignment
        Indices of an update and of an assignment in it, or None.
    """

    name: str
    module: int
    command: int
    assignment: tuple[int, int] | None = None


class StateFaultError(InvalidModelError):
    """A state has a fault.

    Parameters
    ----------
    message
        What is wrong.
    state
        A value a variable.
    culprit
        The command to blame, or None.
    """

    def __init__(self, message: str, state: State, culprit: Culprit | None = None) -> None:
        super().__init__(message if culprit is None else f"{message} ({culprit.name})")
        self.message, self.state, self.culprit = message, state, culprit


def state_text(program: Program, state: State) -> str:
    """Return a state as PRISM's messages name it: ``(x=0,b=true)``.

    Parameters
    ----------
    program
        The model.
    state
        A value a variable.
    """
    names = (variable.name for variable in program.variables)
    shown = zip(names, _value_texts(program, state), strict=True)
    return f"({','.join(f'{name}={value}' for name, value in shown)})"


def values_text(program: Program, state: State) -> str:
    """Return a state as PRISM lists it: ``(0,true)``.

    Parameters
    ----------
    program
        The model.
    state
        A value a variable.
    """
    return f"({','.join(_value_texts(program, state))})"


def _value_texts(program: Program, state: State) -> Iterator[str]:
    for variable, value in zip(program.variables, state, strict=True):
        yield str(bool(value)).lower() if variable.type is Type.BOOL else str(value)


def command_fault(program: Program, state: State) -> StateFaultError | None:
    """Return what is wrong with the commands in a state, or None.

    Parameters
    ----------
    program
        The model.
    state
        A value a variable.

    Returns
    -------
    PRISM's message, and which command is to blame.
    """
    commands = [(m, c, command) for m, c, command in program.commands()]
    finder = _Finder(program, state)
    enabled = set()
    for entry, (m, c, command) in enumerate(commands):
        try:
            if holds(command.guard, state):
                enabled.add(entry)
        except EvaluationError as error:
            return finder.named(f"{error} in state {finder.where}", m, c)
    for choice in alternatives(program):
        fault = finder.fault_of(choice, commands, enabled)
        if fault is not None:
            return fault
    return None


def expression_fault(
    program: Program, expression: Expression, state: State, what: str
) -> StateFaultError | None:
    """Return why an expression has no value in a state, or None if it has one.

    Parameters
    ----------
    program
        The model.
    expression
        Over its variables.
    state
        A value a variable.
    what
        What the message calls the expression.
    """
    try:
        evaluate(expression, state)
    except EvaluationError as error:
        message = f"{error} in state {state_text(program, state)} ({what})"
        return StateFaultError(message, state)
    return None


_Fault = tuple[str, tuple[int, int] | None]
"""A message, and the assignment that it is about, if it is about one."""


class _Finder:
    def __init__(self, program: Program, state: State) -> None:
        self._program, self._state = program, state
        self.where = state_text(program, state)
        self._noun = "Rate" if program.kind is ModelKind.CTMC else "Probability"

    def named(
        self,
        message: str,
        module: int,
        command: int,
        assignment: tuple[int, int] | None = None,
    ) -> StateFaultError:
        name = f'command {command + 1} of module "{self._program.modules[module].name}"'
        culprit = Culprit(name, module, command, assignment)
        return StateFaultError(message, self._state, culprit)

    def fault_of(
        self,
        choice: Alternatives,
        commands: Sequence[tuple[int, int, Command]],
        enabled: set[int],
    ) -> StateFaultError | None:
        """Return the first fault of commands that move, alone or together."""
        moving = [[entry for entry in factor if entry in enabled] for factor in choice.factors]
        if not all(moving):
            return None
        for check in (self._weight_fault, self._value_fault):
            for factor in moving:
                for entry in factor:
                    module, place, command = commands[entry]
                    try:
                        fault = check(command)
                    except EvaluationError as error:
                        fault = f"{error} in state {self.where}", None
                    if fault is not None:
                        return self.named(fault[0], module, place, fault[1])
        return None

    def _weight_fault(self, command: Command) -> _Fault | None:
        fault = self._fault_of_weights(command)
        return None if fault is None else (fault, None)

    def _fault_of_weights(self, command: Command) -> str | None:
        total, some = 0.0, False
        for update in command.updates:
            weight = number(update.weight, self._state)
            if not math.isfinite(weight):
                return f"{self._noun} is not finite in state {self.where}"
            if weight < 0.0:
                return f"{self._noun} is negative in state {self.where}"
            total, some = total + weight, some or weight > 0.0
        if not some:
            verb = " values sum to " if len(command.updates) > 1 else " is "
            return f"{self._noun}{verb}zero for updates in state {self.where}"
        if self._program.sums_checked and not _is_one(total):
            return f"Probabilities sum to {total} in state {self.where}"
        return None

    def _value_fault(self, command: Command) -> _Fault | None:
        for u, update in enumerate(command.updates):
            if number(update.weight, self._state) == 0.0:
                continue
            for a, assignment in enumerate(update.assignments):
                declared = self._program.variables[assignment.variable]
                value = evaluate(assignment.value, self._state)
                if not declared.low <= int(value) <= declared.high:
                    fault = (
                        f"Value of variable {declared.name} overflows: {int(value)} is out of its "
                        f"range {declared.low}..{declared.high}, in state {self.where}"
                    )
                    return fault, (u, a)
        return None


def _is_one(total: float) -> bool:
    return abs((total - 1.0) / total) < SUM_TOLERANCE
