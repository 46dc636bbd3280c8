"""The program of a model: variables, modules of guarded commands, rewards, labels.

It is what a model's text says once constants have values, formulas are expanded and renamed
modules are written out; numbers alone remain of the names, which are kept for messages only.

How a state is left (PRISM's semantics, `simulator.Updater`):

- A command without an action is a choice of its own where its guard holds.
- An action is possible where each module that has commands of this action, enabled or not, has one
  that is enabled; every combination of one enabled command a module is then a choice, and each
  combination of one update a command is a transition. Its weight is the product of the updates'
  weights, and its assignments are made at once, from the values before.
- In a DTMC each choice's probabilities sum to 1; among c choices each is taken with probability
  1/c. In an MDP they sum to 1 too, and the choices are nondeterministic. In a CTMC the weights are
  rates and all transitions race.
- A state without a choice is a deadlock.

Any other parallel composition has to be brought into this form by who writes the program: a hidden
action becomes a command without an action, a renamed one the command under its new action.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from engines.errors import InvalidModelError
from engines.program.expressions import (
    GREATEST_INT,
    LEAST_INT,
    ONE,
    Expression,
    Type,
    Variable,
    subexpressions,
)

State = tuple[int, ...]
"""A value a variable, in the program's order; Booleans are 0 and 1."""


class ModelKind(StrEnum):
    """The kinds of models; paths are sampled of chains alone."""

    DTMC = "dtmc"
    CTMC = "ctmc"
    MDP = "mdp"


@dataclass(frozen=True)
class VariableDeclaration:
    """A variable.

    Parameters
    ----------
    name
        For messages only.
    type
        `Type.BOOL` or `Type.INT`.
    low, high
        The least and the greatest value; 0 and 1 for Booleans. An integer without a range has that
        of 32 bits.
    initial
        Its value in the default initial state.
    """

    name: str
    type: Type
    low: int
    high: int
    initial: int


@dataclass(frozen=True)
class Assignment:
    """The new value of a variable, computed from the values before.

    Parameters
    ----------
    variable
        Index of the variable.
    value
        Of the variable's type.
    """

    variable: int
    value: Expression


@dataclass(frozen=True)
class Update:
    """One of the outcomes of a command.

    Parameters
    ----------
    assignments
        What changes; nothing else does.
    weight
        Its rate in a CTMC, else its probability; 1 where the text has none.
    """

    assignments: tuple[Assignment, ...]
    weight: Expression = ONE


@dataclass(frozen=True)
class Command:
    """A guarded command.

    Parameters
    ----------
    guard
        A Boolean expression.
    updates
        At least one.
    action
        Index of the action that it synchronises on, None for a command of its own.
    """

    guard: Expression
    updates: tuple[Update, ...]
    action: int | None = None


@dataclass(frozen=True)
class Module:
    """Commands that are alternatives of one component.

    Parameters
    ----------
    name
        For messages only.
    commands
        In the order of the text.
    extra_actions
        Actions on which the module synchronises without a command: it blocks them for good.
    """

    name: str
    commands: tuple[Command, ...]
    extra_actions: frozenset[int] = frozenset()

    @cached_property
    def actions(self) -> frozenset[int]:
        """The actions on which the module synchronises."""
        own = {command.action for command in self.commands if command.action is not None}
        return self.extra_actions | own


@dataclass(frozen=True)
class StateReward:
    """A reward of each state where the guard holds; a rate of it in a CTMC."""

    guard: Expression
    value: Expression


@dataclass(frozen=True)
class TransitionReward:
    """A reward of each transition under an action (None: without one) from where the guard holds.

    The expressions are over the state that is left.
    """

    action: int | None
    guard: Expression
    value: Expression


@dataclass(frozen=True)
class RewardStructure:
    """Rewards, which add up.

    Parameters
    ----------
    name
        For messages only.
    states, transitions
        Its items.
    """

    name: str
    states: tuple[StateReward, ...] = ()
    transitions: tuple[TransitionReward, ...] = ()


