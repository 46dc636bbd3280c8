"""What PRISM refuses as it parses a list of properties: unknown names, and wrong types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bridge.language.ast import (
    Cumulative,
    Expression,
    Identifier,
    Instantaneous,
    Label,
    Probability,
    Reward,
    SteadyState,
    Temporal,
)
from bridge.language.properties_file import PropertiesFile
from bridge.language.tree import Node
from bridge.language.types import BOOL, DOUBLE, INT, InvalidNodeError, TypeChecker, invalid

LABELS_OF_ALL = ("init", "deadlock")


@dataclass(frozen=True)
class Declared:
    """What a model declares.

    Parameters
    ----------
    types
        The types of variables and constants.
    variables
        Which of those are variables.
    formulas
        The definitions of formulas.
    labels
        The names of labels.
    rewards
        The names of reward structures.
    """

    types: Mapping[str, str]
    variables: Iterable[str]
    labels: Iterable[str]
    rewards: Iterable[str]
    formulas: Mapping[str, Expression] = field(default_factory=dict)


def require_meaningful(file: PropertiesFile, model: Declared) -> None:
    """Refuse properties that mean nothing for a model, before the model is built.

    Parameters
    ----------
    file
        The properties.
    model
        What they may name.

    Raises
    ------
    InvalidModelError
        With PRISM's words, and the place in the properties.
    """
    named = {item.name: item.expression for item in file.properties if item.name}
    types = {**model.types, **{item.name: item.type for item in file.constants}}
    checker = TypeChecker(types, {**model.formulas, **file.formulas}, named)
    labels = {*LABELS_OF_ALL, *model.labels, *file.labels, *named}
    rewards = set(model.rewards)
    varying = _varying(model)
    identifiers = {*checker.identifiers, *checker.formulas}
    everything = [
        *file.labels.values(),
        *(item.value for item in file.constants if item.value is not None),
        *(item.expression for item in file.properties),
    ]
    try:
        # In PRISM's order: of several faults it tells the first.
        for expression in everything:
            for node in expression.walk():
                if isinstance(node, Identifier) and node.name not in identifiers:
                    raise invalid("Undeclared identifier", node)
        for expression in everything:
            for node in expression.walk():
                if isinstance(node, Label) and node.name not in labels:
                    raise invalid("Undeclared label", node)
                if isinstance(node, Reward) and not _exist(node, rewards):
                    raise invalid(
                        f'R operator reward struct index "{node.structure}" does not exist', node
                    )
                _require_constants(node, varying)
        _check_constants_and_types(file, everything, checker, varying)
    except InvalidNodeError as error:
        raise error.placed() from None


def _check_constants_and_types(
    file: PropertiesFile, everything: list[Expression], checker: TypeChecker, varying: set[str]
) -> None:
    for item in file.constants:
        if item.value is not None and not _is_constant(item.value, varying):
            message = f'Definition of constant "{item.name}" is not constant'
            raise invalid(message, item.value)
    for expression in everything:
        checker.type_of(expression)
    for item in file.constants:
        if item.value is not None:
            fits = (item.type, checker.type_of(item.value))
            if fits[0] != fits[1] and fits != (DOUBLE, INT):
                message = f'Type mismatch in definition of constant "{item.name}"'
                raise invalid(message, item.value)
    for name, label in file.labels.items():
        if checker.type_of(label) != BOOL:
            raise invalid(f'Type error: Label "{name}" is not Boolean', label)


def _exist(node: Reward, rewards: set[str]) -> bool:
    return not isinstance(node.structure, str) or not node.structure or node.structure in rewards


def _varying(model: Declared) -> set[str]:
    """Return the names whose values differ between states: variables, and formulas of them."""
    found = set(model.variables)
    waiting = dict(model.formulas)
    while more := {name for name, value in waiting.items() if not _is_constant(value, found)}:
        found |= more
        for name in more:
            del waiting[name]
    return found


def _is_constant(expression: Expression, varying: set[str]) -> bool:
    return not any(
        isinstance(node, Identifier) and node.name in varying for node in expression.walk()
    )


def _require_constants(node: Node, varying: set[str]) -> None:
    """Raise where an operator has a bound, or an index, that no state may change."""
    for what, number in _numbers(node):
        if number is not None and not _is_constant(number, varying):
            raise invalid(f"{what} is not constant", number)


def _numbers(node: Node) -> list[tuple[str, Expression | None]]:
    match node:
        case Temporal(operator, _, _, bound) if bound is not None:
            where = f"bound in {operator} operator"
            return [(f"Lower {where}", bound.lower), (f"Upper {where}", bound.upper)]
        case Cumulative(bound):
            return [("Upper bound in C operator", bound)]
        case Instantaneous(time):
            return [("Upper bound in I operator", time)]
        case Probability():
            return [("P operator probability bound", node.threshold.bound)]
        case SteadyState():
            return [("S operator probability bound", node.threshold.bound)]
        case Reward(structure):
            index = None if isinstance(structure, str) else structure
            bound = node.threshold.bound
            return [("R operator reward struct index", index), ("R operator reward bound", bound)]
        case _:
            return []
