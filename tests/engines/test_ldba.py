"""The automaton of a formula accepts exactly the words that satisfy it."""

from __future__ import annotations

import itertools
import random

import pytest

from engines.automata import ltl
from engines.automata.ldba import ACCEPTED, REJECTED, AutomatonLimits, LimitDeterministicAutomaton
from engines.errors import UnsupportedError
from tests.engines import ltl_oracle

LETTERS = [set(), {"a"}, {"b"}, {"a", "b"}]
A, B = ltl.atom("a"), ltl.atom("b")


def lassos(longest_prefix, longest_loop):
    for u, v in itertools.product(range(longest_prefix + 1), range(1, longest_loop + 1)):
        for word in itertools.product(LETTERS, repeat=u + v):
            yield word[:u], word[u:]


def encode(automaton, letter):
    return sum(1 << i for i, name in enumerate(automaton.atoms) if name in letter)


class Acceptor:
    """Runs an automaton on lassos; what is known of one loop is kept for the next word."""

    def __init__(self, automaton):
        self.automaton = automaton
        self.known = {}

    def accepts(self, prefix, loop):
        """Whether a run accepts, whose jump comes before any letter (or not at all)."""
        automaton = self.automaton
        letters = [encode(automaton, letter) for letter in (*prefix, *loop)]
        loop = tuple(letters[len(prefix) :])
        state, seen, position = automaton.initial, set(), 0
        while True:
            if state in (REJECTED, ACCEPTED):
                return state == ACCEPTED
            key = (state, position)
            if key in seen:
                return False
            seen.add(key)
            rest = tuple(letters[position : len(prefix)])
            turn = max(0, position - len(prefix))
            word = (rest, loop[turn:] + loop[:turn])
            if any(self.jump_accepts(jump, *word) for jump in automaton.jumps(state)):
                return True
            state, _ = automaton.initial_part.step(state, letters[position])
            position = position + 1 if position + 1 < len(letters) else len(prefix)

    def jump_accepts(self, *key):
        if key not in self.known:
            self.known[key] = self.run(*key)
        return self.known[key]

    def run(self, state, rest, loop):
        part = self.automaton.accepting_part
        for letter in rest:
            if state < 0:
                break
            state, _ = part.step(state, letter)
        history = []
        entered = {}
        while state >= 0 and state not in entered:
            entered[state] = len(history)
            met = 0
            for letter in loop:
                if state >= 0:
                    state, goals = part.step(state, letter)
                    met |= goals
            history.append(met)
        if state < 0:
            return state == ACCEPTED
        met = 0
        for goals in history[entered[state] :]:
            met |= goals
        return met == part.goals(state)


def expect_the_language(tree, words):
    acceptor = Acceptor(LimitDeterministicAutomaton(ltl_oracle.to_formula(tree)))
    for prefix, loop in words:
        expected = ltl_oracle.satisfies(tree, prefix, loop)
        assert acceptor.accepts(prefix, loop) == expected, (tree, prefix, loop)


WORDS = list(lassos(3, 3))


@pytest.mark.parametrize("seed", range(4))
def test_random_formulas_and_random_lassos_up_to_three_and_three(seed):
    rng = random.Random(seed)
    for _ in range(100):
        expect_the_language(ltl_oracle.random_tree(rng, rng.randint(2, 8)), rng.sample(WORDS, 60))


@pytest.mark.parametrize("seed", range(2))
def test_larger_random_formulas(seed):
    rng = random.Random(100 + seed)
    for _ in range(40):
        expect_the_language(ltl_oracle.random_tree(rng, rng.randint(9, 16)), rng.sample(WORDS, 60))


EVERY_WORD = [
    ("G", ("=>", "a", ("F", "b"))),
    ("U", "a", ("&", "b", ("X", ("G", ("F", "a"))))),
    ("&", ("G", ("F", ("U", "a", ("X", "b")))), ("F", ("G", ("R", "b", ("X", "a"))))),
    ("<=>", ("G", ("F", "a")), ("F", ("G", ("W", "a", ("X", "b"))))),
    ("|", ("G", ("|", ("X", "a"), ("F", ("G", "b")))), ("R", ("F", "a"), ("!", "b"))),
]


