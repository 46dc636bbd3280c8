"""Expressions as C, of numbers and generated identifiers alone.

Nothing of a model but its numbers reaches the source: variables are `p->v3`, or `p->v[s[1]]` where
one function serves many modules, and what an expression calls is one of `montecarlo.cuh`'s
functions. Arithmetic is checked for overflow where `engines.program.ranges` cannot exclude it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engines.program.expressions import (
    EQUALITIES,
    LEAST_INT,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Expression,
    Function,
    Literal,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    subexpressions,
)
from engines.program.program import VariableDeclaration
from engines.program.ranges import range_of

Reference = Callable[[int], str]
"""How a variable is called, by its index."""

_SHORT = 12
"""So many nodes are evaluated rather than jumped over: cheaper than a branch that is mispredicted,
and no one can tell the difference if they cannot fail."""

_SIGNS = {
    BinaryOperator.PLUS: "+",
    BinaryOperator.MINUS: "-",
    BinaryOperator.TIMES: "*",
    BinaryOperator.DIVIDE: "/",
    BinaryOperator.LESS: "<",
    BinaryOperator.LESS_EQUAL: "<=",
    BinaryOperator.GREATER: ">",
    BinaryOperator.GREATER_EQUAL: ">=",
    BinaryOperator.IFF: "==",
    BinaryOperator.EQUAL: "==",
    BinaryOperator.NOT_EQUAL: "!=",
}
_CHECKED = {
    BinaryOperator.PLUS: "add_exact",
    BinaryOperator.MINUS: "subtract_exact",
    BinaryOperator.TIMES: "multiply_exact",
}
_ROUNDED = {
    Function.FLOOR: "floor_of",
    Function.CEIL: "ceil_of",
    Function.ROUND: "round_of",
}


def double(value: float) -> str:
    """Return a double as C has it, exactly."""
    value = float(value)
    if math.isnan(value):
        return "NOT_A_NUMBER"
    if math.isinf(value):
        return "INFINITE" if value > 0 else "(-INFINITE)"
    text = repr(value) if value.is_integer() and abs(value) < 1e15 else value.hex()
    return f"({text})" if text.startswith("-") else text


def integer(value: int) -> str:
    """Return an integer of 32 bits as C has it."""
    if value == LEAST_INT:
        return f"({value + 1} - 1)"
    return f"({value})" if value < 0 else str(value)


def function(head: str, body: Sequence[str]) -> str:
    """Return the definition of a function of a path."""
    return f"HD {head} {{\n" + "".join(f"  {line}\n" for line in body) + "}\n"


class NumberTable:
    """Doubles that a source reads from `numbers`, so that one source serves all their values.

    Equal numbers share a place. 0, 1 and what is not finite are written out: they decide what a
    source looks like.
    """

    def __init__(self) -> None:
        self._places: dict[float, int] = {}

    def text(self, value: float) -> str:
        """Return how a double is read; it gets a place in the table if it has none."""
        if value in (0.0, 1.0) or not math.isfinite(value):
            return double(value)
        return f"numbers[{self._places.setdefault(value, len(self._places))}]"

    def values(self) -> list[float]:
        """Return the numbers by their places."""
        return list(self._places)


class Wording:
    """Writes expressions over the same variables.

    Parameters
    ----------
    variables
        With their ranges.
    reference
        How a variable is called.
    number
        Writes a double.
    """

    def __init__(
        self,
        variables: Sequence[VariableDeclaration],
        reference: Reference,
        number: Callable[[float], str] = double,
    ) -> None:
        self._variables = variables
        self._reference = reference
        self._number = number

    def value(self, expression: Expression) -> str:
        """Return the expression, in parentheses where it needs them, as an `int` or `double`."""
        match expression:
            case Literal(value=value, type=Type.DOUBLE):
                return self._number(float(value))
            case Literal(value=value):
                return integer(int(value))
            case Variable(index=index):
                return self._reference(index)
            case Unary(operator=UnaryOperator.NOT, operand=operand):
                return f"!{self.value(operand)}"
            case Unary(operand=operand):
                if expression.type is Type.INT and self._can_fail(expression):
                    return f"negate_exact({self.value(operand)}, &p->fail)"
                return f"(-{self.value(operand)})"
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                holds = self.value(condition)
                if expression.type is Type.DOUBLE:
                    return f"({holds} ? {self.real(then)} : {self.real(otherwise)})"
                return f"(opaque({holds}) ? {self.value(then)} : {self.value(otherwise)})"
            case Call():
                return self._call(expression)
            case Binary():
                return self._binary(expression)

    def real(self, expression: Expression) -> str:
        """Return a number as a `double`."""
        if isinstance(expression, Literal):
            return self._number(float(expression.value))
        text = self.value(expression)
        return text if expression.type is Type.DOUBLE else f"(double){text}"

    def _can_fail(self, expression: Expression) -> bool:
        return range_of(expression, self._variables).can_fail

    def _is_short(self, expression: Expression) -> bool:
        """Return whether evaluating it without need does no harm and costs little."""
        nodes = sum(1 for _ in zip(range(_SHORT + 1), subexpressions(expression), strict=False))
        return nodes <= _SHORT and not self._can_fail(expression)

    def _binary(self, expression: Binary) -> str:
        operator, left, right = expression.operator, expression.left, expression.right
        first, second = self.value(left), self.value(right)
        eager = self._is_short(right)
        match operator:
            case BinaryOperator.AND:
                return f"({first} {'&' if eager else '&&'} {second})"
            case BinaryOperator.OR:
                return f"({first} {'|' if eager else '||'} {second})"
            case BinaryOperator.IMPLIES:
                return f"(!{first} {'|' if eager else '||'} {second})"
        doubles = Type.DOUBLE in (left.type, right.type)
        if operator is BinaryOperator.DIVIDE or doubles:
            first, second = self.real(left), self.real(right)
        if doubles and operator in EQUALITIES:
            sign = "" if operator is BinaryOperator.EQUAL else "!"
            return f"{sign}same_double({first}, {second})"
        if expression.type is Type.INT and self._can_fail(expression):
            return f"{_CHECKED[operator]}({first}, {second}, &p->fail)"
        return f"({first} {_SIGNS[operator]} {second})"

    def _call(self, expression: Call) -> str:
        function, arguments = expression.function, expression.arguments
        if function in _ROUNDED:
            return f"{_ROUNDED[function]}({self.real(arguments[0])}, &p->fail)"
        if function is Function.LOG:
            x, base = (self.real(argument) for argument in arguments)
            return f"logarithm_to_base({x}, {base})"
        is_int = expression.type is Type.INT
        values = [self.value(x) if is_int else self.real(x) for x in arguments]
        if function is Function.MOD:
            return f"modulo({values[0]}, {values[1]}, &p->fail)"
        if function is Function.POW:
            rest = ", &p->fail" if is_int else ""
            return f"{'integer_power' if is_int else 'power'}({values[0]}, {values[1]}{rest})"
        name = "least" if function is Function.MIN else "greatest"
        name += "_int" if is_int else ""
        text = values[0]
        for value in values[1:]:
            text = f"{name}({text}, {value})"
        return text
