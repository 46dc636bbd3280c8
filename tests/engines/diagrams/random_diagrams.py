"""Diagrams and numberings of given functions and sets, and random ones with what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.diagrams.diagram import NO_STATES, TERMINAL, ZERO, Diagram, StateNumbering
from engines.model.csr import CsrMatrix


class DiagramBuilder:
    """Nodes of reduced diagrams: equal ones are one, and none has two equal children."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int, int, float]] = []
        self.known: dict[tuple[int, int, int, float], int] = {}
        assert self.terminal(0.0) == ZERO

    def _node(self, key: tuple[int, int, int, float]) -> int:
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(key)
        return self.known[key]

    def terminal(self, value: float) -> int:
        return self._node((TERMINAL, 0, 0, value))

    def test(self, variable: int, low: int, high: int) -> int:
        return low if low == high else self._node((variable, low, high, 0.0))

    def of_function(self, values: NDArray[np.float64], variables: Sequence[int]) -> int:
        """Return the root of a function given by all its values, shape (2,) * variables."""
        if values.ndim == 0:
            return self.terminal(float(values))
        low = self.of_function(values[0], variables[1:])
        high = self.of_function(values[1], variables[1:])
        return self.test(int(variables[0]), low, high)

    def diagram(self, root: int) -> Diagram:
        variables, low, high, values = zip(*self.nodes, strict=True)
        own = np.arange(len(self.nodes))
        ends = np.array(variables) == TERMINAL
        return Diagram(
            np.array(variables, dtype=np.int32),
            np.where(ends, own, low).astype(np.int32),
            np.where(ends, own, high).astype(np.int32),
            np.array(values),
            root,
        ).check()


def diagram_of(values: NDArray[np.float64], variables: Sequence[int]) -> Diagram:
    builder = DiagramBuilder()
    return builder.diagram(builder.of_function(values, variables))


def numbering_of(
    states: NDArray[np.bool_], rows: Sequence[int], columns: Sequence[int]
) -> StateNumbering:
    """Return the numbering of a set given by its indicator, shape (2,) * levels."""
    known: dict[tuple[int, int, int], int] = {}
    nodes: list[tuple[int, int, int, int]] = []

    def visit(part: NDArray[np.bool_]) -> int:
        if not part.any():
            return NO_STATES
        low, high = (NO_STATES, NO_STATES) if part.ndim == 0 else (visit(part[0]), visit(part[1]))
        key = (part.ndim, low, high)
        if key not in known:
            known[key] = len(nodes)
            low_count = int(part[0].sum()) if part.ndim else 0
            nodes.append((low, high, low_count, int(part.sum())))
        return known[key]

    root = visit(states)
    low, high, low_counts, counts = zip(*nodes, strict=True)
    return StateNumbering(
        np.array(low, dtype=np.int32),
        np.array(high, dtype=np.int32),
        np.array(low_counts, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        root,
        np.array(rows, dtype=np.int32),
        np.array(columns, dtype=np.int32),
    )


def as_diagram(matrix: CsrMatrix) -> tuple[Diagram, StateNumbering]:
    """Return a small square matrix as a diagram, its states numbered in binary."""
    size = matrix.num_rows
    levels = max((size - 1).bit_length(), 1)
    dense = np.zeros((2**levels, 2**levels))
    dense[matrix.row_of_entry(), matrix.columns] = matrix.values
    pairs = [axis for level in range(levels) for axis in (level, levels + level)]
    values = dense.reshape((2,) * (2 * levels)).transpose(pairs)
    variables = list(range(2 * levels))
    states = (np.arange(2**levels) < size).reshape((2,) * levels)
    return diagram_of(values, variables), numbering_of(states, variables[::2], variables[1::2])


@dataclass(frozen=True)
class RandomModel:
    """A random set of states and a random matrix for each choice, with their diagrams.

    `dense` has the shape (choices' assignments, states, states).
    """

    diagram: Diagram
    numbering: StateNumbering
    choice_variables: list[int]
    states: NDArray[np.bool_]
    dense: NDArray[np.float64]

    @property
    def num_states(self) -> int:
        return self.numbering.num_states


def random_model(
    seed: int, levels: int, choice_variables: int = 0, density: float = 0.3
) -> RandomModel:
    """Return a random model; some functions do not depend on some variables."""
    random = np.random.default_rng(seed)
    states = np.asarray(random.random((2,) * levels) < random.choice([0.3, 0.8, 1.0]))
    if not states.any():
        states[(0,) * levels] = True
    total = choice_variables + 2 * levels
    values = np.asarray(random.integers(1, 4, (2,) * total) / 4.0)
    values = np.where(random.random(values.shape) < density, values, 0.0)
    for axis in range(total):
        if random.random() < 0.25:
            values = np.repeat(values.take([0], axis=axis), 2, axis=axis)
    # Gaps between the variables, as PRISM leaves them, and the columns beside their rows.
    variables = np.sort(random.choice(3 * total + 1, total, replace=False))
    chosen, rest = variables[:choice_variables], variables[choice_variables:]
    numbering = numbering_of(states, rest[0::2], rest[1::2])
    return RandomModel(
        diagram_of(values, variables.tolist()),
        numbering,
        chosen.tolist(),
        states,
        dense_of(values, states, choice_variables),
    )


def dense_of(
    values: NDArray[np.float64], states: NDArray[np.bool_], choice_variables: int
) -> NDArray[np.float64]:
    """Return all entries between states, shape (assignments, states, states), by plain loops."""
    members = list(zip(*np.nonzero(states), strict=True)) if states.ndim else [()]
    dense = np.zeros((2**choice_variables, len(members), len(members)))
    for choice, assignment in enumerate(np.ndindex((2,) * choice_variables)):
        for row, source in enumerate(members):
            for column, target in enumerate(members):
                pairs = [bit for pair in zip(source, target, strict=True) for bit in pair]
                dense[choice, row, column] = values[(*assignment, *pairs)]
    return dense


def random_function(
    seed: int, model: RandomModel, choices: bool = False
) -> tuple[Diagram, NDArray[np.float64]]:
    """Return a function of a model's row variables, and its values, shape (states,).

    With `choices`, one of its choice variables as well, shape (assignments, states).
    """
    random = np.random.default_rng(seed)
    number = len(model.choice_variables) if choices else 0
    levels = model.states.ndim
    values = np.asarray(random.integers(-2, 4, (2,) * (number + levels)) / 2.0)
    for axis in range(values.ndim):
        if random.random() < 0.4:
            values = np.repeat(values.take([0], axis=axis), 2, axis=axis)
    variables = [*model.choice_variables[:number], *model.numbering.rows.tolist()]
    dense = values.reshape(2**number, -1)[:, model.states.ravel()]
    return diagram_of(values, variables), dense if choices else dense[0]
