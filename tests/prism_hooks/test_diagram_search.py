"""Fixpoints over sets of states in CUDD's diagrams, beside plain loops; CUDD is that of PRISM."""

from __future__ import annotations

import ctypes
import random
from functools import reduce
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from prism_hooks import cudd
from prism_hooks.diagram_search import SEARCHES, STEPS_OF_A_ROUND
from tests.engines import reference

pytestmark = pytest.mark.prism

BITS, CHOICE_BITS = 3, 2
SIZE = 1 << BITS
CHOICES = tuple(range(CHOICE_BITS))
ROWS = tuple(CHOICE_BITS + 2 * bit for bit in range(BITS))
COLUMNS = tuple(row + 1 for row in ROWS)
FOREVER = float("inf")


class Diagrams:
    """A manager of its own, and sets of states in it."""

    def __init__(self, install):
        folders = [install.library_path]
        native = next(
            ctypes.CDLL(str(folder / f"{name}{suffix}"))
            for folder in folders
            for name in cudd.LIBRARIES
            for suffix in cudd.SUFFIXES
            if (folder / f"{name}{suffix}").is_file()
        )
        init = native.Cudd_Init
        init.restype, init.argtypes = ctypes.c_void_p, (*[ctypes.c_uint] * 4, ctypes.c_size_t)
        self.native, self.manager = native, init(0, len(ROWS) * 2 + CHOICE_BITS, 256, 1 << 12, 0)
        self.library = cudd.opened(folders, self.manager)
        assert self.library is not None
        self.space = cudd.Space(self.library, ROWS, COLUMNS)
        self.kept = []

    def references(self):
        """Return how many nodes somebody holds."""
        check = self.native.Cudd_CheckZeroRef
        check.restype, check.argtypes = ctypes.c_int, (ctypes.c_void_p,)
        return check(self.manager)

    def point(self, number, variables):
        bits = []
        for place, variable in enumerate(variables):
            bit = self.space.variables([variable])
            bits.append(bit if number >> (len(variables) - 1 - place) & 1 else ~bit)
        return reduce(lambda one, other: one & other, bits)

    @property
    def nothing(self):
        bit = self.space.variables([ROWS[0]])
        return bit & ~bit

    def union(self, sets):
        return reduce(lambda one, other: one | other, sets, self.nothing)

    def of_states(self, mask):
        """Return the address of a set, as PRISM would hold it."""
        return self.keep(self.union(self.point(state, ROWS) for state in np.flatnonzero(mask)))

    def of_edges(self, choices):
        return self.keep(
            self.union(
                self.point(choice, CHOICES) & self.point(state, ROWS) & self.point(after, COLUMNS)
                for state, rows in enumerate(choices)
                for choice, row in enumerate(rows)
                for after in row
            )
        )

    def of_no_choice(self, choices):
        return self.keep(
            self.union(
                self.point(choice, CHOICES) & self.point(state, ROWS)
                for state, rows in enumerate(choices)
                for choice in range(len(rows), 1 << CHOICE_BITS)
            )
        )

    def keep(self, found):
        address = found.diagram()
        self.kept.append(address)
        return address

    def states(self, address):
        """Return a set that a search has found, and give it up."""
        found = self.space.of(address)
        self.library.call("Cudd_RecursiveDeref", address)
        mask = [
            not (found & self.point(state, ROWS)).is_same(self.nothing) for state in range(SIZE)
        ]
        return np.array(mask)

    def search(self, kind, **given):
        names = ("within", "through", "goal", "mask", "no")
        asked = SimpleNamespace(
            rows=ROWS,
            columns=COLUMNS,
            choices=given.pop("choices", CHOICES),
            transitions=given.pop("transitions"),
            goals=given.pop("goals", None),
            **{name: given.pop(name, 0) for name in names},
        )
        assert not given
        return SEARCHES[kind](self.library, asked)

    def close(self):
        self.space.clear()
        for address in self.kept:
            self.library.call("Cudd_RecursiveDeref", address)
        left = self.references()
        self.native.Cudd_Quit.argtypes = (ctypes.c_void_p,)
        self.native.Cudd_Quit(self.manager)
        return left


