"""Trees of formulas of linear temporal logic, on infinite words and on finite ones.

Every formula is in negation normal form: true, false, atoms and negated atoms under conjunction,
disjunction, next, until and release. Equal formulas are one object, so that comparison is identity.
What they mean, and which simplifications hold, `engines.automata.ltl` knows of infinite words and
`engines.montecarlo.bounded_ltl` of finite ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from weakref import WeakValueDictionary

Window = tuple[int, int | None]
"""The first and the last position within step bounds; None for no last."""

ANY_TIME: Window = (0, None)


class Operator(StrEnum):
    """What a formula is at its root; the weak next is one of finite words."""

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


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Formula:
    """A formula; made by `make` only, so that equal ones are identical.

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

    @property
    def is_literal(self) -> bool:
        """Whether it is an atom or a negated atom."""
        return self.operator in (Operator.ATOM, Operator.NEGATED_ATOM)

    def __str__(self) -> str:
        first, last = self.window
        bounds = "" if self.window == ANY_TIME else f"[{first},{'' if last is None else last}]"
        match self.operator, self.operands:
            case Operator.TRUE | Operator.FALSE, _:
                return str(self.operator)
            case Operator.ATOM, _:
                return f'"{self.name}"'
            case Operator.NEGATED_ATOM, _:
                return f'!"{self.name}"'
            case Operator.NEXT | Operator.WEAK_NEXT, (operand,):
                return f"({self.operator} {operand})"
            case Operator.UNTIL, (left, right) if left is TRUE:
                return f"(F{bounds} {right})"
            case Operator.RELEASE, (left, right) if left is FALSE:
                return f"(G{bounds} {right})"
        return f"({f' {self.operator}{bounds} '.join(map(str, self.operands))})"


_Key = tuple[Operator, str, Window, tuple[int, ...]]
_known: WeakValueDictionary[_Key, Formula] = WeakValueDictionary()
_serials = itertools.count()


def make(
    operator: Operator,
    operands: Iterable[Formula] = (),
    name: str = "",
    window: Window = ANY_TIME,
) -> Formula:
    """Return the formula of these parts.

    Parameters
    ----------
    operator, operands, name, window
        As `Formula` has them; the operands in any order where that makes no difference.
    """
    parts = tuple(operands)
    if operator in (Operator.AND, Operator.OR):
        parts = tuple(sorted(parts, key=lambda part: part.serial))
    key = (operator, name, window, tuple(part.serial for part in parts))
    formula = _known.get(key)
    if formula is None:
        formula = _known[key] = Formula(operator, parts, name, window, next(_serials))
    return formula


TRUE, FALSE = make(Operator.TRUE), make(Operator.FALSE)


def true() -> Formula:
    """Return the formula that every word satisfies."""
    return TRUE


def false() -> Formula:
    """Return the formula that no word satisfies."""
    return FALSE


def atom(name: str) -> Formula:
    """Return the formula that the words satisfy whose first letter contains `name`."""
    return make(Operator.ATOM, name=name)


def parts_of(formula: Formula) -> set[Formula]:
    """Return the subformulas, the formula itself included."""
    seen: set[Formula] = set()
    pending = [formula]
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            pending.extend(part.operands)
    return seen


def atom_names(formula: Formula) -> tuple[str, ...]:
    """Return the names of the atoms that occur, sorted."""
    return tuple(sorted({part.name for part in parts_of(formula) if part.is_literal}))


def duals(of_next: Operator) -> dict[Operator, Operator]:
    """Return the dual of each operator, with that of the strong next."""
    pairs = {
        Operator.TRUE: Operator.FALSE,
        Operator.ATOM: Operator.NEGATED_ATOM,
        Operator.AND: Operator.OR,
        Operator.NEXT: of_next,
        Operator.UNTIL: Operator.RELEASE,
    }
    return pairs | {right: left for left, right in pairs.items()}


def dual(formula: Formula, operators: Mapping[Operator, Operator]) -> Formula:
    """Return the formula with each operator replaced by its dual: its negation.

    Parameters
    ----------
    formula
        The formula.
    operators
        As `duals` returns them.
    """
    known: dict[Formula, Formula] = {}

    def of(part: Formula) -> Formula:
        if part not in known:
            operands = map(of, part.operands)
            known[part] = make(operators[part.operator], operands, part.name, part.window)
        return known[part]

    return of(formula)
