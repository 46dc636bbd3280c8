"""Languages of formulas, computed from those of their operands: the oracle of monitors.

A language is the set of words with at most `LENGTH` letters that satisfy a formula, as one truth
value a word. No formula is looked at to compute it.
"""

from __future__ import annotations

import itertools

import numpy as np

from engines.montecarlo import bounded_ltl as ltl

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
