"""Formulas of linear temporal logic, in negation normal form from the start.

Every formula is built from true, false, atoms and negated atoms by conjunction, disjunction, next
(X), until (U) and release (R). The other operators are written with these:

    F a = true U a,   G a = false R a,   a W b = b R (a | b).

Equal formulas are one object, so that comparison is identity. The constructors simplify by
equivalences that hold on every infinite word, chosen to leave fewer temporal operators.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from engines.automata.formulas import (
    FALSE,
    TRUE,
    Formula,
    Operator,
    atom,
    atom_names,
    dual,
    duals,
    false,
    make,
    parts_of,
    true,
)

__all__ = ["Formula", "Operator", "atom", "atom_names", "false", "true"]

_DUALS = duals(Operator.NEXT)


def negation(formula: Formula) -> Formula:
    """Return the negation, pushed down to the atoms."""
    # The dual of a simplified formula is simplified: every rule below is applied with its dual.
    return dual(formula, _DUALS)


def conjunction(*formulas: Formula) -> Formula:
    """Return the conjunction of any number of formulas; of none, true."""
    parts = dict.fromkeys(_flattened(Operator.AND, formulas))
    parts.pop(TRUE, None)
    if FALSE in parts or any(negation(part) in parts for part in parts):
        return FALSE
    # G a & G b = G (a & b), and the same under F G: one temporal operator instead of two.
    forever = [part for part in parts if _is_always(part) and not is_suspendable(part)]
    if len(forever) > 1:
        joined = always(conjunction(*(part.operands[1] for part in forever)))
        return conjunction(joined, *(part for part in parts if part not in forever))
    bodies = {part: _body_of_eventually_always(part) for part in parts}
    late = {part: body for part, body in bodies.items() if body is not None}
    if len(late) > 1:
        joined = eventually(always(conjunction(*late.values())))
        return conjunction(joined, *(part for part in parts if part not in late))
    if len(parts) == 1:
        return next(iter(parts))
    return make(Operator.AND, parts) if parts else TRUE


def _flattened(operator: Operator, formulas: Iterable[Formula]) -> Iterable[Formula]:
    for formula in formulas:
        if formula.operator is operator:
            yield from formula.operands
        else:
            yield formula


def disjunction(*formulas: Formula) -> Formula:
    """Return the disjunction of any number of formulas; of none, false."""
    return negation(conjunction(*map(negation, formulas)))


def implies(left: Formula, right: Formula) -> Formula:
    """Return ``left => right``."""
    return disjunction(negation(left), right)


def iff(left: Formula, right: Formula) -> Formula:
    """Return ``left <=> right``."""
    return disjunction(conjunction(left, right), conjunction(negation(left), negation(right)))


def next_(formula: Formula) -> Formula:
    """Return X `formula`: it holds from the second letter on."""
    if formula in (TRUE, FALSE) or is_suspendable(formula):
        return formula
    return make(Operator.NEXT, (formula,))


def until(left: Formula, right: Formula) -> Formula:
    """Return `left` U `right`: `right` holds at some time, and `left` at all times before."""
    if right in (TRUE, FALSE) or left in (FALSE, right) or is_suspendable(right):
        return right
    if left is negation(right):
        left = TRUE
    if right.operator in (Operator.AND, Operator.OR):
        # What holds now if and only if it holds at any other time can be taken out.
        timeless = [part for part in right.operands if is_suspendable(part)]
        if timeless:
            combine = conjunction if right.operator is Operator.AND else disjunction
            timed = [part for part in right.operands if not is_suspendable(part)]
            return combine(until(left, combine(*timed)), *timeless)
    if left is TRUE:
        if right.operator is Operator.NEXT:
            return next_(eventually(right.operands[0]))
        # F (a U b) = F b, also below a disjunction.
        parts = right.operands if right.operator is Operator.OR else (right,)
        if any(part.operator is Operator.UNTIL for part in parts):
            return eventually(
                disjunction(*(p.operands[1] if p.operator is Operator.UNTIL else p for p in parts))
            )
    if right.operator is Operator.UNTIL and right.operands[0] in (left, TRUE):
        return right
    return make(Operator.UNTIL, (left, right))


def release(left: Formula, right: Formula) -> Formula:
    """Return `left` R `right`: `right` holds up to and with the first time of `left`, or always."""
    return negation(until(negation(left), negation(right)))


def weak_until(left: Formula, right: Formula) -> Formula:
    """Return `left` W `right`: `left` holds up to the first time of `right`, or always."""
    return release(right, disjunction(left, right))


def eventually(formula: Formula) -> Formula:
    """Return F `formula`: it holds at some time."""
    return until(TRUE, formula)


def always(formula: Formula) -> Formula:
    """Return G `formula`: it holds at all times."""
    return release(FALSE, formula)


def is_suspendable(formula: Formula) -> bool:
    """Tell whether the formula is seen to hold on a word exactly if on each of its suffixes.

    True for F G a, G F a and what conjunction and disjunction make of them.
    """
    if formula.operator in (Operator.AND, Operator.OR):
        return all(map(is_suspendable, formula.operands))
    if formula.operator is Operator.UNTIL:
        return _body_of_eventually_always(formula) is not None
    return _is_always(formula) and _is_eventually(formula.operands[1])


def _is_always(formula: Formula) -> bool:
    return formula.operator is Operator.RELEASE and formula.operands[0] is FALSE


def _is_eventually(formula: Formula) -> bool:
    return formula.operator is Operator.UNTIL and formula.operands[0] is TRUE


def _body_of_eventually_always(formula: Formula) -> Formula | None:
    if _is_eventually(formula) and _is_always(formula.operands[1]):
        return formula.operands[1].operands[1]
    return None


@functools.lru_cache(maxsize=1024)
def subformulas(formula: Formula, operator: Operator) -> frozenset[Formula]:
    """Return the subformulas, the formula itself included, whose root is `operator`."""
    return frozenset(part for part in parts_of(formula) if part.operator is operator)
