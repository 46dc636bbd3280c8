"""Limit-deterministic Büchi automata of formulas.

The initial part is deterministic and follows what remains of the formula. At any time a run may
jump, once, to the accepting part, with a guess (X, Y): the until formulas X hold infinitely often
from then on, and the release formulas Y hold at all times. Given the guess, what remains becomes
a safety formula, and the guess is checked: that Y holds is safety again, and that X holds
infinitely often asks, for each formula of X, for a formula without release to hold infinitely
often. So the accepting part is deterministic too, with generalised Büchi acceptance on steps.

A word satisfies the formula if and only if some run over it accepts, and for a right guess every
jump that is late enough accepts. So in an MDP the jump may wait until an end component is entered:
the largest probability of an accepting run is the largest probability of the formula.

Source: J. Esparza, J. Křetínský, S. Sickert, "One Theorem to Rule Them All: A Unified Translation
of LTL into ω-Automata", LICS 2018 (the master theorem, and its LDBA); S. Sickert, J. Esparza,
S. Jaax, J. Křetínský, "Limit-Deterministic Büchi Automata for Linear Temporal Logic", CAV 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from engines.automata import ltl
from engines.automata.ltl import Formula, Operator
from engines.automata.progress import FALSE_STATE, TRUE_STATE, Progression
from engines.errors import UnsupportedError

REJECTED = -1
"""In place of a state: no continuation is accepted."""
ACCEPTED = -2
"""In place of a state: every continuation is accepted."""


@dataclass(frozen=True)
class AutomatonLimits:
    """Beyond these an automaton is refused.

    Parameters
    ----------
    states
        Of each part.
    guesses
        Of the subformulas that hold in the long run.
    goals
        Acceptance sets: bits of a number of 64 bits.
    """

    states: int = 100_000
    guesses: int = 20_000
    goals: int = 62


Content = TypeVar("Content", bound=Hashable)


class _Part(Generic[Content]):
    """States of a deterministic part, numbered as they are met."""

    def __init__(self, progression: Progression, limits: AutomatonLimits) -> None:
        self._progression, self._limits = progression, limits
        self._contents: list[Content] = []
        self._numbers: dict[Content, int] = {}

    def _number(self, content: Content) -> int:
        number = self._numbers.get(content)
        if number is None:
            most = self._limits.states
            if len(self._contents) == most:
                raise UnsupportedError(
                    f"the automaton of the LTL formula has more than {most} states: "
                    "use a formula with fewer temporal operators"
                )
            number = self._numbers[content] = len(self._contents)
            self._contents.append(content)
        return number


class InitialPart(_Part[int]):
    """What remains of a formula, followed letter by letter."""

    def start(self, formula: Formula) -> int:
        """Return the state, REJECTED or ACCEPTED, from which `formula` is to be satisfied."""
        return self._state(self._progression.unfold(formula))

    def _state(self, remaining: int) -> int:
        if remaining in (FALSE_STATE, TRUE_STATE):
            return REJECTED if remaining == FALSE_STATE else ACCEPTED
        return self._number(remaining)

    def step(self, state: int, letter: int) -> tuple[int, int]:
        """Return the next state, REJECTED or ACCEPTED, and no goals met."""
        return self._state(self._progression.after(self._contents[state], letter)), 0

    def remaining(self, state: int) -> int:
        """Return what a state has left to satisfy, as a state of the progression."""
        return self._contents[state]


class AcceptingPart(_Part[tuple[tuple[int, ...], int, tuple[int, ...]]]):
    """A safety formula to keep, and goals to meet infinitely often.

    A goal is F a for an `a` without release: what remains of it is followed, and followed afresh
    after each time that it is met.
    """

    def start(self, safety: int, goals: tuple[int, ...]) -> int:
        """Return the state, or ACCEPTED, for a safety formula and goals to meet."""
        if safety == TRUE_STATE and not goals:
            return ACCEPTED
        most = self._limits.goals
        if len(goals) > most:
            raise UnsupportedError(
                f"the LTL formula needs {len(goals)} acceptance sets; at most {most} fit"
            )
        return self._number((goals, safety, goals))

    def step(self, state: int, letter: int) -> tuple[int, int]:
        """Return the next state, REJECTED or ACCEPTED, and the goals met: bit i for goal i."""
        goals, safety, followed = self._contents[state]
        after = self._progression.after
        safety = after(safety, letter)
        if safety == FALSE_STATE:
            return REJECTED, 0
        if safety == TRUE_STATE and not goals:
            return ACCEPTED, 0
        remaining = [after(goal, letter) for goal in followed]
        met = sum(1 << i for i, goal in enumerate(remaining) if goal == TRUE_STATE)
        fresh = tuple(
            goal if left == TRUE_STATE else left
            for goal, left in zip(goals, remaining, strict=True)
        )
        return self._number((goals, safety, fresh)), met

    def goals(self, state: int) -> int:
        """Return the goals that must be met infinitely often, as bits."""
        return (1 << len(self._contents[state][0])) - 1


class LimitDeterministicAutomaton:
    """The automaton of a formula, whose states are made when they are asked for.

    Parameters
    ----------
    formula
        The formula.
    limits
        How large it may become.

    Attributes
    ----------
    atoms
        Names of the atoms. A letter is an integer: bit i tells whether ``atoms[i]`` holds.
    initial_part, accepting_part
        The deterministic parts.
    initial
        First state, of the initial part; REJECTED or ACCEPTED for a constant formula.
    """

    def __init__(self, formula: Formula, limits: AutomatonLimits = AutomatonLimits()) -> None:
        self._limits = limits
        self.atoms = ltl.atom_names(formula)
        self._progression = Progression(self.atoms)
        self.initial_part = InitialPart(self._progression, limits)
        self.accepting_part = AcceptingPart(self._progression, limits)
        self.initial = self.initial_part.start(formula)
        self._jumps: dict[int, tuple[int, ...]] = {}
        self._left_by_often: dict[tuple[Formula, frozenset[Formula]], Formula] = {}
        self._goals: dict[tuple[Formula, frozenset[Formula]], int] = {}

    def is_safety(self, state: int) -> bool:
        """Tell whether a run of the initial part from `state` need only never be rejected."""
        return not self._subformulas(self._promises(state), Operator.UNTIL)

    def jumps(self, state: int) -> tuple[int, ...]:
        """Return the states of the accepting part, or ACCEPTED, that a jump from `state` enters.

        Raises
        ------
        UnsupportedError
            Where the formula has too many until and release subformulas to try all guesses.
        """
        if state not in self._jumps:
            guesses = _undominated(self._guesses(state), self._progression)
            start = self.accepting_part.start
            self._jumps[state] = tuple(dict.fromkeys(start(*guess) for guess in guesses))
        return self._jumps[state]

    def _promises(self, state: int) -> tuple[Formula, ...]:
        return self._progression.promises(self.initial_part.remaining(state))

    @staticmethod
    def _subformulas(formulas: Iterable[Formula], operator: Operator) -> list[Formula]:
        found = {part for formula in formulas for part in ltl.subformulas(formula, operator)}
        return sorted(found, key=lambda part: part.serial)

    def _guesses(self, state: int) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the safety formula and the goals of every guess that may succeed."""
        promises = self._promises(state)
        if not self._subformulas(promises, Operator.RELEASE):
            # Without release a word that satisfies the formula does so after finitely many letters.
            return
        remaining = self.initial_part.remaining(state)
        bases: dict[frozenset[Formula], int] = {}

        def base(often: frozenset[Formula]) -> int:
            if often not in bases:
                bases[often] = self._progression.rewrite(
                    remaining, lambda part: self._left(part, often)
                )
            return bases[often]

        def may_succeed(often: frozenset[Formula], undecided: frozenset[Formula]) -> bool:
            return base(often | undecided) != FALSE_STATE

        untils = self._subformulas(promises, Operator.UNTIL)
        for often in _subsets(untils, may_succeed, self._limits.guesses):
            yield from self._guesses_of_releases(base(often), often)

    def _guesses_of_releases(
        self, base: int, often: frozenset[Formula]
    ) -> Iterator[tuple[int, frozenset[int]]]:
        unfold, all_of = self._progression.unfold, self._progression.all_of
        # Only a release formula inside of one of `often` changes what is asked for.
        releases = self._subformulas(often, Operator.RELEASE)
        kept = {part: unfold(ltl.always(self._left(part, often))) for part in releases}

        def safety(forever: frozenset[Formula]) -> int:
            return all_of([base, *(kept[part] for part in releases if part in forever)])

        def goals(forever: frozenset[Formula]) -> frozenset[int]:
            return frozenset(self._goal(part, forever) for part in often) - {TRUE_STATE}

        def may_succeed(forever: frozenset[Formula], undecided: frozenset[Formula]) -> bool:
            if safety(forever) == FALSE_STATE:
                return False
            return FALSE_STATE not in goals(forever | undecided)

        for forever in _subsets(releases, may_succeed, self._limits.guesses):
            yield safety(forever), goals(forever)

    def _left(self, formula: Formula, often: frozenset[Formula]) -> Formula:
        """Return what is left of a formula if the until formulas `often` hold infinitely often."""
        key = (formula, often & ltl.subformulas(formula, Operator.UNTIL))
        if key not in self._left_by_often:
            self._left_by_often[key] = assume_infinitely_often(*key)
        return self._left_by_often[key]

    def _goal(self, formula: Formula, forever: frozenset[Formula]) -> int:
        """Return the goal that makes a formula hold infinitely often if `forever` hold for ever."""
        key = (formula, forever & ltl.subformulas(formula, Operator.RELEASE))
        if key not in self._goals:
            self._goals[key] = self._progression.unfold(ltl.eventually(assume_forever(*key)))
        return self._goals[key]


