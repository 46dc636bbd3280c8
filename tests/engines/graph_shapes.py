"""Random graphs of many shapes, as models: chains, rings, trees, grids, power laws and others.

A shape is a function of a random generator and a wished number of states, which it may miss; it
returns the number of states and the edges as two arrays, sources and targets. `drawn` makes a model
of one, whose kind, numbering, loops and choices are drawn as well, by a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from tests.engines.graph_models import with_zeros

NO_EDGES = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
WIDEST = 1_000
"""The largest out-degree of the dense shape."""


def no_edges(_rng, size):
    return size, *NO_EDGES


def one_state(rng, _size):
    loop = np.zeros(int(rng.integers(2)), dtype=np.int64)
    return 1, loop, loop


def loops(rng, size):
    chosen = np.flatnonzero(rng.random(size) < 0.7)
    return size, chosen, chosen


def line(_rng, size):
    states = np.arange(size - 1)
    return size, states, states + 1


def ring(_rng, size):
    states = np.arange(size)
    return size, states, (states + 1) % size


def broken_ring(rng, size):
    """A ring without one of its edges, and a few chords: of some rest, one component."""
    _, sources, targets = ring(rng, size)
    kept = np.arange(size) != rng.integers(size)
    chords = rng.integers(0, size, (2, size // 8))
    return size, *_joined((sources[kept], targets[kept]), chords)


def one_component(rng, size):
    """A ring through all states in random order, and chords."""
    order = rng.permutation(size)
    chords = rng.integers(0, size, (2, int(rng.integers(0, 3 * size + 1))))
    return size, *_joined((order, np.roll(order, -1)), chords)


def all_trivial(rng, size):
    """Edges upwards only."""
    ends = np.sort(rng.integers(0, size, (2, int(rng.integers(0, 4 * size + 1)))), axis=0)
    return size, *ends[:, ends[0] < ends[1]]


def ladder(rng, size):
    """A line whose states may also go home: halfway back, to the first, or one back."""
    states = np.arange(size - 1)
    home = (states // 2, np.zeros_like(states), np.maximum(states - 1, 0))[int(rng.integers(3))]
    kept = rng.random(size - 1) < rng.choice([0.1, 0.5, 1.0])
    return size, *_joined((states, states + 1), (states[kept], home[kept]))


def nested_rings(_rng, size):
    """Ring k + 1 begins at a state of ring k and is half as long; each may be left into the next.

    The way back is missing for every second ring.
    """
    edges, begin, length, back = [], 0, max(size // 2, 1), True
    while begin < size:
        length = min(length, size - begin)
        states = np.arange(length)
        edges.append((begin + states, begin + (states + 1) % length))
        if begin:
            edges.append((np.array([begin - 1]), np.array([begin])))
            if back:
                edges.append((np.array([begin]), np.array([begin - 1])))
        begin, length, back = begin + length, max(length // 2, 1), not back
    return size, *_joined(*edges)


def ring_of_rings(rng, size):
    """Small rings in a ring, which may be open."""
    length = int(rng.integers(1, max(size // 2, 2)))
    count = max(size // length, 1)
    states = np.arange(count * length)
    within = (states, states // length * length + (states + 1) % length)
    first = np.arange(count - int(rng.integers(2))) * length
    return count * length, *_joined(within, (first, (first + length) % (count * length)))


def power_law(rng, size):
    """Few states have most of the edges, at one end or at the other."""
    edges = int(rng.integers(1, 5 * size + 1))
    hubs = (size * rng.random(edges) ** 3).astype(np.int64)
    others = rng.integers(0, size, edges)
    return (size, hubs, others) if rng.random() < 0.5 else (size, others, hubs)


def dense(rng, size):
    """Some states lead to many, at most to `WIDEST`."""
    degrees = rng.integers(0, min(size, WIDEST) + 1, size) * (rng.random(size) < 0.3)
    degrees[0] = min(size, WIDEST)
    sources = np.repeat(np.arange(size), degrees)
    targets = rng.integers(0, size, len(sources))
    # An order of the states that most edges keep leaves components of all sizes.
    kept = (targets > sources) | (rng.random(len(sources)) < rng.choice([0.0, 0.01, 1.0]))
    return size, sources[kept], targets[kept]


def tree(rng, size):
    """Away from the root, towards it, or each edge one of the two ways."""
    children = np.arange(1, size)
    parents = (children * rng.random(size - 1)).astype(np.int64)
    if rng.random() < 0.3:
        parents = (children - 1) // 2
    up = rng.random(size - 1) < rng.choice([0.0, 0.5, 1.0])
    return size, np.where(up, children, parents), np.where(up, parents, children)


def grid(rng, size):
    """Steps to the right and down, and a few of them back."""
    width = int(rng.integers(1, size + 1))
    height = max(size // width, 1)
    at = np.arange(width * height)
    right, down = at[at % width < width - 1], at[at // width < height - 1]
    sources, targets = _joined((right, right + 1), (down, down + width))
    back = rng.random(len(sources)) < rng.choice([0.0, 0.05, 0.5])
    return width * height, *_joined((sources, targets), (targets[back], sources[back]))


def bow_tie(rng, size):
    """What leads into a component, the component, what it leads to, and side branches."""
    ends = np.sort(rng.integers(0, size + 1, 2))
    core = np.arange(ends[0], ends[1])
    sources = rng.integers(0, size, 2 * size)
    part = np.searchsorted(ends, sources, side="right")
    part_of_targets = np.searchsorted(ends, targets := rng.integers(0, size, 2 * size), "right")
    onwards = (part < part_of_targets) | ((part == part_of_targets) & (sources < targets))
    return size, *_joined((core, np.roll(core, -1)), (sources[onwards], targets[onwards]))


def layers_with_a_knot(rng, size):
    """Layers of which each state leads to the next ones, and one band that leads back."""
    width = int(rng.integers(1, 5))
    sources = np.repeat(np.arange(size), 2)
    targets = (sources // width + 1) * width + rng.integers(0, width, len(sources))
    kept = targets < size
    band = np.sort(rng.integers(0, size, 2))
    return size, *_joined((sources[kept], targets[kept]), (band[1:], band[:1]))


def critical(rng, size):
    """About one edge a state: where a large component appears."""
    edges = rng.integers(0, size, (2, int(size * rng.uniform(0.7, 1.6)) + 1))
    return size, *edges


def copies(rng, size):
    """Several copies of another shape, with no edge between them."""
    count = int(rng.integers(2, 6))
    shape = SHAPES[str(rng.choice([name for name in SHAPES if name != "copies"]))]
    part, sources, targets = shape(rng, max(size // count, 2))
    shifts = np.repeat(np.arange(count) * part, len(sources))
    return count * part, np.tile(sources, count) + shifts, np.tile(targets, count) + shifts


SHAPES = {
    shape.__name__: shape
    for shape in (
        no_edges,
        one_state,
        loops,
        line,
        ring,
        broken_ring,
        one_component,
        all_trivial,
        ladder,
        nested_rings,
        ring_of_rings,
        power_law,
        dense,
        tree,
        grid,
        bow_tie,
        layers_with_a_knot,
        critical,
        copies,
    )
}

NUMBERINGS = ("ascending", "descending", "random")


@dataclass(frozen=True)
class Drawn:
    """A model, and what its components are to be restricted to; all of it where `everything`."""

    name: str
    model: ExplicitModel
    restrict: np.ndarray
    choices: np.ndarray

    @property
    def everything(self) -> bool:
        return bool(self.restrict.all() and self.choices.all())


def drawn(seed, largest=400):
    """The model of a seed; shapes take turns, most sizes are small, none is above `largest`.

    One model in 400 of the dense shape has states of `WIDEST` successors, whatever `largest` is.
    """
    rng = np.random.default_rng([seed, 2014])
    name = list(SHAPES)[seed % len(SHAPES)]
    size = int(rng.integers(2, rng.choice([6, 16, 40, largest], p=[0.25, 0.4, 0.3, 0.05]) + 1))
    if name == "dense" and seed // len(SHAPES) % 20 == 0:
        size = WIDEST + int(rng.integers(100))
    size, sources, targets = SHAPES[name](rng, size)
    kind = (ModelKind.MDP, ModelKind.MDP, ModelKind.DTMC, ModelKind.CTMC)[int(rng.integers(4))]
    numbering = str(rng.choice(NUMBERINGS))
    model = dressed(rng, kind, size, sources, targets, numbering)
    restrict = rng.random(size) < rng.choice([1.0, 0.9, 0.5, 0.0], p=[0.6, 0.2, 0.15, 0.05])
    share = rng.choice([1.0, 0.8, 0.3], p=[0.7, 0.2, 0.1])
    choices = rng.random(model.matrix.num_rows) < share
    return Drawn(f"{name}, {size} states, {kind}, seed {seed}", model, restrict, choices)


def dressed(rng, kind, size, sources, targets, numbering="ascending"):
    """A model of the given edges: numbered, with loops, in an MDP shared out among choices."""
    names = numbered(rng, size, numbering)
    sources, targets = names[sources], names[targets]
    looping = np.flatnonzero(rng.random(size) < rng.choice([0.0, 0.0, 0.1, 0.5]))
    if kind is not ModelKind.CTMC:
        # Only a CTMC may have states that nothing leaves.
        stuck = np.setdiff1d(np.arange(size), sources)
        looping = np.union1d(looping, stuck)
    sources, targets = _joined((sources, targets), (looping, looping))
    order = np.argsort(sources, kind="stable")
    sources, targets = sources[order], targets[order]
    degrees = np.bincount(sources, minlength=size)
    if kind is ModelKind.MDP:
        # Each edge begins a choice or joins the one before it; a state's first one begins one.
        begins = rng.random(len(sources)) < rng.choice([0.2, 0.6, 1.0])
        begins[np.flatnonzero(np.diff(sources, prepend=-1))] = True
        lengths = np.diff(np.append(np.flatnonzero(begins), len(sources)))
        groups = _offsets(np.bincount(sources[begins], minlength=size))
    else:
        lengths, groups = degrees, None
    values = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
    matrix = CsrMatrix(_offsets(lengths), targets.astype(np.int32), values, size)
    model = ExplicitModel(kind, matrix, groups)
    return with_zeros(model, rng) if rng.random() < 0.1 else model


def numbered(rng, size, numbering):
    """The number that each state of a shape gets."""
    states = np.arange(size)
    if numbering == "random":
        return rng.permutation(size)
    return states if numbering == "ascending" else states[::-1]


def disjoint_union(parts):
    """One MDP of several drawn ones or chains, side by side, with the masks of all."""
    matrices = [part.model.matrix for part in parts]
    firsts = np.cumsum([0, *(matrix.num_columns for matrix in matrices)])
    columns = [matrix.columns + first for matrix, first in zip(matrices, firsts[:-1], strict=True)]
    groups = [_choices_of(part.model) for part in parts]
    matrix = CsrMatrix(
        _offsets(np.concatenate([matrix.row_lengths() for matrix in matrices])),
        np.concatenate(columns).astype(np.int32),
        np.concatenate([matrix.values for matrix in matrices]),
        int(firsts[-1]),
    )
    model = ExplicitModel(ModelKind.MDP, matrix, _offsets(np.concatenate(groups)))
    restrict = np.concatenate([part.restrict for part in parts])
    choices = np.concatenate([part.choices for part in parts])
    return Drawn(f"{parts[0].name} and {len(parts) - 1} more", model, restrict, choices)


def _choices_of(model):
    if model.row_group_offsets is None:
        return np.ones(model.num_states, dtype=np.int64)
    return np.diff(model.row_group_offsets)


def _joined(*edges):
    return tuple(np.concatenate([part[end] for part in edges]) for end in (0, 1))


def _offsets(lengths):
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
