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
        return _folded(self._words(expression))

    def _words(self, expression: Expression) -> _Part:
        match expression:
            case Literal(value):
                return _Part([value], expression)
            case Parentheses(operand):
                return self._words(operand)
            case Identifier():
                return self._name(expression)
            case Label(name):
                return self._label(name)
            case Unary(operator, operand):
                return _joined(operator, "neg" if operator == "-" else "!", self._words(operand))
            case Binary(operator, left, right):
                word = "pow:2" if operator == "^" else operator
                return _joined(operator, word, self._words(left), self._words(right))
            case Conditional(condition, then, otherwise):
                parts = [self._words(part) for part in (condition, then, otherwise)]
                known = _folded(parts[0])
                if len(known) == 1 and isinstance(known[0], bool):
                    return parts[1 if known[0] else 2]
                return _joined("?", "?", *parts)
            case Function(name, arguments):
                if name not in _FUNCTIONS:
                    raise UnsupportedError(f"the function {name} of a simulated model")
                word = f"{name}:{len(arguments)}"
                return _joined(name, word, *map(self._words, arguments))
        raise UnsupportedError(f"an expression of the form {expression}")

    def _name(self, node: Identifier) -> _Part:
        name = node.name
        if name in self.formulas:
            return self._words(self.formulas[name])
        if name in self.variables:
            return _Part([f"v{self.variables[name]}"], None)
        if name not in self.constants:
            raise invalid("Undeclared identifier", node)
        value = self.constants[name]
        return _Part([value], Literal(value, str(value)))

    def _label(self, name: str) -> _Part:
        if name in self.labels:
            return self._words(self.labels[name])
        if name not in SPECIAL_LABELS:
            raise InvalidModelError(f'Undeclared label "{name}"')
        return _Part([name], None)


@dataclass(frozen=True)
class _Part:
    """Words, and the expression that they stand for where it depends on no variable."""

    words: Words
    constant: Expression | None


def _folded(part: _Part) -> Words:
    if part.constant is None or isinstance(part.constant, Literal):
        return part.words
    # What cannot be computed is an error of the path that needs it.
    with contextlib.suppress(InvalidModelError):
        return [constant_value(part.constant, {})]
    return part.words


def _joined(operator: str, word: str, *operands: _Part) -> _Part:
    constants = [part.constant for part in operands if part.constant is not None]
    if len(constants) == len(operands):
        words = [entry for part in operands for entry in part.words]
        return _Part([*words, word], _made(operator, constants))
    words = [entry for part in operands for entry in _folded(part)]
    return _Part([*words, word], None)


def _made(operator: str, operands: list[Expression]) -> Expression:
    """Return the expression of an operator or a function, for its value."""
    inside = [Parentheses(operand) for operand in operands]
    if operator == "?":
        return Conditional(*inside)
    if operator in _FUNCTIONS:
        return Function(operator, tuple(inside))
    if len(inside) == 1:
        return Unary(operator, inside[0])
    return Binary(operator, *inside)