@dataclass(frozen=True)
class Label:
    """A named set of states."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Program:
    """A model as modules of guarded commands.

    Parameters
    ----------
    kind
        DTMC, CTMC or MDP.
    variables
        In the order of PRISM's states: globals, then module by module.
    modules
        In the order of the text.
    actions
        The names of the actions, for messages only.
    reward_structures, labels
        In the order of the text.
    initial_states
        Where a path may begin, each with the same probability, drawn anew for each path; None for
        the one state of the variables' initial values. PRISM's simulator refuses several.
    initial_condition
        Where it holds, reachable states begin (`init … endinit`), whatever the variables' initial
        values are; None for those. Paths are not sampled of a program that has one.
    probabilities_checked
        Whether probabilities of a choice that do not sum to 1 are an error, as they are unless
        PRISM is told `-noprobchecks`. Without the check they are scaled to sum to 1 over all
        choices of the state together, as PRISM does.

    Raises
    ------
    InvalidModelError
        If an index, a type or a range is wrong; the message says where.
    """

    kind: ModelKind
    variables: tuple[VariableDeclaration, ...]
    modules: tuple[Module, ...]
    actions: tuple[str, ...] = ()
    reward_structures: tuple[RewardStructure, ...] = ()
    labels: tuple[Label, ...] = ()
    initial_states: tuple[State, ...] | None = None
    initial_condition: Expression | None = None
    probabilities_checked: bool = True

    def __post_init__(self) -> None:
        _check_variables(self)
        for where, expression, wanted in _expressions(self):
            check_expression(self, expression, wanted, where)
        _check_structure(self)

    @property
    def sums_checked(self) -> bool:
        """Whether the weights of a command have to sum to 1."""
        return self.kind is not ModelKind.CTMC and self.probabilities_checked

    @property
    def default_state(self) -> State:
        """The state of the variables' initial values."""
        return tuple(variable.initial for variable in self.variables)

    @cached_property
    def synchronising(self) -> tuple[tuple[int, ...], ...]:
        """For each action the indices of the modules that take part in it, in order."""
        return tuple(
            tuple(i for i, module in enumerate(self.modules) if action in module.actions)
            for action in range(len(self.actions))
        )

    def commands(self) -> Iterator[tuple[int, int, Command]]:
        """Return module index, index within the module, and command, in the order of the text."""
        for m, module in enumerate(self.modules):
            for c, command in enumerate(module.commands):
                yield m, c, command


def check_expression(
    program: Program, expression: Expression, wanted: tuple[Type, ...], where: str
) -> None:
    """Raise unless an expression has one of the types wanted and only variables that exist.

    Raises
    ------
    InvalidModelError
        Saying `where` it is wrong.
    """
    if expression.type not in wanted:
        raise InvalidModelError(f"{where} is a {expression.type}, not a {' or '.join(wanted)}")
    for part in subexpressions(expression):
        if isinstance(part, Variable):
            if not 0 <= part.index < len(program.variables):
                raise InvalidModelError(f"{where} uses variable {part.index}, which is not there")
            declared = program.variables[part.index]
            if part.type is not declared.type:
                raise InvalidModelError(
                    f"{where} takes {declared.name} for a {part.type}; it is a {declared.type}"
                )


BOOLEAN = (Type.BOOL,)
NUMBER = (Type.INT, Type.DOUBLE)


def _expressions(program: Program) -> Iterator[tuple[str, Expression, tuple[Type, ...]]]:
    """Return each expression with where it is and the types that it may have."""
    for m, c, command in program.commands():
        where = f"command {c + 1} of module {program.modules[m].name}"
        yield f"the guard of {where}", command.guard, BOOLEAN
        for update in command.updates:
            yield f"a probability or rate of {where}", update.weight, NUMBER
            for assignment in update.assignments:
                if not 0 <= assignment.variable < len(program.variables):
                    raise InvalidModelError(f"{where} assigns to a variable that is not there")
                declared = program.variables[assignment.variable]
                yield f"the value of {declared.name} in {where}", assignment.value, (declared.type,)
    for structure in program.reward_structures:
        items: tuple[StateReward | TransitionReward, ...]
        items = (*structure.states, *structure.transitions)
        for item in items:
            yield f"a guard of the rewards {structure.name!r}", item.guard, BOOLEAN
            yield f"a value of the rewards {structure.name!r}", item.value, NUMBER
    if program.initial_condition is not None:
        yield "the condition of initial states", program.initial_condition, BOOLEAN
    for label in program.labels:
        yield f"the label {label.name!r}", label.expression, BOOLEAN


def _check_variables(program: Program) -> None:
    for variable in program.variables:
        least, greatest = (0, 1) if variable.type is Type.BOOL else (LEAST_INT, GREATEST_INT)
        if variable.type is Type.DOUBLE:
            raise InvalidModelError(f"the variable {variable.name} is a double")
        if not least <= variable.low <= variable.high <= greatest:
            range_ = f"{variable.low}..{variable.high}"
            raise InvalidModelError(f"the range {range_} of {variable.name} is not one")
    states = program.initial_states
    if states is not None and not states:
        raise InvalidModelError("there is no initial state")
    for state in states or (program.default_state,):
        if len(state) != len(program.variables):
            raise InvalidModelError(f"an initial state has {len(state)} values")
        for value, variable in zip(state, program.variables, strict=True):
            if not variable.low <= value <= variable.high:
                raise InvalidModelError(f"the initial value {value} of {variable.name} is no value")


def _check_structure(program: Program) -> None:
    count = len(program.actions)
    for m, c, command in program.commands():
        where = f"command {c + 1} of module {program.modules[m].name}"
        if not command.updates:
            raise InvalidModelError(f"{where} has no update")
        for update in command.updates:
            assigned = [assignment.variable for assignment in update.assignments]
            if len(set(assigned)) < len(assigned):
                raise InvalidModelError(f"{where} assigns to one variable twice")
    for module in program.modules:
        if any(not 0 <= action < count for action in module.actions):
            raise InvalidModelError(f"module {module.name} has an action that is not there")
    for structure in program.reward_structures:
        for item in structure.transitions:
            if item.action is not None and not 0 <= item.action < count:
                raise InvalidModelError(
                    f"the rewards {structure.name!r} have an action that is not there"
                )
