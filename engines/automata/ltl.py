"""Formulas of linear temporal logic, in negation normal form from the start.

Every formula is built from true, false, atoms and negated atoms by conjunction, disjunction, next
(X), until (U) and release (R). The other operators are written with these:

    F a = true U a,   G a = false R a,   a W b = b R (a | b).

Equal formulas are one object, so that comparison is identity. The constructors simplify by
equivalences that hold on every infinite word, chosen to leave fewer temporal operators.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from weakref import WeakValueDictionary


class Operator(StrEnum):
    """What a formula is at its root."""

    TRUE = "true"
    FALSE = "false"
    ATOM = "atom"
    NEGATED_ATOM = "!"
    AND = "&"
    OR = "|"
    NEXT = "X"
    UNTIL = "U"
    RELEASE = "R"


_DUAL = {
    Operator.TRUE: Operator.FALSE,
    Operator.ATOM: Operator.NEGATED_ATOM,
    Operator.AND: Operator.OR,
    Operator.NEXT: Operator.NEXT,
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
    serial
        A number of its own.
    """

    operator: Operator
    operands: tuple[Formula, ...]
    name: str
    serial: int

    @property
    def is_literal(self) -> bool:
        """Whether it is an atom or a negated atom."""
        return self.operator in (Operator.ATOM, Operator.NEGATED_ATOM)

    def __str__(self) -> str:
        match self.operator, self.operands:
            case Operator.TRUE | Operator.FALSE, _:
                return str(self.operator)
            case Operator.ATOM, _:
                return f'"{self.name}"'
            case Operator.NEGATED_ATOM, _:
                return f'!"{self.name}"'
            case Operator.NEXT, (operand,):
                return f"(X {operand})"
            case Operator.UNTIL, (left, right) if left is true():
                return f"(F {right})"
            case Operator.RELEASE, (left, right) if left is false():
                return f"(G {right})"
        return f"({f' {self.operator} '.join(map(str, self.operands))})"


_known: WeakValueDictionary[tuple[Operator, str, tuple[int, ...]], Formula] = WeakValueDictionary()
_serials = itertools.count()


def _make(operator: Operator, operands: Iterable[Formula] = (), name: str = "") -> Formula:
    parts = tuple(operands)
    if operator in (Operator.AND, Operator.OR):
        parts = tuple(sorted(parts, key=lambda part: part.serial))
    key = (operator, name, tuple(part.serial for part in parts))
    formula = _known.get(key)
    if formula is None:
        formula = _known[key] = Formula(operator, parts, name, next(_serials))
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
    """Return the formula that the words satisfy whose first letter contains `name`."""
    return _make(Operator.ATOM, name=name)


def negation(formula: Formula) -> Formula:
    """Return the negation, pushed down to the atoms."""
    # The dual of a simplified formula is simplified: every rule below is applied with its dual.
    duals: dict[Formula, Formula] = {}

    def dual(part: Formula) -> Formula:
        if part not in duals:
            duals[part] = _make(_DUAL[part.operator], map(dual, part.operands), part.name)
        return duals[part]

    return dual(formula)


def conjunction(*formulas: Formula) -> Formula:
    """Return the conjunction of any number of formulas; of none, true."""
    parts = dict.fromkeys(_flattened(Operator.AND, formulas))
    parts.pop(_TRUE, None)
    if _FALSE in parts or any(negation(part) in parts for part in parts):
        return _FALSE
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
    return _make(Operator.AND, parts) if parts else _TRUE


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
    if formula in (_TRUE, _FALSE) or is_suspendable(formula):
        return formula
    return _make(Operator.NEXT, (formula,))


def until(left: Formula, right: Formula) -> Formula:
    """Return `left` U `right`: `right` holds at some time, and `left` at all times before."""
    if right in (_TRUE, _FALSE) or left in (_FALSE, right) or is_suspendable(right):
        return right
    if left is negation(right):
        left = _TRUE
    if right.operator in (Operator.AND, Operator.OR):
        # What holds now if and only if it holds at any other time can be taken out.
        timeless = [part for part in right.operands if is_suspendable(part)]
        if timeless:
            combine = conjunction if right.operator is Operator.AND else disjunction
            timed = [part for part in right.operands if not is_suspendable(part)]
            return combine(until(left, combine(*timed)), *timeless)
    if left is _TRUE:
        if right.operator is Operator.NEXT:
            return next_(eventually(right.operands[0]))
        # F (a U b) = F b, also below a disjunction.
        parts = right.operands if right.operator is Operator.OR else (right,)
        if any(part.operator is Operator.UNTIL for part in parts):
            return eventually(
                disjunction(*(p.operands[1] if p.operator is Operator.UNTIL else p for p in parts))
            )
    if right.operator is Operator.UNTIL and right.operands[0] in (left, _TRUE):
        return right
    return _make(Operator.UNTIL, (left, right))


def release(left: Formula, right: Formula) -> Formula:
    """Return `left` R `right`: `right` holds up to and with the first time of `left`, or always."""
    return negation(until(negation(left), negation(right)))


def weak_until(left: Formula, right: Formula) -> Formula:
    """Return `left` W `right`: `left` holds up to the first time of `right`, or always."""
    return release(right, disjunction(left, right))


def eventually(formula: Formula) -> Formula:
    """Return F `formula`: it holds at some time."""
    return until(_TRUE, formula)


def always(formula: Formula) -> Formula:
    """Return G `formula`: it holds at all times."""
    return release(_FALSE, formula)


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
    return formula.operator is Operator.RELEASE and formula.operands[0] is _FALSE


def _is_eventually(formula: Formula) -> bool:
    return formula.operator is Operator.UNTIL and formula.operands[0] is _TRUE


def _body_of_eventually_always(formula: Formula) -> Formula | None:
    if _is_eventually(formula) and _is_always(formula.operands[1]):
        return formula.operands[1].operands[1]
    return None


@functools.lru_cache(maxsize=1024)
def subformulas(formula: Formula, operator: Operator) -> frozenset[Formula]:
    """Return the subformulas, the formula itself included, whose root is `operator`."""
    seen: set[Formula] = set()
    pending = [formula]
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            pending.extend(part.operands)
    return frozenset(part for part in seen if part.operator is operator)


def atom_names(formula: Formula) -> tuple[str, ...]:
    """Return the names of the atoms that occur, sorted."""
    literals = itertools.chain(
        subformulas(formula, Operator.ATOM), subformulas(formula, Operator.NEGATED_ATOM)
    )
    return tuple(sorted({literal.name for literal in literals}))
