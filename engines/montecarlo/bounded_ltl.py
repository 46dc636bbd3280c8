"""Linear temporal logic on finite words: what a formula says of the first k states of a path.

A word has at least one letter. The semantics is that of the first k states alone: an obligation
that the word leaves open is not met, and ¬φ holds exactly where φ does not. So

    X φ        the word goes on, and φ holds from its next letter (strong next),
    a U b      b holds at a position of the word, and a at all positions before,
    G φ        φ holds at every position of the word,

and a R b = ¬(¬a U ¬b), a W b = ¬((a ∧ ¬b) U (¬a ∧ ¬b)), F b = true U b. A window of step bounds
restricts where the right side of an until may hold: a U[l,u] b means b at a position i with
l ≤ i ≤ u of the word, and a at all positions before i; the other operators follow by duality.

Formulas are kept in negation normal form: the dual of X is the weak next, which holds at the last
letter whatever follows. Equal formulas are one object, so that comparison is identity.

Source: the finite paths of T. Hérault, R. Lassaigne, F. Magniette, S. Peyronnet, "Approximate
probabilistic model checking", VMCAI 2004; G. De Giacomo, M. Vardi, "Linear temporal logic and
linear dynamic logic on finite traces", IJCAI 2013. The expansions of W and R, and what bounds
mean, are those of PRISM's `ExpressionTemporal`.
"""

from __future__ import annotations

from engines.automata.formulas import (
    ANY_TIME,
    FALSE,
    TRUE,
    Formula,
    Operator,
    Window,
    atom,
    atom_names,
    dual,
    duals,
    false,
    make,
    true,
)

__all__ = ["ANY_TIME", "Formula", "Operator", "Window", "atom", "atom_names", "false", "true"]

_DUALS = duals(Operator.WEAK_NEXT)


def negation(formula: Formula) -> Formula:
    """Return the negation, pushed down to the atoms."""
    return dual(formula, _DUALS)


def conjunction(*formulas: Formula) -> Formula:
    """Return the conjunction of any number of formulas; of none, true."""
    parts: dict[Formula, None] = {}
    for formula in formulas:
        parts.update(
            dict.fromkeys(formula.operands if formula.operator is Operator.AND else (formula,))
        )
    parts.pop(TRUE, None)
    if FALSE in parts or any(negation(part) in parts for part in parts):
        return FALSE
    if len(parts) == 1:
        return next(iter(parts))
    return make(Operator.AND, parts) if parts else TRUE


def disjunction(*formulas: Formula) -> Formula:
    """Return the disjunction of any number of formulas; of none, false."""
    return negation(conjunction(*map(negation, formulas)))


def implies(left: Formula, right: Formula) -> Formula:
    """Return ``left => right``."""
    return disjunction(negation(left), right)


def iff(left: Formula, right: Formula) -> Formula:
    """Return ``left <=> right``."""
    return disjunction(conjunction(left, right), conjunction(negation(left), negation(right)))


def is_positive(formula: Formula) -> bool:
    """Tell whether each word that satisfies a formula does so whatever follows, for ever as well.

    So it is, by induction, if the formula promises nothing that only its end fulfils: there is no
    negation but of atoms, no G and no R. The probability of its finite prefixes is then a lower
    bound of that of infinite paths; the paper calls such formulas essentially positive. A formula
    such as F !X true is satisfied by every finite word and by no infinite one.
    """
    if formula.operator in (Operator.WEAK_NEXT, Operator.RELEASE):
        return False
    return all(map(is_positive, formula.operands))


def next_(formula: Formula) -> Formula:
    """Return X `formula`: there is a next letter, and it holds from there."""
    return FALSE if formula is FALSE else make(Operator.NEXT, (formula,))


def until(left: Formula, right: Formula, window: Window = ANY_TIME) -> Formula:
    """Return `left` U `right`, with the position of `right` within the window.

    Raises
    ------
    ValueError
        If the window is empty or begins before the first position.
    """
    first, last = window
    if first < 0 or (last is not None and last < first):
        raise ValueError(f"the step bounds [{first},{last}] of an until contain no step")
    if right is FALSE or (first == 0 and (right is TRUE or left is FALSE or last == 0)):
        return right
    return make(Operator.UNTIL, (left, right), window=window)


def release(left: Formula, right: Formula, window: Window = ANY_TIME) -> Formula:
    """Return `left` R `right`, the dual of until; raises as `until` does."""
    return negation(until(negation(left), negation(right), window))


def weak_until(left: Formula, right: Formula, window: Window = ANY_TIME) -> Formula:
    """Return `left` W `right`: no until of the negations; raises as `until` does."""
    broken = conjunction(negation(left), negation(right))
    return negation(until(conjunction(left, negation(right)), broken, window))


def eventually(formula: Formula, window: Window = ANY_TIME) -> Formula:
    """Return F `formula`; raises as `until` does."""
    return until(TRUE, formula, window)


def always(formula: Formula, window: Window = ANY_TIME) -> Formula:
    """Return G `formula`; raises as `until` does."""
    return release(FALSE, formula, window)
