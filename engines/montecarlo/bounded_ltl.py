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

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from weakref import WeakValueDictionary

Window = tuple[int, int | None]
"""The first and the last position within step bounds; None for no last."""

ANY_TIME: Window = (0, None)


class Operator(StrEnum):
    """What a formula is at its root."""

    TRUE = "true"
    FALSE = "false"
    ATOM = "atom"
    NEGATED_ATOM = "!"
    AND = "&"
    OR = "|"
    NEXT = "X"
    WEAK_NEXT = "weak X"
    UNTIL = "U"
    RELEASE = "R"


_DUAL = {
    Operator.TRUE: Operator.FALSE,
    Operator.ATOM: Operator.NEGATED_ATOM,
    Operator.AND: Operator.OR,
    Operator.NEXT: Operator.WEAK_NEXT,
    Operator.UNTIL: Operator.RELEASE,
}
_DUAL |= {right: left for left, right in _DUAL.items()}


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Formula:
    """A formula; made by the functions of this module only, so that equal ones are identical.

    Parameters
    ----------
    operator
        What it is at the root.
    operands
        Its direct subformulas; those of a conjunction or disjunction in the order of `serial`.
    name
        The atom's name, empty for all but atoms and negated atoms.
    window
        The step bounds of an until or a release.
    serial
        A number of its own.
    """

    operator: Operator
    operands: tuple[Formula, ...]
    name: str
    window: Window
    serial: int

    def __str__(self) -> str:
        match self.operator:
            case Operator.TRUE | Operator.FALSE:
                return str(self.operator)
            case Operator.ATOM:
                return f'"{self.name}"'
            case Operator.NEGATED_ATOM:
                return f'!"{self.name}"'
            case Operator.NEXT | Operator.WEAK_NEXT:
                return f"({self.operator} {self.operands[0]})"
        first, last = self.window
        bounds = "" if self.window == ANY_TIME else f"[{first},{'' if last is None else last}]"
        return f"({f' {self.operator}{bounds} '.join(map(str, self.operands))})"


_Key = tuple[Operator, str, Window, tuple[int, ...]]
_known: WeakValueDictionary[_Key, Formula] = WeakValueDictionary()
_serials = itertools.count()


def _make(
    operator: Operator,
    operands: Iterable[Formula] = (),
    name: str = "",
    window: Window = ANY_TIME,
) -> Formula:
    parts = tuple(operands)
    if operator in (Operator.AND, Operator.OR):
        parts = tuple(sorted(parts, key=lambda part: part.serial))
    key = (operator, name, window, tuple(part.serial for part in parts))
    formula = _known.get(key)
    if formula is None:
        formula = _known[key] = Formula(operator, parts, name, window, next(_serials))
    return formula


_TRUE = _make(Operator.TRUE)
_FALSE = _make(Operator.FALSE)


def true() -> Formula:
    """Return the formula that every word satisfies."""
    return _TRUE


def false() -> Formula:
    """Return the formula that no word satisfies."""
    return _FALSE


def atom(name: str) -> Formula:
    """Return the formula of the words whose first letter contains `name`."""
    return _make(Operator.ATOM, name=name)


def negation(formula: Formula) -> Formula:
    """Return the negation, pushed down to the atoms."""
    duals: dict[Formula, Formula] = {}

    def dual(part: Formula) -> Formula:
        if part not in duals:
            duals[part] = _make(
                _DUAL[part.operator], map(dual, part.operands), part.name, part.window
            )
        return duals[part]

    return dual(formula)


def conjunction(*formulas: Formula) -> Formula:
    """Return the conjunction of any number of formulas; of none, true."""
    parts: dict[Formula, None] = {}
    for formula in formulas:
        parts.update(
            dict.fromkeys(formula.operands if formula.operator is Operator.AND else (formula,))
        )
    parts.pop(_TRUE, None)
    if _FALSE in parts or any(negation(part) in parts for part in parts):
        return _FALSE
    if len(parts) == 1:
        return next(iter(parts))
    return _make(Operator.AND, parts) if parts else _TRUE


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
    return _FALSE if formula is _FALSE else _make(Operator.NEXT, (formula,))


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
    if right is _FALSE or (first == 0 and (right is _TRUE or left is _FALSE or last == 0)):
        return right
    return _make(Operator.UNTIL, (left, right), window=window)


def release(left: Formula, right: Formula, window: Window = ANY_TIME) -> Formula:
    """Return `left` R `right`, the dual of until; raises as `until` does."""
    return negation(until(negation(left), negation(right), window))


def weak_until(left: Formula, right: Formula, window: Window = ANY_TIME) -> Formula:
    """Return `left` W `right`: no until of the negations; raises as `until` does."""
    broken = conjunction(negation(left), negation(right))
    return negation(until(conjunction(left, negation(right)), broken, window))


def eventually(formula: Formula, window: Window = ANY_TIME) -> Formula:
    """Return F `formula`; raises as `until` does."""
    return until(_TRUE, formula, window)


def always(formula: Formula, window: Window = ANY_TIME) -> Formula:
    """Return G `formula`; raises as `until` does."""
    return release(_FALSE, formula, window)


def atom_names(formula: Formula) -> tuple[str, ...]:
    """Return the names of the atoms that occur, sorted."""
    seen: set[Formula] = set()
    pending = [formula]
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            pending.extend(part.operands)
    return tuple(sorted({part.name for part in seen if part.name}))
