"""The value of an expression in all states at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from bridge.language import arithmetic
from bridge.language.arithmetic import Outcome, Values
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
from bridge.language.tree import Node
from bridge.language.types import DOUBLE, TypeChecker, invalid, type_of_value
from bridge.model import StateVector
from engines.arrays import MaskArray
from engines.errors import InvalidModelError, UnsupportedError

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "double"}


def _no_label(name: str) -> MaskArray:
    raise InvalidModelError(f'Undeclared label ("{name}")')


def _no_operator(node: Expression) -> StateVector:
    raise invalid("Cannot evaluate an operator of properties without a model", node)


@dataclass(frozen=True)
class Scope:
    """What the names in an expression stand for.

    Parameters
    ----------
    num_states
        How many states there are.
    variables
        The variables' values, shape (states,): bool, int64 or float64.
    constants
        The values of constants, of their declared types.
    formulas
        The definitions of formulas.
    label
        The states that a label holds in, shape (states,).
    operator
        The values of an operator of properties, or of a property that is named, shape (states,).
    properties
        The properties that have names; a label of such a name goes to `operator`.
    """

    num_states: int = 1
    variables: Mapping[str, StateVector] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)
    formulas: Mapping[str, Expression] = field(default_factory=dict)
    label: Callable[[str], MaskArray] = _no_label
    operator: Callable[[Expression], StateVector] = _no_operator
    properties: Mapping[str, Expression] = field(default_factory=dict)

    def type_checker(self) -> TypeChecker:
        """Return a checker of types for these names."""
        return TypeChecker(_TypesOfNames(self), self.formulas, self.properties)


class _TypesOfNames(Mapping[str, str]):
    """The types of variables and constants, found when they are asked for.

    A column of values may have to be unpacked for it.
    """

    def __init__(self, scope: Scope) -> None:
        self._variables, self._constants = scope.variables, scope.constants

    def __getitem__(self, name: str) -> str:
        if name in self._variables:
            return type_of_array(self._variables[name])
        return type_of_value(self._constants[name])

    def __contains__(self, name: object) -> bool:
        return name in self._variables or name in self._constants

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._constants), **dict.fromkeys(self._variables)})

    def __len__(self) -> int:
        return len({*self._constants, *self._variables})


def type_of_array(values: StateVector) -> str:
    """Return the type of a variable with the given values: "bool", "int" or "double"."""
    return _KINDS[values.dtype.kind]


def type_of(expression: Expression, scope: Scope) -> str:
    """Return the type of an expression: "bool", "int" or "double".

    Parameters
    ----------
    expression
        A property, or a part of one; a path formula is of type "path-bool", several objectives at
        once are "void", and a filter for a range has an "interval of" numbers.
    scope
        What its names stand for.

    Raises
    ------
    InvalidModelError
        With PRISM's words, for an operand of a wrong type or an unknown name.
    UnsupportedError
        For formulas that refer to formulas more than about a hundred levels deep.
    """
    with deep_definitions_refused():
        return scope.type_checker().type_of(expression)


def evaluate(expression: Expression, scope: Scope) -> StateVector | Value:
    """Return an expression's value in every state.

    Parameters
    ----------
    expression
        The expression; operators of properties in it are left to the scope.
    scope
        What its names stand for.

    Returns
    -------
    Shape (states,), of dtype bool, int64 or float64; or a Python value of type bool, int or float
    where it takes no variable, label or operator to find it.

    Raises
    ------
    InvalidModelError
        For a wrong type, an unknown name, or a value that PRISM cannot compute in a state that it
        needs it in: an overflow of 32-bit integers, a modulus of 0. What `&`, `|`, `=>` and `?:`
        do not look at cannot fail.
    UnsupportedError
        As of `type_of`.
    """
    types = scope.type_checker()
    with deep_definitions_refused(), np.errstate(all="ignore"):
        types.type_of(expression)
        values = _Evaluation(scope, types).values(expression, None)
    if values.ndim:
        return values
    value: Value = values.item()
    return value


def constant_value(
    expression: Expression,
    constants: Mapping[str, Value],
    formulas: Mapping[str, Expression] | None = None,
) -> Value:
    """Return the value of an expression without variables.

    Parameters
    ----------
    expression
        The expression.
    constants
        The values of constants.
    formulas
        The definitions of formulas.

    Raises
    ------
    InvalidModelError
        For anything that is not constant, by its name.
    """
    value = evaluate(expression, Scope(constants=constants, formulas=formulas or {}))
    assert not isinstance(value, np.ndarray), "there are no variables"
    return value


@contextmanager
def deep_definitions_refused() -> Iterator[None]:
    """Refuse formulas that refer to formulas too many levels deep, by name."""
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            "the formulas refer to each other too many levels deep; put some of them together"
        ) from None


@dataclass
class _Evaluation:
    """An expression's evaluation; `needed` says in which states a value is, None for all."""

    scope: Scope
    types: TypeChecker

    def values(self, node: Expression, needed: Values | None) -> Values:
        while isinstance(node, Parentheses):
            node = node.operand
        match node:
            case Literal(value):
                return np.asarray(value)
            case Identifier(name):
                return self._named(name, needed)
            case Unary(operator, operand):
                values = self.values(operand, needed)
                if operator == "!":
                    return np.asarray(~values)
                return _checked(arithmetic.negative(values), node, needed)
            case Binary():
                return self._chain(node, needed)
            case Conditional():
                return self._conditional(node, needed)
            case Function() if node.name != "multi":
                operands = [self.values(argument, needed) for argument in node.arguments]
                return _checked(_call(node.name, operands), node, needed)
            case Label(name) if name not in self.scope.properties:
                return np.asarray(self.scope.label(name))
            case _:
                return np.asarray(self.scope.operator(node))

    def _named(self, name: str, needed: Values | None) -> Values:
        if name in self.scope.formulas:
            return self.values(self.scope.formulas[name], needed)
        if name in self.scope.constants:
            return np.asarray(self.scope.constants[name])
        values = np.asarray(self.scope.variables[name])
        return values.astype(np.int64, copy=False) if values.dtype.kind in "iu" else values

    def _chain(self, node: Binary, needed: Values | None) -> Values:
        """Return the value of operators that are nested on the left, however many."""
        chain = [node]
        while isinstance(chain[-1].left, Binary):
            chain.append(chain[-1].left)
        # What a state needs of `a & b & c` it needs of `a` too: so this runs from the left.
        values = self.values(chain[-1].left, needed)
        for part in reversed(chain):
            values = self._binary(part, values, needed)
        return values

    def _binary(self, node: Binary, left: Values, needed: Values | None) -> Values:
        operator = node.operator
        if operator not in ("&", "|", "=>", "<=>"):
            outcome = arithmetic.binary(operator, left, self.values(node.right, needed))
            return _checked(outcome, node, needed)
        if operator == "<=>":
            return np.asarray(left == self.values(node.right, needed))
        open_states = np.asarray(~left) if operator == "|" else left
        wanted = open_states if needed is None else needed & open_states
        if not wanted.any():
            return np.asarray(~left) if operator == "=>" else left
        right = self.values(node.right, wanted)
        if operator == "&":
            return np.asarray(left & right)
        return np.asarray((left if operator == "|" else ~left) | right)

    def _conditional(self, node: Conditional, needed: Values | None) -> Values:
        """Return the value of conditionals that are nested on the right, however many."""
        is_double = self.types.type_of(node) == DOUBLE
        branches: list[tuple[Values, Values]] = []
        other: Expression = node
        while isinstance(other, Conditional):
            condition = self.values(other.condition, needed)
            chosen = condition if needed is None else needed & condition
            if chosen.any():
                branches.append((condition, self.values(other.then, chosen)))
            needed = np.asarray(~condition if needed is None else needed & ~condition)
            other = other.otherwise
            if not needed.any():
                break
        else:
            branches.append((np.asarray(True), self.values(other, needed)))
        result = branches.pop()[1]
        for condition, values in reversed(branches):
            result = np.where(condition, values, result)
        return arithmetic.as_double(result) if is_double else result


def _call(name: str, operands: list[Values]) -> Outcome:
    if name in ("min", "max"):
        return arithmetic.extreme(name, operands)
    if name in ("floor", "ceil", "round"):
        return arithmetic.rounded(name, operands[0])
    functions = {"pow": arithmetic.power, "mod": arithmetic.modulo, "log": arithmetic.logarithm}
    return functions[name](*operands)


def _checked(outcome: Outcome, node: Node, needed: Values | None) -> Values:
    """Return the values, after a look at where they could not be computed."""
    values, failure = outcome
    if failure is not None:
        failed = np.asarray(failure.where if needed is None else failure.where & needed)
        if failed.any():
            first = int(np.argmax(failed)) if np.ndim(failure.where) else 0
            raise invalid(failure.reason(first), node)
    return np.asarray(values)
