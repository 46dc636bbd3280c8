"""What PRISM refuses as it parses a list of properties: unknown names, and wrong types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bridge.language.ast import Expression, Identifier, Label, Reward
from bridge.language.properties_file import PropertiesFile
from bridge.language.types import InvalidNodeError, TypeChecker, invalid

LABELS_OF_ALL = ("init", "deadlock")


@dataclass(frozen=True)
class Declared:
    """What a model declares.

    Parameters
    ----------
    types
        The types of variables and constants.
    formulas
        The definitions of formulas.
    labels
        The names of labels.
    rewards
        The names of reward structures.
    """

    types: Mapping[str, str]
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
        for expression in everything:
            checker.type_of(expression)
    except InvalidNodeError as error:
        raise error.placed() from None


def _exist(node: Reward, rewards: set[str]) -> bool:
    return not isinstance(node.structure, str) or not node.structure or node.structure in rewards
