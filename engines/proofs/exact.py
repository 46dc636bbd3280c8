"""Exact values of a few states, in rational arithmetic, where rounded ones leave a question open.

What is computed is the part of a model that can be reached from the states asked about, and only if
it is small. The doubles of the model are taken for the rationals that they stand for (see
`engines.model.rationals`), so that 1/3 + 1/3 + 1/3 is 1.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.explicit import ExplicitModel
from engines.model.result import Exactly, ExactValues
from engines.proofs.rational_model import Budget, Choice, RationalModel, Row, TooLargeError
from engines.systems.one_sided import Direction


def chain_values(
    choices: Mapping[int, Choice], known: Callable[[int], Fraction], budget: Budget
) -> dict[int, Fraction]:
    """Return x = earned + P x of the states of a chain that reach known ones for sure.

    Parameters
    ----------
    choices
        The step of each state to solve for.
    known
        Returns the value of another state.
    budget
        What the elimination may cost.

    Raises
    ------
    TooLargeError
        If it costs more.
    ZeroDivisionError
        If some states lead only to one another.

    Notes
    -----
    States are eliminated one by one, that with the fewest ways through it first (as Hahn, Hermanns
    and Zhang 2011 do in parametric chains), and then evaluated in the reverse order.
    """
    rows: dict[int, Row] = {}
    worth: dict[int, Fraction] = {}
    before: dict[int, set[int]] = {state: set() for state in choices}
    for state, choice in choices.items():
        rows[state] = {column: share for column, share in choice.row.items() if column in choices}
        leaving = (s * known(c) for c, s in choice.row.items() if c not in choices)
        worth[state] = choice.earned + sum(leaving, Fraction(0))
        for column in rows[state]:
            before[column].add(state)
    order: list[int] = []
    left = set(choices)

    def ways(state: int) -> tuple[int, int]:
        return len(before[state]) * len(rows[state]), state

    queue = [ways(state) for state in choices]
    heapq.heapify(queue)
    while left:
        entry = heapq.heappop(queue)
        state = entry[1]
        if state not in left or entry != ways(state):
            continue
        left.remove(state)
        order.append(state)
        row = rows[state]
        origins = before[state] - {state}
        loop = 1 / (1 - row.pop(state, Fraction(0)))
        worth[state] = budget.spend(worth[state] * loop)
        for column in row:
            row[column] = budget.spend(row[column] * loop)
            before[column].discard(state)
        for origin in origins:
            share = rows[origin].pop(state)
            worth[origin] = budget.spend(worth[origin] + share * worth[state])
            for column, further in row.items():
                moved = rows[origin].get(column, Fraction(0)) + share * further
                rows[origin][column] = budget.spend(moved)
                before[column].add(origin)
        for touched in origins.union(row):
            heapq.heappush(queue, ways(touched))
    values: dict[int, Fraction] = {}
    for state in reversed(order):
        inside = (share * values[column] for column, share in rows[state].items())
        values[state] = budget.spend(worth[state] + sum(inside, Fraction(0)))
    return values


def best_values(
    choices: Mapping[int, list[Choice]],
    known: Callable[[int], Fraction],
    direction: Direction,
    budget: Budget,
) -> dict[int, Fraction]:
    """Return the least or greatest values of an MDP's states, by policy iteration.

    Parameters
    ----------
    choices
        The choices of each state to solve for; by some, each reaches a known state.
    known, budget
        As for `chain_values`.
    direction
        Minimise or maximise.

    Raises
    ------
    TooLargeError
        If it costs more than the budget.

    Notes
    -----
    The first policy reaches known states for sure; none that is strictly better somewhere, and
    nowhere worse, can stay among the others for ever. So the last policy is the best of those that
    do not stay, which is what PRISM's operators ask for.
    """
    policy = _leaving_policy(choices)
    better = operator.lt if direction is Direction.MINIMISE else operator.gt
    while True:
        chosen = {state: options[policy[state]] for state, options in choices.items()}
        values = chain_values(chosen, known, budget)

        def worth(choice: Choice, values: dict[int, Fraction] = values) -> Fraction:
            total = choice.earned
            for column, share in choice.row.items():
                value = values[column] if column in values else known(column)
                total = budget.spend(total + share * value)
            return total

        changed = False
        for state, options in choices.items():
            best = values[state]
            for number, option in enumerate(options):
                candidate = worth(option)
                if better(candidate, best):
                    best, policy[state], changed = candidate, number, True
        if not changed:
            return values


def _leaving_policy(choices: Mapping[int, list[Choice]]) -> dict[int, int]:
    policy: dict[int, int] = {}
    # Those found last are next to the known ones.
    waiting = list(choices)[::-1]
    while waiting:
        still = []
        for state in waiting:
            for number, option in enumerate(choices[state]):
                if any(column not in choices or column in policy for column in option.row):
                    policy[state] = number
                    break
            else:
                still.append(state)
        if len(still) == len(waiting):
            raise TooLargeError
        waiting = still
    return policy


def reached(
    origins: Iterable[int], unknown: MaskArray, source: RationalModel
) -> dict[int, list[Choice]]:
    """Return the choices of the unknown states that are reached through unknown ones.

    Parameters
    ----------
    origins
        States to begin with; known ones are left out.
    unknown
        Shape (states,).
    source
        The model.

    Raises
    ------
    TooLargeError
        For too many states.
    """
    found: dict[int, list[Choice]] = {}
    waiting = [state for state in origins if unknown[state]]
    while waiting:
        state = waiting.pop()
        if state in found:
            continue
        if len(found) >= 10_000:
            raise TooLargeError
        found[state] = source.choices(state)
        for choice in found[state]:
            waiting += [column for column in choice.row if unknown[column]]
    return found


def reachability(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
) -> ExactValues:
    """Return what computes exact until probabilities or expected rewards to reach a target.

    Parameters
    ----------
    model, unknown, start, rewards, direction
        As for `engines.questions.reachability.solve_reachability`.
    """

    def values(states: IndexArray) -> Exactly | None:
        source = RationalModel(model, rewards)

        def known(state: int) -> Fraction:
            number = float(start[state])
            if number not in (0.0, 1.0):
                raise TooLargeError
            return Fraction(number)

        numbers = [int(state) for state in states]
        try:
            found = reached(numbers, unknown, source)
            if direction is None:
                chosen = {state: options[0] for state, options in found.items()}
                solved = chain_values(chosen, known, Budget())
            else:
                solved = best_values(found, known, direction, Budget())
            here = [solved[n] if n in solved else known(n) for n in numbers]
            return Exactly(here, source.off(here, source.changes))
        except (TooLargeError, ZeroDivisionError):
            return None

    return values


def step_bounded(
    model: ExplicitModel,
    active: MaskArray,
    start: FloatArray,
    steps: int,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
    before_that: ExactValues | None = None,
) -> ExactValues:
    """Return what computes exact values of x ← earned + P x after a number of steps.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    active
        States that make steps; the others keep their value. Shape (states,).
    start
        The values before the first step, shape (states,).
    steps
        How many.
    rewards
        Of a step of each row, shape (rows,); None for none.
    direction
        MDPs: minimise or maximise.
    before_that
        Computes the exact values of `start`; None where they are what the doubles round.
    """
    best = min if direction is Direction.MINIMISE else max

    def values(states: IndexArray) -> Exactly | None:
        source, budget = RationalModel(model, rewards), Budget()
        numbers = [int(state) for state in states]
        fixed: dict[int, Fraction] = {}
        off = Fraction(0)

        def given(state: int) -> Fraction:
            if state not in fixed:
                fixed[state] = source.meant(float(start[state]))
            return fixed[state]

        try:
            found = reached(numbers, active, source)
            if before_that is not None:
                needed = [*found, *numbers, *_successors(found)]
                known = before_that(np.array(needed, dtype=np.int64))
                if known is None:
                    return None
                fixed.update(zip(needed, known.values, strict=True))
                off = known.off
            now = {state: given(state) for state in found}
            for _ in range(steps):
                before, now = now, {}
                for state, options in found.items():
                    sums = []
                    for option in options:
                        total = option.earned
                        for column, share in option.row.items():
                            value = before[column] if column in before else given(column)
                            total = budget.spend(total + share * value)
                        sums.append(total)
                    now[state] = best(sums)
            here = [now[n] if n in now else given(n) for n in numbers]
            own = source.off((*here, *now.values(), *fixed.values()), 2 * steps + 2)
            return Exactly(here, own + off)
        except TooLargeError:
            return None

    return values


def _successors(found: dict[int, list[Choice]]) -> list[int]:
    """Return the states outside those found that one step leads to."""
    columns = {column for options in found.values() for option in options for column in option.row}
    return sorted(columns - found.keys())


def long_run(model: ExplicitModel, earned: FloatArray, labels: IndexArray) -> ExactValues:
    """Return what computes exact long-run averages of rewards.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    earned
        Of a step, or of a unit of time, shape (states,).
    labels
        The bottom component of each state, -1 for none, shape (states,).
    """

    def values(states: IndexArray) -> Exactly | None:
        source, budget = RationalModel(model), Budget()
        averages: dict[int, Fraction] = {}

        def average(state: int) -> Fraction:
            label = int(labels[state])
            if label not in averages:
                averages[label] = _average(source, earned, state, budget)
            return averages[label]

        numbers = [int(state) for state in states]
        try:
            found = reached(numbers, labels < 0, source)
            chosen = {state: Choice(options[0].row) for state, options in found.items()}
            solved = chain_values(chosen, average, budget)
            here = [solved[n] if n in solved else average(n) for n in numbers]
            return Exactly(here, source.off(here, 4 * source.changes))
        except (TooLargeError, ZeroDivisionError):
            return None

    return values


def _average(source: RationalModel, earned: FloatArray, state: int, budget: Budget) -> Fraction:
    """Return the average of a recurrent class: what a return to one of its states earns a time."""
    worth = source.meant(float(earned[state]))
    elsewhere = np.ones(source.model.num_states, dtype=np.bool_)
    elsewhere[state] = False
    step = source.choices(state)[0].row
    found = reached(step, elsewhere, source)
    if not found:
        return worth
    times = {other: source.mean_time(other) for other in (state, *found)}
    sums = []

    def pay(other: int) -> Fraction:
        return source.meant(float(earned[other]))

    for weight in (pay, lambda _: Fraction(1)):
        chosen = {
            other: Choice(options[0].row, times[other] * weight(other))
            for other, options in found.items()
        }
        solved = chain_values(chosen, lambda _: Fraction(0), budget)
        onward = sum(
            (share * solved.get(to, Fraction(0)) for to, share in step.items()), Fraction(0)
        )
        sums.append(times[state] * weight(state) + onward)
    return sums[0] / sums[1]
