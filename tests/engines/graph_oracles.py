"""Oracles for graphs, by definition: every path, every memoryless strategy, every set of states."""

from __future__ import annotations

import itertools

import numpy as np

from engines.model.explicit import ModelKind
from engines.systems.one_sided import Direction
from tests.engines import reference


def successors(model):
    """For each state, for each of its choices, the set of its successors."""
    rows = reference.rows_of(model.matrix)
    return [[set(rows[row]) for row in choices] for choices in reference.choices_of(model)]


def closure(edges):
    """Which states reach which, themselves included; `edges` holds each state's successors."""
    size = len(edges)
    reach = [1 << state for state in range(size)]
    for state, after in enumerate(edges):
        for other in after:
            reach[state] |= 1 << other
    # Warshall: paths through states up to `middle`, as the bits of a number.
    for middle in range(size):
        for state in range(size):
            if reach[state] >> middle & 1:
                reach[state] |= reach[middle]
    return np.array([[bits >> s & 1 for s in range(size)] for bits in reach], dtype=np.bool_)


def chain_prob01(edges, remain, target):
    """Where a chain has probability 0 and 1: paths end in the target and outside of remain."""
    moving = remain & ~target
    reach = closure([after if moving[s] else () for s, after in enumerate(edges)])
    no = ~(reach & target).any(axis=1)
    return no, ~(reach & no).any(axis=1)


def prob01(model, remain, target, direction):
    """Where the minimal or maximal probability is 0 and 1, over all memoryless strategies."""
    choices = successors(model)
    strategies = itertools.product(*choices)
    found = np.array([chain_prob01(strategy, remain, target) for strategy in strategies])
    no, yes = found[:, 0], found[:, 1]
    if model.kind is ModelKind.MDP and direction is Direction.MINIMISE:
        return no.any(axis=0), yes.all(axis=0)
    return no.all(axis=0), yes.any(axis=0)


def sccs(model, restrict=None):
    """The strongly connected components as a list of sets, ordered by their smallest states."""
    size = model.num_states
    allowed = set(range(size)) if restrict is None else set(np.flatnonzero(restrict).tolist())
    edges = [set().union(*after) & allowed for after in successors(model)]
    reach = closure(edges)
    both = reach & reach.T
    sets = {frozenset(np.flatnonzero(both[s]).tolist()) for s in allowed}
    return sorted(sets, key=min)


def is_end_component(choices, states):
    """Whether a set of states can be kept to for ever, and each state met from each other."""
    inner = [
        set().union(*(after for after in choices[s] if after and after <= states))
        if s in states
        else set()
        for s in range(len(choices))
    ]
    if any(not inner[s] for s in states):
        return False
    reach = closure(inner)
    return all(reach[s, t] for s in states for t in states)


def maximal_end_components(model, restrict=None, allowed=None):
    """The maximal end components as a list of sets, from all sets of states."""
    size = model.num_states
    rows = reference.choices_of(model)
    choices = [
        [
            after
            for row, after in zip(rows[s], choice, strict=True)
            if allowed is None or allowed[row]
        ]
        for s, choice in enumerate(successors(model))
    ]
    states = range(size) if restrict is None else np.flatnonzero(restrict).tolist()
    subsets = (
        frozenset(subset)
        for length in range(len(states), 0, -1)
        for subset in itertools.combinations(states, length)
    )
    found = []
    for subset in subsets:
        if not any(subset <= larger for larger in found) and is_end_component(choices, subset):
            found.append(subset)
    return sorted(found, key=min)


def sets_of(labels, count):
    """Labels as a list of sets in the order of their numbers."""
    return [frozenset(np.flatnonzero(labels == number).tolist()) for number in range(count)]


def refined_components(model, restrict=None, allowed=None):
    """The maximal end components of larger models: drop what leaves, split, until nothing does."""
    rows = reference.choices_of(model)
    states = range(model.num_states) if restrict is None else np.flatnonzero(restrict).tolist()
    choices = [
        [
            after
            for row, after in zip(rows[s], choice, strict=True)
            if allowed is None or allowed[row]
        ]
        for s, choice in enumerate(successors(model))
    ]
    waiting, found = [frozenset(states)], []
    while waiting:
        block = waiting.pop()
        inner = [
            set().union(*(after for after in choices[s] if after and after <= block))
            if s in block
            else set()
            for s in range(model.num_states)
        ]
        reach = closure(inner)
        both = reach & reach.T
        parts = {frozenset(np.flatnonzero(both[s]).tolist()) for s in block if inner[s]}
        if parts == {block}:
            found.append(block)
        else:
            waiting += parts
    return sorted(found, key=min)
