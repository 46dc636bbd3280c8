"""Faults of a state, as PRISM's explicit engine shows them: with the text's line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bridge.check.model_text import ModelText
from bridge.language.ast import Expression, Identifier, Value
from bridge.language.evaluate import Scope, evaluate
from bridge.language.modules import Command
from bridge.language.types import InvalidNodeError, invalid
from bridge.model import StateVector
from engines.errors import InvalidModelError
from engines.exploration.rewards import InvalidRewardError
from engines.program.faults import StateFaultError
from engines.program.program import RewardStructure, State, StateReward


def placed_fault(
    fault: StateFaultError, described: ModelText, constants: Mapping[str, Value]
) -> InvalidModelError:
    """Return the error about a state with the place in the text that is to blame.

    Parameters
    ----------
    fault
        What was found.
    described
        The model's text.
    constants
        The values of its constants.
    """
    simplifier, outline = described.simplifier(constants), described.outline
    scope = _scope(fault.state, described)
    if fault.culprit is None:
        expressions = [*outline.labels.values()]
        if outline.initial is not None:
            expressions.insert(0, outline.initial)
        return _first_failing(map(simplifier.simplified, expressions), scope) or fault
    written = outline.resolved[fault.culprit.module].commands[fault.culprit.command]
    command = simplifier.command(written)
    failing = _first_failing(_expressions(command), scope)
    if failing is not None:
        return failing
    if fault.culprit.assignment is None:
        shown: Expression = Identifier(str(command)).at(command.place)
    else:
        update, assignment = fault.culprit.assignment
        shown = command.updates[update].assignments[assignment].value
    return invalid(fault.message, shown)


def placed_reward_fault(
    fault: InvalidRewardError,
    number: int,
    structure: RewardStructure,
    state: State,
    described: ModelText,
    constants: Mapping[str, Value],
) -> InvalidModelError:
    """Return the error about a reward with the place in the text that is to blame.

    Parameters
    ----------
    fault
        What was found.
    number, structure
        Which structure of the model, from 0 on, and its content.
    state
        Where; a value a variable.
    described
        The model's text.
    constants
        The values of its constants.
    """
    of_states = isinstance(fault.item, StateReward)
    items = structure.states if of_states else structure.transitions
    place = next(i for i, item in enumerate(items) if item is fault.item)
    written = [
        item
        for item in described.outline.rewards[number].items
        if (item.action is None) is of_states
    ]
    simplified = described.simplifier(constants).simplified
    guard, value = simplified(written[place].guard), simplified(written[place].value)
    failing = _first_failing((guard, value), _scope(state, described))
    return failing or invalid(str(fault), value)


def _scope(state: State, described: ModelText) -> Scope:
    types = described.variable_types
    variables: dict[str, StateVector] = {
        name: np.array([value], dtype=bool if types[name] == "bool" else np.int64)
        for name, value in zip(types, state, strict=True)
    }
    return Scope(1, variables)


def _expressions(command: Command) -> Iterable[Expression]:
    yield command.guard
    for update in command.updates:
        if update.weight is not None:
            yield update.weight
    for update in command.updates:
        yield from (item.value for item in update.assignments)


def _first_failing(expressions: Iterable[Expression], scope: Scope) -> InvalidModelError | None:
    """Return PRISM's error about the first expression without a value, or None."""
    for expression in expressions:
        try:
            evaluate(expression, scope)
        except InvalidNodeError as error:
            return error
    return None
