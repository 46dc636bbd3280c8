"""Colours: sets of states that a Gauss-Seidel sweep computes at once, one set after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype, ranges
from engines.host.coloured import arranged_rows
from engines.host.colouring import Dependencies, dependencies
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Scaling, SweepSystem

COLOUR_COUNTS = (8, 16, 32, 64)
"""How many colours are tried; beyond, launches cost more than fresh values save."""

CONGRUENT_COUNTS = range(2, 9)
"""How many colours Ingaramo (2013) tries."""


@dataclass(frozen=True)
class SweepSpeed:
    """What sweeps cost on a device, roughly; only ratios count.

    Parameters
    ----------
    colour_seconds
        What a colour costs, however small it is.
    bytes_per_second
        How fast large ones are read.
    """

    colour_seconds: float
    bytes_per_second: float

    def seconds(self, bytes_per_sweep: int, colours: int) -> float:
        """Return what a sweep costs."""
        return colours * self.colour_seconds + bytes_per_sweep / self.bytes_per_second


CPU_SPEED = SweepSpeed(2e-6, 1e10)
GPU_SPEED = SweepSpeed(3e-6, 3e12)


class Order(StrEnum):
    """In which order of the states' numbers a sweep goes."""

    FORWARDS = "forwards"
    BACKWARDS = "backwards"

    @property
    def opposite(self) -> Order:
        """The other order."""
        return Order.BACKWARDS if self is Order.FORWARDS else Order.FORWARDS


@dataclass(frozen=True)
class Colouring:
    """Which states a sweep computes together.

    Parameters
    ----------
    of_update
        The colour of each state that is computed, shape (updates,), from 0 on; a sweep goes
        through the colours in ascending order.
    count
        Number of colours.
    slice_size
        Consecutive states of one colour.
    fresh
        Share of the entries between computed states that see a value of the same sweep.
    order
        The order of states that the colours approximate.
    """

    of_update: IndexArray
    count: int
    slice_size: int
    fresh: float
    order: Order


@dataclass(frozen=True)
class ColouredSystem:
    """A system with its states in the order in which a sweep computes them.

    Parameters
    ----------
    system
        The system with states renumbered: row (or group) i computes state i. Each row's entries
        for states of earlier colours come first.
    fresh_ends
        Shape (rows,): where these entries end.
    bounds
        Shape (colours + 1,): colour c is the states ``bounds[c]`` to ``bounds[c + 1] - 1``.
    order
        The state that was given each number, shape (states,).
    colouring
        The colours.
    """

    system: SweepSystem
    fresh_ends: IndexArray
    bounds: IndexArray
    order: IndexArray
    colouring: Colouring

    @property
    def omega(self) -> float:
        """Relaxation of the sweeps."""
        return self.system.omega

    def in_model_order(self, values: FloatArray) -> FloatArray:
        """Return values of the renumbered states, shape (states,), by the states' own numbers."""
        back = np.empty_like(values)
        back[self.order] = values
        return back

    def restarted(self, values: FloatArray, omega: float) -> ColouredSystem:
        """Return the same sweeps from another iterate, given by the states' own numbers."""
        system = replace(self.system, start=values[self.order], omega=omega)
        return replace(self, system=system)


