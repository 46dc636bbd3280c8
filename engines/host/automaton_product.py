"""The product of a model and a deterministic automaton, by the compiled library."""

from __future__ import annotations

from ctypes import POINTER, c_int64, c_void_p
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, IndexArray, index_dtype
from engines.errors import UnsupportedError
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    NUMBERS,
    Function,
    HostMatrix,
    Structure,
    of_type_or_none,
)
from engines.host.expansion.room import require_host_bytes
from engines.model.csr import CsrMatrix

Int32Array: TypeAlias = NDArray[np.int32]

TO_BE_MADE = -3
"""In the place of a step that nothing has asked for so far."""

UNNUMBERED = -1

ENTRIES_OF_A_CALL = 50_000_000
"""Entries that a call looks at before Python may answer an interrupt."""

_MISSING, _FULL = 1, 3
"""Why a search stops: for a step to be made, and for more nodes than numbers."""


class Steps(Protocol):
    """The steps of a deterministic automaton, made when they are asked for.

    Attributes
    ----------
    table
        Shape (automaton states, letters): the next state; a negative number where the automaton
        has decided, `TO_BE_MADE` where the step is still to be made.
    """

    table: Int32Array

    def make(self, state: int, letter: int) -> None:
        """Fill a step in; the table may be replaced by one of more states, the first ones kept."""


@dataclass(frozen=True)
class ProductNodes:
    """A product's nodes and rows.

    Parameters
    ----------
    states, automaton_states
        What each node is made of, shape (nodes,).
    matrix
        The rows, in the order of the model's. A node where the automaton has decided stays for
        ever.
    group_offsets
        Shape (nodes + 1,): where each node's rows start; None for a model with a row a state.
    model_rows
        Shape (rows,): the model's row that each comes from; for one that stays the number of
        these.
    """

    states: Int32Array
    automaton_states: Int32Array
    matrix: CsrMatrix
    group_offsets: IndexArray | None
    model_rows: NDArray[np.int64]


class _HostProduct(Structure):
    """`PgProduct` of src/automaton_product.cpp."""

    _fields_ = (
        ("matrix", HostMatrix),
        ("groups", c_void_p),
        ("states", c_int64),
        ("letters", c_void_p),
        ("width", c_int64),
        ("reads_ahead", c_int64),
        *(
            (name, c_void_p)
            for name in ("steps", "numbers", "node_states", "node_automaton_states")
        ),
        *((name, c_int64) for name in ("found", "expanded", "rows", "entries", "missing")),
    )


_SEARCH = Function("pg_product_search", c_int64, POINTER(_HostProduct), c_int64)
_ROWS = Function(
    *("pg_product_rows", None, POINTER(_HostProduct)),
    *(INDICES, INDICES, NUMBERS, DOUBLES, INDICES),
)


def automaton_product(
    matrix: CsrMatrix,
    group_offsets: IndexArray | None,
    letters: IndexArray,
    steps: Steps,
    first: tuple[IndexArray, IndexArray],
    *,
    reads_ahead: bool,
) -> ProductNodes:
    """Find the nodes that are reachable from given ones, breadth first, and their rows.

    Parameters
    ----------
    matrix, group_offsets
        The model: its rows, and where each state's start, shape (states + 1,); None for a row a
        state.
    letters
        The number of the letter of each state, shape (states,).
    steps
        The automaton.
    first
        States and automaton states of the nodes to begin at, all different; their numbers come
        first.
    reads_ahead
        Whether the automaton, as the model goes from a state to the next, reads the letter of the
        next one; else of the one that it leaves.

    Raises
    ------
    DeviceMemoryError
        If the host's memory does not suffice.
    UnsupportedError
        For more nodes than 32-bit numbers have, and whatever `Steps.make` raises.
    """
    return _Search(matrix, group_offsets, letters, steps, reads_ahead).run(first)


class _Search:
    def __init__(
        self,
        matrix: CsrMatrix,
        group_offsets: IndexArray | None,
        letters: IndexArray,
        steps: Steps,
        reads_ahead: bool,
    ) -> None:
        self._steps, self._num_states = steps, len(letters)
        self._letters = letters.astype(np.int32, copy=False)
        # Its arrays live as long as it does.
        self._matrix = host = HostMatrix.of(matrix)
        self._groups = of_type_or_none(group_offsets, bool(host.wide_offsets))
        self._numbers = np.empty((0, self._num_states), dtype=np.int32)
        self._nodes = np.empty((2, 0), dtype=np.int32)
        self._product = _HostProduct(
            matrix=host,
            groups=None if self._groups is None else self._groups.ctypes.data,
            states=self._num_states,
            letters=NUMBERS.pointer(self._letters),
            reads_ahead=reads_ahead,
        )
        self._follow_the_table()

    def run(self, first: tuple[IndexArray, IndexArray]) -> ProductNodes:
        product, begun = self._product, len(first[0])
        self._nodes[0, :begun], self._nodes[1, :begun] = first
        self._numbers[first[1], first[0]] = np.arange(begun)
        product.found = begun
        while reason := _SEARCH(product, ENTRIES_OF_A_CALL):
            if reason == _FULL:
                raise UnsupportedError(f"a product of more than {INT32_MAX} nodes")
            if reason == _MISSING:
                self._steps.make(*divmod(int(product.missing), int(product.width)))
                self._follow_the_table()
        return self._result()

    def _follow_the_table(self) -> None:
        """Make room for as many states of the automaton as its table has."""
        table, product = np.ascontiguousarray(self._steps.table), self._product
        more, found = len(table) - len(self._numbers), int(product.found)
        self._table = table
        product.steps, product.width = NUMBERS.pointer(table), table.shape[1]
        if more:
            # Of the room for nodes only what is found is ever touched.
            _require(4 * table.shape[0] * self._num_states)
            self._numbers = np.pad(self._numbers, ((0, more), (0, 0)), constant_values=UNNUMBERED)
            nodes = np.empty((2, min(self._numbers.size, INT32_MAX)), dtype=np.int32)
            nodes[:, :found] = self._nodes[:, :found]
            self._nodes = nodes
            product.numbers = NUMBERS.pointer(self._numbers)
            product.node_states = NUMBERS.pointer(nodes[0])
            product.node_automaton_states = NUMBERS.pointer(nodes[1])

    def _result(self) -> ProductNodes:
        product = self._product
        nodes, rows, entries = int(product.found), int(product.rows), int(product.entries)
        _require(12 * entries + 16 * rows + 16 * nodes)
        groups, offsets = np.empty(nodes + 1, np.int64), np.empty(rows + 1, np.int64)
        columns, values = np.empty(entries, np.int32), np.empty(entries)
        model_rows = np.empty(rows, np.int64)
        _ROWS(product, groups, offsets, columns, values, model_rows)
        states, automaton_states = self._nodes[:, :nodes].copy()
        return ProductNodes(
            states,
            automaton_states,
            CsrMatrix(offsets.astype(index_dtype(entries), copy=False), columns, values, nodes),
            None if self._groups is None else groups.astype(index_dtype(rows), copy=False),
            model_rows,
        )


def _require(needed: int) -> None:
    require_host_bytes(needed, "the product with an automaton")
