"""What a diagram's matrix consists of, level by level, before anything of its size is allocated.

Each block of the matrix is known once (`engines.diagrams.layers`), with the number of paths that
lead to it and the number of entries below it: bytes and entries of every level follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, IndexArray
from engines.diagrams.diagram import TERMINAL, ZERO, Diagram, StateNumbering
from engines.diagrams.layers import (
    NO_BLOCK,
    Layer,
    check_counts,
    check_order,
    check_variables,
    count_strips,
    descend,
    distinct,
    with_entries,
)
from engines.errors import UnsupportedError

WIDEST_BLOCK = INT32_MAX + 1
"""Columns of a block: the largest local one must fit into 32 bits."""

Look = Callable[[int], None]


@dataclass(frozen=True)
class Survey:
    """All levels of a diagram's matrix, in memory proportional to its distinct triples.

    Parameters
    ----------
    diagram
        The function.
    numbering
        The states.
    layers
        One for each level, and one below the last.
    roots
        Shape (choices,), int32: the triple of the first layer that each choice begins with, or
        `NO_BLOCK`.
    with_choices
        Whether the roots are an MDP's choices.
    strips
        Shape (levels + 1,), int64: number of strips if the blocks lie at each level.
    """

    diagram: Diagram
    numbering: StateNumbering
    layers: tuple[Layer, ...]
    roots: NDArray[np.int32]
    with_choices: bool
    strips: NDArray[np.int64]

    @property
    def num_levels(self) -> int:
        """Number of levels."""
        return len(self.layers) - 1

    @property
    def num_entries(self) -> int:
        """Number of entries of the whole matrix, over all choices."""
        begun = self.roots[self.roots != NO_BLOCK]
        return int(self.layers[0].entries[begun].sum())

    def jobs(self) -> NDArray[np.int64]:
        """Return how many jobs there are if the blocks lie at each level, shape (levels + 1,)."""
        return np.array([paths.sum() for paths in self._paths_from_roots], dtype=np.int64)

    @cached_property
    def _paths_from_roots(self) -> list[NDArray[np.int64]]:
        begun = self.roots[self.roots != NO_BLOCK]
        return self.paths(0, np.bincount(begun, minlength=len(self.layers[0].nodes)))

    def paths(self, level: int, paths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return how many paths lead to each triple, of one level and of all below it.

        Parameters
        ----------
        level
            Where the paths begin.
        paths
            Shape (triples of the level,): how many paths begin at each.
        """
        found = [paths.astype(np.int64, copy=False)]
        for layer, below in zip(self.layers[level:], self.layers[level + 1 :], strict=False):
            counts = np.zeros(len(below.nodes), dtype=np.int64)
            for children in layer.children.reshape(4, -1):
                present = children != NO_BLOCK
                np.add.at(counts, children[present], found[-1][present])
            found.append(counts)
        return found

    def block_entries(self) -> NDArray[np.int64]:
        """Return the number of entries of the blocks at each level, shape (levels + 1,)."""
        return np.array([layer.entries.sum() for layer in self.layers], dtype=np.int64)

    def local_rows(self) -> NDArray[np.int64]:
        """Return the number of rows of the blocks at each level, shape (levels + 1,)."""
        counts = self.numbering.counts
        return np.array([counts[layer.rows].sum() for layer in self.layers], dtype=np.int64)

    def nbytes(self) -> NDArray[np.int64]:
        """Return the bytes of the hybrid matrix with blocks at each level, shape (levels + 1,).

        A strip takes 16 bytes, a job 12, its choice 4, an entry of a block 12, a local row 8, and a
        block 8.
        """
        blocks = np.array([len(layer.nodes) for layer in self.layers], dtype=np.int64)
        job_bytes = 12 + (4 if self.with_choices else 0)
        outside = 16 * (self.strips + 1) + job_bytes * self.jobs()
        inside = 12 * self.block_entries() + 8 * (self.local_rows() + 1)
        sizes: NDArray[np.int64] = outside + inside + 8 * (blocks + 1)
        return sizes

    def best_level(self, rows_per_job: Sequence[int] = (32, 8, 1)) -> int:
        """Return the level with the fewest bytes of those where jobs have rows enough on average.

        Parameters
        ----------
        rows_per_job
            Least rows a job, in the order of trying; the next is taken where the levels that have
            so many need more than four times the fewest bytes.
        """
        sizes = self.nbytes().astype(np.float64)
        sizes[[self._widest(layer) > WIDEST_BLOCK for layer in self.layers]] = np.inf
        rows = self._rows_per_job()
        for least in rows_per_job:
            allowed = np.where(rows >= least, sizes, np.inf)
            if allowed.min() <= 4 * sizes.min():
                return int(allowed.argmin())
        return int(sizes.argmin())

    def _rows_per_job(self) -> NDArray[np.float64]:
        counts = self.numbering.counts
        rows = [
            (paths * counts[layer.rows]).sum() / max(1, paths.sum())
            for paths, layer in zip(self._paths_from_roots, self.layers, strict=True)
        ]
        return np.array(rows, dtype=np.float64)

    def check_level(self, level: int) -> None:
        """Raise unless blocks can lie at a level.

        Raises
        ------
        ValueError
            There is no such level.
        UnsupportedError
            The columns of a block would not fit into 32 bits.
        """
        if not 0 <= level <= self.num_levels:
            raise ValueError(f"level {level}: the state has {self.num_levels} variables")
        widest = self._widest(self.layers[level])
        if widest > WIDEST_BLOCK:
            raise UnsupportedError(
                f"blocks at level {level} of a diagram have {widest} columns, more than 32 bits "
                "hold; choose a deeper level"
            )

    def _widest(self, layer: Layer) -> int:
        return int(self.numbering.counts[layer.columns].max(initial=0))


def survey(
    diagram: Diagram,
    numbering: StateNumbering,
    roots: Sequence[int] | IndexArray | None = None,
    *,
    look: Look | None = None,
) -> Survey:
    """Survey a matrix.

    Parameters
    ----------
    diagram
        A function of row and column variables.
    numbering
        The states.
    roots
        Nodes of the diagram that an MDP's choices begin with; None for the diagram's own root.
    look
        Called after each level with the number of distinct triples so far; what it raises ends the
        survey.

    Raises
    ------
    InvalidModelError
        The function depends on a variable that is neither of a row nor of a column.
    UnsupportedError
        The variables of one state variable do not stand next to each other in the diagram.
    """
    check_order(numbering)
    check_counts(numbering)
    begins = np.array([diagram.root] if roots is None else roots, dtype=np.int64)
    rooted = np.full(len(begins), numbering.root)
    if numbering.num_states == 0:
        begins = np.full(len(begins), ZERO, dtype=np.int64)
    triples, first = distinct(begins, rooted, rooted)
    layers = [triples]
    links: list[NDArray[np.int32]] = []
    triples_so_far = len(triples[0])
    for level in range(numbering.num_levels):
        below, children = descend(diagram, numbering, level, layers[-1])
        layers.append(below)
        links.append(children)
        triples_so_far += len(below[0])
        if look is not None:
            look(triples_so_far)
    check_variables(diagram, layers[-1][0], TERMINAL)
    kept, first = with_entries(layers, links, first)
    strips = count_strips(numbering)
    return Survey(diagram, numbering, kept, first, roots is not None, strips)