@pytest.fixture
def diagrams(prism_install):
    """Sets in a manager, all of which have been given up at the end."""
    made = Diagrams(prism_install)
    yield made
    assert made.close() == 0


def random_choices(seed, most_choices):
    """Return, for each state and each of its choices, the states that it may enter."""
    rng = random.Random(seed)
    most = rng.choice((1, 2, 3))
    return [
        [set(rng.sample(range(SIZE), rng.randint(1, most))) for _ in range(rng.randint(1, k))]
        for k in [most_choices] * SIZE
    ]


def random_mask(seed, share):
    return np.random.default_rng(seed).random(SIZE) < share


def model_of(choices):
    rows = [sorted(row) for state in choices for row in state]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    columns = np.array([column for row in rows for column in row], dtype=np.int32)
    values = np.concatenate([np.full(len(row), 1 / len(row)) for row in rows])
    matrix = CsrMatrix(offsets, columns, values, SIZE)
    groups = np.cumsum([0, *map(len, choices)]).astype(np.int32)
    return ExplicitModel(ModelKind.MDP, matrix, groups)


EVERY = np.ones(SIZE, dtype=np.bool_)
SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_probabilities_zero_and_one_are_those_of_plain_loops(seed, diagrams):
    choices = random_choices(seed, 4)
    model = model_of(choices)
    through, goal = random_mask(seed, 0.7), random_mask(1000 + seed, 0.2)
    edges, every = diagrams.of_edges(choices), diagrams.of_states(EVERY)
    given = {
        "transitions": edges,
        "within": every,
        "through": diagrams.of_states(through),
        "goal": diagrams.of_states(goal),
    }
    some = diagrams.search("unreaching", **given)
    each = diagrams.search("unreaching", **given, mask=diagrams.of_no_choice(choices))
    no = reference.prob0a(model, through, goal)
    sure = diagrams.search("sure", **given, no=diagrams.of_states(no))
    expected = (no, reference.prob0e(model, through, goal), reference.prob1e(model, through, goal))
    for search, states in zip((some, each, sure), expected, strict=True):
        assert search.run(FOREVER)
        assert not search.failed()
        assert diagrams.states(search.result()).tolist() == states.tolist()
        search.clear()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_is_searched_forwards_and_backwards(seed, diagrams):
    choices = random_choices(seed, 1)
    edges = diagrams.union(
        diagrams.point(state, ROWS) & diagrams.point(after, COLUMNS)
        for state, (row,) in enumerate(choices)
        for after in row
    )
    relation = {"transitions": diagrams.keep(edges), "choices": None}
    start, within = int(np.random.default_rng(seed).integers(SIZE)), random_mask(seed, 0.6)
    first = np.arange(SIZE) == start
    reached, rounds = {start}, 0
    while True:
        rounds += 1
        following = reached | {after for state in reached for after in choices[state][0]}
        if following == reached:
            break
        reached = following
    search = diagrams.search("reached", **relation, goal=diagrams.of_states(first))
    assert search.run(FOREVER)
    assert search.rounds() == rounds
    assert set(np.flatnonzero(diagrams.states(search.result()))) == reached
    search.clear()

    inside = {start}
    while True:
        more = {a for s in inside for a in choices[s][0] if within[a]} - inside
        if not more:
            break
        inside |= more
    part = {**relation, "within": diagrams.of_states(within)}
    search = diagrams.search("unreached", **part, goal=diagrams.of_states(first))
    assert search.run(FOREVER)
    expected = set(np.flatnonzero(within)) - inside
    assert set(np.flatnonzero(diagrams.states(search.result()))) == expected
    search.clear()

    left = set(np.flatnonzero(within))
    while True:
        leaving = {s for s in left if choices[s][0] & left}
        entered = {after for s in left for after in choices[s][0]}
        if leaving & entered == left:
            break
        left = leaving & entered
    search = diagrams.search("trimmed", **part)
    assert search.run(FOREVER)
    assert set(np.flatnonzero(diagrams.states(search.result()))) == left
    search.clear()


