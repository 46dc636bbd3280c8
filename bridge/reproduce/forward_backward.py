"""The paper of 2014's own algorithm: forward and backward searches with trimming, in its variants.

A. Wijs, J.-P. Katoen, D. Bošnački, GPU-based graph decomposition into strongly connected and
maximal end components, CAV 2014, section 3.3. Regions, marks and pivots lie in arrays of their own,
where the paper packs them into the highest bits of its offsets and results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.reproduce.textbook import numbered, rows_into
from engines.model.explicit import ExplicitModel

WARP = 32


@dataclass(frozen=True)
class Variant:
    """How the algorithm is run.

    Parameters
    ----------
    iterations
        Search iterations a launch, with a cache in shared memory; 0 for one without.
    interval
        Rows up to this out-degree are interleaved.
    hybrid
        Whether one kernel makes a step of both searches in one scan.
    transposed
        Whether the backward search has a transposed graph.
    """

    iterations: int
    interval: int
    hybrid: bool = True
    transposed: bool = True


VARIANTS = {
    "F0,1": Variant(0, 1),
    "F0,7": Variant(0, 7),
    "F3,1": Variant(3, 1),
    "F3,7": Variant(3, 7),
    "F0,1-nh": Variant(0, 1, hybrid=False),
    "F0,1 without transposed graph": Variant(0, 1, hybrid=False, transposed=False),
}
"""By the names that the paper's Table 1 gives them."""


class Kernels(Protocol):
    """Where the algorithm runs."""

    def array(self, values: NDArray[Any]) -> Any:
        """Return a copy of an array there."""

    def host(self, array: Any) -> NDArray[Any]:
        """Return an array from there."""

    def launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Run a kernel of the module `forward_backward`."""


class OnGpu:
    """The current GPU.

    Parameters
    ----------
    wide
        Whether offsets need 64 bits.
    """

    def __init__(self, wide: bool) -> None:
        from engines.cuda.modules import Launcher

        self._launcher = Launcher("long long" if wide else "int")

    def array(self, values: NDArray[Any]) -> Any:
        """Return a copy of an array there."""
        from engines.cuda.transfer import to_device

        return to_device(values, values.dtype)

    def host(self, array: Any) -> NDArray[Any]:
        """Return an array from there."""
        found: NDArray[Any] = array.get()
        return found

    def launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Run a kernel of the module `forward_backward`."""
        from engines.cuda.driver import cupy

        given = (cupy().int32(item) if isinstance(item, int) else item for item in arguments)
        self._launcher.launch(name, threads, *given, module="forward_backward")


@dataclass(frozen=True)
class Edges:
    """A graph's edges as the kernels read them.

    Parameters
    ----------
    offsets
        Of the rows that are not interleaved, int32 or int64.
    columns
        Targets, −1 for none, int32.
    segments, interval
        How many times 32 rows are interleaved, and how many entries each of them has.
    """

    offsets: NDArray[Any]
    columns: NDArray[np.int32]
    segments: int = 0
    interval: int = 1


def edges_of(model: ExplicitModel) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the edges of a model's states, of all choices: offsets and targets."""
    matrix = model.matrix
    groups = model.row_group_offsets
    offsets = matrix.row_offsets if groups is None else matrix.row_offsets[groups]
    return offsets.astype(np.int64), matrix.columns.astype(np.int32)


