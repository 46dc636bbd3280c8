"""Deterministic monitors of formulas on finite words, by formula progression.

After a letter, what a word must still do is a pair: whether it may end here, and a monotone Boolean
function of formulas that must hold from the next letter on, if there is one. The function is kept
as its set of minimal implicants, so that equal functions are the same state; an until whose window
lies within that of another implies it, which keeps the states of bounded operators below nested
ones few. The automaton that results is minimised and numbered in the order in which its states are
met, so that formulas with the same words have the same monitor.

Source: progression is from F. Bacchus, F. Kabanza, "Planning for temporally extended goals", Annals
of Mathematics and Artificial Intelligence 22, 1998; the minimisation is J. Hopcroft, "An n log n
algorithm for minimizing states in a finite automaton", 1971.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engines.arrays import MaskArray
from engines.errors import UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.bounded_ltl import Formula, Operator

REJECTED, ACCEPTED, OPEN = 0, 1, 2
"""Verdicts of a state: decided for false, decided for true, and not decided yet."""


Clause = frozenset[Formula]
Clauses = frozenset[Clause]
Remainder = tuple[bool, Clauses]
"""Whether the word may end after this letter, and what must hold from the next on."""

_NOTHING: Clauses = frozenset()
_ANYTHING: Clauses = frozenset([frozenset()])


@dataclass(frozen=True)
class Monitor:
    """A deterministic automaton that reads the states of a path.

    Parameters
    ----------
    atoms
        Names of the atoms. A letter is an integer: bit j tells whether ``atoms[j]`` holds.
    transitions
        The successor for each state and letter, int32 of shape (states, 2^atoms). The initial
        state is 0; it has read nothing.
    accepting
        Whether a path that ends in the state satisfies the formula, of shape (states,); of no
        meaning for a state that is met without a letter only.
    verdicts
        `REJECTED` or `ACCEPTED` where every continuation has the same answer, else `OPEN`, uint8
        of shape (states,).
    """

    atoms: tuple[str, ...]
    transitions: NDArray[np.int32]
    accepting: MaskArray
    verdicts: NDArray[np.uint8]

    def accepts(self, letters: Iterable[int]) -> bool:
        """Return the verdict on a path, at least one state of it, by the letters of its states."""
        state = 0
        for letter in letters:
            state = int(self.transitions[state, letter])
        return bool(self.accepting[state])

    @cached_property
    def is_monotone(self) -> bool:
        """Whether no continuation of a path that satisfies the formula violates it.

        This is the definition of the paper itself, decided on the automaton: accepting states that
        a letter leads to have accepting successors only. Then the probability of the paths of k
        states that satisfy the formula grows with k; if the formula is positive as well
        (`bounded_ltl.is_positive`), to at most that of the formula on infinite paths.
        """
        read = np.zeros(self.accepting.shape, np.bool_)
        read[self.transitions] = True
        return bool(self.accepting[self.transitions[read & self.accepting]].all())

    @cached_property
    def decided_after(self) -> int | None:
        """How many states of a path decide the formula at the latest; None if there is no number.

        A formula whose temporal operators all have upper bounds has one; it is then its own bound
        for k, and longer paths add nothing.
        """
        pending = self.verdicts == OPEN
        if not pending[0]:
            return 0
        # The longest way through states that are open: rounds until none is left, or never.
        longest = 0
        reached = np.zeros_like(pending)
        reached[0] = True
        for longest in range(1, int(pending.sum()) + 1):
            following = np.zeros_like(pending)
            following[self.transitions[reached]] = True
            reached = following & pending
            if not reached.any():
                return longest
        return None


@dataclass(frozen=True)
class MonitorLimits:
    """What is refused: more atoms of a formula, or more states or entries of its monitor."""

    atoms: int = 16
    states: int = 50_000
    entries: int = 2**24


def monitor_of(
    formula: Formula, atoms: Sequence[str] | None = None, limits: MonitorLimits = MonitorLimits()
) -> Monitor:
    """Build the minimal monitor of a formula.

    Parameters
    ----------
    formula
        A formula of `bounded_ltl`.
    atoms
        The order of the atoms in a letter, those of the formula at least; by default sorted.
    limits
        How large the monitor may be.

    Raises
    ------
    UnsupportedError
        If it would have too many atoms, states or entries; the message says how many are allowed.
    """
    names = ltl.atom_names(formula) if atoms is None else tuple(atoms)
    missing = set(ltl.atom_names(formula)) - set(names)
    if missing:
        raise ValueError(f"the atoms {sorted(missing)} of the formula are not among {names}")
    if len(names) > limits.atoms:
        raise UnsupportedError(
            f"the formula has {len(names)} atomic propositions, and a monitor at most "
            f"{limits.atoms}: combine some of them into one Boolean expression"
        )
    rows, accepting = _explore(_Progression(names), formula, 2 ** len(names), limits)
    return _minimal(names, np.array(rows, np.int32), np.array(accepting, np.bool_))


def _explore(
    progression: _Progression, formula: Formula, letters: int, limits: MonitorLimits
) -> tuple[list[list[int]], list[bool]]:
    """Return the successors of all states that can be reached, and which of them accept."""
    first: Remainder = (False, frozenset([frozenset([formula])]))
    numbers = {first: 0}
    states = [first]
    rows: list[list[int]] = []
    for _, clauses in states:
        row = []
        for letter in range(letters):
            after = progression.after(clauses, letter)
            number = numbers.get(after)
            if number is None:
                if len(states) >= min(limits.states, limits.entries // letters):
                    raise UnsupportedError(
                        f"the monitor of the formula has more than {len(states)} states for "
                        f"{letters} letters: use smaller step bounds or fewer temporal operators"
                    )
                number = numbers[after] = len(states)
                states.append(after)
            row.append(number)
        rows.append(row)
    return rows, [may_end for may_end, _ in states]


class _Progression:
    """What remains of formulas after a letter."""

    def __init__(self, atoms: Sequence[str]) -> None:
        self._bits = {name: i for i, name in enumerate(atoms)}
        self._known: dict[tuple[Formula, int], Remainder] = {}
        self._after: dict[tuple[Clauses, int], Remainder] = {}

    def after(self, clauses: Clauses, letter: int) -> Remainder:
        """Return what remains of a function of formulas when a letter has been read."""
        remainder = self._after.get((clauses, letter))
        if remainder is None:
            remainder = (False, _NOTHING)
            for clause in clauses:
                every: Remainder = (True, _ANYTHING)
                for formula in clause:
                    every = _both(every, self._of(formula, letter))
                remainder = _either(remainder, every)
            self._after[clauses, letter] = remainder
        return remainder

    def _of(self, formula: Formula, letter: int) -> Remainder:
        key = (formula, letter)
        remainder = self._known.get(key)
        if remainder is None:
            remainder = self._known[key] = self._unfold(formula, letter)
        return remainder

    def _unfold(self, formula: Formula, letter: int) -> Remainder:
        match formula.operator:
            case Operator.TRUE | Operator.FALSE:
                return _constant(formula.operator is Operator.TRUE)
            case Operator.ATOM | Operator.NEGATED_ATOM:
                holds = bool(letter >> self._bits[formula.name] & 1)
                return _constant(holds == (formula.operator is Operator.ATOM))
            case Operator.NEXT | Operator.WEAK_NEXT:
                return formula.operator is Operator.WEAK_NEXT, _promise(formula.operands[0])
            case Operator.AND | Operator.OR:
                combine = _both if formula.operator is Operator.AND else _either
                remainder = _constant(formula.operator is Operator.AND)
                for part in formula.operands:
                    remainder = combine(remainder, self._of(part, letter))
                return remainder
        return self._unfold_window(formula, letter)

    def _unfold_window(self, formula: Formula, letter: int) -> Remainder:
        """Unfold an until, or a release with the parts of "and" and "or" exchanged."""
        released = formula.operator is Operator.RELEASE
        both, either = (_either, _both) if released else (_both, _either)
        left, right = formula.operands
        first, last = formula.window
        later: Remainder = _constant(released)
        if last is None or last > 0:
            window = (max(0, first - 1), None if last is None else last - 1)
            make = ltl.release if released else ltl.until
            later = (released, _promise(make(left, right, window)))
        later = both(self._of(left, letter), later)
        return later if first > 0 else either(self._of(right, letter), later)


def _constant(value: bool) -> Remainder:
    return value, _ANYTHING if value else _NOTHING


def _promise(formula: Formula) -> Clauses:
    """Return the function that one formula is, with its conjunctions and disjunctions taken out."""
    match formula.operator:
        case Operator.TRUE:
            return _ANYTHING
        case Operator.FALSE:
            return _NOTHING
        case Operator.AND:
            clauses = _ANYTHING
            for part in formula.operands:
                clauses = _conjunction(clauses, _promise(part))
            return clauses
        case Operator.OR:
            return _reduced(clause for part in formula.operands for clause in _promise(part))
    return frozenset([frozenset([formula])])


def _both(left: Remainder, right: Remainder) -> Remainder:
    return left[0] and right[0], _conjunction(left[1], right[1])


def _either(left: Remainder, right: Remainder) -> Remainder:
    if not left[1] or not right[1]:
        return left[0] or right[0], left[1] or right[1]
    return left[0] or right[0], _reduced([*left[1], *right[1]])


def _conjunction(left: Clauses, right: Clauses) -> Clauses:
    if left == _ANYTHING or not right:
        return right
    if right == _ANYTHING or not left:
        return left
    return _reduced(one | other for one in left for other in right)


def _reduced(clauses: Iterable[Clause], most: int = 4_096) -> Clauses:
    """Return the minimal clauses: no formula implied by one beside it, no clause by another."""
    kept: list[Clause] = []
    for clause in sorted({_without_implied(clause) for clause in clauses}, key=len):
        if any(_clause_implies(clause, other) for other in kept):
            continue
        kept = [other for other in kept if not _clause_implies(other, clause)]
        kept.append(clause)
        if len(kept) > most:
            raise UnsupportedError(
                f"a state of the formula's monitor has more than {most} alternatives: use "
                "a formula with fewer temporal operators"
            )
    return frozenset(kept)


def _without_implied(clause: Clause) -> Clause:
    if len(clause) < 2:
        return clause
    return frozenset(
        formula
        for formula in clause
        if not any(other is not formula and _implies(other, formula) for other in clause)
    )


def _clause_implies(stronger: Clause, weaker: Clause) -> bool:
    return weaker <= stronger or all(
        any(_implies(formula, wanted) for formula in stronger) for wanted in weaker
    )


def _implies(stronger: Formula, weaker: Formula) -> bool:
    """Tell whether one formula implies another at sight: by itself, or by its window."""
    if stronger is weaker:
        return True
    if stronger.operator is not weaker.operator or stronger.operands != weaker.operands:
        return False
    if stronger.operator is Operator.UNTIL:
        return _within(stronger.window, weaker.window)
    return stronger.operator is Operator.RELEASE and _within(weaker.window, stronger.window)


def _within(inner: ltl.Window, outer: ltl.Window) -> bool:
    return inner[0] >= outer[0] and (
        outer[1] is None or (inner[1] is not None and inner[1] <= outer[1])
    )


def _minimal(
    atoms: tuple[str, ...], transitions: NDArray[np.int32], accepting: MaskArray
) -> Monitor:
    """Merge the states that no continuation tells apart, and number them as they are met."""
    blocks = _equivalent(transitions, accepting)
    # The first state has read nothing, so that its own acceptance tells it from no other.
    start = int(blocks[0])
    rows = {int(block): blocks[transitions[state]] for state, block in enumerate(blocks)}
    read = set(map(int, np.unique(blocks[transitions])))
    if start not in read:
        same = (block for block in read if np.array_equal(rows[block], rows[start]))
        start = next(same, start)
    order = {start: 0}
    met = [start]
    for block in met:
        for successor in map(int, rows[block]):
            if successor not in order:
                order[successor] = len(met)
                met.append(successor)
    table = np.array([[order[int(x)] for x in rows[block]] for block in met], np.int32)
    of_block = dict(zip(map(int, blocks), map(bool, accepting), strict=True))
    accepts = np.array([of_block[block] for block in met], np.bool_)
    stays = (table == np.arange(len(met))[:, None]).all(axis=1)
    verdicts = np.where(stays, np.where(accepts, ACCEPTED, REJECTED), OPEN).astype(np.uint8)
    return Monitor(atoms, table, accepts, verdicts)


def _equivalent(transitions: NDArray[np.int32], accepting: MaskArray) -> NDArray[np.int64]:
    """Return a block number for each state, equal where no word tells the states apart."""
    num_states, letters = transitions.shape
    predecessors: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(letters)]
    for letter in range(letters):
        for state, successor in enumerate(transitions[:, letter].tolist()):
            predecessors[letter][successor].append(state)
    blocks = [set(np.flatnonzero(accepting).tolist()), set(np.flatnonzero(~accepting).tolist())]
    blocks = [block for block in blocks if block]
    block_of = np.zeros(num_states, np.int64)
    for number, block in enumerate(blocks):
        block_of[list(block)] = number
    pending = {min(range(len(blocks)), key=lambda number: len(blocks[number]))}
    while pending:
        splitter = list(blocks[pending.pop()])
        for before in predecessors:
            touched: dict[int, set[int]] = defaultdict(set)
            for successor in splitter:
                for state in before.get(successor, ()):
                    touched[int(block_of[state])].add(state)
            for number, inside in touched.items():
                if len(inside) == len(blocks[number]):
                    continue
                blocks[number] -= inside
                smaller, added = inside, len(blocks)
                if len(blocks[number]) < len(inside):
                    smaller, blocks[number] = blocks[number], inside
                blocks.append(smaller)
                block_of[list(smaller)] = added
                # Whether or not the whole is pending, the smaller part tells apart all it can.
                pending.add(added)
    return block_of
