"""Monitors against the semantics of finite words, on every formula of a size and every word.

A language is the set of words with at most `LENGTH` letters that satisfy a formula, as one truth
value a word. The oracle computes it from the languages of the operands, without formulas.
"""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.errors import UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.monitor import ACCEPTED, OPEN, REJECTED, monitor_of

LENGTH = 6
ATOMS = ("p", "q")
WORDS = [w for n in range(1, LENGTH + 1) for w in itertools.product(range(4), repeat=n)]
PLACE = {word: place for place, word in enumerate(WORDS)}
TAIL = np.array([PLACE.get(word[1:], -1) for word in WORDS])
"""The word without its first letter; -1 for words of one letter."""
ROUNDS = np.split(np.arange(len(WORDS)), np.cumsum([4**n for n in range(1, LENGTH)]))
EVERYTHING = np.ones(len(WORDS), np.bool_)


def language_of_next(a):
    return (TAIL >= 0) & a[TAIL]


def language_of_until(a, b, window=(0, None)):
    """By the recursion over suffixes, which needs no search for a position."""
    first, last = window
    if first:
        later = language_of_until(a, b, (first - 1, None if last is None else last - 1))
        return a & language_of_next(later)
    if last is not None:
        reached = b
        for _ in range(last):
            reached = b | (a & language_of_next(reached))
        return reached
    reached = b.copy()
    for places in ROUNDS[1:]:
        reached[places] = b[places] | (a[places] & reached[TAIL[places]])
    return reached


def dual_of_until(a, b, window=(0, None)):
    return ~language_of_until(~a, ~b, window)


def language_of_weak(a, b, window=(0, None)):
    return ~language_of_until(a & ~b, ~a & ~b, window)


UNARY = {
    "!": (ltl.negation, lambda a: ~a),
    "X": (ltl.next_, language_of_next),
    "F": (ltl.eventually, lambda a: language_of_until(EVERYTHING, a)),
    "G": (ltl.always, lambda a: dual_of_until(~EVERYTHING, a)),
}
BINARY = {
    "&": (ltl.conjunction, np.logical_and),
    "|": (ltl.disjunction, np.logical_or),
    "=>": (ltl.implies, lambda a, b: ~a | b),
    "<=>": (ltl.iff, np.equal),
    "U": (ltl.until, language_of_until),
    "R": (ltl.release, dual_of_until),
    "W": (ltl.weak_until, language_of_weak),
}
LEAVES = [
    (ltl.atom("p"), np.array([bool(word[0] & 1) for word in WORDS])),
    (ltl.atom("q"), np.array([bool(word[0] & 2) for word in WORDS])),
    (ltl.true(), EVERYTHING),
    (ltl.false(), ~EVERYTHING),
]


def one_more_operator(operands):
    """Every formula of one operator over the operands, with its language."""
    for make, language in UNARY.values():
        for formula, words in operands:
            yield make(formula), language(words)
    for make, language in BINARY.values():
        for (left, words), (right, others) in itertools.product(operands, repeat=2):
            yield make(left, right), language(words, others)


def one_per_language(formulas):
    """The first formula of each language."""
    kept = {}
    for formula, words in formulas:
        kept.setdefault(words.tobytes(), (formula, words))
    return list(kept.values())


def accepted(transitions, accepting):
    """The language of an automaton, a step for all words of one length at a time."""
    states, found = np.zeros(1, np.int64), []
    for _ in range(LENGTH):
        states = transitions[states].reshape(-1)
        found.append(accepting[states])
    return np.concatenate(found)


def language_of(monitor):
    return accepted(monitor.transitions, monitor.accepting)


def test_there_are_as_many_words_and_languages_as_counted():
    assert len(WORDS) == 5460
    shallow = one_per_language([*LEAVES, *one_more_operator(LEAVES)])
    assert len(shallow) == 24
    assert len(one_per_language([*shallow, *one_more_operator(shallow)])) == 882


def test_all_formulas_of_two_operators_on_all_words():
    """Depth 2 in full: 4154 formulas are left of 9,000 trees when equal ones are one object."""
    first = dict([*LEAVES, *one_more_operator(LEAVES)])
    second = dict(one_more_operator(list(first.items())))
    assert (len(first), len(second)) == (30, 4154)
    for formula, words in second.items():
        assert np.array_equal(language_of(monitor_of(formula, ATOMS)), words), str(formula)


