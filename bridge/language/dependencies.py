"""Definitions that refer to each other by name."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from bridge.language.ast import Expression, Identifier, Label
from engines.errors import InvalidModelError


class CyclicDefinitionError(InvalidModelError):
    """A definition refers to itself, directly or through others.

    Parameters
    ----------
    what
        What is defined.
    name
        Its name.
    """

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f'Cyclic dependency in {what} "{name}"')
        self.name = name


def names_in(expression: Expression, kind: type[Identifier] | type[Label]) -> list[str]:
    """Return the names that an expression mentions, each once, from left to right.

    Parameters
    ----------
    expression
        The expression.
    kind
        Which names: identifiers, or those in quotation marks.
    """
    names = (node.name for node in expression.walk() if isinstance(node, kind))
    return list(dict.fromkeys(names))


def names_behind(expression: Expression, formulas: Mapping[str, Expression]) -> set[str]:
    """Return the constants and variables in an expression, and in the formulas that it names.

    Parameters
    ----------
    expression
        The expression.
    formulas
        The definitions of formulas.
    """
    waiting, met = [expression], set[str]()
    while waiting:
        for name in names_in(waiting.pop(), Identifier):
            if name not in met and name in formulas:
                waiting.append(formulas[name])
            met.add(name)
    return met.difference(formulas)


def dependency_order(
    definitions: Mapping[str, Expression],
    kind: type[Identifier] | type[Label],
    what: Mapping[str, str],
) -> list[str]:
    """Return the definitions' names, each after those that it refers to.

    Parameters
    ----------
    definitions
        The expressions by their names.
    kind
        By which names they refer to each other.
    what
        What the error message calls each of them, without the name.

    Raises
    ------
    CyclicDefinitionError
        Naming one that is defined by itself.
    """
    references = {
        name: [other for other in names_in(value, kind) if other in definitions]
        for name, value in definitions.items()
    }
    try:
        return list(TopologicalSorter(references).static_order())
    except CycleError:
        name = _first_on_a_cycle(references)
        raise CyclicDefinitionError(what[name], name) from None


def _first_on_a_cycle(references: Mapping[str, list[str]]) -> str:
    """Return the name that PRISM shows: one that names itself, or else the first on a cycle."""
    for name, others in references.items():
        if name in others:
            return name
    return next(name for name in references if name in _reachable(name, references))


def _reachable(start: str, references: Mapping[str, list[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(references[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(references[name])
    return found
