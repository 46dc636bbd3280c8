"""Expressions as PRISM simplifies those of a model before it evaluates them.

Source: `parser/visitor/Simplify.java` and `ExpandFormulas.java` of PRISM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridge.language.ast import (
    Binary,
    Conditional,
    Expression,
    Function,
    Identifier,
    Literal,
    Parentheses,
    Unary,
    Value,
)
from bridge.language.evaluate import constant_value
from bridge.language.modules import Command, Update
from bridge.language.text import value_text
from bridge.language.tree import Node, rebuilt
from bridge.language.types import DOUBLE, TypeChecker
from engines.errors import InvalidModelError


def literal(value: Value) -> Literal:
    """Return a value as PRISM writes it."""
    return Literal(value, value_text(value))


@dataclass(frozen=True)
class Simplifier:
    """Writes out constants and formulas, and computes what depends on no variable.

    Parameters
    ----------
    types
        Of variables, constants and formulas.
    constants
        The values of constants.
    formulas
        The definitions of formulas.
    """

    types: TypeChecker
    constants: Mapping[str, Value]
    formulas: Mapping[str, Expression]

    def simplified(self, expression: Expression) -> Expression:
        """Return an expression of a model in its simplest form.

        Parameters
        ----------
        expression
            Without operators of properties.

        Notes
        -----
        What cannot be computed stays, as an error of the state that needs it.
        """
        found: Expression = rebuilt(expression, self._simplest)
        return found

    def command(self, command: Command) -> Command:
        """Return a command with its expressions in their simplest form.

        Parameters
        ----------
        command
            After renamings.
        """
        updates = tuple(
            Update(
                None if update.weight is None else self.simplified(update.weight),
                tuple(
                    replace(item, value=self.simplified(item.value)) for item in update.assignments
                ),
            )
            for update in command.updates
        )
        return replace(command, guard=self.simplified(command.guard), updates=updates)

    def _simplest(self, node: Node) -> Node:
        match node:
            case Identifier(name) if name in self.formulas:
                return self.simplified(self.formulas[name])
            case Identifier(name) if name in self.constants:
                return literal(self.constants[name])
            case Parentheses(operand):
                return operand
            case Unary(_, Literal()):
                return _computed(node)
            case Function(_, arguments) if all(isinstance(item, Literal) for item in arguments):
                return _computed(node)
            case Conditional(Literal(condition), then, otherwise):
                return self._as(node, then if condition else otherwise)
            case Binary(_, Literal(), Literal()):
                return _computed(node)
            case Binary(operator, left, right):
                return self._of_binary(node, operator, left, right)
        return node

    def _of_binary(self, node: Binary, operator: str, left: Expression, right: Expression) -> Node:
        first, second = _value(left), _value(right)
        match operator:
            case "=>" if first is False or second is True:
                return literal(True)
            case "=>" if second is False:
                return Unary("!", left)
            case "=>" | "&" if first is True:
                return right
            case "&" if first is False or second is False:
                return literal(False)
            case "&" if second is True:
                return left
            case "|" if first is True or second is True:
                return literal(True)
            case "|" if second is False:
                return left
            case "|" if first is False:
                return right
            case "+" | "-" if second == 0:
                return self._as(node, left)
            case "+" if first == 0:
                return self._as(node, right)
            case "-" if first == 0:
                return self._as(node, Unary("-", right))
            case "*" if second == 1:
                return self._as(node, left)
            case "*" if first == 1:
                return self._as(node, right)
            case "*" if first == 0 or second == 0:
                return literal(0.0 if self.types.type_of(node) == DOUBLE else 0)
        return node

    def _as(self, node: Expression, simpler: Expression) -> Expression:
        """Return the simpler form unless it is of another type than the node."""
        return simpler if self.types.type_of(simpler) == self.types.type_of(node) else node


def _value(node: Expression) -> Any:
    return node.value if isinstance(node, Literal) else None


def _computed(node: Unary | Binary | Function) -> Node:
    try:
        return literal(constant_value(node, {}))
    except InvalidModelError:
        return node
