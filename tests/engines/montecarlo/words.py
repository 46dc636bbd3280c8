"""Whether a word satisfies a formula, straight from the definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from engines.montecarlo.bounded_ltl import Formula, Operator


def holds(formula: Formula, word: Sequence[Collection[str]]) -> bool:
    """Return whether a word satisfies a formula.

    Parameters
    ----------
    formula
        The formula.
    word
        At least one letter; each holds the names of the atoms that are true there.

    Raises
    ------
    ValueError
        If the word is empty.
    """
    if not word:
        raise ValueError("a path has at least one state, and a word one letter")
    known: dict[tuple[Formula, int], bool] = {}

    def at(part: Formula, position: int) -> bool:
        key = (part, position)
        if key not in known:
            known[key] = _holds_at(part, position, word, at)
        return known[key]

    return at(formula, 0)


def _holds_at(
    formula: Formula,
    position: int,
    word: Sequence[Collection[str]],
    at: Callable[[Formula, int], bool],
) -> bool:
    match formula.operator:
        case Operator.TRUE | Operator.FALSE:
            return formula.operator is Operator.TRUE
        case Operator.ATOM:
            return formula.name in word[position]
        case Operator.NEGATED_ATOM:
            return formula.name not in word[position]
        case Operator.AND:
            return all(at(part, position) for part in formula.operands)
        case Operator.OR:
            return any(at(part, position) for part in formula.operands)
        case Operator.NEXT:
            return position + 1 < len(word) and at(formula.operands[0], position + 1)
        case Operator.WEAK_NEXT:
            return position + 1 == len(word) or at(formula.operands[0], position + 1)
    left, right = formula.operands
    first, last = formula.window
    end = len(word) if last is None else min(len(word), position + last + 1)
    releases = formula.operator is Operator.RELEASE
    for there in range(position + first, end):
        if at(right, there) != releases and all(
            at(left, before) != releases for before in range(position, there)
        ):
            return not releases
    return releases