def choose_colours(
    system: SweepSystem,
    order: Order,
    slice_size: int | None = None,
    count: int | None = None,
    speed: SweepSpeed = CPU_SPEED,
) -> Colouring:
    """Assign colours so that many entries see values of the same sweep.

    Parameters
    ----------
    system
        A system without scaling.
    order
        The order of Gauss-Seidel that the colours shall approximate.
    slice_size
        None for colours by dependency levels. Else slices of so many consecutive states are
        coloured by congruence.
    count
        Number of colours, None for a choice. No more are taken than there are levels, or slices.
    speed
        Of the device: the dearer a colour, the fewer are chosen.

    Raises
    ------
    ValueError
        For a slice size or a number of colours below 1.

    Notes
    -----
    *By congruence*: slice s has colour s mod `count`; if `count` is None, it is the one for which
    most entries see fresh values. That is the assignment (section 4.2.2), and the predictor
    (section 5.3), of Ingaramo (2013), Implementación del algoritmo Gauss-Seidel en CUDA para la
    verificación simbólica de modelos probabilísticos.

    *By levels*: the level of a state is the step at which it can be computed so that the sweep is
    that of sequential Gauss-Seidel: after all states before it that it reads, and not before
    those before it that read its old value (level scheduling: Anderson and Saad 1989). Colours are
    levels modulo their number. So nearly all that a sequential sweep sees fresh is seen fresh here,
    with few colours. States then move to the colour where most of their weight, as a reader and as
    what is read, is fresh (`engines.systems.moves`). If a share f of the flow is fresh, sweeps are
    about 1 / (1 − f) times as few as Jacobi's (first order of the eigenvalue next to 1); the number
    of colours is the one with the least product of 1 − f and a sweep's cost.

    Weights are whole numbers, so that `engines.cuda.colouring` finds the same colours.
    """
    for name, number in (("slice_size", slice_size), ("count", count)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
    reads = dependencies(system)
    if slice_size is not None:
        return _by_congruence(reads, order, slice_size, count)
    read = bytes_of_sweep(system, system.matrix.num_entries)
    return _by_levels(reads, order, count, lambda number: speed.seconds(read, number))


def bytes_of_sweep(system: SweepSystem, entries: int) -> int:
    """Return about what a sweep moves, by which the number of colours is chosen.

    Parameters
    ----------
    system
        A system with any scaling.
    entries
        The entries that its scaling leaves.

    Notes
    -----
    Indices are taken for 32 bits, whatever they are: it is the same on the CPU and on a GPU.
    """
    rows = system.matrix.num_rows
    read = 12 * entries + 4 * rows + 8 * (system.num_states + system.num_updates)
    read += 0 if system.offset is None else 8 * rows
    return read + (0 if system.group_offsets is None else 4 * system.num_updates)


def chosen_count(
    depth: int,
    updates: int,
    count: int | None,
    fresh_weights: Callable[[Sequence[int]], Sequence[float]],
    seconds: Callable[[int], float],
) -> int:
    """Return how many colours levels are given.

    Parameters
    ----------
    depth
        Number of levels.
    updates
        Number of states that are computed.
    count
        As in `choose_colours`.
    fresh_weights
        For some numbers of colours, the shares of weight that are fresh if a state's colour is its
        level modulo the number.
    seconds
        What a sweep of so many colours takes.
    """
    # Where levels are few there is room for better colours than theirs.
    enough = max(depth, min(COLOUR_COUNTS[0], updates))
    if count is None:
        tried = sorted({min(depth, number) for number in COLOUR_COUNTS})
        shares = fresh_weights(tried)
        costs = [seconds(k) * (1.0 - share) for k, share in zip(tried, shares, strict=True)]
        count = max(tried[int(np.argmin(costs))], min(COLOUR_COUNTS[0], enough))
    return min(count, enough)


def congruent_colours(updates: int, slice_size: int, count: int, order: Order) -> IndexArray:
    """Return the colours of slices by congruence, shape (updates,).

    Parameters
    ----------
    updates
        Number of states that are computed.
    slice_size
        Consecutive states in a slice.
    count
        Number of colours.
    order
        Backwards, slices are counted from the last one.
    """
    number = np.arange(updates, dtype=np.int64) // slice_size
    if order is Order.BACKWARDS and updates:
        number = number[-1] - number
    colours: IndexArray = (number % count).astype(np.int32)
    return colours


def _by_congruence(
    reads: Dependencies, order: Order, slice_size: int, count: int | None
) -> Colouring:
    slices = max(1, -(-reads.updates // slice_size))
    best: Colouring | None = None
    for tried in CONGRUENT_COUNTS if count is None else (count,):
        colours = congruent_colours(reads.updates, slice_size, tried, order)
        used = min(tried, slices)
        found = Colouring(colours, used, slice_size, reads.fresh_entries(colours), order)
        if best is None or found.fresh > best.fresh:
            best = found
    assert best is not None
    return best


def _by_levels(
    reads: Dependencies, order: Order, count: int | None, seconds: Callable[[int], float]
) -> Colouring:
    levels = reads.levels(order is Order.BACKWARDS)
    depth = int(levels.max(initial=0)) + 1
    count = chosen_count(
        *(depth, reads.updates, count),
        *(lambda tried: reads.fresh_weights(levels, tried), seconds),
    )
    colours = (levels % count).astype(np.int32)
    reads.move_to_better_colours(colours, count, levels)
    used = np.bincount(colours, minlength=count) > 0
    colours = (np.cumsum(used, dtype=np.int32) - 1)[colours]
    return Colouring(colours, int(used.sum()), 1, reads.fresh_entries(colours), order)


def arrange(system: SweepSystem, colouring: Colouring) -> ColouredSystem:
    """Renumber the states of a system so that each colour is a range.

    Parameters
    ----------
    system
        A system without scaling.
    colouring
        The colours of the states that it computes.
    """
    assert system.scaling is Scaling.NONE
    updates, matrix, groups = system.num_updates, system.matrix, system.group_offsets
    by_colour = np.argsort(colouring.of_update, kind="stable")
    sizes = np.bincount(colouring.of_update, minlength=colouring.count)
    bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
    order = _state_order(system, by_colour)
    position = np.empty(system.num_states, dtype=index_dtype(system.num_states))
    position[order] = np.arange(system.num_states, dtype=position.dtype)

    first_of_colour = np.repeat(bounds[:-1], sizes)
    rows, first_stale = by_colour, first_of_colour
    new_groups: IndexArray | None = None
    if groups is not None:
        counts = np.diff(groups)[by_colour]
        new_groups = np.zeros(updates + 1, dtype=groups.dtype)
        np.cumsum(counts, out=new_groups[1:])
        rows = ranges(groups[:-1][by_colour], counts)
        first_stale = np.repeat(first_of_colour, counts)
    offsets = np.zeros(matrix.num_rows + 1, dtype=matrix.row_offsets.dtype)
    np.cumsum(matrix.row_lengths()[rows], out=offsets[1:])
    fresh_ends, columns, values = arranged_rows(matrix, rows, first_stale, offsets, position)
    renumbered = replace(
        system,
        matrix=CsrMatrix(offsets, columns, values, matrix.num_columns),
        start=np.asarray(system.start, dtype=np.float64)[order],
        offset=None if system.offset is None else system.offset[rows],
        states=None,
        group_offsets=new_groups,
    )
    return ColouredSystem(renumbered, fresh_ends, bounds, order, colouring)


def _state_order(system: SweepSystem, by_colour: IndexArray) -> IndexArray:
    """Return the states that are computed, colour by colour, and then the others."""
    if system.states is not None:
        by_colour = system.states[by_colour]
    elif system.num_updates == system.num_states:
        return by_colour
    known = np.ones(system.num_states, dtype=np.bool_)
    known[by_colour] = False
    return np.concatenate([by_colour, np.flatnonzero(known)])


def entries_by_direction(system: SweepSystem) -> tuple[int, int]:
    """Return how many entries read a state before the one that is computed, and one behind it.

    States that keep their values are neither.

    Parameters
    ----------
    system
        A system without choices and without scaling.
    """
    row = system.matrix.row_of_entry()
    state = row if system.states is None else system.states[row]
    columns = system.matrix.columns
    if system.states is not None:
        computed = np.zeros(system.matrix.num_columns, dtype=np.bool_)
        computed[system.states] = True
        among = computed[columns]
        columns, state = columns[among], state[among]
    return int(np.count_nonzero(columns < state)), int(np.count_nonzero(columns > state))