def check_formulas_of_three_operators(seed, count):
    """Operators over operands of depth 2 that are drawn from one formula for each language."""
    shallow = one_per_language([*LEAVES, *one_more_operator(LEAVES)])
    deep = one_per_language([*shallow, *one_more_operator(shallow)])
    for make, language in UNARY.values():
        for formula, words in deep:
            found = language_of(monitor_of(make(formula), ATOMS))
            assert np.array_equal(found, language(words)), str(formula)
    chosen = random.Random(seed)
    for _ in range(count):
        make, language = chosen.choice(list(BINARY.values()))
        (left, words), (right, others) = chosen.choice(deep), chosen.choice(deep)
        formula = make(left, right)
        found = language_of(monitor_of(formula, ATOMS))
        assert np.array_equal(found, language(words, others)), str(formula)


def test_some_formulas_of_three_operators_on_all_words():
    check_formulas_of_three_operators(seed=4, count=300)


@pytest.mark.slow
def test_many_formulas_of_three_operators_on_all_words():
    """All over one operand, and 30,000 of the 5.4 million over two of the 882 languages."""
    check_formulas_of_three_operators(seed=5, count=30_000)


WINDOWS = [(0, 0), (0, 1), (0, 3), (1, 1), (1, None), (2, 4), (0, 9), (3, None)]


@pytest.mark.parametrize("window", WINDOWS)
def test_step_bounds_on_all_words(window):
    shallow = one_per_language([*LEAVES, *one_more_operator(LEAVES)])
    operators = [
        (ltl.until, language_of_until),
        (ltl.release, dual_of_until),
        (ltl.weak_until, language_of_weak),
    ]
    for (make, language), (left, words), (right, others) in itertools.product(
        operators, shallow[::2], shallow[:4]
    ):
        formula, expected = make(left, right, window), language(words, others, window)
        assert np.array_equal(language_of(monitor_of(formula, ATOMS)), expected), str(formula)
        nested = ltl.always(ltl.eventually(formula, (0, 2)))
        inside = language_of_until(EVERYTHING, expected, (0, 2))
        around = dual_of_until(~EVERYTHING, inside)
        assert np.array_equal(language_of(monitor_of(nested, ATOMS)), around), str(nested)


def trees(atoms=("p", "q")):
    leaves = st.sampled_from([*map(ltl.atom, atoms), ltl.true(), ltl.false()])
    windows = st.tuples(st.integers(0, 3), st.none() | st.integers(3, 5))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda make, a: make(a), st.sampled_from([ltl.negation, ltl.next_]), inner),
            st.builds(
                lambda make, a, w: make(a, w),
                st.sampled_from([ltl.eventually, ltl.always]),
                inner,
                windows,
            ),
            st.builds(
                lambda make, a, b, w: make(a, b, w),
                st.sampled_from([ltl.until, ltl.release, ltl.weak_until]),
                inner,
                inner,
                windows,
            ),
            st.builds(
                lambda make, a, b: make(a, b),
                st.sampled_from([ltl.conjunction, ltl.disjunction, ltl.iff]),
                inner,
                inner,
            ),
        ),
        max_leaves=5,
    )


@settings(deadline=None, max_examples=150)
@given(
    formula=trees(("p", "q", "r")),
    word=st.lists(st.sets(st.sampled_from(("p", "q", "r"))), min_size=1, max_size=12),
)
def test_the_monitor_and_the_definition_agree_on_any_formula(formula, word):
    monitor = monitor_of(formula, ("p", "q", "r"))
    letters = [sum(1 << "pqr".index(name) for name in letter) for letter in word]
    assert monitor.accepts(letters) == ltl.holds(formula, word)
    assert monitor_of(ltl.negation(formula), ("p", "q", "r")).accepts(letters) != ltl.holds(
        formula, word
    )


@settings(deadline=None, max_examples=60)
@given(formula=trees())
def test_monitors_are_minimal_and_their_verdicts_final(formula):
    monitor = monitor_of(formula, ATOMS)
    states = len(monitor.accepting)
    # Two states that were equivalent would have equal futures up to as many letters as states.
    # The first state has read nothing, so that only its successors tell it from the others.
    read = np.zeros(states, np.bool_)
    read[monitor.transitions] = True
    reachable = {0}
    futures = monitor.accepting.astype(np.int64)
    for _ in range(states):
        reachable |= {int(x) for state in reachable for x in monitor.transitions[state]}
        rows = np.column_stack([monitor.accepting, futures[monitor.transitions]])
        futures = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    assert len(set(futures[read])) == read.sum()
    assert reachable == set(range(states))
    for state, verdict in enumerate(monitor.verdicts):
        stays = bool((monitor.transitions[state] == state).all())
        assert stays == (verdict != OPEN)
        if stays:
            assert verdict == (ACCEPTED if monitor.accepting[state] else REJECTED)


