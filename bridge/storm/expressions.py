"""Expressions in the dialect of Storm's parser, with PRISM's meaning.

Storm binds some operators otherwise than PRISM and has no `<=>`; its `mod` of a negative multiple
of n is n, and its even powers of -x are negative. What it may read otherwise is written with all
its parentheses.
"""

from __future__ import annotations

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
)
from bridge.language.tree import Node, TextPart

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_READ_OTHERWISE = ("^", "<=>", "=>")
_UNMISTAKABLE = (Parentheses, Literal, Identifier, Function)


def reads_otherwise(expression: Expression) -> bool:
    """Return whether Storm may read an expression otherwise than PRISM.

    Parameters
    ----------
    expression
        An expression of a model.
    """
    return any(_may_differ(node) for node in expression.walk())


def _may_differ(node: Node) -> bool:
    match node:
        case Function() | Conditional():
            return True
        case Unary(_, operand):
            return not isinstance(operand, _UNMISTAKABLE)
        case Binary(operator, left, right):
            compared = operator in _COMPARISONS and any(
                isinstance(side, Binary) and side.operator in _COMPARISONS for side in (left, right)
            )
            return compared or operator in _READ_OTHERWISE
        case _:
            return False


def storm_text(expression: Expression) -> str:
    """Return an expression for Storm's parser, with all its parentheses, on one line.

    Parameters
    ----------
    expression
        An expression of a model.
    """
    finished: list[str] = []
    parts: list[TextPart] = [expression]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            finished.append(part)
        else:
            parts.extend(reversed(_parts(part)))
    return "".join(finished)


def _parts(node: Node) -> list[TextPart]:
    match node:
        case Parentheses(operand):
            return [operand]
        case Unary("-", operand):
            return ["(0 - ", operand, ")"]
        case Unary(_, operand):
            return ["!(", operand, ")"]
        case Binary("^", left, right):
            return ["pow(", left, ", ", right, ")"]
        case Binary("<=>", left, right):
            return ["((", left, ") = (", right, "))"]
        case Binary(operator, left, right):
            return ["(", left, f" {operator} ", right, ")"]
        case Conditional(condition, then, otherwise):
            return ["(", condition, " ? ", then, " : ", otherwise, ")"]
        case Function("mod", (number, divisor)):
            # The inner result is from 1 to n where it should be from 0 to n - 1; a divisor that is
            # not positive is an error, and Storm knows it for 0 alone.
            by: list[TextPart] = ["max(", divisor, ", 0)"]
            if isinstance(divisor, Literal):
                by = [divisor]
            return ["mod(mod(", number, ", ", *by, "), ", *by, ")"]
        case Function(name, arguments):
            listed = [text for argument in arguments for text in (argument, ", ")]
            return [f"{name}(", *listed[:-1], ")"]
        case Label(name):
            return [f'"{name}"']
        case _:
            return [str(node)]
