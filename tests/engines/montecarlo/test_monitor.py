"""Monitors against the semantics of finite words, on every formula of a size and every word.

The oracle, `languages`, computes the words of a formula from those of its operands. All formulas of
depth 3 take longer than a test may: `all_formulas` checks them.
"""

from __future__ import annotations

import functools
import itertools
import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.monitor import ACCEPTED, OPEN, REJECTED, monitor_of
from tests.engines.montecarlo import all_formulas
from tests.engines.montecarlo.languages import (
    ATOMS,
    BINARY,
    EVERYTHING,
    LEAVES,
    PLACE,
    UNARY,
    WORDS,
    dual_of_until,
    language_of,
    language_of_until,
    language_of_weak,
    one_more_operator,
    one_per_language,
)
from tests.engines.montecarlo.words import holds


@functools.cache
def shallow_formulas():
    """One formula of one operator at most for each language."""
    return one_per_language([*LEAVES, *one_more_operator(LEAVES)])


@functools.cache
def deep_formulas():
    """One formula of two operators at most, over such formulas, for each language."""
    shallow = shallow_formulas()
    return one_per_language([*shallow, *one_more_operator(shallow)])


def test_there_are_as_many_words_and_languages_as_counted():
    assert len(WORDS) == 5460
    assert len(shallow_formulas()) == 24
    assert len(deep_formulas()) == 882


def test_all_formulas_of_two_operators_on_all_words():
    """Depth 2 in full: 4154 formulas are left of 9,000 trees when equal ones are one object."""
    first = dict([*LEAVES, *one_more_operator(LEAVES)])
    second = dict(one_more_operator(list(first.items())))
    assert (len(first), len(second)) == (30, 4154)
    for formula, words in second.items():
        assert np.array_equal(language_of(monitor_of(formula, ATOMS)), words), str(formula)


def check_formulas_of_three_operators(seed, count, every=1):
    """Operators over operands of depth 2 that are drawn from one formula for each language."""
    deep = deep_formulas()
    for make, language in UNARY.values():
        for formula, words in deep[::every]:
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
    check_formulas_of_three_operators(seed=4, count=300, every=5)


@pytest.mark.slow
def test_many_formulas_of_three_operators_on_all_words():
    """All over one operand, and 30,000 of the 5.4 million over two of the 882 languages."""
    check_formulas_of_three_operators(seed=5, count=30_000)


WINDOWS = [(0, 0), (0, 1), (0, 3), (1, 1), (1, None), (2, 4), (0, 9), (3, None)]


@pytest.mark.parametrize("window", WINDOWS)
def test_step_bounds_on_all_words(window):
    shallow = shallow_formulas()
    operators = [
        (ltl.until, language_of_until),
        (ltl.release, dual_of_until),
        (ltl.weak_until, language_of_weak),
    ]
    for (make, language), (left, words), (right, others) in itertools.product(
        operators, shallow[::4], shallow[:4]
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


@given(
    formula=trees(("p", "q", "r")),
    word=st.lists(st.sets(st.sampled_from(("p", "q", "r"))), min_size=1, max_size=12),
)
def test_the_monitor_and_the_definition_agree_on_any_formula(formula, word):
    monitor = monitor_of(formula, ("p", "q", "r"))
    letters = [sum(1 << "pqr".index(name) for name in letter) for letter in word]
    assert monitor.accepts(letters) == holds(formula, word)
    assert monitor_of(ltl.negation(formula), ("p", "q", "r")).accepts(letters) != holds(
        formula, word
    )


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


def test_the_parts_of_all_formulas_are_checked_and_faults_in_them_found(monkeypatch):
    # 7 operators over 882 languages, 3 of them commutative; the rest is counted above.
    names = all_formulas.chunks()
    assert len(names) == len(set(names)) == 1 + 4 + 7 * 882
    assert len(all_formulas.part_of(names, "2/5")) == -(-(len(names) - 1) // 5)
    monkeypatch.setattr(all_formulas, "operands", lambda: all_formulas.up_to_depth_2()[:60:3])
    for symbol, count in (("W", 20), ("&", 17)):
        record = all_formulas.check(f"{symbol} 3")
        assert (record["formulas"], record["wrong"]) == (count, [])
    make, _ = BINARY["W"]
    monkeypatch.setitem(all_formulas.BINARY, "W", (make, BINARY["U"][1]))
    assert all_formulas.check("W 3")["wrong"]