@pytest.mark.parametrize("tree", EVERY_WORD, ids=ltl_oracle.to_prism)
def test_every_lasso_up_to_three_and_three(tree):
    expect_the_language(tree, WORDS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_lasso_of_many_random_formulas(seed):
    rng = random.Random(200 + seed)
    for _ in range(40):
        expect_the_language(ltl_oracle.random_tree(rng, rng.randint(2, 8)), WORDS)


def test_a_right_guess_accepts_however_late_the_jump():
    """What makes the automaton fit for MDPs: on a^n (b a)^omega, jump at any place of the loop."""
    automaton = LimitDeterministicAutomaton(ltl.conjunction(ltl.always(ltl.eventually(A)), F_B))
    acceptor = Acceptor(automaton)
    for turns in range(4):
        state = automaton.initial
        for letter in [{"a"}, *[{"b"}, {"a"}] * turns]:
            state, _ = automaton.initial_part.step(state, encode(automaton, letter))
        loop = (encode(automaton, {"b"}), encode(automaton, {"a"}))
        assert any(acceptor.run(jump, (), loop) for jump in automaton.jumps(state))


F_B = ltl.eventually(B)


def explored(automaton):
    """All reachable states of both parts."""
    letters = range(1 << len(automaton.atoms))
    first = closure(automaton.initial_part, {automaton.initial}, letters)
    return first, closure(
        automaton.accepting_part, {jump for s in first for jump in automaton.jumps(s)}, letters
    )


def closure(part, states, letters):
    found = {state for state in states if state >= 0}
    pending = list(found)
    while pending:
        state = pending.pop()
        for letter in letters:
            after, _ = part.step(state, letter)
            if after >= 0 and after not in found:
                found.add(after)
                pending.append(after)
    return found


@pytest.mark.parametrize(
    ("formula", "initial", "accepting"),
    [
        (ltl.eventually(A), 1, 0),
        (ltl.until(A, ltl.until(B, ltl.atom("c"))), 2, 0),
        (ltl.always(ltl.eventually(A)), 1, 1),
        (ltl.eventually(ltl.always(A)), 1, 1),
        (ltl.conjunction(ltl.always(ltl.eventually(A)), ltl.always(ltl.eventually(B))), 1, 1),
        (ltl.conjunction(ltl.always(ltl.eventually(A)), ltl.eventually(ltl.always(B))), 1, 1),
        (ltl.always(ltl.implies(A, ltl.eventually(B))), 2, 4),
        (ltl.conjunction(ltl.eventually(A), ltl.eventually(B)), 3, 0),
    ],
    ids=str,
)
def test_automata_stay_small(formula, initial, accepting):
    parts = explored(LimitDeterministicAutomaton(formula))
    assert tuple(map(len, parts)) == (initial, accepting)


def test_a_formula_without_release_needs_no_jump():
    automaton = LimitDeterministicAutomaton(ltl.until(A, ltl.conjunction(B, ltl.next_(F_B))))
    assert all(automaton.jumps(state) == () for state in explored(automaton)[0])


@pytest.mark.parametrize("valid", [True, False])
def test_constant_formulas_are_decided_at_once(valid):
    always_so = ltl.disjunction(ltl.eventually(A), ltl.always(ltl.negation(A)))
    formula = always_so if valid else ltl.negation(always_so)
    assert LimitDeterministicAutomaton(formula).initial == (ACCEPTED if valid else REJECTED)


def test_equal_formulas_are_one_object():
    assert ltl.until(A, B) is ltl.until(A, B)
    assert ltl.conjunction(A, B, A) is ltl.conjunction(B, A)
    assert ltl.negation(ltl.negation(ltl.until(A, B))) is ltl.until(A, B)
    assert ltl.always(A) is ltl.negation(ltl.eventually(ltl.negation(A)))


def test_formulas_do_not_change():
    with pytest.raises(AttributeError):
        A.name = "b"


def test_nested_operators_are_joined():
    often = ltl.always(ltl.eventually(A))
    assert ltl.eventually(often) is often
    assert ltl.next_(often) is often
    assert ltl.until(B, often) is often
    assert ltl.always(ltl.eventually(ltl.next_(ltl.until(B, A)))) is often
    assert ltl.conjunction(ltl.always(A), ltl.always(B)) is ltl.always(ltl.conjunction(A, B))


def test_a_formula_with_too_many_guesses_is_refused():
    pairs = [
        ltl.disjunction(
            ltl.always(ltl.eventually(ltl.atom(f"a{i}"))),
            ltl.eventually(ltl.always(ltl.atom(f"b{i}"))),
        )
        for i in range(6)
    ]
    limits = AutomatonLimits(guesses=500)
    automaton = LimitDeterministicAutomaton(ltl.conjunction(*pairs), limits)
    with pytest.raises(UnsupportedError, match="guesses"):
        automaton.jumps(automaton.initial)
