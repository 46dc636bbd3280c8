"""What is asked of a model, in PRISM's language, and the exact answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tests.promise import oracle
from tests.promise.models import CTMC, MDP, Case, number_text
from tests.promise.oracle import Value

MOST_STEPS = 30
MOST_JUMPS = (Fraction(1, 100), Fraction(1), Fraction(1), Fraction(20), Fraction(3000))
"""Times, in mean sojourns of the state that is left soonest."""


@dataclass(frozen=True)
class Question:
    """A property and its exact value.

    Parameters
    ----------
    text
        In PRISM's language.
    family
        What kind of question it is.
    exact
        Returns the value in the initial state.
    probability
        Whether that is a probability.
    steps
        How many steps are made where the number of steps is bounded, else 0.
    """

    text: str
    family: str
    exact: Callable[[Case], Value]
    probability: bool = True
    steps: int = 0


def questions_for(case: Case, seed: int) -> list[Question]:
    """Return the questions that fit a model.

    Parameters
    ----------
    case
        The model.
    seed
        Of the bounds on steps and times.
    """
    pick = random.Random(f"bounds {seed}")
    found: list[Question] = []
    if case.kind is MDP:
        for name, which in (("min", min), ("max", max)):
            found += _unbounded(name, which)
            found += _stepped(pick, name, which)
        found.append(_total("max"))
        return found
    found += [*_unbounded("", max), _total(""), *_long_run()]
    found += _timed(case, pick) if case.kind is CTMC else _stepped(pick, "", max)
    return found


def _unbounded(of: str, which: Callable[..., Fraction]) -> list[Question]:
    opposite = {min: max, max: min}[which]

    def until(case: Case) -> Value:
        return oracle.until(oracle.steps_of(case), case.left, case.right, which)[case.start]

    def reach(case: Case) -> Value:
        every = range(case.size)
        return oracle.until(oracle.steps_of(case), every, case.right, which)[case.start]

    def always(case: Case) -> Value:
        every = range(case.size)
        never = set(every) - case.left
        return 1 - oracle.until(oracle.steps_of(case), every, never, opposite)[case.start]

    def after(case: Case) -> Value:
        rows = oracle.steps_of(case)[case.start]
        return which(sum((row.get(s, 0) for s in case.right), Fraction(0)) for row in rows)

    def often(case: Case) -> Value:
        return oracle.infinitely_often(oracle.steps_of(case), case.right, which)[case.start]

    def finally_always(case: Case) -> Value:
        return oracle.at_last_always(oracle.steps_of(case), case.left, which)[case.start]

    def both(case: Case) -> Value:
        rest = frozenset(range(case.size)) - case.left
        return oracle.both(oracle.steps_of(case), rest, case.right, case.start, which)

    def reward(case: Case) -> Value:
        rows, paid = oracle.steps_of(case), oracle.payments_of(case)
        return oracle.reachability_reward(rows, paid, case.right, which)[case.start]

    return [
        Question(f'P{of}=? [ F "b" ]', "P F", reach),
        Question(f'P{of}=? [ "a" U "b" ]', "P U", until),
        Question(f'P{of}=? [ G "a" ]', "P G", always),
        Question(f'P{of}=? [ X "b" ]', "P X", after),
        Question(f'P{of}=? [ G F "b" ]', "P GF", often),
        Question(f'P{of}=? [ F G "a" ]', "P FG", finally_always),
        Question(f'P{of}=? [ (F !"a") & (F "b") ]', "P F&F", both),
        Question(f'R{of}=? [ F "b" ]', "R F", reward, False),
    ]


def _total(of: str) -> Question:
    def total(case: Case) -> Value:
        return oracle.total_reward(oracle.steps_of(case), oracle.payments_of(case))[case.start]

    return Question(f"R{of}=? [ C ]", "R C", total, False)


def _long_run() -> list[Question]:
    def steady(case: Case) -> Value:
        inside = [Fraction(int(s in case.right)) for s in range(case.size)]
        return oracle.long_run(case, inside)[case.start]

    def earned(case: Case) -> Value:
        return oracle.long_run(case, case.state_rewards)[case.start]

    return [
        Question('S=? [ "b" ]', "S", steady),
        Question("R=? [ S ]", "R S", earned, False),
    ]


def _stepped(pick: random.Random, of: str, which: Callable[..., Fraction]) -> list[Question]:
    upper, lower = pick.randint(0, MOST_STEPS), pick.randint(0, 5)
    last = lower + pick.randint(0, 8)

    def until(bounds: tuple[int, int]) -> Callable[[Case], Value]:
        def value(case: Case) -> Value:
            rows = oracle.steps_of(case)
            return oracle.bounded_until(rows, case.left, case.right, bounds, which)[case.start]

        return value

    def earned(case: Case) -> Value:
        rows, paid = oracle.steps_of(case), oracle.payments_of(case)
        nothing = [Fraction(0)] * case.size
        return oracle.sweeps(rows, nothing, upper, which, payments=paid)[case.start]

    def at_step(case: Case) -> Value:
        rows = oracle.steps_of(case)
        return oracle.sweeps(rows, case.state_rewards, last, which)[case.start]

    of_steps = Question(f'P{of}=? [ "a" U<={upper} "b" ]', "P U<=k", until((0, upper)), True, upper)
    between = f'P{of}=? [ "a" U[{lower},{last}] "b" ]'
    return [
        of_steps,
        Question(between, "P U[k,k]", until((lower, last)), True, last),
        Question(f"R{of}=? [ C<={upper} ]", "R C<=k", earned, False, upper),
        Question(f"R{of}=? [ I={last} ]", "R I=k", at_step, False, last),
    ]


def _timed(case: Case, pick: random.Random) -> list[Question]:
    fastest = max((sum(row.values()) for (row,) in case.choices), default=Fraction(0)) or Fraction(
        1
    )

    def time() -> tuple[Fraction, str]:
        # One digit times a power of ten, about so many sojourns.
        jumps = pick.choice(MOST_JUMPS) * pick.randint(1, 9)
        shown = f"{float(jumps / fastest):.0e}"
        return Fraction(shown), number_text(Fraction(shown))

    (upper, shown), (lower, shown_lower) = time(), time()
    lower, last = min(lower, upper), max(lower, upper)
    shown_lower, shown_last = number_text(lower), number_text(last)

    def near(number: Fraction, like: Case) -> Fraction:
        # A model of doubles is asked about a time that is one.
        return Fraction(float(number)) if like is not case else number

    def until(first: Fraction, end: Fraction) -> Callable[[Case], Value]:
        return lambda like: oracle.timed_until(like, near(first, like), near(end, like))[like.start]

    def earned(like: Case) -> Value:
        return oracle.earned_until(like, near(upper, like))[like.start]

    def at_time(like: Case) -> Value:
        return oracle.at_time(like, near(upper, like), like.state_rewards)[like.start]

    return [
        Question(f'P=? [ "a" U<={shown} "b" ]', "P U<=t", until(Fraction(0), upper)),
        Question(f'P=? [ "a" U[{shown_lower},{shown_last}] "b" ]', "P U[t,t]", until(lower, last)),
        Question(f"R=? [ C<={shown} ]", "R C<=t", earned, False),
        Question(f"R=? [ I={shown} ]", "R I=t", at_time, False),
    ]