def assume_infinitely_often(formula: Formula, often: frozenset[Formula]) -> Formula:
    """Return what is left of a formula if, of the until formulas, exactly `often` hold for ever.

    ``a U b`` becomes ``a W b`` if it is one of `often`, else false.
    """

    def change(part: Formula, left: Formula, right: Formula) -> Formula:
        if part.operator is Operator.RELEASE:
            return ltl.release(left, right)
        return ltl.weak_until(left, right) if part in often else ltl.false()

    return _rebuilt(formula, change)


def assume_forever(formula: Formula, forever: frozenset[Formula]) -> Formula:
    """Return what is left of a formula if, of the release formulas, exactly `forever` hold.

    ``a R b`` becomes true if it is one of `forever`, else ``b U (a & b)``.
    """

    def change(part: Formula, left: Formula, right: Formula) -> Formula:
        if part.operator is Operator.UNTIL:
            return ltl.until(left, right)
        if part in forever:
            return ltl.true()
        return ltl.until(right, ltl.conjunction(left, right))

    return _rebuilt(formula, change)


def _rebuilt(formula: Formula, change: Callable[[Formula, Formula, Formula], Formula]) -> Formula:
    """Return the formula with each until and release replaced, from the inside out."""
    done: dict[Formula, Formula] = {}

    def rebuild(part: Formula) -> Formula:
        if part not in done:
            operands = [rebuild(operand) for operand in part.operands]
            match part.operator:
                case Operator.UNTIL | Operator.RELEASE:
                    done[part] = change(part, *operands)
                case Operator.AND:
                    done[part] = ltl.conjunction(*operands)
                case Operator.OR:
                    done[part] = ltl.disjunction(*operands)
                case Operator.NEXT:
                    done[part] = ltl.next_(*operands)
                case _:
                    done[part] = part
        return done[part]

    return rebuild(formula)