def test_formulas_of_the_same_words_have_the_same_monitor():
    p, q = ltl.atom("p"), ltl.atom("q")
    pairs = [
        (ltl.until(p, q), ltl.disjunction(q, ltl.conjunction(p, ltl.next_(ltl.until(p, q))))),
        (ltl.eventually(ltl.eventually(p)), ltl.eventually(p)),
        (ltl.weak_until(p, q), ltl.disjunction(ltl.until(p, q), ltl.always(p))),
        (ltl.eventually(p, (0, 3)), ltl.disjunction(p, ltl.next_(ltl.eventually(p, (0, 2))))),
        (ltl.always(p, (1, 2)), ltl.negation(ltl.eventually(ltl.negation(p), (1, 2)))),
    ]
    for left, right in pairs:
        one, other = monitor_of(left, ATOMS), monitor_of(right, ATOMS)
        assert np.array_equal(one.transitions, other.transitions)
        assert np.array_equal(one.accepting[1:], other.accepting[1:])
    assert len(monitor_of(ltl.eventually(p)).accepting) == 2
    assert len(monitor_of(ltl.true()).accepting) == 1


def test_the_last_letter_has_no_next():
    p = ltl.atom("p")
    assert not monitor_of(ltl.next_(ltl.true())).accepts([0])
    assert monitor_of(ltl.negation(ltl.next_(p))).accepts([0])
    assert not monitor_of(ltl.negation(ltl.next_(p))).accepts([0, 1])


def test_bounded_operators_below_always_need_a_counter_and_no_more():
    p, q = ltl.atom("p"), ltl.atom("q")
    response = ltl.always(ltl.implies(p, ltl.eventually(q, (0, 300))))
    started = time.monotonic()
    monitor = monitor_of(response)
    # Nothing is due, 1 to 300 steps are left, broken.
    assert len(monitor.accepting) == 302
    assert time.monotonic() - started < 20
    assert monitor_of(ltl.eventually(p, (0, 2000))).decided_after == 2001


@pytest.mark.parametrize(
    ("formula", "monotone", "decided"),
    [
        (ltl.eventually(ltl.atom("p")), True, None),
        (ltl.always(ltl.atom("p")), False, None),
        (ltl.eventually(ltl.conjunction(ltl.atom("p"), ltl.next_(ltl.atom("q")))), True, None),
        (ltl.eventually(ltl.always(ltl.atom("p"))), False, None),
        (ltl.always(ltl.atom("p"), (0, 4)), False, 5),
        (ltl.eventually(ltl.atom("p"), (2, 4)), True, 5),
        (ltl.negation(ltl.next_(ltl.atom("p"))), False, 2),
        (ltl.true(), True, 0),
    ],
    ids=str,
)
def test_which_formulas_are_monotone_and_which_are_decided_in_time(formula, monotone, decided):
    monitor = monitor_of(formula, ATOMS)
    assert monitor.is_monotone == monotone
    assert monitor.decided_after == decided
    # By the definition, on words: no longer word is lost once a prefix satisfies the formula.
    words = language_of(monitor)
    prefix = [PLACE.get(word[:-1]) for word in WORDS]
    lost = any(
        words[shorter] and not holds
        for shorter, holds in zip(prefix, words, strict=True)
        if shorter is not None
    )
    assert lost != monotone


def test_what_is_too_large_is_refused_with_the_limit():
    atoms = [ltl.atom(f"a{i}") for i in range(17)]
    with pytest.raises(UnsupportedError, match="17 atomic propositions, and a monitor at most 16"):
        monitor_of(ltl.conjunction(*atoms))
    wide = ltl.conjunction(*(ltl.eventually(x) for x in atoms[:14]))
    with pytest.raises(UnsupportedError, match="more than 1024 states for 16384 letters"):
        monitor_of(wide)
    clauses = ltl.conjunction(
        *(
            ltl.disjunction(
                ltl.eventually(ltl.atom("p"), (i, i)), ltl.always(ltl.atom("q"), (0, i))
            )
            for i in range(1, 12)
        )
    )
    assert len(monitor_of(clauses).accepting) < 200
    with pytest.raises(ValueError, match="contain no step"):
        ltl.until(atoms[0], atoms[1], (3, 2))
    with pytest.raises(ValueError, match="not among"):
        monitor_of(atoms[0], ("p",))
