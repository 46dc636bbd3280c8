"""A program as the compiled library explores it: byte code, and tables of commands.

`HostCode` and `HostProgram` are `PgCode` and `PgProgram` of src/explore_code.hpp and
src/explore_program.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_void_p
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import UnsupportedError
from engines.host.compiled.library import DOUBLES, NUMBERS, Structure
from engines.host.exploring.bytecode import CodeWriter, Graph
from engines.program.expressions import Expression, Type
from engines.program.faults import weights_in_order
from engines.program.order import Alternatives, alternatives
from engines.program.packing import Packing
from engines.program.program import Command, ModelKind, Program, Update
from engines.program.ranges import range_of

KINDS = {ModelKind.DTMC: 0, ModelKind.CTMC: 1, ModelKind.MDP: 2}
_TYPES = {Type.BOOL: 0, Type.INT: 1, Type.DOUBLE: 2}

NumberArray = NDArray[np.int32]


class HostCode(Structure):
    """`PgCode`."""

    _fields_ = (
        ("words", c_int32),
        ("registers", c_int32),
        ("constants", c_int32),
        ("fields", c_void_p),
        ("instructions", c_void_p),
        ("constant_kinds", c_void_p),
        ("constant_values", c_void_p),
    )

    @classmethod
    def of(cls, packing: Packing, writer: CodeWriter) -> HostCode:
        """Return code as the library reads it.

        Parameters
        ----------
        packing
            Of the states.
        writer
            That has written the code.
        """
        rows = [(field.word, field.shift, field.bits, field.low) for field in packing.fields]
        fields = _numbers(rows)
        instructions = np.ascontiguousarray(writer.instructions())
        kinds, values = writer.constants()
        pointers = [NUMBERS.pointer(x) for x in (fields, instructions, kinds)]
        made = cls(packing.words, writer.registers, len(kinds), *pointers, DOUBLES.pointer(values))
        made._kept = (fields, instructions, kinds, values)
        return made


class HostProgram(Structure):
    """`PgProgram`."""

    _TABLES = (
        *("commands", "update_starts", "weights", "assignment_starts", "assignments", "highs"),
        *("unit_actions", "factor_starts", "command_starts", "factor_commands"),
    )
    _fields_ = (
        ("code", HostCode),
        *((name, c_int32) for name in ("kind", "sums_checked", "guards_end")),
        *((name, c_int32) for name in ("masks", "most_factors", "units")),
        *((name, c_void_p) for name in _TABLES),
    )

    @classmethod
    def of(cls, program: Program, packing: Packing) -> HostProgram:
        """Return a program as the library explores it.

        Parameters
        ----------
        program
            The model.
        packing
            Of its states.

        Raises
        ------
        UnsupportedError
            If an expression is nested too deeply.
        """
        try:
            return _Tables(program).structure(packing)
        except RecursionError:
            raise UnsupportedError("an expression of the model is nested too deeply") from None


@dataclass(frozen=True)
class HostExpression:
    """An expression as the library evaluates it.

    Parameters
    ----------
    code
        Its code, one section.
    end
        How many instructions there are.
    register, kind
        Where its value is kept, and of which type: 0 Boolean, 1 integer, 2 double.
    """

    code: HostCode
    end: int
    register: int
    kind: int

    @classmethod
    def of(cls, expression: Expression, packing: Packing) -> HostExpression:
        """Return an expression over the variables of packed states.

        Parameters
        ----------
        expression
            The expression.
        packing
            Of the states.

        Raises
        ------
        UnsupportedError
            If it is nested too deeply.
        """
        graph, writer = Graph(packing.declarations), CodeWriter()
        try:
            section, (register,) = writer.section(graph, [graph.add(expression)])
        except RecursionError:
            raise UnsupportedError("an expression of the model is nested too deeply") from None
        code = HostCode.of(packing, writer)
        return cls(code, section.end, register, _TYPES[expression.type])


class _Tables:
    """Collects the rows of the tables, command by command."""

    def __init__(self, program: Program) -> None:
        self._program, self._writer = program, CodeWriter()
        self._commands: list[tuple[int, int, int, int]] = []
        self._update_counts: list[int] = []
        self._weights: list[tuple[int, int]] = []
        self._assignment_counts: list[int] = []
        self._assignments: list[tuple[int, int, int, int]] = []
        commands = [command for _, _, command in program.commands()]
        graph = Graph(program.variables)
        guards = [graph.add(command.guard) for command in commands]
        distinct = list(dict.fromkeys(guards))
        self._masks = len(distinct)
        self._guards, _ = self._writer.section(graph, [], distinct)
        for command, guard in zip(commands, guards, strict=True):
            self._add(command, distinct.index(guard))

    def _add(self, command: Command, mask: int) -> None:
        graph = Graph(self._program.variables)
        weights = [graph.real(update.weight) for update in command.updates]
        values = [_number(graph.constant_of(weight)) for weight in weights]
        checked = not weights_in_order(values, self._program.sums_checked)
        # An update that is never possible has no effect, unless it is an error itself.
        chosen = [i for i, value in enumerate(values) if checked or value != 0.0]
        updates = [command.updates[i] for i in chosen]
        nodes = [weights[i] for i in chosen]
        for update, node in zip(updates, nodes, strict=True):
            # What is assigned where the weight is 0 has no value that matters.
            possible = None if graph.constant_of(node) is not None else graph.is_positive(node)
            nodes = [*nodes, *(graph.add(x.value, possible) for x in update.assignments)]
        section, registers = self._writer.section(graph, nodes)
        self._commands.append((mask, section.begin, section.end, int(checked)))
        self._update_counts.append(len(updates))
        self._weights += [
            (register, int(values[i] is None or values[i] == 0.0))
            for i, register in zip(chosen, registers, strict=False)
        ]
        self._add_assignments(updates, registers[len(updates) :])

    def _add_assignments(self, updates: Sequence[Update], registers: list[int]) -> None:
        left = iter(registers)
        for update in updates:
            self._assignment_counts.append(len(update.assignments))
            for assignment in update.assignments:
                declared = self._program.variables[assignment.variable]
                found = range_of(assignment.value, self._program.variables)
                checked = declared.type is Type.INT and not found.within(
                    declared.low, declared.high
                )
                row = (assignment.variable, next(left), _TYPES[declared.type], int(checked))
                self._assignments.append(row)

    def structure(self, packing: Packing) -> HostProgram:
        """Return the program as the library reads it."""
        program, units = self._program, alternatives(self._program)
        tables: dict[str, Sequence[Any]] = {
            "commands": self._commands,
            "update_starts": _starts(self._update_counts),
            "weights": self._weights,
            "assignment_starts": _starts(self._assignment_counts),
            "assignments": self._assignments,
            "highs": [variable.high for variable in program.variables],
            **_unit_tables(units),
        }
        arrays = [_numbers(tables[name]) for name in HostProgram._TABLES]
        code = HostCode.of(packing, self._writer)
        made = HostProgram(
            code,
            KINDS[program.kind],
            int(program.sums_checked),
            self._guards.end,
            self._masks,
            max((len(unit.factors) for unit in units), default=1),
            len(units),
            *(NUMBERS.pointer(array) for array in arrays),
        )
        # In the structure lies a copy of the code, which does not keep its arrays.
        made._kept = (*arrays, code)
        return made


def _unit_tables(units: Sequence[Alternatives]) -> dict[str, list[int]]:
    factors = [factor for unit in units for factor in unit.factors]
    return {
        "unit_actions": [-1 if unit.action is None else unit.action for unit in units],
        "factor_starts": _starts([len(unit.factors) for unit in units]),
        "command_starts": _starts([len(factor) for factor in factors]),
        "factor_commands": [command for factor in factors for command in factor],
    }


def _number(value: bool | int | float | None) -> float | None:
    return None if value is None else float(value)


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *accumulate(counts)]


def _numbers(rows: Sequence[Any]) -> NumberArray:
    """Return rows as an array that is never empty."""
    return np.ascontiguousarray(np.array(rows if len(rows) else [0], dtype=np.int32))
