"""Expressions as byte code that the compiled library evaluates over blocks of states.

A register holds a value for each state of a block: a byte for a Boolean, 32 bits for an integer, a
double. An expression becomes a graph in which equal subexpressions are one node, and the graph a
list of instructions; both operands of ``&``, ``|``, ``=>`` and of a conditional are evaluated. What
can fail (an overflow of integers, a modulus that is not positive) has a register that says for
which states it would be looked at at all.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray
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
from engines.program.program import VariableDeclaration
from engines.program.ranges import range_of

NO_REGISTER = -(2**31)
"""Stands for no register, where an instruction has fewer operands."""

ALWAYS = NO_REGISTER
"""What an instruction that can fail has for the register of a condition where there is none."""


class Op(IntEnum):
    """`Op` of src/explore_code.hpp: the operations, by the types of their operands."""

    LOAD_BOOL = 0
    LOAD_INT = 1
    NOT = 2
    AND = 3
    OR = 4
    SAME_BOOL = 5
    OTHER_BOOL = 6
    SELECT_BOOL = 7
    SAME_INT = 8
    OTHER_INT = 9
    LESS_INT = 10
    LESS_EQUAL_INT = 11
    SAME_DOUBLE = 12
    OTHER_DOUBLE = 13
    LESS_DOUBLE = 14
    LESS_EQUAL_DOUBLE = 15
    ADD_INT = 16
    SUBTRACT_INT = 17
    MULTIPLY_INT = 18
    NEGATE_INT = 19
    MIN_INT = 20
    MAX_INT = 21
    SELECT_INT = 22
    ADD_CHECKED = 23
    SUBTRACT_CHECKED = 24
    MULTIPLY_CHECKED = 25
    NEGATE_CHECKED = 26
    MODULO = 27
    POWER_INT = 28
    FLOOR = 29
    CEIL = 30
    ROUND = 31
    TO_DOUBLE = 32
    ADD_DOUBLE = 33
    SUBTRACT_DOUBLE = 34
    MULTIPLY_DOUBLE = 35
    DIVIDE = 36
    NEGATE_DOUBLE = 37
    MIN_DOUBLE = 38
    MAX_DOUBLE = 39
    POWER_DOUBLE = 40
    LOGARITHM = 41
    SELECT_DOUBLE = 42
    KEEP_MASK = 43


_CHECKED = {
    BinaryOperator.PLUS: (Op.ADD_INT, Op.ADD_CHECKED),
    BinaryOperator.MINUS: (Op.SUBTRACT_INT, Op.SUBTRACT_CHECKED),
    BinaryOperator.TIMES: (Op.MULTIPLY_INT, Op.MULTIPLY_CHECKED),
}
_OF_DOUBLES = {
    BinaryOperator.PLUS: Op.ADD_DOUBLE,
    BinaryOperator.MINUS: Op.SUBTRACT_DOUBLE,
    BinaryOperator.TIMES: Op.MULTIPLY_DOUBLE,
    BinaryOperator.DIVIDE: Op.DIVIDE,
}
_COMPARED = {
    # Whether operands change places; the operations on integers and on doubles.
    BinaryOperator.LESS: (False, Op.LESS_INT, Op.LESS_DOUBLE),
    BinaryOperator.LESS_EQUAL: (False, Op.LESS_EQUAL_INT, Op.LESS_EQUAL_DOUBLE),
    BinaryOperator.GREATER: (True, Op.LESS_INT, Op.LESS_DOUBLE),
    BinaryOperator.GREATER_EQUAL: (True, Op.LESS_EQUAL_INT, Op.LESS_EQUAL_DOUBLE),
    BinaryOperator.EQUAL: (False, Op.SAME_INT, Op.SAME_DOUBLE),
    BinaryOperator.NOT_EQUAL: (False, Op.OTHER_INT, Op.OTHER_DOUBLE),
}
_SELECT = {
    Type.BOOL: Op.SELECT_BOOL,
    Type.INT: Op.SELECT_INT,
    Type.DOUBLE: Op.SELECT_DOUBLE,
}
_ROUNDED = {Function.FLOOR: Op.FLOOR, Function.CEIL: Op.CEIL, Function.ROUND: Op.ROUND}


@dataclass(frozen=True)
class Section:
    """Some instructions of a code: from `begin` up to, and without, `end`."""

    begin: int
    end: int


@dataclass(frozen=True)
class _Node:
    """An operation on nodes before it; a constant has no operation."""

    op: Op | None
    operands: tuple[int, ...]
    value: bool | int | float | None = None
    variable: int = 0


@dataclass
class Graph:
    """Expressions over the same states, equal subexpressions shared.

    Parameters
    ----------
    variables
        With their ranges.
    """

    variables: Sequence[VariableDeclaration]
    nodes: list[_Node] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)

    def add(self, expression: Expression, condition: int | None = None) -> int:
        """Return the node of an expression.

        Parameters
        ----------
        expression
            Over the variables.
        condition
            The node that says for which states the value is looked at; None for all.
        """
        match expression:
            case Literal(value=value):
                return self._constant(value)
            case Variable(index=index, type=kind):
                op = Op.LOAD_BOOL if kind is Type.BOOL else Op.LOAD_INT
                return self._node(_Node(op, (), variable=index))
            case Unary(operator=UnaryOperator.NOT, operand=operand):
                return self._not(self.add(operand, condition))
            case Unary(operand=operand):
                inner = self.add(operand, condition)
                if expression.type is Type.DOUBLE:
                    return self._apply(Op.NEGATE_DOUBLE, inner)
                if self._fails(expression):
                    return self._failing(Op.NEGATE_CHECKED, condition, inner)
                return self._apply(Op.NEGATE_INT, inner)
            case Conditional():
                return self._conditional(expression, condition)
            case Call():
                return self._call(expression, condition)
            case Binary():
                return self._binary(expression, condition)

    def real(self, expression: Expression, condition: int | None = None) -> int:
        """Return the node of a number as a double; see `add`."""
        if isinstance(expression, Literal):
            return self._constant(float(expression.value))
        inner = self.add(expression, condition)
        return inner if expression.type is Type.DOUBLE else self._apply(Op.TO_DOUBLE, inner)

    def is_positive(self, node: int) -> int:
        """Return the node that says where a double is above 0."""
        return self._apply(Op.LESS_DOUBLE, self._constant(0.0), node)

    def constant_of(self, node: int) -> bool | int | float | None:
        """Return the value of a node that is a constant, or None."""
        return self.nodes[node].value

    def _fails(self, expression: Expression) -> bool:
        return range_of(expression, self.variables).can_fail

    def _node(self, node: _Node) -> int:
        value = node.value
        bits = struct.pack("d", value) if isinstance(value, float) else value
        key = (node.op, node.operands, type(value), bits, node.variable)
        found = self._known.setdefault(key, len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(node)
        return found

    def _constant(self, value: bool | int | float) -> int:
        return self._node(_Node(None, (), value))

    def _apply(self, op: Op, *operands: int) -> int:
        return self._node(_Node(op, operands))

    def _failing(self, op: Op, condition: int | None, *operands: int) -> int:
        return self._node(_Node(op, operands if condition is None else (*operands, condition)))

    def _not(self, node: int) -> int:
        known = self.nodes[node]
        if known.op is Op.NOT:
            return known.operands[0]
        return self._apply(Op.NOT, node)

    def _both(self, condition: int | None, other: int) -> int:
        return other if condition is None else self._apply(Op.AND, condition, other)

    def _conditional(self, expression: Conditional, condition: int | None) -> int:
        chosen = self.add(expression.condition, condition)
        then_where = otherwise_where = condition
        if self._fails(expression.then):
            then_where = self._both(condition, chosen)
        if self._fails(expression.otherwise):
            otherwise_where = self._both(condition, self._not(chosen))
        write = self.real if expression.type is Type.DOUBLE else self.add
        then = write(expression.then, then_where)
        otherwise = write(expression.otherwise, otherwise_where)
        return self._apply(_SELECT[expression.type], chosen, then, otherwise)

    def _binary(self, expression: Binary, condition: int | None) -> int:
        operator, left, right = expression.operator, expression.left, expression.right
        if operator in (BinaryOperator.AND, BinaryOperator.OR, BinaryOperator.IMPLIES):
            return self._connective(expression, condition)
        doubles = Type.DOUBLE in (left.type, right.type)
        if doubles or operator is BinaryOperator.DIVIDE:
            first, second = self.real(left, condition), self.real(right, condition)
        else:
            first, second = self.add(left, condition), self.add(right, condition)
        if left.type is Type.BOOL and operator in (*EQUALITIES, BinaryOperator.IFF):
            same = operator is not BinaryOperator.NOT_EQUAL
            return self._apply(Op.SAME_BOOL if same else Op.OTHER_BOOL, first, second)
        if operator in _COMPARED:
            swapped, of_ints, of_doubles = _COMPARED[operator]
            pair = (second, first) if swapped else (first, second)
            return self._apply(of_doubles if doubles else of_ints, *pair)
        if expression.type is Type.DOUBLE:
            return self._apply(_OF_DOUBLES[operator], first, second)
        unchecked, checked = _CHECKED[operator]
        if self._fails(expression):
            return self._failing(checked, condition, first, second)
        return self._apply(unchecked, first, second)

    def _connective(self, expression: Binary, condition: int | None) -> int:
        operator = expression.operator
        first = self.add(expression.left, condition)
        where = condition
        if self._fails(expression.right):
            open_ = self._not(first) if operator is BinaryOperator.OR else first
            where = self._both(condition, open_)
        second = self.add(expression.right, where)
        if operator is BinaryOperator.AND:
            return self._apply(Op.AND, first, second)
        if operator is BinaryOperator.OR:
            return self._apply(Op.OR, first, second)
        return self._apply(Op.OR, self._not(first), second)

    def _call(self, expression: Call, condition: int | None) -> int:
        function, arguments = expression.function, expression.arguments
        if function in _ROUNDED:
            inner = self.real(arguments[0], condition)
            return self._failing(_ROUNDED[function], condition, inner)
        if function is Function.LOG:
            return self._apply(Op.LOGARITHM, *(self.real(x, condition) for x in arguments))
        if expression.type is Type.INT:
            values = [self.add(x, condition) for x in arguments]
            if function in (Function.MOD, Function.POW):
                op = Op.MODULO if function is Function.MOD else Op.POWER_INT
                return self._failing(op, condition, *values)
            op = Op.MIN_INT if function is Function.MIN else Op.MAX_INT
        else:
            values = [self.real(x, condition) for x in arguments]
            if function is Function.POW:
                return self._apply(Op.POWER_DOUBLE, *values)
            op = Op.MIN_DOUBLE if function is Function.MIN else Op.MAX_DOUBLE
        result = values[0]
        for value in values[1:]:
            result = self._apply(op, result, value)
        return result


class CodeWriter:
    """Writes sections of code, which share their constants.

    A register of a section is a number from 0; a constant has a negative one, ``-1 - i`` for the
    i-th, and is the same in all sections.
    """

    def __init__(self) -> None:
        self._instructions: list[tuple[int, ...]] = []
        self._constants: dict[tuple[type, bytes | int], int] = {}
        self.registers = 0
        """How many registers the section with the most of them has."""

    def section(
        self,
        graph: Graph,
        kept: Sequence[int],
        masks: Sequence[int] = (),
    ) -> tuple[Section, list[int]]:
        """Write the instructions of a graph.

        Parameters
        ----------
        graph
            Expressions.
        kept
            The nodes whose values are read when the section has run.
        masks
            Nodes of Booleans that are kept as masks, the i-th as mask i.

        Returns
        -------
        The section, and the register of each node kept.
        """
        wanted = _needed(graph, (*kept, *masks))
        last = {node: place for place, node in enumerate(wanted)}
        for place, node in enumerate(wanted):
            for operand in graph.nodes[node].operands:
                last[operand] = place
        for node in kept:
            last[node] = len(wanted)
        mask_of: dict[int, list[int]] = {}
        for number, node in enumerate(masks):
            mask_of.setdefault(node, []).append(number)
        begin = len(self._instructions)
        registers: dict[int, int] = {}
        free: list[int] = []
        used = 0
        for place, node in enumerate(wanted):
            entry = graph.nodes[node]
            if entry.op is None:
                registers[node] = self._constant(entry.value)
            else:
                operands = [registers[operand] for operand in entry.operands]
                dying = {x for x in entry.operands if last[x] == place and registers[x] >= 0}
                # Not into a register of its own operands, which loops over states may overlap.
                if not free:
                    free.append(used)
                    used += 1
                registers[node] = free.pop()
                free += sorted((registers[x] for x in dying), reverse=True)
                self._write(entry, registers[node], operands)
            for number in mask_of.get(node, ()):
                self._instructions.append(
                    (Op.KEEP_MASK, number, registers[node], NO_REGISTER, NO_REGISTER)
                )
            if last[node] == place and registers[node] >= 0:
                free.append(registers[node])
        self.registers = max(self.registers, used)
        return Section(begin, len(self._instructions)), [registers[node] for node in kept]

    def _write(self, entry: _Node, register: int, operands: list[int]) -> None:
        assert entry.op is not None
        if entry.op in (Op.LOAD_BOOL, Op.LOAD_INT):
            operands = [entry.variable]
        if entry.op in _ARITY:
            operands = _condition_last(entry.op, operands)
        padded = [*operands, *[NO_REGISTER] * (3 - len(operands))]
        self._instructions.append((entry.op, register, *padded))

    def _constant(self, value: bool | int | float | None) -> int:
        assert value is not None
        bits = struct.pack("d", value) if isinstance(value, float) else int(value)
        return -1 - self._constants.setdefault((type(value), bits), len(self._constants))

    def instructions(self) -> NDArray[np.int32]:
        """Return the code, shape (instructions, 5): operation, result, three operands."""
        return np.array(self._instructions, dtype=np.int32).reshape(-1, 5)

    def constants(self) -> tuple[NDArray[np.int32], FloatArray]:
        """Return the constants.

        Returns
        -------
        Their types, shape (constants,): 0 Boolean, 1 integer, 2 double; and their values.
        """
        kinds, values = [], []
        for kind, bits in self._constants:
            kinds.append((bool, int, float).index(kind))
            double = struct.unpack("d", bits)[0] if isinstance(bits, bytes) else float(bits)
            values.append(double)
        return np.array(kinds, dtype=np.int32), np.array(values, dtype=np.float64)


_ARITY = {
    **dict.fromkeys((Op.NEGATE_CHECKED, Op.FLOOR, Op.CEIL, Op.ROUND), 1),
    **dict.fromkeys(
        (Op.ADD_CHECKED, Op.SUBTRACT_CHECKED, Op.MULTIPLY_CHECKED, Op.MODULO, Op.POWER_INT), 2
    ),
}
"""Operands of what can fail, without the condition."""


def _condition_last(op: Op, operands: list[int]) -> list[int]:
    """Return three operands, the condition's register the third."""
    arity = _ARITY[op]
    condition = operands[arity] if len(operands) > arity else ALWAYS
    return [*operands[:arity], *[NO_REGISTER] * (2 - arity), condition]


def _needed(graph: Graph, roots: Sequence[int]) -> list[int]:
    """Return the nodes that some depend on, and these; operands come before what they are for."""
    waiting, met = list(roots), set(roots)
    while waiting:
        for operand in graph.nodes[waiting.pop()].operands:
            if operand not in met:
                met.add(operand)
                waiting.append(operand)
    return sorted(met)
