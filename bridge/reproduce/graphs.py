"""Graphs of the sizes and shapes of published MDPs, and how many components each has.

Wijs, Katoen, Bošnački (2014), GPU-based graph decomposition into strongly connected and maximal end
components, tables 1 and 2, name ten MDPs of PRISM's case studies with 10⁷ to 1.3·10⁸ states. Each
family below is a synthetic MDP with the states, the out-degree and the kind of components of one of
them: how many there are, how large, how deep the graph is. The numbers of components follow from
the construction. Every state is a tuple of digits, numbered in lexicographic order as PRISM does
with the variables of a model, so that a step of one process leads to a near or a far number.

A family gives its edges for a range of states, as arrays with a row a state and as many columns as
a state may have edges: where an edge leads, whether it is there, and whether it begins a choice.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engines.arrays import index_dtype
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind

Array = npt.NDArray[Any]
Pieces = tuple[Array, Array, Array]
"""Targets, which of them are there, and which begin a choice, each of shape (states, slots)."""


class Family(Protocol):
    """A graph by its construction."""

    @property
    def states(self) -> int:
        """Number of states."""
        ...

    @property
    def sccs(self) -> int:
        """Number of strongly connected components, single states included."""
        ...

    @property
    def mecs(self) -> int:
        """Number of maximal end components."""
        ...

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        ...


def radices(states: int, processes: int, least: int = 5) -> tuple[int, ...]:
    """Return how many local states processes of about the same size have, so many states in all."""
    base = max(int(states ** (1 / processes)), least)
    sizes = [base ** (processes - more) * (base + 1) ** more for more in range(processes + 1)]
    more = min(range(processes + 1), key=lambda number: abs(sizes[number] - states))
    return (base,) * (processes - more) + (base + 1,) * more


def digits_of(states: Array, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the digits of numbers, shape (states, digits), and what a step of each digit adds."""
    strides = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype=np.int32)
    return states[:, None] // strides % np.array(sizes, dtype=np.int32), strides


class Slots:
    """Edges of a block of states while they are put together, some slots for each process."""

    def __init__(self, states: Array, processes: int, slots: int) -> None:
        self.states = states.astype(np.int32)
        shape = (len(states), processes, slots)
        self.targets = np.zeros(shape, dtype=np.int32)
        self.present = np.zeros(shape, dtype=np.bool_)
        self.begins = np.zeros(shape, dtype=np.bool_)

    def add(self, slot: int, where: Array, step: Array, begins: bool) -> None:
        """Let processes step: `step`, shape (states, processes), is what it adds to the number."""
        self.targets[:, :, slot] = self.states[:, None] + step
        self.present[:, :, slot] = where
        self.begins[:, :, slot] = where & begins

    def pieces(self) -> Pieces:
        """Return all edges; states without one get a loop."""
        flat = len(self.states), self.targets.shape[1] * self.targets.shape[2]
        parts = [part.reshape(flat) for part in (self.targets, self.present, self.begins)]
        targets, present, begins = parts
        stuck = ~present.any(axis=1)
        targets[stuck, 0] = self.states[stuck]
        present[stuck, 0] = begins[stuck, 0] = True
        return targets, present, begins


@dataclass(frozen=True)
class Rings:
    """Processes that go round, each in its ring: one component, and it is never left.

    Parameters
    ----------
    size
        About how many states.
    processes
        How many processes.
    special
        In which share of its local states a process has two successors: in the first of them, a
        coin decides; in the others it may choose.
    """

    size: int
    processes: int
    special: float

    @cached_property
    def rings(self) -> tuple[int, ...]:
        """The lengths of the rings."""
        return radices(self.size, self.processes)

    @property
    def states(self) -> int:
        """Number of states."""
        return math.prod(self.rings)

    sccs = mecs = 1

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        slots = Slots(states, self.processes, 2)
        add_rings(slots, *digits_of(slots.states, self.rings), self.rings, self.special)
        return slots.pieces()


def add_rings(
    slots: Slots, digits: Array, strides: Array, rings: tuple[int, ...], special: float
) -> None:
    """Add the steps of processes in rings."""
    lengths = np.array(rings, dtype=np.int32)
    for slot in (0, 1):
        step = ((digits + 1 + slot) % lengths - digits) * strides
        if slot == 0:
            slots.add(0, np.ones_like(digits, dtype=np.bool_), step, begins=True)
            continue
        slots.add(1, digits < np.rint(special * lengths), step, begins=True)
        slots.begins[:, :, 1] &= digits > 0


