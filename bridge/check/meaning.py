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
from bridge.language.dependencies import names_behind
from bridge.language.properties_file import PropertiesFile
from bridge.language.tree import Node
from bridge.language.types import BOOL, TypeChecker, invalid

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

    def is_constant(self, expression: Expression) -> bool:
        """Return whether no variable is in an expression, nor in the formulas that it names."""
        return names_behind(expression, self.formulas).isdisjoint(self.variables)


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
    identifiers = {*checker.identifiers, *checker.formulas}
    everything = [
        *file.labels.values(),
        *(item.value for item in file.constants if item.value is not None),
        *(item.expression for item in file.properties),
    ]
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
            _require_constants(node, model)
    _check_constants_and_types(file, everything, checker, model)


def _check_constants_and_types(
    file: PropertiesFile, everything: list[Expression], checker: TypeChecker, model: Declared
) -> None:
    for item in file.constants:
        if item.value is not None and not model.is_constant(item.value):
            message = f'Definition of constant "{item.name}" is not constant'
            raise invalid(message, item.value)
    for expression in everything:
        checker.type_of(expression)
    for item in file.constants:
        if item.value is not None:
            message = f'Type mismatch in definition of constant "{item.name}"'
            checker.require_fit(item.value, item.type, message)
    for name, label in file.labels.items():
        checker.require(label, (BOOL,), f'Type error: Label "{name}" is not Boolean')


def _exist(node: Reward, rewards: set[str]) -> bool:
    return not isinstance(node.structure, str) or not node.structure or node.structure in rewards


def _require_constants(node: Node, model: Declared) -> None:
    """Raise where an operator has a bound, or an index, that no state may change."""
    for what, number in _numbers(node):
        if number is not None and not model.is_constant(number):
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
