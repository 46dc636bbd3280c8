"""The types of expressions, and PRISM's errors about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.language.ast import (
    Binary,
    Conditional,
    Cumulative,
    Expression,
    Filter,
    Function,
    Identifier,
    InnerFilter,
    Instantaneous,
    Label,
    Literal,
    LongRun,
    Parentheses,
    Probability,
    Quantifier,
    Reward,
    SteadyState,
    Strategy,
    Temporal,
    Threshold,
    Unary,
    Value,
)
from bridge.language.functions import fault_in_call
from bridge.language.tree import Node
from engines.errors import InvalidModelError

BOOL, INT, DOUBLE = "bool", "int", "double"
PATH, REWARD_PATH, VOID = "path-bool", "path-double", "void"
_NUMBERS = (INT, DOUBLE)
_FORMULAS = (BOOL, PATH)
_LOGIC = ("=>", "<=>", "|", "&")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class InvalidNodeError(InvalidModelError):
    """What is wrong about a node, as PRISM shows it: with the node's text where that is short.

    Its line and column follow where they are known.

    Parameters
    ----------
    message
        What is wrong.
    node
        What is wrong about.
    """

    def __init__(self, message: str, node: Node) -> None:
        text = str(node)
        details = [f'"{text}"'] if len(text) < 20 else []
        if node.position is not None:
            details.append("line {}, column {}".format(*node.position))
        super().__init__(f"{message} ({', '.join(details)})" if details else message)


def invalid(message: str, node: Node) -> InvalidNodeError:
    """Return the error for a node.

    Parameters
    ----------
    message
        What is wrong.
    node
        What is wrong about.
    """
    return InvalidNodeError(message, node)


def type_of_value(value: Value) -> str:
    """Return the type of a value: "bool", "int" or "double"."""
    if isinstance(value, bool):
        return BOOL
    return INT if isinstance(value, int) else DOUBLE


class _TypesOfNodes:
    """The types of nodes, each by its identity: comparing the content of long chains takes long."""

    def __init__(self) -> None:
        self._types: dict[int, tuple[Node, str]] = {}

    def __contains__(self, node: Node) -> bool:
        return id(node) in self._types

    def __getitem__(self, node: Node) -> str:
        return self._types[id(node)][1]

    def __setitem__(self, node: Node, kind: str) -> None:
        # The node is kept: another one may not get its identity.
        self._types[id(node)] = node, kind


_FITS = {(BOOL, BOOL), (INT, INT), (DOUBLE, INT), (DOUBLE, DOUBLE)}


@dataclass
class TypeChecker:
    """Finds types, each once.

    Parameters
    ----------
    identifiers
        The types of variables and constants.
    formulas
        The definitions of formulas.
    properties
        The properties that have names.
    """

    identifiers: Mapping[str, str]
    formulas: Mapping[str, Expression] = field(default_factory=dict)
    properties: Mapping[str, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = _TypesOfNodes()
        self._asking: list[str] = []

    def require(self, expression: Expression, kinds: tuple[str, ...], message: str) -> None:
        """Raise an `InvalidNodeError` for an expression of none of some types.

        Parameters
        ----------
        expression, kinds, message
            The expression, its types, and what the error says.
        """
        if self.type_of(expression) not in kinds:
            raise invalid(message, expression)

    def require_fit(self, expression: Expression, kind: str, message: str) -> None:
        """Raise an `InvalidNodeError` where a value cannot be given to what has a type.

        Parameters
        ----------
        expression, kind, message
            The value, the type of what is to have it, and what the error says.
        """
        if (kind, self.type_of(expression)) not in _FITS:
            raise invalid(message, expression)

    def type_of(self, expression: Expression) -> str:
        """Return an expression's type.

        Parameters
        ----------
        expression
            Any expression; path formulas have a type too.

        Raises
        ------
        InvalidModelError
            With PRISM's words, for an operand of a wrong type or an unknown name.

        Notes
        -----
        Source: `parser/visitor/TypeCheck.java` of PRISM.
        """
        for node in expression.walk_up():
            if node not in self._known:
                self._known[node] = self._judge(node)
        return self._known[expression]

    def _judge(self, node: Node) -> str:
        match node:
            case Literal(value):
                return type_of_value(value)
            case Identifier():
                return self._identifier(node)
            case Label():
                return self._label(node)
            case Parentheses(operand):
                return self._known[operand]
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Conditional():
                return self._conditional(node)
            case Function():
                return self._function(node)
            case Temporal():
                return self._temporal(node)
            case _:
                return self._judge_operator(node)

    def _judge_operator(self, node: Node) -> str:
        match node:
            case Probability():
                return self._probability(node)
            case SteadyState():
                return self._steady_state(node)
            case Reward():
                return self._reward(node)
            case Cumulative() | Instantaneous() | LongRun():
                return self._reward_path(node)
            case Quantifier():
                return BOOL
            case Strategy(operands=operands):
                return _first_type(self._all(operands))
            case Filter():
                return self._filter(node)
            case _:
                return VOID

    def _all(self, nodes: tuple[Expression, ...]) -> list[str]:
        return [self._known[node] for node in nodes]

    def _named(self, name: str, node: Node, definition: Expression) -> str:
        if name in self._asking:
            raise invalid(f"Cyclic dependency in the definition of {name}", node)
        self._asking.append(name)
        try:
            return self.type_of(definition)
        finally:
            self._asking.pop()

    def _identifier(self, node: Identifier) -> str:
        if node.name in self.formulas:
            return self._named(node.name, node, self.formulas[node.name])
        if node.name not in self.identifiers:
            raise invalid("Undeclared identifier", node)
        return self.identifiers[node.name]

    def _label(self, node: Label) -> str:
        if node.name in self.properties:
            return self._named(str(node), node, self.properties[node.name])
        return BOOL

    def _unary(self, node: Unary) -> str:
        kind = self._known[node.operand]
        if node.operator == "!" and kind not in _FORMULAS:
            raise invalid("Type error: ! applied to non-Boolean expression", node.operand)
        if node.operator == "-" and kind not in _NUMBERS:
            raise invalid("Type error: - can only be applied to ints or doubles", node.operand)
        return kind

    def _binary(self, node: Binary) -> str:
        operator, operands = node.operator, (node.left, node.right)
        left, right = self._known[node.left], self._known[node.right]
        if operator in _LOGIC:
            for operand in operands:
                if self._known[operand] not in _FORMULAS:
                    message = f"Type error: {operator} applied to non-Boolean expression"
                    raise invalid(message, operand)
            return PATH if PATH in (left, right) else BOOL
        if operator in _COMPARISONS:
            both_bool = left == right == BOOL and operator in ("=", "!=")
            if not both_bool and (left not in _NUMBERS or right not in _NUMBERS):
                what = f"{left}s" if left == right else f"{left} and {right}"
                raise invalid(f"Type error: {operator} cannot compare {what}", node)
            return BOOL
        for operand in operands:
            if self._known[operand] not in _NUMBERS:
                message = f"Type error: {operator} can only be applied to ints or doubles"
                raise invalid(message, operand)
        return INT if left == right == INT and operator != "/" else DOUBLE

    def _conditional(self, node: Conditional) -> str:
        if self._known[node.condition] != BOOL:
            raise invalid("Type error: condition of ? operator is not Boolean", node.condition)
        then, otherwise = self._known[node.then], self._known[node.otherwise]
        numbers = then in _NUMBERS and otherwise in _NUMBERS
        if not numbers and not then == otherwise == BOOL:
            message = "Type error: types for then/else operands of ? operator must match"
            raise invalid(message, node)
        return then if then == otherwise else DOUBLE

    def _function(self, node: Function) -> str:
        fault = fault_in_call(node.name, len(node.arguments))
        if fault:
            raise invalid(fault, node)
        kinds = self._all(node.arguments)
        if node.name == "multi":
            return self._multi(node, kinds)
        for argument, kind in zip(node.arguments, kinds, strict=True):
            if node.name == "mod" and kind != INT:
                message = f'Type error: non-integer argument to  function "{node.name}"'
                raise invalid(message, argument)
            if kind not in _NUMBERS:
                what = "Boolean" if kind == BOOL else kind
                message = f'Type error: {what} argument not allowed as argument to function "'
                raise invalid(f'{message}{node.name}"', argument)
        if node.name in ("floor", "ceil", "round", "mod"):
            return INT
        return DOUBLE if node.name == "log" or DOUBLE in kinds else INT

    def _multi(self, node: Function, kinds: list[str]) -> str:
        for argument, kind in zip(node.arguments, kinds, strict=True):
            if kind not in (BOOL, DOUBLE):
                message = 'Type error: non-Boolean/Double argument to  function "multi"'
                raise invalid(message, argument)
        if kinds != sorted(kinds, reverse=True):
            raise InvalidModelError(
                'Type error: in the function "multi", any Double arguments must come before any '
                "Boolean arguments."
            )
        return _first_type(kinds)

    def _number(self, node: Expression | None, message: str) -> None:
        if node is not None and self._known[node] not in _NUMBERS:
            raise invalid(message, node)

    def _temporal(self, node: Temporal) -> str:
        if node.bound is not None:
            end = f"bound in {node.operator} operator must be an int or double"
            self._number(node.bound.lower, f"Type error: Lower {end}")
            self._number(node.bound.upper, f"Type error: Upper {end}")
        for operand in (node.left, node.right):
            if operand is not None and self._known[operand] not in _FORMULAS:
                message = f"Type error: Argument of {node.operator} operator is not Boolean"
                raise invalid(message, operand)
        return PATH

    def _reward_path(self, node: Cumulative | Instantaneous | LongRun) -> str:
        message = "Type error: Upper bound in {} operator must be an int or double"
        if isinstance(node, Cumulative):
            self._number(node.bound, message.format("C"))
        elif isinstance(node, Instantaneous):
            self._number(node.time, message.format("I"))
        return REWARD_PATH

    def _operator(
        self, name: str, what: str, threshold: Threshold, inner: InnerFilter | None
    ) -> str:
        self._number(threshold.bound, f"Type error: {name} operator {what} bound is not a double")
        if inner is not None:
            if self._known[inner.states] != BOOL:
                raise invalid(f"Type error: {name} operator filter is not a Boolean", inner.states)
            if threshold.bound is not None and (inner.minimum or inner.maximum):
                raise InvalidModelError(
                    "Type error: Cannot use min/max filters in Boolean-valued properties"
                )
        return DOUBLE if threshold.bound is None else BOOL

    def _probability(self, node: Probability) -> str:
        kind = self._operator("P", "probability", node.threshold, node.filter)
        if self._known[node.path] not in _FORMULAS:
            raise invalid("Type error: Contents of P operator is not a path formula", node.path)
        return kind

    def _steady_state(self, node: SteadyState) -> str:
        kind = self._operator("S", "probability", node.threshold, node.filter)
        if self._known[node.operand] != BOOL:
            message = "Type error: Contents of S operator is not a Boolean-valued expression"
            raise invalid(message, node.operand)
        return kind

    def _reward(self, node: Reward) -> str:
        for index in (node.structure, node.divisor):
            if isinstance(index, Node) and self._known[index] != INT:
                message = "Type error: Reward structure index must be string or integer"
                raise invalid(message, index)
        kind = self._operator("R", "reward", node.threshold, node.filter)
        if self._known[node.body] not in (BOOL, PATH, REWARD_PATH):
            raise invalid("Type error: Contents of R operator is invalid", node.body)
        return kind

    def _filter(self, node: Filter) -> str:
        kind, name = self._known[node.operand], node.symbol or node.kind
        if node.states is not None and self._known[node.states] != BOOL:
            raise invalid("Type error: Second argument of filter is not a Boolean", node.states)
        of_type = f'operand for filter of type "{name}"'
        if node.kind in ("count", "forall", "exists"):
            if kind != BOOL:
                message = f'Type error: Operand for filter of type "{name}" must be Boolean'
                raise invalid(message, node.operand)
            return INT if node.kind == "count" else BOOL
        if node.kind in ("min", "max", "argmin", "argmax", "sum", "avg", "range") and kind == BOOL:
            message = f"Type error: Boolean argument not allowed as {of_type}"
            raise invalid(message, node.operand)
        if node.kind != "state" and kind == VOID:
            message = f"Type error: Void/complex arguments not allowed as {of_type}"
            raise invalid(message, node.operand)
        others = {"argmin": BOOL, "argmax": BOOL, "avg": DOUBLE, "range": f"interval of {kind}"}
        return others.get(node.kind, kind)


def _first_type(kinds: list[str]) -> str:
    """Return the type of several objectives: that of the first, or void for several numbers."""
    if kinds[0] == BOOL or (len(kinds) > 1 and kinds[1] != BOOL):
        return BOOL if kinds[0] == BOOL else VOID
    return DOUBLE