def _subsets(
    elements: list[Formula],
    may_succeed: Callable[[frozenset[Formula], frozenset[Formula]], bool],
    most: int,
) -> Iterator[frozenset[Formula]]:
    """Yield the subsets for which every choice on the way may succeed: (chosen, undecided)."""
    tried = 0

    def extend(chosen: frozenset[Formula], index: int) -> Iterator[frozenset[Formula]]:
        nonlocal tried
        tried += 1
        if tried > most:
            raise UnsupportedError(
                f"the LTL formula has {len(elements)} until or release subformulas, and more than "
                f"{most} guesses of those that hold in the long run: use a smaller formula"
            )
        if not may_succeed(chosen, frozenset(elements[index:])):
            return
        if index == len(elements):
            yield chosen
            return
        yield from extend(chosen | {elements[index]}, index + 1)
        yield from extend(chosen, index + 1)

    return extend(frozenset(), 0)


def _undominated(
    guesses: Iterable[tuple[int, frozenset[int]]], progression: Progression
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the guesses that accept words which no other guess accepts for a plain reason.

    A guess is dropped if another asks for a weaker safety formula and for fewer goals, and a goal
    if it is met whenever another is.
    """
    kept: list[tuple[int, frozenset[int]]] = []
    for safety, goals in dict.fromkeys(guesses):
        if any(progression.implies(safety, weaker) and few <= goals for weaker, few in kept):
            continue
        kept = [
            (stronger, many)
            for stronger, many in kept
            if not (progression.implies(stronger, safety) and goals <= many)
        ]
        kept.append((safety, goals))
    return [(safety, _needed(goals, progression)) for safety, goals in kept]


def _needed(goals: frozenset[int], progression: Progression) -> tuple[int, ...]:
    needed: list[int] = []
    for goal in sorted(goals):
        if not any(progression.implies(other, goal) for other in goals - {goal}):
            needed.append(goal)
    return tuple(needed)
