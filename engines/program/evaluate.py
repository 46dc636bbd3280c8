"""The value of an expression in a state, one node at a time: the oracle of the compiled source."""

from __future__ import annotations

from collections.abc import Callable

from engines.program import arithmetic
from engines.program.expressions import (
    EQUALITIES,
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
)
from engines.program.program import State

Value = bool | int | float

_COMPARE: dict[BinaryOperator, Callable[[float, float], bool]] = {
    BinaryOperator.LESS: lambda a, b: a < b,
    BinaryOperator.LESS_EQUAL: lambda a, b: a <= b,
    BinaryOperator.GREATER: lambda a, b: a > b,
    BinaryOperator.GREATER_EQUAL: lambda a, b: a >= b,
}
_ARITHMETIC: dict[BinaryOperator, Callable[[float, float], float]] = {
    BinaryOperator.PLUS: lambda a, b: a + b,
    BinaryOperator.MINUS: lambda a, b: a - b,
    BinaryOperator.TIMES: lambda a, b: a * b,
}
_ROUND = {
    Function.FLOOR: arithmetic.floor,
    Function.CEIL: arithmetic.ceil,
    Function.ROUND: arithmetic.round_half_up,
}


def evaluate(expression: Expression, state: State) -> Value:
    """Return the value of an expression, of its own type.

    Parameters
    ----------
    expression
        Over variables of the state.
    state
        A value a variable.

    Raises
    ------
    EvaluationError
        If it has none.
    """
    match expression:
        case Literal(value=value):
            return value
        case Variable(index=index, type=kind):
            return bool(state[index]) if kind is Type.BOOL else state[index]
        case Unary(operator=UnaryOperator.NOT, operand=operand):
            return not evaluate(operand, state)
        case Unary(operand=operand, type=kind):
            value = evaluate(operand, state)
            return arithmetic.exact_int(-int(value)) if kind is Type.INT else -float(value)
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=kind):
            value = evaluate(then if evaluate(condition, state) else otherwise, state)
            return float(value) if kind is Type.DOUBLE else value
        case Call(function=function, arguments=arguments, type=kind):
            return _call(function, kind, [evaluate(argument, state) for argument in arguments])
        case Binary():
            return _binary(expression, state)


def holds(expression: Expression, state: State) -> bool:
    """Return the value of a Boolean expression."""
    return bool(evaluate(expression, state))


def number(expression: Expression, state: State) -> float:
    """Return the value of a number as a double."""
    return float(evaluate(expression, state))


def _binary(expression: Binary, state: State) -> Value:
    operator = expression.operator
    left = evaluate(expression.left, state)
    match operator:
        case BinaryOperator.AND if not left:
            return False
        case BinaryOperator.OR if left:
            return True
        case BinaryOperator.IMPLIES if not left:
            return True
    right = evaluate(expression.right, state)
    if operator in (BinaryOperator.AND, BinaryOperator.OR, BinaryOperator.IMPLIES):
        return right
    if operator is BinaryOperator.IFF:
        return left == right
    doubles = Type.DOUBLE in (expression.left.type, expression.right.type)
    if operator in EQUALITIES:
        equal = arithmetic.same_double(left, right) if doubles else left == right
        return equal is (operator is BinaryOperator.EQUAL)
    if operator is BinaryOperator.DIVIDE:
        return arithmetic.divide(float(left), float(right))
    if operator in _COMPARE:
        return _COMPARE[operator](left, right)
    if doubles:
        return _ARITHMETIC[operator](float(left), float(right))
    return arithmetic.exact_int(int(_ARITHMETIC[operator](int(left), int(right))))


def _call(function: Function, kind: Type, values: list[Value]) -> Value:
    if function in _ROUND:
        return _ROUND[function](float(values[0]))
    if function is Function.MOD:
        return arithmetic.modulo(int(values[0]), int(values[1]))
    if function is Function.LOG:
        return arithmetic.logarithm_to_base(float(values[0]), float(values[1]))
    if function is Function.POW:
        if kind is Type.INT:
            return arithmetic.integer_power(int(values[0]), int(values[1]))
        return arithmetic.power(float(values[0]), float(values[1]))
    choose = min if function is Function.MIN else max
    if kind is Type.INT:
        return choose(int(value) for value in values)
    pick = arithmetic.least if function is Function.MIN else arithmetic.greatest
    result = float(values[0])
    for value in values[1:]:
        result = pick(result, float(value))
    return result
