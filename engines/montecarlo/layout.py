"""Where the compiled source keeps a path: variables, weights, and which function serves what.

A small program is written out: a variable is a member of its own, each factor has functions of its
own, and weights are computed anew at each step. In a large one variables and weights are arrays;
factors that differ only in which variables they are about share their functions, which find their
variables in a table (160 philosophers have one function of six commands); and after a step only
the weights of units are computed that read what it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from engines.montecarlo.plan import Factor, Plan, PlannedCommand, PlannedUpdate
from engines.program.expressions import (
    Binary,
    Call,
    Conditional,
    Expression,
    Literal,
    Unary,
    Variable,
)
from engines.program.program import Assignment, VariableDeclaration

MOST_COMMANDS = 160
MOST_UNITS = 64
"""Programs with no more commands and units than these, and few variables, are small."""

CELLS = (
    ("signed char", -(2**7), 2**7 - 1),
    ("unsigned char", 0, 2**8 - 1),
    ("short", -(2**15), 2**15 - 1),
    ("unsigned short", 0, 2**16 - 1),
    ("int", -(2**31), 2**31 - 1),
)


@dataclass(frozen=True)
class FactorClass:
    """Factors that are equal but for the names of their variables.

    Parameters
    ----------
    factor
        One of them, whose variables are slots.
    slots
        The declarations of the slots.
    """

    factor: Factor
    slots: tuple[VariableDeclaration, ...]


def cell_type(low: int, high: int) -> str:
    """Return the narrowest C type that holds a range."""
    return next(name for name, least, most in CELLS if least <= low and high <= most)


def renamed(expression: Expression, slots: dict[int, int]) -> Expression:
    """Return an expression over slots, which are numbered as their variables come up."""
    match expression:
        case Literal():
            return expression
        case Variable(index=index, type=kind):
            return Variable(slots.setdefault(index, len(slots)), kind)
        case Unary(operator=operator, operand=operand):
            return Unary(operator, renamed(operand, slots))
        case Binary(operator=operator_, left=left, right=right):
            return Binary(operator_, renamed(left, slots), renamed(right, slots))
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = [renamed(part, slots) for part in (condition, then, otherwise)]
            return Conditional(*parts)
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(renamed(argument, slots) for argument in arguments))


def _over_slots(factor: Factor, slots: dict[int, int]) -> Factor:
    commands = []
    for command in factor.commands:
        guard = renamed(command.guard, slots)
        weights = tuple(tuple(renamed(w, slots) for w in part) for part in command.weights)
        updates = []
        for update in command.updates:
            assignments = tuple(
                Assignment(slots.setdefault(x.variable, len(slots)), renamed(x.value, slots))
                for x in update.assignments
            )
            updates.append(PlannedUpdate(renamed(update.weight, slots), assignments))
        origins = ((0, 0),) * len(command.origins)
        commands.append(PlannedCommand(guard, tuple(updates), origins, weights))
    return Factor(tuple(commands))


class Layout:
    """Where things are.

    Parameters
    ----------
    plan
        Of which program.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.factors = [factor for unit in plan.units for factor in unit.factors]
        commands = sum(len(factor.commands) for factor in self.factors)
        variables = len(plan.program.variables)
        factors = max((len(unit.factors) for unit in plan.units), default=1)
        few = commands <= MOST_COMMANDS and len(plan.units) <= MOST_UNITS
        few = few and variables <= 64 and factors <= 6
        self.small = few or not plan.units
        self.classes: list[FactorClass] = []
        self.class_of: list[int] = []
        self.slots: list[tuple[int, ...]] = []
        self._classify()

    def _classify(self) -> None:
        known: dict[FactorClass, int] = {}
        declared = self.plan.program.variables
        for factor in self.factors:
            slots: dict[int, int] = {}
            if self.small:
                found = FactorClass(factor, declared)
            else:
                over = _over_slots(factor, slots)
                kinds = tuple(replace(declared[v], name="", initial=0) for v in slots)
                found = FactorClass(over, kinds)
            number = len(self.classes) if self.small else known.setdefault(found, len(known))
            if number == len(self.classes):
                self.classes.append(found)
            self.class_of.append(number)
            self.slots.append(tuple(slots))

    @cached_property
    def unit_starts(self) -> list[int]:
        """The first factor of each unit, and at the end the number of factors."""
        starts = [0]
        for unit in self.plan.units:
            starts.append(starts[-1] + len(unit.factors))
        return starts

    @cached_property
    def joint(self) -> bool:
        """Whether a unit has more than one factor."""
        return any(len(unit.factors) > 1 for unit in self.plan.units)

    @cached_property
    def most_pending(self) -> int:
        """The most assignments that one unit of several factors can make."""
        most = [
            sum(
                max((len(u.assignments) for c in factor.commands for u in c.updates), default=0)
                for factor in unit.factors
            )
            for unit in self.plan.units
            if len(unit.factors) > 1
        ]
        return max(most, default=0)

    @cached_property
    def cell(self) -> str:
        """The C type of the array of variables."""
        declared = self.plan.program.variables
        return cell_type(min(x.low for x in declared), max(x.high for x in declared))

    @cached_property
    def weight(self) -> str:
        """The C type of a sum of weights."""
        return "u32" if self.plan.whole else "double"

    @cached_property
    def stored_weight(self) -> str:
        """The C type of a unit's weight in an array."""
        counts = []
        for unit in self.plan.units:
            count = 1
            for factor in unit.factors:
                count *= len(factor.commands)
            counts.append(count)
        narrow = self.plan.whole and max(counts, default=0) < 2**8
        return "unsigned char" if narrow else self.weight

    def reference(self, index: int) -> str:
        """Return how a variable is called."""
        return f"p->v{index}" if self.small else f"p->v[{index}]"


def table(name: str, kind: str, values: Sequence[int | str]) -> str:
    """Return the definition of a constant array, which has at least one element."""
    lines, line = [], ""
    for value in values or (0,):
        if len(line) > 90:
            lines.append(line)
            line = ""
        line += f"{value}, "
    text = "\n  ".join([*lines, line.rstrip(", ")])
    return f"TABLE {kind} {name}[{max(len(values), 1)}] = {{\n  {text}\n}};\n"