def interleaved(
    offsets: NDArray[np.int64], columns: NDArray[np.int32], interval: int
) -> tuple[Edges, NDArray[np.int32]]:
    """Renumber states so that those of few edges come first, and interleave the rows of these.

    Parameters
    ----------
    offsets, columns
        The edges.
    interval
        Rows of at most so many edges are interleaved, 32 at a time.

    Returns
    -------
    The edges, and the state that was given each number.
    """
    degrees = np.diff(offsets)
    order = np.argsort(degrees > interval, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    segments = int(np.count_nonzero(degrees <= interval)) // WARP
    head, tail = order[: segments * WARP], order[segments * WARP :]
    front = np.full((segments, interval, WARP), -1, dtype=np.int32)
    of_head = degrees[head].reshape(segments, WARP)
    starts = offsets[head].reshape(segments, WARP)
    for entry in range(interval):
        segment, lane = np.nonzero(of_head > entry)
        front[segment, entry, lane] = place[columns[starts[segment, lane] + entry]]
    lengths = degrees[tail]
    ends = np.cumsum(lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    back = place[columns[np.repeat(offsets[tail], lengths) + within]]
    rest = np.concatenate(([0], ends)) + front.size
    whole = np.concatenate((front.reshape(-1), back)).astype(np.int32)
    return Edges(rest, whole, segments, interval), order


def turned(
    offsets: NDArray[np.int64], columns: NDArray[np.int32], order: NDArray[np.int32]
) -> Edges:
    """Return the transposed graph, its states renumbered and no row of it interleaved.

    Parameters
    ----------
    offsets, columns
        The edges.
    order
        The state that was given each number.
    """
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    firsts, into = rows_into(offsets, columns, len(order))
    lengths = np.diff(firsts)[order]
    ends = np.concatenate(([0], np.cumsum(lengths)))
    within = np.arange(len(into)) - np.repeat(ends[:-1], lengths)
    return Edges(ends, place[into[np.repeat(firsts[order], lengths) + within]])


class ForwardBackward:
    """A graph that is ready to be decomposed.

    Parameters
    ----------
    model
        The model.
    variant
        How.
    kernels
        Where; None for the current GPU.
    """

    def __init__(
        self, model: ExplicitModel, variant: Variant, kernels: Kernels | None = None
    ) -> None:
        self._variant, self._states = variant, model.num_states
        graph = edges_of(model)
        edges, self._order = interleaved(*graph, variant.interval)
        into = turned(*graph, self._order) if variant.transposed else None
        wide = len(edges.columns) > np.iinfo(np.int32).max
        self._kernels = kernels or OnGpu(wide)
        self._kind = np.int64 if wide else np.int32
        self._ahead = self._placed(edges)
        self._into = None if into is None else self._placed(into)

    def _placed(self, edges: Edges) -> tuple[Any, ...]:
        offsets = self._kernels.array(edges.offsets.astype(self._kind))
        columns = self._kernels.array(edges.columns)
        return offsets, columns, edges.segments, edges.interval

    def _launch(self, name: str, *arguments: Any) -> None:
        most_threads = 1 << 20  # With more states a thread looks at several.
        self._kernels.launch(name, min(self._states, most_threads), *arguments)

    def _zeros(self, size: int, value: int = 0) -> Any:
        return self._kernels.array(np.full(size, value, dtype=np.int32))

    def strong_components(self) -> tuple[NDArray[np.int32], int]:
        """Return the component of each state, numbered by smallest states, and their number."""
        states = self._states
        region, done, ahead, behind, has_in, has_out = (self._zeros(states) for _ in range(6))
        while True:
            self._trim(region, done, has_in, has_out)
            claims, left = self._zeros(states, -1), self._zeros(1)
            self._launch("claim_pivots", states, region, done, claims)
            self._launch("begin_searches", states, region, done, claims, ahead, behind, left)
            if not self._kernels.host(left)[0]:
                break
            self._search(region, done, ahead, behind)
            parts = self._zeros(3 * states, -1)
            self._launch("claim_parts", states, region, done, ahead, behind, parts)
            self._launch("divide_regions", states, region, done, ahead, behind, claims, parts)
        labels = np.empty(states, dtype=np.int32)
        labels[self._order] = self._kernels.host(region)
        names, compact = np.unique(labels, return_inverse=True)
        return numbered(compact.astype(np.int32), len(names)), len(names)

    def _trim(self, region: Any, done: Any, has_in: Any, has_out: Any) -> None:
        changed = True
        while changed:
            flag = self._zeros(1)
            marks = (self._states, region, done, has_in, has_out)
            self._launch("mark_neighbours", *self._ahead, *marks)
            self._launch("trim_states", *marks, flag)
            changed = bool(self._kernels.host(flag)[0])

    def _search(self, region: Any, done: Any, ahead: Any, behind: Any) -> None:
        """Make both searches to their ends, an iteration of each after the other or at once."""
        going = [True, True]
        iterations = max(1, self._variant.iterations)
        graph = (self._states, region, done)
        while any(going):
            more = self._zeros(2)
            if all(going) and self._variant.hybrid and self._into is not None:
                into = self._into[:2]
                both = (*self._ahead, *into, *graph, ahead, behind, iterations, more)
                self._launch("search_both", *both)
            else:
                if going[0]:
                    self._launch("search", *self._ahead, *graph, ahead, iterations, more[:1])
                if going[1] and self._into is not None:
                    self._launch("search", *self._into, *graph, behind, iterations, more[1:])
                elif going[1]:
                    self._launch("search_behind", *self._ahead, *graph, behind, more[1:])
            going = [bool(flag) for flag in self._kernels.host(more)]
