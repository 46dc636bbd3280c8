"""Products with automata, against a queue of nodes in Python."""

from __future__ import annotations

import itertools
import random
from collections import deque

import numpy as np
import pytest

from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host import automaton_product as products
from engines.host.automaton_product import TO_BE_MADE, automaton_product
from engines.host.expansion import room
from engines.model.csr import CsrMatrix
from tests.engines import models

LETTERS = 3
DECIDED = -1


class Made:
    """The steps of an automaton: all there, or made when asked for."""

    def __init__(self, whole, *, at_once):
        self.whole = whole
        self.table = whole if at_once else np.full((1, LETTERS), TO_BE_MADE, np.int32)
        self.made = []

    def make(self, state, letter):
        self.made.append((state, letter))
        following = self.whole[state, letter]
        if following >= len(self.table):
            more = following + 1 - len(self.table)
            self.table = np.pad(self.table, ((0, more), (0, 0)), constant_values=TO_BE_MADE)
        self.table[state, letter] = following


def random_case(seed, chain):
    rng = random.Random(seed)
    model = models.random_dtmc(seed, 30) if chain else models.random_mdp(seed, 30)
    letters = np.array([rng.randrange(LETTERS) for _ in range(30)])
    whole = np.array([[rng.randrange(4) for _ in range(LETTERS)] for _ in range(4)], np.int32)
    return model, letters, whole


def expected_nodes(model, letters, whole, first, reads_ahead):
    """Return the nodes in the order in which a queue meets them, and the rows of each."""
    matrix, groups = model.matrix, model.row_group_offsets
    groups = np.arange(31) if groups is None else groups
    nodes = dict.fromkeys(first)
    queue, rows = deque(first), []
    while queue:
        state, own = queue.popleft()
        if not reads_ahead and whole[own, letters[state]] == DECIDED:
            rows.append([[((state, own), 1.0)]])
            continue
        made = []
        for row in range(groups[state], groups[state + 1]):
            entries = range(matrix.row_offsets[row], matrix.row_offsets[row + 1])
            targets = [int(matrix.columns[entry]) for entry in entries]
            read = [letters[target if reads_ahead else state] for target in targets]
            met = [(target, int(whole[own, x])) for target, x in zip(targets, read, strict=True)]
            made.append([(n, matrix.values[e]) for n, e in zip(met, entries, strict=True)])
            for node in met:
                if node not in nodes:
                    nodes[node] = None
                    queue.append(node)
        rows.append(made)
    return list(nodes), rows


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("reads_ahead", [True, False])
@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_nodes_and_rows_are_those_of_a_queue(monkeypatch, seed, chain, reads_ahead, at_once, wide):
    # As if Ctrl-C were looked for after each few nodes.
    monkeypatch.setattr(products, "ENTRIES_OF_A_CALL", 7)
    model, letters, whole = random_case(seed, chain)
    if not reads_ahead:
        whole[2, 1] = DECIDED
    matrix, groups = model.matrix, model.row_group_offsets
    if wide:
        offsets = matrix.row_offsets.astype(np.int64)
        matrix = CsrMatrix(offsets, matrix.columns.astype(np.int64), matrix.values, 30)
    steps = Made(whole, at_once=at_once)
    first = np.array([4, 9]), np.array([0, 0])
    found = automaton_product(matrix, groups, letters, steps, first, reads_ahead=reads_ahead)
    nodes, rows = expected_nodes(model, letters, whole, [(4, 0), (9, 0)], reads_ahead)
    assert list(zip(found.states, found.automaton_states, strict=True)) == nodes
    number = {node: i for i, node in enumerate(nodes)}
    flat = list(itertools.chain.from_iterable(rows))
    entries = list(itertools.chain.from_iterable(flat))
    assert found.matrix.columns.tolist() == [number[node] for node, _ in entries]
    assert found.matrix.values.tolist() == [value for _, value in entries]
    assert np.diff(found.matrix.row_offsets).tolist() == [len(row) for row in flat]
    if not chain:
        assert np.diff(found.group_offsets).tolist() == [len(own) for own in rows]
    assert (found.group_offsets is None) == chain
    assert len(steps.made) == len(set(steps.made))


def test_an_automaton_without_a_step_is_refused():
    class Refusing(Made):
        def make(self, state, letter):
            raise UnsupportedError(f"{state} {letter}")

    model, letters, whole = random_case(0, False)
    whole[:] = DECIDED
    with pytest.raises(UnsupportedError, match=r"^0 \d$"):
        automaton_product(
            *(model.matrix, model.row_group_offsets, letters, Refusing(whole, at_once=True)),
            (np.array([1]), np.array([0])),
            reads_ahead=True,
        )


def test_memory_is_asked_for(monkeypatch):
    monkeypatch.setattr(room, "available_host_bytes", lambda: 100)
    model, letters, whole = random_case(0, True)
    with pytest.raises(DeviceMemoryError, match="the product with an automaton needs"):
        automaton_product(
            *(model.matrix, None, letters, Made(whole, at_once=True)),
            (np.array([1]), np.array([0])),
            reads_ahead=True,
        )