@dataclass(frozen=True)
class RingsInSteps:
    """Rings as of `Rings`, in each field of a grid whose fields are never entered again.

    Where the first process is in its first local state, its step may lead to a next field instead,
    so that it can be kept in any of its local states for ever, but not go round: each is an end
    component, and so is the last field as a whole.

    Parameters
    ----------
    size, processes, special
        As of `Rings`; the first process has no special states.
    fields
        Height and width of the grid.
    """

    size: int
    processes: int
    special: float
    fields: tuple[int, int]

    @cached_property
    def rings(self) -> tuple[int, ...]:
        """The lengths of the rings."""
        return radices(self.size // math.prod(self.fields), self.processes, least=3)

    @property
    def states(self) -> int:
        """Number of states."""
        return math.prod((*self.fields, *self.rings))

    @property
    def sccs(self) -> int:
        """One a field."""
        return math.prod(self.fields)

    @property
    def mecs(self) -> int:
        """One a local state of the first process and field, but one in the last field."""
        return (self.sccs - 1) * self.rings[0] + 1

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        slots = Slots(states, self.processes, 4)
        digits, strides = digits_of(slots.states, (*self.fields, *self.rings))
        add_rings(slots, digits[:, 2:], strides[2:], self.rings, self.special)
        slots.present[:, 0, 1] = slots.begins[:, 0, 1] = False
        for axis in (0, 1):
            onwards = (digits[:, 2] == 0) & (digits[:, axis] < self.fields[axis] - 1)
            slots.targets[:, 0, 2 + axis] = slots.states + strides[axis]
            slots.present[:, 0, 2 + axis] = onwards
        return slots.pieces()


@dataclass(frozen=True)
class Chains:
    """Processes that each run down a chain, with a coin at its end: no component but single states.

    Parameters
    ----------
    size
        About how many states.
    processes
        How many processes.
    special
        In how many local states a coin decides on one step or two.
    """

    size: int
    processes: int
    special: int = 0

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many local states each process has; the last two are ends."""
        return radices(self.size, self.processes)

    @property
    def states(self) -> int:
        """Number of states."""
        return math.prod(self.lengths)

    @property
    def sccs(self) -> int:
        """One a state."""
        return self.states

    @property
    def mecs(self) -> int:
        """The states in which all processes have ended."""
        return int(2**self.processes)

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        slots = Slots(states, self.processes, 2)
        digits, strides = digits_of(slots.states, self.lengths)
        last = np.array(self.lengths, dtype=np.int32) - 3
        one = np.broadcast_to(strides, digits.shape)
        slots.add(0, digits <= last, one, begins=True)
        coin = (digits == last) | (digits < np.minimum(self.special, last))
        slots.add(1, coin, 2 * one, begins=False)
        return slots.pieces()


@dataclass(frozen=True)
class RingsThenChains:
    """Processes in rings that stop one by one, as in a random walk; then chains as of `Chains`.

    A process cannot go round without the risk to stop, so that no end component is left of the
    rings: those are the states in which all have stopped. Each set of processes that have stopped,
    in one of several ways, is a component; so is each state of the chains, which the first process
    may turn to.

    Parameters
    ----------
    size, chain_size
        About how many states, without and with the chains'.
    processes
        How many processes, in the rings and in the chains.
    stops
        In how many ways a process may stop: one or two.
    special
        In how many local states of a ring a coin decides on one step or two.
    """

    size: int
    chain_size: int
    processes: int
    stops: int
    special: int = 0

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many local states each process has in the rings, stopped ones included."""
        return radices(self.size, self.processes, least=3 + self.stops)

    @cached_property
    def chains(self) -> Chains:
        """The second part of the graph."""
        return Chains(self.chain_size, self.processes)

    @property
    def states(self) -> int:
        """Number of states."""
        return math.prod(self.lengths) + self.chains.states

    @property
    def sccs(self) -> int:
        """The ways in which processes may have stopped or not, and the states of the chains."""
        return int((1 + self.stops) ** self.processes) + self.chains.states

    @property
    def mecs(self) -> int:
        """The states in which all processes have stopped or ended."""
        return int(self.stops**self.processes) + self.chains.mecs

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        first_chain = math.prod(self.lengths)
        in_rings = states < first_chain
        targets, present, begins = self.chains.edges(states[~in_rings] - first_chain)
        parts = [self._ring_edges(states[in_rings]), (targets + first_chain, present, begins)]
        width = max(part[0].shape[1] for part in parts)
        filled = [
            [np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in part]
            for part in parts
        ]
        targets, present, begins = (np.concatenate(pair) for pair in zip(*filled, strict=True))
        return targets, present, begins

    def _ring_edges(self, states: Array) -> Pieces:
        slots = Slots(states, self.processes, 3)
        digits, strides = digits_of(slots.states, self.lengths)
        length = np.array(self.lengths, dtype=np.int32) - self.stops
        going = digits < length
        around = np.where(digits == length - 1, -digits, 1)
        slots.add(0, going, around * strides, begins=True)
        # The coins: to stop, at the end of the ring, or to go two steps.
        stopping = going & (digits >= length - self.stops)
        coin = stopping | (digits < np.minimum(self.special, length - 2))
        # From the last local state, to the first way to stop; from the one before, to the second.
        far = np.where(digits == length - 1, 1, np.where(stopping, 3, 2))
        slots.add(1, coin, far * strides, begins=False)
        lengths, chain_strides = self.chains.lengths, digits_of(states[:0], self.chains.lengths)[1]
        entry = (digits % (np.array(lengths, dtype=np.int32) - 2) * chain_strides).sum(axis=1)
        slots.targets[:, 0, 2] = math.prod(self.lengths) + entry
        slots.present[:, 0, 2] = slots.begins[:, 0, 2] = digits[:, 0] == 1
        return slots.pieces()


@dataclass(frozen=True)
class Layers:
    """Time that passes: layers, each of which leads to the next, at places as many as there are.

    Each state has one predecessor in the layer before, so that trimming can begin in the first and
    the last layer only. The numbers of the states of a place follow each other.

    Parameters
    ----------
    size
        About how many states.
    depth
        Number of layers.
    one, two
        Shares of the states with one successor and with two, of 256; the others have three.
    knot
        Number of layers in the middle that are one component: its last one may lead back.
    sink
        Whether all states of the last layer lead to one; else each has a loop.
    """

    size: int
    depth: int
    one: int
    two: int
    knot: int = 0
    sink: bool = False

    @property
    def width(self) -> int:
        """Number of places."""
        return max(self.size // self.depth, 4)

    @property
    def states(self) -> int:
        """Number of states."""
        return self.width * self.depth + self.sink

    @property
    def sccs(self) -> int:
        """One a state, but that the knot is one."""
        return self.states - max(self.knot * self.width - 1, 0)

    @property
    def mecs(self) -> int:
        """What has a loop at the end."""
        return 1 if self.sink else self.width

    def edges(self, states: Array) -> Pieces:
        """Return the edges of some states."""
        states = states.astype(np.int64)
        place, layer = states // self.depth, states % self.depth
        drawn = _mixed(states)
        near = (place % 4 < 3) & (place < self.width - 1)
        # Within a layer, at most three steps follow each other.
        jump = (drawn >> np.uint64(20)).astype(np.int64) % self.width
        other = np.where(near, states + self.depth, jump * self.depth + layer + 1)
        third = (jump + place) % self.width * self.depth + layer + 1
        targets = np.stack([states + 1, other, third], axis=1)
        share = (drawn & np.uint64(255)).astype(np.int64)
        present = np.stack([share >= 0, share >= self.one, share >= self.one + self.two], axis=1)
        begins = np.zeros_like(present)
        # Half of those with two successors choose, the others toss a coin; of three, two are one
        # choice's.
        begins[:, 0] = True
        begins[:, 1] = (share % 2 == 0) | present[:, 2]
        if self.knot:
            back = layer == self.depth // 2 + self.knot - 1
            following = (place + 1) % self.width * self.depth + self.depth // 2
            targets[back, 1] = following[back]
            present[back, 1], present[back, 2], begins[back, 1] = True, False, False
        last = layer == self.depth - 1
        targets[last, 0] = self.states - 1 if self.sink else states[last]
        present[last, 1:] = False
        if self.sink:
            present[states == self.states - 1, 1:] = False
            targets[states == self.states - 1, 0] = self.states - 1
        return targets.astype(np.int32), present, begins & present


def _mixed(numbers: Array) -> Array:
    """Return numbers that look random: the finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def generate(
    family: Family, threads: int | None = None, block_states: int = 1 << 17
) -> ExplicitModel:
    """Return the MDP of a family; all values are 1, since only the graph matters.

    Parameters
    ----------
    family
        What to make.
    threads
        How many blocks are made at a time; as many as there are cores by default.
    block_states
        States whose edges are made at once.
    """
    states = family.states

    def block(first: int) -> tuple[Array, Array, Array]:
        targets, present, begins = family.edges(
            np.arange(first, min(first + block_states, states), dtype=np.int32)
        )
        starts = np.flatnonzero(begins[present])
        lengths = np.diff(starts, append=np.count_nonzero(present))
        choices = np.count_nonzero(begins, axis=1)
        return targets[present], lengths.astype(np.uint8), choices.astype(np.uint8)

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        blocks = list(pool.map(block, range(0, states, block_states)))
    lengths = np.concatenate([piece[1] for piece in blocks])
    groups = np.concatenate([piece[2] for piece in blocks])
    columns = np.concatenate([piece[0] for piece in blocks])
    ones = np.broadcast_to(np.float64(1.0), len(columns))
    matrix = CsrMatrix(_offsets(lengths), columns, ones, states)
    return ExplicitModel(ModelKind.MDP, matrix, _offsets(groups))


def _offsets(lengths: Array) -> Array:
    dtype = index_dtype(int(lengths.sum(dtype=np.int64)))
    offsets = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, dtype=dtype, out=offsets[1:])
    return offsets
