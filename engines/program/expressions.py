"""Expressions of a model's text: typed trees over the variables of a state.

Types and meaning are PRISM's: integers have 32 bits and an overflow is an error; division is
always of doubles; `mod` has the sign of its divisor, which must be positive; a power of integers
is an integer; `&`, `|`, `=>` and the conditional look at their operands from left to right and
only as far as needed. `engines.program.evaluate` computes them one at a time,
`engines.program.wording` writes them as C.

Source: PRISM's manual, "The PRISM Language / Expressions".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from engines.errors import InvalidModelError

LEAST_INT, GREATEST_INT = -(2**31), 2**31 - 1
"""The range of PRISM's integers."""


class Type(StrEnum):
    """What an expression's value is."""

    BOOL = "bool"
    INT = "int"
    DOUBLE = "double"


class UnaryOperator(StrEnum):
    """Operators of one operand."""

    NOT = "!"
    MINUS = "-"


class BinaryOperator(StrEnum):
    """Operators of two operands, by the signs that PRISM gives them."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    DIVIDE = "/"
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "&"
    OR = "|"
    IMPLIES = "=>"
    IFF = "<=>"


class Function(StrEnum):
    """Functions, by PRISM's names."""

    MIN = "min"
    MAX = "max"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    POW = "pow"
    MOD = "mod"
    LOG = "log"


LOGICAL = frozenset(
    {BinaryOperator.AND, BinaryOperator.OR, BinaryOperator.IMPLIES, BinaryOperator.IFF}
)
ARITHMETIC = frozenset({BinaryOperator.PLUS, BinaryOperator.MINUS, BinaryOperator.TIMES})
EQUALITIES = frozenset({BinaryOperator.EQUAL, BinaryOperator.NOT_EQUAL})
_ARITIES = {
    **dict.fromkeys((Function.FLOOR, Function.CEIL, Function.ROUND), 1),
    **dict.fromkeys((Function.POW, Function.MOD, Function.LOG), 2),
}


@dataclass(frozen=True)
class Literal:
    """A constant.

    Parameters
    ----------
    value
        A `bool`, an `int` in the range of 32 bits, or a `float`; its Python type is its type.

    Raises
    ------
    InvalidModelError
        If an integer is out of range, or the value of another type.
    """

    value: bool | int | float
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        kinds = {bool: Type.BOOL, int: Type.INT, float: Type.DOUBLE}
        kind = kinds.get(type(self.value))
        if kind is None:
            raise InvalidModelError(f"{self.value!r} is neither a bool nor an int nor a float")
        if kind is Type.INT and not LEAST_INT <= self.value <= GREATEST_INT:
            raise InvalidModelError(f"the integer {self.value} does not fit into 32 bits")
        object.__setattr__(self, "type", kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Type, str]:
        # 1, 1.0 and True are different constants, and so are 0.0 and -0.0
        return self.type, repr(self.value)


@dataclass(frozen=True)
class Variable:
    """The value of a variable in the current state.

    Parameters
    ----------
    index
        Its place among the program's variables.
    type
        `Type.BOOL` or `Type.INT`, as the program declares it.
    """

    index: int
    type: Type


@dataclass(frozen=True)
class Unary:
    """An operator applied to one operand.

    Raises
    ------
    InvalidModelError
        If the operand is of the wrong type.
    """

    operator: UnaryOperator
    operand: Expression
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        is_bool = self.operand.type is Type.BOOL
        if is_bool is not (self.operator is UnaryOperator.NOT):
            raise InvalidModelError(f"{self.operator} applied to a {self.operand.type}")
        object.__setattr__(self, "type", self.operand.type)


@dataclass(frozen=True)
class Binary:
    """An operator applied to two operands.

    Raises
    ------
    InvalidModelError
        If an operand is of the wrong type.
    """

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        types = {self.left.type, self.right.type}
        wants_bools = self.operator in LOGICAL
        either = self.operator in EQUALITIES and types == {Type.BOOL}
        if not either and (types != {Type.BOOL} if wants_bools else Type.BOOL in types):
            found = f"{self.left.type} and {self.right.type}"
            raise InvalidModelError(f"{self.operator} applied to {found}")
        if self.operator is BinaryOperator.DIVIDE:
            kind = Type.DOUBLE
        elif self.operator in ARITHMETIC:
            kind = Type.DOUBLE if Type.DOUBLE in types else Type.INT
        else:
            kind = Type.BOOL
        object.__setattr__(self, "type", kind)


@dataclass(frozen=True)
class Conditional:
    """One of two expressions: PRISM's ``condition ? then : otherwise``.

    Raises
    ------
    InvalidModelError
        If the condition is not a Boolean, or only one of the two is.
    """

    condition: Expression
    then: Expression
    otherwise: Expression
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        types = {self.then.type, self.otherwise.type}
        if self.condition.type is not Type.BOOL or (Type.BOOL in types and len(types) == 2):
            found = f"{self.condition.type} ? {self.then.type} : {self.otherwise.type}"
            raise InvalidModelError(f"the types of a conditional do not match: {found}")
        kind = self.then.type if len(types) == 1 else Type.DOUBLE
        object.__setattr__(self, "type", kind)


@dataclass(frozen=True)
class Call:
    """A function applied to its arguments.

    Raises
    ------
    InvalidModelError
        If the number or the type of the arguments is wrong.
    """

    function: Function
    arguments: tuple[Expression, ...]
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        count, types = len(self.arguments), {argument.type for argument in self.arguments}
        wanted = _ARITIES.get(self.function)
        if count != wanted if wanted else count < 1:
            raise InvalidModelError(f"{self.function} takes {wanted or 'some'}, got {count}")
        if Type.BOOL in types or (self.function is Function.MOD and Type.DOUBLE in types):
            raise InvalidModelError(f"{self.function} applied to {', '.join(sorted(types))}")
        if self.function in (Function.FLOOR, Function.CEIL, Function.ROUND, Function.MOD):
            kind = Type.INT
        elif self.function is Function.LOG or Type.DOUBLE in types:
            kind = Type.DOUBLE
        else:
            kind = Type.INT
        object.__setattr__(self, "type", kind)


Expression = Literal | Variable | Unary | Binary | Conditional | Call

TRUE, FALSE = Literal(True), Literal(False)
ONE = Literal(1.0)


def operands(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct subexpressions, from left to right."""
    match expression:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return left, right
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return condition, then, otherwise
        case Call(arguments=arguments):
            return arguments
        case _:
            return ()


def subexpressions(expression: Expression) -> Iterator[Expression]:
    """Return the expression and all it consists of, the outer before the inner."""
    waiting: list[Expression] = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += reversed(operands(current))


def variables_of(expression: Expression) -> frozenset[int]:
    """Return the indices of the variables that the value may depend on."""
    return frozenset(
        part.index for part in subexpressions(expression) if isinstance(part, Variable)
    )


def conjunction(*expressions: Expression) -> Expression:
    """Return ``a & b & …`` from left to right; true for none."""
    result: Expression = TRUE
    for expression in expressions:
        if result == TRUE:
            result = expression
        elif expression != TRUE:
            result = Binary(BinaryOperator.AND, result, expression)
    return result


def negation(expression: Expression) -> Expression:
    """Return ``!a``."""
    return Unary(UnaryOperator.NOT, expression)


def is_whole(value: float) -> bool:
    """Return whether a double is an integer of 32 bits."""
    return math.isfinite(value) and LEAST_INT <= value <= GREATEST_INT and value == int(value)