def end_components(choices, within, goals):
    """Return all sets of states that are end components with a state of each goal, by trial."""
    states = np.flatnonzero(within).tolist()
    for count in range(1, len(states) + 1):
        for members in map(set, combinations(states, count)):
            if not all(members & goal for goal in goals):
                continue
            after = {
                state: set().union(*(row for row in choices[state] if row <= members))
                for state in members
            }
            reach = {s: {s} for s in members}
            for _ in members:
                reach = {s: seen.union(*(after[t] for t in seen)) for s, seen in reach.items()}
            if all(after[s] and reach[s] == members for s in members):
                yield members


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 2])
def test_what_recurs_surely_reaches_an_end_component_with_all_goals(seed, count, diagrams):
    choices = random_choices(seed, 3)
    within = random_mask(seed, 0.85)
    goals = [random_mask(100 * goal + seed, 0.4) for goal in range(1, count + 1)]
    sets = [set(np.flatnonzero(goal)) for goal in goals]
    accepting = np.zeros(SIZE, dtype=np.bool_)
    for members in end_components(choices, within, sets):
        accepting[list(members)] = True
    search = diagrams.search(
        "recurring",
        transitions=diagrams.of_edges(choices),
        within=diagrams.of_states(within),
        goals=[diagrams.of_states(goal) for goal in goals],
    )
    assert search.run(FOREVER)
    found = diagrams.states(search.result())
    search.clear()
    assert found.tolist() == reference.prob1e(model_of(choices), within, accepting).tolist()


def long_walk(diagrams):
    """Return a search that takes as many rounds as there are states."""
    edges = diagrams.union(
        diagrams.point(state, ROWS) & diagrams.point(state + 1, COLUMNS)
        for state in range(SIZE - 1)
    )
    goal = diagrams.of_states(np.arange(SIZE) == 0)
    return diagrams.search("reached", transitions=diagrams.keep(edges), choices=None, goal=goal)


def test_a_search_goes_on_where_its_steps_were_used_up(diagrams, monkeypatch):
    search = long_walk(diagrams)
    assert not search.run(0.0)
    assert search.rounds() == 0
    monkeypatch.setattr(diagrams.library, "looked_up", lambda: 0.0)
    assert not search.run(2.5 * STEPS_OF_A_ROUND)
    assert search.rounds() == 3
    assert search.steps() == 3 * STEPS_OF_A_ROUND
    assert search.run(FOREVER)
    assert search.rounds() == SIZE
    assert diagrams.states(search.result()).all()
    search.clear()


def test_a_round_that_is_late_begins_anew(diagrams, monkeypatch):
    search, made, calls = long_walk(diagrams), diagrams.library.made, []

    def late_once(name, *arguments):
        calls.append(name)
        if calls.count("Cudd_bddAndAbstract") == 3 and name == "Cudd_bddAndAbstract":
            raise cudd.LateError
        return made(name, *arguments)

    monkeypatch.setattr(diagrams.library, "made", late_once)
    assert not search.run(1e9)
    assert search.rounds() == 2
    assert search.steps() == 1e9
    assert not search.failed()
    assert search.run(FOREVER)
    assert search.rounds() == SIZE
    assert diagrams.states(search.result()).all()
    search.clear()


def test_a_limit_of_steps_is_told_from_a_lack_of_memory(diagrams):
    rng, found = random.Random(1), [diagrams.nothing]

    def join_many_points():
        # CUDD asks now and then, where a result is none of those computed before.
        for _ in range(100_000):
            found.append(found.pop() | diagrams.point(rng.getrandbits(24), range(24)))

    with diagrams.library.limited(0.0), pytest.raises(cudd.LateError):
        join_many_points()
    again = diagrams.point(1, range(24)) & diagrams.point(1, range(24))
    assert again.is_same(diagrams.point(1, range(24)))


def test_where_memory_ends_so_does_the_search(diagrams, monkeypatch):
    search, made = long_walk(diagrams), diagrams.library.made

    def full(name, *arguments):
        if name == "Cudd_bddAndAbstract":
            raise cudd.FullError(name)
        return made(name, *arguments)

    monkeypatch.setattr(diagrams.library, "made", full)
    assert not search.run(FOREVER)
    assert search.failed()
    search.clear()


def test_a_library_without_cudd_is_none(tmp_path):
    (tmp_path / "libprism.so").write_bytes(b"no library")
    assert cudd.opened([tmp_path, tmp_path / "missing"], 1) is None
