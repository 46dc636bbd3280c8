"""How a step is drawn: the commands of a program as units of which one moves at a time.

A *unit* is one module's commands without an action, or one action. It has *factors*, each a list of
alternative commands: one factor for the commands of a module; for an action either one factor with
all combinations of commands, or one factor for each module that takes part. A unit's weight in a
state is the product over its factors of the weights of their enabled commands, and a command's
weight is 1 in a DTMC (every choice is equally probable there) and the sum of its rates in a CTMC.

Both the compiled source and `engines.montecarlo.reference` carry out a plan; with the same draws
they make the same path.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from engines.errors import UnsupportedError
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate
from engines.program.expressions import (
    ONE,
    Binary,
    BinaryOperator,
    Expression,
    Literal,
    Type,
    conjunction,
    variables_of,
)
from engines.program.faults import weights_in_order
from engines.program.program import (
    Assignment,
    Command,
    ModelKind,
    Module,
    Program,
    VariableDeclaration,
)
from engines.program.ranges import range_of

FAN_OUT = 16
"""Weights are added up in groups of so many, and the sums again, until one group is left."""

MOST_COMBINATIONS = 1024
"""More combined updates than this are not written out for one action: a C compiler takes half a
minute for some 4,000."""


class SynchronisationStrategy(StrEnum):
    """How commands that synchronise are brought together (the APMC paper's three strategies).

    `COMPILE_TIME` writes out every combination of commands under an action, one command each.
    `RUN_TIME` counts the enabled commands of each module at each step, multiplies the counts (in a
    CTMC: the sums of rates), and draws a command for each module once the action is drawn. Both
    give PRISM's distribution, in DTMCs and CTMCs: a combination's probability given its action is
    the product of its parts' either way.

    `LAZY` draws one of all (combined) commands uniformly and draws again while its guard is false.
    That is uniform among the enabled ones, which is PRISM's distribution in a DTMC, where every
    choice is equally probable. In a CTMC commands race with their rates: uniform draws would be
    PRISM's only if all enabled rates were equal in every state, so a CTMC is refused. Commands
    that are not drawn are not looked at: a probability that does not sum to 1 is an error only
    when its command is drawn.

    `AUTO` takes `COMPILE_TIME` for an action with no more combinations than commands whose guards
    have a value in every state, else `RUN_TIME`, action by action; it is never `LAZY`. (PRISM
    evaluates every guard; in a combination those after a false one are not.)
    """

    AUTO = "auto"
    COMPILE_TIME = "compile-time"
    RUN_TIME = "run-time"
    LAZY = "lazy"


class Check(StrEnum):
    """What has to be looked at when a command is enabled."""

    NONE = "none"
    """Its weights are in order in every state."""
    STATIC = "static"
    """They are constants that are not in order: an error wherever it is enabled."""
    DYNAMIC = "dynamic"
    """It depends on the state."""


@dataclass(frozen=True)
class PlannedUpdate:
    """An outcome: its weight, and assignments of which none is overwritten by a later one."""

    weight: Expression
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class PlannedCommand:
    """A command, or a combination of commands.

    Parameters
    ----------
    guard
        Where it is enabled.
    updates
        Its outcomes.
    origins
        Module and command index of the commands it consists of, in order.
    weights
        The weights of each of these commands, for their checks.
    """

    guard: Expression
    updates: tuple[PlannedUpdate, ...]
    origins: tuple[tuple[int, int], ...]
    weights: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class Factor:
    """Alternatives of which an enabled one is drawn."""

    commands: tuple[PlannedCommand, ...]


@dataclass(frozen=True)
class Unit:
    """What moves as one.

    Parameters
    ----------
    factors
        One draw each; all have to be enabled.
    action
        Index of the action, None for commands without one.
    """

    factors: tuple[Factor, ...]
    action: int | None

    @cached_property
    def reads(self) -> frozenset[int]:
        """The variables that its weight depends on."""
        found: set[int] = set()
        for factor in self.factors:
            for command in factor.commands:
                parts = (command.guard, *itertools.chain.from_iterable(command.weights))
                found.update(*(variables_of(part) for part in parts))
        return frozenset(found)

    @cached_property
    def writes(self) -> frozenset[int]:
        """The variables that it may change."""
        return frozenset(
            assignment.variable
            for factor in self.factors
            for command in factor.commands
            for update in command.updates
            for assignment in update.assignments
        )


@dataclass(frozen=True)
class Plan:
    """How the steps of a program are drawn.

    Parameters
    ----------
    program
        What it is the plan of.
    units
        The modules' own commands in order, then the actions.
    strategy
        The one that was asked for.
    counted
        Whether weights are numbers of choices, all equally probable; else they are rates, or
        probabilities that nobody checks.
    whole
        Whether weights are kept as integers; numbers of choices that may reach 2³¹ are doubles.
    """

    program: Program
    units: tuple[Unit, ...]
    strategy: SynchronisationStrategy
    counted: bool
    whole: bool

    @property
    def lazy(self) -> bool:
        """Whether commands are drawn before their guards are looked at."""
        return self.strategy is SynchronisationStrategy.LAZY

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """The number of weights, of sums of `FAN_OUT` weights, of sums of these, …, at the top."""
        sizes = [max(len(self.units), 1)]
        while sizes[-1] > FAN_OUT:
            sizes.append(-(-sizes[-1] // FAN_OUT))
        return tuple(sizes)

    @cached_property
    def touched(self) -> tuple[tuple[int, ...], ...]:
        """For each unit those whose weights may change when it moves."""
        readers: dict[int, list[int]] = {}
        for u, unit in enumerate(self.units):
            for variable in unit.reads:
                readers.setdefault(variable, []).append(u)
        return tuple(
            tuple(sorted({u for variable in unit.writes for u in readers.get(variable, ())}))
            for unit in self.units
        )

    def check(
        self, weights: Sequence[Expression], variables: Sequence[VariableDeclaration]
    ) -> Check:
        """Return how the weights of one enabled command have to be looked at.

        Parameters
        ----------
        weights
            One an update.
        variables
            What they are over.
        """
        if self.counted and all(isinstance(weight, Literal) for weight in weights):
            values = [float(weight.value) for weight in weights if isinstance(weight, Literal)]
            return Check.NONE if weights_in_order(values, summed=True) else Check.STATIC
        if self.counted:
            return Check.DYNAMIC
        ranges = [range_of(weight, variables) for weight in weights]
        finite = all(x.within(0.0, math.inf) and x.high < math.inf for x in ranges)
        positive = any(x.low > 0.0 for x in ranges)
        if finite and positive and not any(x.can_fail for x in ranges):
            return Check.NONE
        return Check.DYNAMIC


def make_plan(
    program: Program, strategy: SynchronisationStrategy = SynchronisationStrategy.AUTO
) -> Plan:
    """Plan the steps of a program.

    Parameters
    ----------
    program
        The model.
    strategy
        How commands that synchronise are brought together.

    Raises
    ------
    UnsupportedError
        If the strategy does not give PRISM's distribution for this model, or would write out more
        than `MOST_COMBINATIONS` updates for an action; for MDPs, and for initial states that a
        condition describes.
    """
    if program.kind is ModelKind.MDP:
        raise UnsupportedError("paths of an MDP whose nondeterminism is not resolved")
    if program.initial_condition is not None:
        raise UnsupportedError("paths from initial states that a condition describes")
    counted = program.kind is ModelKind.DTMC and program.probabilities_checked
    if strategy is SynchronisationStrategy.LAZY and not counted:
        raise UnsupportedError(
            "the lazy strategy draws commands uniformly, which is PRISM's semantics only of a DTMC "
            "whose probabilities sum to 1: use the strategy auto"
        )
    units: list[Unit] = []
    for m, module in enumerate(program.modules):
        own = _own_commands(m, module, None)
        if own:
            units.append(Unit((Factor(own),), None))
    for action, members in enumerate(program.synchronising):
        lists = [_own_commands(m, program.modules[m], action) for m in members]
        if not lists or not all(lists):
            continue  # nobody takes part, or a module blocks it for good
        if _combines(program, lists, strategy, action):
            combined = tuple(_combination(choice) for choice in itertools.product(*lists))
            units.append(Unit((Factor(combined),), action))
        else:
            units.append(Unit(tuple(Factor(commands) for commands in lists), action))
    most = sum(math.prod(float(len(factor.commands)) for factor in u.factors) for u in units)
    return Plan(program, tuple(units), strategy, counted, counted and most < 2.0**31)


def _own_commands(m: int, module: Module, action: int | None) -> tuple[PlannedCommand, ...]:
    return tuple(
        _planned(m, c, command)
        for c, command in enumerate(module.commands)
        if command.action == action
    )


def _planned(m: int, c: int, command: Command) -> PlannedCommand:
    weights = tuple(_folded(update.weight) for update in command.updates)
    updates = tuple(
        PlannedUpdate(weight, update.assignments)
        for weight, update in zip(weights, command.updates, strict=True)
    )
    return PlannedCommand(command.guard, updates, ((m, c),), (weights,))


def _combines(
    program: Program,
    lists: list[tuple[PlannedCommand, ...]],
    strategy: SynchronisationStrategy,
    action: int,
) -> bool:
    combinations = math.prod(len(commands) for commands in lists)
    updates = math.prod(sum(len(c.updates) for c in commands) for commands in lists)
    if strategy is SynchronisationStrategy.RUN_TIME:
        return len(lists) == 1
    if strategy is SynchronisationStrategy.AUTO:
        # a guard that may fail has to be evaluated whatever the other guards are
        guards = (command.guard for commands in lists for command in commands)
        fails = any(range_of(guard, program.variables).can_fail for guard in guards)
        few = combinations <= sum(len(commands) for commands in lists)
        return len(lists) == 1 or (few and not fails and updates <= MOST_COMBINATIONS)
    if len(lists) > 1 and updates > MOST_COMBINATIONS:
        raise UnsupportedError(
            f"the action {program.actions[action]!r} has {updates} combinations of updates, more "
            f"than the {MOST_COMBINATIONS} that are written out: use the strategy run-time"
        )
    return True


def _combination(parts: tuple[PlannedCommand, ...]) -> PlannedCommand:
    if len(parts) == 1:
        return parts[0]
    updates = tuple(
        _product(choice) for choice in itertools.product(*(part.updates for part in parts))
    )
    return PlannedCommand(
        conjunction(*(part.guard for part in parts)),
        updates,
        tuple(itertools.chain.from_iterable(part.origins for part in parts)),
        tuple(itertools.chain.from_iterable(part.weights for part in parts)),
    )


def _folded(weight: Expression) -> Expression:
    """Return a weight that depends on no variable as a constant."""
    if isinstance(weight, Literal) or variables_of(weight):
        return weight
    try:
        return Literal(evaluate(weight, ()))
    except EvaluationError:
        return weight


def _as_double(weight: Expression) -> Expression:
    """Return a weight as a double, so that a product of rates cannot overflow as integers do."""
    if isinstance(weight, Literal):
        return Literal(float(weight.value))
    return Binary(BinaryOperator.TIMES, ONE, weight) if weight.type is Type.INT else weight


def _product(updates: tuple[PlannedUpdate, ...]) -> PlannedUpdate:
    weight: Expression = ONE
    kept: dict[int, Assignment] = {}
    for update in updates:
        factor = _as_double(update.weight)
        if factor != ONE:
            weight = Binary(BinaryOperator.TIMES, weight, factor) if weight != ONE else factor
        for assignment in update.assignments:
            kept.pop(assignment.variable, None)
            kept[assignment.variable] = assignment
    return PlannedUpdate(weight, tuple(kept.values()))
