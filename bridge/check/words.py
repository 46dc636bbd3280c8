"""Expressions of a model and its properties as words, which `prism_hooks.program` reads.

The words are those that `prismgpu.ExpressionText` writes from PRISM's trees: names are resolved,
constants and formulas replaced, and what depends on no variable is computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.language.ast import (
    Binary,
    Conditional,
    Expression,
    Function,
    Identifier,
    Label,
    Literal,
    Parentheses,
    Unary,
    Value,
)
from bridge.language.constants import constant_value
from bridge.language.tree import Node, rebuilt
from bridge.language.types import invalid
from engines.errors import InvalidModelError, UnsupportedError

Words = list[Value | str]
SPECIAL_LABELS = ("init", "deadlock")
_FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")


@dataclass(frozen=True)
class Names:
    """What the names in expressions stand for.

    Parameters
    ----------
    variables
        The variables' numbers.
    constants
        The values of constants.
    formulas, labels
        Definitions.
    """

    variables: Mapping[str, int]
    constants: Mapping[str, Value] = field(default_factory=dict)
    formulas: Mapping[str, Expression] = field(default_factory=dict)
    labels: Mapping[str, Expression] = field(default_factory=dict)

    def words(self, expression: Expression) -> Words:
        """Return the words of an expression, in postfix order.

        Parameters
        ----------
        expression
            An expression without operators of properties.

        Raises
        ------
        InvalidModelError
            For a name that nothing has.
        UnsupportedError
            For what no path can be asked, such as an operator of properties.
        """
        return _postfix(self._resolved(expression), self.variables)

    def _resolved(self, expression: Expression) -> Expression:
        found: Expression = rebuilt(expression, self._known)
        return found

    def _known(self, node: Node) -> Node:
        """Return a node with names replaced, and computed where it depends on no variable."""
        match node:
            case Literal():
                return node
            case Parentheses(operand):
                return operand
            case Identifier():
                return self._named(node)
            case Label(name):
                if name in self.labels:
                    return self._resolved(self.labels[name])
                if name not in SPECIAL_LABELS:
                    raise InvalidModelError(f'Undeclared label "{name}"')
                return node
            case Conditional(Literal(condition), then, otherwise):
                return then if condition else otherwise
            case Unary() | Binary() | Conditional():
                return _computed(node)
            case Function(name, _):
                if name not in _FUNCTIONS:
                    raise UnsupportedError(f"the function {name} of a simulated model")
                return _computed(node)
        raise UnsupportedError(f"an expression of the form {node}")

    def _named(self, node: Identifier) -> Expression:
        name = node.name
        if name in self.formulas:
            return self._resolved(self.formulas[name])
        if name in self.variables:
            return node
        if name not in self.constants:
            raise invalid("Undeclared identifier", node)
        return Literal(self.constants[name], str(self.constants[name]))


def _computed(node: Unary | Binary | Conditional | Function) -> Expression:
    if all(isinstance(operand, Literal) for operand in node.children()):
        # What cannot be computed is an error of the path that needs it.
        with contextlib.suppress(InvalidModelError):
            value = constant_value(node, {})
            return Literal(value, str(value))
    return node


def _postfix(expression: Expression, variables: Mapping[str, int]) -> Words:
    """Return the words of an expression of literals, variables and special labels."""
    words: Words = []
    waiting: list[Node | str] = [expression]
    while waiting:
        # From the end: what comes last of an expression is an operator.
        part = waiting.pop()
        if isinstance(part, Binary) and part.operator in ("&", "|"):
            waiting += _balanced(part.operator, _operands(part))
        elif isinstance(part, Node):
            words.append(_word(part, variables))
            waiting += part.children()
        else:
            words.append(part)
    words.reverse()
    return words


def _operands(node: Binary) -> list[Expression]:
    """Return what a chain of one operator, nested on the left, is made of."""
    found: list[Expression] = []
    left: Expression = node
    while isinstance(left, Binary) and left.operator == node.operator:
        found.append(left.right)
        left = left.left
    return [left, *reversed(found)]


def _balanced(operator: str, operands: list[Expression], longest: int = 100) -> list[Node | str]:
    """Return a conjunction or disjunction in postfix order; a long one is not nested deeply."""
    if len(operands) > longest:
        middle = len(operands) // 2
        halves = [_balanced(operator, part) for part in (operands[:middle], operands[middle:])]
        return [*halves[0], *halves[1], operator]
    first, *others = operands
    found: list[Node | str] = [first]
    for operand in others:
        found += (operand, operator)
    return found


def _word(node: Node, variables: Mapping[str, int]) -> Value | str:
    match node:
        case Literal(value):
            return value
        case Identifier(name):
            return f"v{variables[name]}"
        case Label(name):
            return name
        case Unary(operator, _):
            return "neg" if operator == "-" else "!"
        case Binary(operator, _, _):
            return "pow:2" if operator == "^" else operator
        case Function(name, arguments):
            return f"{name}:{len(arguments)}"
    return "?"
