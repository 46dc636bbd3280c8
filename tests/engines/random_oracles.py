"""Exact answers for models with rational numbers: plain loops over fractions, every strategy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from engines.systems.one_sided import Direction
from tests.engines import exact
from tests.engines.random_models import RandomModel, Row

INFINITY = float("inf")
Values = list[Fraction | float]
PLACES = 320
"""Binary places of the fixed-point numbers that exponentials are computed in."""

ROUNDED_OFF = Fraction(1, 1 << 256)
"""More than all that rounding to so many places makes of a probability."""


def strategies(case: RandomModel) -> Iterator[tuple[list[Row], list[Fraction], tuple[int, ...]]]:
    """Yield every memoryless strategy: the chain it leaves, its payments, its choices."""
    for picked in itertools.product(*(range(len(rows)) for rows in case.steps_of)):
        yield *induced(case, picked), picked


def induced(case: RandomModel, picked: Sequence[int]) -> tuple[list[Row], list[Fraction]]:
    """Return the chain of a strategy and its payments."""
    rows = [case.steps_of[s][k] for s, k in enumerate(picked)]
    return rows, [case.payments[s][k] for s, k in enumerate(picked)]


def best(direction: Direction | None, answers: Iterator[Values]) -> Values:
    """Return the best of each state over the answers; of a chain there is one."""
    pick = max if direction is Direction.MAXIMISE else min
    return [pick(values) for values in zip(*answers, strict=True)]


def until(case: RandomModel, direction: Direction | None) -> Values:
    """P(remain U target)."""
    answers = (exact.until(rows, case.remain, case.target) for rows, _, _ in strategies(case))
    return best(direction, answers)


def reachability_reward(case: RandomModel, direction: Direction | None) -> Values:
    """R [ F target ]."""
    answers = (exact.reward(rows, paid, case.target) for rows, paid, _ in strategies(case))
    return best(direction, answers)


def total_reward(case: RandomModel, direction: Direction | None) -> Values:
    """R [ C ]."""
    return best(direction, (total_of_chain(rows, paid) for rows, paid, _ in strategies(case)))


def closure(rows: list[Row]) -> list[set[int]]:
    """Return what each state reaches, itself included."""
    reach = []
    for state in range(len(rows)):
        seen, waiting = {state}, [state]
        while waiting:
            for after in rows[waiting.pop()].keys() - seen:
                seen.add(after)
                waiting.append(after)
        reach.append(seen)
    return reach


def recurrent_classes(rows: list[Row]) -> list[list[int]]:
    """Return the bottom strongly connected components, by their smallest states."""
    reach = closure(rows)
    return [
        sorted(seen)
        for state, seen in enumerate(reach)
        if min(seen) == state and all(reach[other] == seen for other in seen)
    ]


def total_of_chain(rows: list[Row], payments: list[Fraction]) -> Values:
    """R [ C ] of a chain: infinite where a class that earns something may be reached."""
    classes = recurrent_classes(rows)
    recurrent = {s for members in classes for s in members}
    paying = {s for members in classes if any(payments[t] for t in members) for s in members}
    reach = closure(rows)
    infinite = {s for s in range(len(rows)) if reach[s] & paying}
    unknown = [s for s in range(len(rows)) if s not in infinite | recurrent]
    values = exact.solve(rows, unknown, {s: payments[s] for s in unknown})
    return [INFINITY if s in infinite else values.get(s, Fraction(0)) for s in range(len(rows))]


def limits(case: RandomModel) -> list[list[Fraction]]:
    """Long-run shares of steps or of time, from each state in each state."""
    rows = [choices[0] for choices in case.steps_of]
    exits = [sum(row.values()) or Fraction(1) for (row,) in case.choices]
    size = len(rows)
    limit = [[Fraction(0)] * size for _ in range(size)]
    for members in recurrent_classes(rows):
        first, others = members[0], members[1:]
        backwards = [{i: rows[i][j] for i in members if j in rows[i]} for j in range(size)]
        right = {j: rows[first].get(j, Fraction(0)) for j in others}
        visits = {first: Fraction(1), **exact.solve(backwards, others, right)}
        spent = {j: visits[j] / exits[j] for j in members}
        reached = exact.until(rows, set(range(size)), set(members))
        for state, j in itertools.product(range(size), members):
            limit[state][j] = reached[state] * spent[j] / sum(spent.values())
    return limit


def long_run(case: RandomModel, earned: Sequence[Fraction]) -> Values:
    """The long-run mean of what the states earn."""
    return [
        sum((share * e for share, e in zip(row, earned, strict=True)), Fraction(0))
        for row in limits(case)
    ]


def steady_state(case: RandomModel) -> Values:
    """The long-run distribution from the initial one."""
    return _forward(case.initial, limits(case))


def _forward(initial: Sequence[Fraction], matrix: list[list[Fraction]]) -> Values:
    return [
        sum((a * row[j] for a, row in zip(initial, matrix, strict=True)), Fraction(0))
        for j in range(len(initial))
    ]


def sweeps(
    case: RandomModel,
    direction: Direction | None,
    start: Sequence[Fraction],
    steps: int,
    *,
    earned: bool = False,
    after: Callable[[int, Values], Values] = lambda _, x: x,
) -> Values:
    """The best expectation of `start` after so many steps, and of what they earn.

    `after` changes the values of each step, given how many steps come before it.
    """
    pick = max if direction is Direction.MAXIMISE else min
    x: Values = list(start)
    for made in range(steps):
        x = [
            pick(
                sum((p * x[t] for t, p in row.items()), paid if earned else Fraction(0))
                for row, paid in zip(rows, payments, strict=True)
            )
            for rows, payments in zip(case.steps_of, case.payments, strict=True)
        ]
        x = after(steps - made - 1, x)
    return x


def bounded_until(case: RandomModel, direction: Direction | None, lower: int, upper: int) -> Values:
    """P(remain U[lower,upper] target), from the last step to the first."""
    hit = [Fraction(int(s in case.target)) for s in range(case.size)]

    def after(made: int, x: Values) -> Values:
        x = [v if s in case.remain else Fraction(0) for s, v in enumerate(x)]
        return [max(h, v) for h, v in zip(hit, x, strict=True)] if made >= lower else x

    return sweeps(case, direction, hit, upper, after=after)


def remaining(
    case: RandomModel, direction: Direction | None, start: Sequence[Fraction], steps: int
) -> Values:
    """The expectation of `start` after so many steps that begin in `remain`."""

    def after(_: int, x: Values) -> Values:
        return [v if s in case.remain else Fraction(0) for s, v in enumerate(x)]

    return sweeps(case, direction, start, steps, after=after)


def distribution_after(case: RandomModel) -> Values:
    """The distribution after a number of steps."""
    x: Values = list(case.initial)
    for _ in range(case.steps):
        x = [
            sum((x[s] * rows[0].get(j, Fraction(0)) for s, rows in enumerate(case.steps_of)))
            for j in range(case.size)
        ]
    return x


def exponential(
    case: RandomModel,
    time: Fraction | float,
    moving: Sequence[bool] | None = None,
    column: Sequence[Fraction] | None = None,
) -> list[list[Fraction]]:
    """Return e^(Qt), by Taylor's series of Q t / 2^k in fixed-point numbers, squared k times.

    States that do not move are absorbing. With a column r, the matrix has one more column, the
    integral of e^(Qu) r from 0 to t.
    """
    size = case.size + (column is not None)
    generator = [[Fraction(0)] * size for _ in range(size)]
    for s, (row,) in enumerate(case.choices):
        for t, rate in row.items() if moving is None or moving[s] else ():
            generator[s][t] += rate
            generator[s][s] -= rate
        if column is not None:
            generator[s][-1] = column[s]
    largest = max(sum(abs(entry) for entry in row) for row in generator) * Fraction(time)
    halvings = max(0, (int(largest) + 1).bit_length())
    scaled = Fraction(time) * 2 ** (PLACES - halvings)
    q = np.array([[int(entry * scaled) for entry in row] for row in generator], dtype=object)
    one = np.array([[int(i == j) << PLACES for j in range(size)] for i in range(size)], object)
    term, result = one, one.copy()
    for k in range(1, 80):
        term = (term.dot(q) >> PLACES) // k
        result = result + term
    for _ in range(halvings):
        result = result.dot(result) >> PLACES
    return [[Fraction(entry, 1 << PLACES) for entry in row] for row in result.tolist()]


def at_time(
    case: RandomModel,
    time: Fraction | float,
    start: Sequence[Fraction | float],
    moving: Sequence[bool] | None = None,
) -> Values:
    """The expectation of `start` at a time."""
    matrix = exponential(case, time, moving)
    return [
        sum((p * Fraction(x) for p, x in zip(row, start, strict=True)), Fraction(0))
        for row in matrix
    ]


def timed_until(case: RandomModel, lower: float, upper: float) -> Values:
    """P(remain U[lower,upper] target)."""
    hit = [Fraction(int(s in case.target)) for s in range(case.size)]
    passing = [s in case.remain and s not in case.target for s in range(case.size)]
    x = at_time(case, Fraction(upper) - Fraction(lower), hit, passing)
    return x if lower == 0.0 else remaining_until(case, lower, x)


def remaining_until(case: RandomModel, time: float, start: Sequence[Fraction | float]) -> Values:
    """The expectation of `start` at a time up to which the chain stays in `remain`."""
    inside = [s in case.remain for s in range(case.size)]
    masked = [x if kept else Fraction(0) for x, kept in zip(start, inside, strict=True)]
    return at_time(case, time, masked, inside)


def earned_until(case: RandomModel, time: float) -> Values:
    """R [ C<=t ]."""
    matrix = exponential(case, time, column=case.state_rewards)
    return [row[-1] for row in matrix[: case.size]]


def distribution_at(case: RandomModel, time: float) -> Values:
    """The distribution at a time."""
    return _forward(case.initial, exponential(case, time))


def passing(case: RandomModel, text: str, rows: list[Row]) -> set[int]:
    """Return the states of a chain that a question has equations for, or more."""
    everywhere = set(range(case.size))
    if text == "P [ U ]":
        return set(case.remain - case.target)
    if text == "R [ F ]":
        return everywhere - case.target
    return everywhere - {s for members in recurrent_classes(rows) for s in members}


def leaving(rows: list[Row], through: set[int]) -> set[int]:
    """Return the states of a set from which a path leaves it."""
    return exact.reaching(rows, set(range(len(rows))) - through, through) & through


def amplification(case: RandomModel, text: str) -> float:
    """Return what a relative error made in each step adds up to, relative to a value, at most.

    An error of δ in the equation of j adds G(i,j) δ x_j to the value of i, G(i,j) the expected
    visits to j before the states of the equations are left. Since i has the share of getting to j
    in its value, G(i,j) x_j ≤ G(j,j) x_i. So δ times the sum of all G(j,j) is a bound, and the
    largest of all strategies is one for an MDP, whose equations are those of the states that some
    strategy takes to known ones: a bad strategy is swept until its value has faded.
    """
    known = set(range(case.size))
    for rows, _, _ in strategies(case):
        known -= leaving(rows, passing(case, text, rows))
    largest = 0.0
    for rows, _, _ in strategies(case):
        left = sorted(leaving(rows, passing(case, text, rows) - known))
        step = np.array([[float(rows[i].get(j, 0)) for j in left] for i in left])
        if not left:
            continue
        try:
            visits = np.diag(np.linalg.inv(np.eye(len(left)) - step))
        except np.linalg.LinAlgError:
            # In these digits, the states are never left.
            return INFINITY
        largest = max(largest, float(np.abs(visits).sum()))
    return largest
