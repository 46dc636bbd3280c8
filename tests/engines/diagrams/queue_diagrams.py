"""Tandem queues as diagrams, of any size, put together from shifts, identities and sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engines.diagrams.diagram import NO_STATES, TERMINAL, ZERO, Diagram, StateNumbering
from engines.model.csr import CsrMatrix
from tests.engines.diagrams.random_diagrams import DiagramBuilder

STAY, RISE, FALL = 0, 1, -1


class QueueDiagrams:
    """Queues of a capacity each, the bits of each number from the highest on, rows before columns.

    `rate_of` is a factor of each transition by the length of the first queue.
    """

    def __init__(
        self, queues: int, capacity: int, rate_of: Callable[[int], float] | None = None
    ) -> None:
        self.queues, self.capacity = queues, capacity
        self.bits = capacity.bit_length()
        self.builder = DiagramBuilder()
        self.rate_of = rate_of

    def moves(self) -> list[tuple[tuple[int, ...], float]]:
        """Return how each transition changes the queues, and its rate."""
        changes = np.zeros((self.queues + 1, self.queues), dtype=int)
        for queue in range(self.queues):
            changes[queue, queue] = RISE
            changes[queue + 1, queue] = FALL
        return [(tuple(change), 1.0 + 0.5 * k) for k, change in enumerate(changes.tolist())]

    def diagram(self) -> Diagram:
        total = ZERO
        for change, rate in self.moves():
            node = self.builder.terminal(rate)
            for queue in reversed(range(self.queues)):
                node = self._shift(queue, change[queue], node)
            total = self._apply(np.add, total, node, {})
        if self.rate_of is not None:
            rates = [self.rate_of(length) for length in range(2**self.bits)]
            total = self._apply(np.multiply, total, self._by_length(rates, 0), {})
        return self.builder.diagram(total)

    def _variable(self, queue: int, bit: int) -> int:
        return 2 * (queue * self.bits + bit)

    def _shift(self, queue: int, change: int, below: int) -> int:
        known: dict[tuple[int, int], int] = {}

        def visit(bit: int, carry: int) -> int:
            # The carry that the lower bits must hand up: a bit changes where it arrives.
            if bit == self.bits:
                return below if carry == abs(change) else ZERO
            if (bit, carry) not in known:
                row, column = self._variable(queue, bit), self._variable(queue, bit) + 1
                same, changed = visit(bit + 1, 0), visit(bit + 1, 1)
                kept = ZERO if carry else same
                up, down = (ZERO, changed) if carry else (changed, ZERO)
                if change == FALL:
                    up, down = down, up
                known[bit, carry] = self.builder.test(
                    row,
                    self.builder.test(column, kept, up),
                    self.builder.test(column, down, kept),
                )
            return known[bit, carry]

        return visit(0, 0)

    def _by_length(self, rates: Sequence[float], bit: int) -> int:
        if len(rates) == 1:
            return self.builder.terminal(rates[0])
        half = len(rates) // 2
        low, high = self._by_length(rates[:half], bit + 1), self._by_length(rates[half:], bit + 1)
        return self.builder.test(self._variable(0, bit), low, high)

    def _apply(
        self,
        combine: Callable[[float, float], float],
        left: int,
        right: int,
        known: dict[tuple[int, int], int],
    ) -> int:
        if (left, right) not in known:
            first, second = self.builder.nodes[left], self.builder.nodes[right]
            variable = min(first[0], second[0])
            if variable == TERMINAL:
                known[left, right] = self.builder.terminal(float(combine(first[3], second[3])))
            else:
                lower, upper = (
                    self._apply(
                        combine,
                        first[bit] if first[0] == variable else left,
                        second[bit] if second[0] == variable else right,
                        known,
                    )
                    for bit in (1, 2)
                )
                known[left, right] = self.builder.test(variable, lower, upper)
        return known[left, right]

    def numbering(self) -> StateNumbering:
        nodes: list[tuple[int, int, int, int]] = [(NO_STATES, NO_STATES, 0, 1)]
        below = 0
        for _ in range(self.queues):
            below = self._number(nodes, below)
        low, high, low_counts, counts = zip(*nodes, strict=True)
        rows = np.arange(0, 2 * self.queues * self.bits, 2, dtype=np.int32)
        return StateNumbering(
            np.array(low, dtype=np.int32),
            np.array(high, dtype=np.int32),
            np.array(low_counts, dtype=np.int64),
            np.array(counts, dtype=np.int64),
            below,
            rows,
            rows + 1,
        )

    def _number(self, nodes: list[tuple[int, int, int, int]], below: int) -> int:
        """Add the nodes of a queue above others; return the first."""
        free = tight = below
        for bit in reversed(range(self.bits)):
            size = nodes[free][3]
            if (self.capacity >> (self.bits - 1 - bit)) & 1:
                node = (free, tight, size, size + nodes[tight][3])
            else:
                node = (tight, NO_STATES, nodes[tight][3], nodes[tight][3])
            nodes.append((free, free, size, 2 * size))
            nodes.append(node)
            free, tight = len(nodes) - 2, len(nodes) - 1
        return tight

    def matrix(self) -> CsrMatrix:
        """Return the matrix from the numbers of the states, without diagrams."""
        lengths = np.indices((self.capacity + 1,) * self.queues, dtype=np.int32)
        lengths = lengths.reshape(self.queues, -1)
        states = np.arange(lengths.shape[1])
        places = (self.capacity + 1) ** np.arange(self.queues)[::-1]
        rows, columns, values = [], [], []
        for change, rate in self.moves():
            after = lengths + np.array(change, dtype=np.int32)[:, None]
            allowed = ((after >= 0) & (after <= self.capacity)).all(axis=0)
            rows.append(states[allowed])
            columns.append(states[allowed] + int(np.dot(change, places)))
            factor = np.ones(self.capacity + 1)
            if self.rate_of is not None:
                factor = np.array([self.rate_of(k) for k in range(self.capacity + 1)])
            values.append(rate * factor[lengths[0, allowed]])
        row, column, value = (np.concatenate(part) for part in (rows, columns, values))
        order = np.lexsort((column, row))
        offsets = np.zeros(len(states) + 1, dtype=np.int32)
        np.cumsum(np.bincount(row, minlength=len(states)), out=offsets[1:])
        return CsrMatrix(offsets, column[order], value[order], len(states))
