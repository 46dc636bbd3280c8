"""Exact values: elimination, policy iteration and powers over the rationals.

Exponentials alone are rounded, in fixed-point numbers of hundreds of places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np

from tests.promise.models import CTMC, Case, Row

INFINITY = float("inf")
Value = Fraction | float
Choices = Sequence[Sequence[Row]]
Payments = Sequence[Sequence[Fraction]]
Pick = Callable[..., Fraction]
PLACES = 320
ZERO, ONE = Fraction(0), Fraction(1)


def steps_of(case: Case) -> list[list[Row]]:
    """Return the probabilities of a step; an absorbing state of a CTMC stays where it is."""
    if case.kind is not CTMC:
        return [list(rows) for rows in case.choices]
    found = []
    for state, (row,) in enumerate(case.choices):
        leaving = sum(row.values())
        found.append([{s: r / leaving for s, r in row.items()} if row else {state: ONE}])
    return found


def payments_of(case: Case) -> list[list[Fraction]]:
    """Return what each choice earns in a step, of a CTMC in a mean sojourn."""
    if case.kind is CTMC:
        exits = [sum(row.values()) for (row,) in case.choices]
        return [[p / e if e else p] for p, e in zip(case.state_rewards, exits, strict=True)]
    pairs = zip(case.state_rewards, case.choice_rewards, strict=True)
    return [[paid + more for more in of_choices] for paid, of_choices in pairs]


def solve(rows: Mapping[int, Row], right: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Solve x = right + rows x, one state eliminated after the other, those of few entries first.

    What a row says of states that have none counts nothing.
    """
    left = {s: {t: p for t, p in row.items() if t in rows} for s, row in rows.items()}
    value = {s: right.get(s, ZERO) for s in rows}
    before: dict[int, set[int]] = {s: set() for s in rows}
    for s, row in left.items():
        for t in row:
            before[t].add(s)
    done = []
    while left:
        state = min(left, key=lambda s: len(left[s]) * len(before[s]))
        row = left.pop(state)
        scale = 1 / (1 - row.pop(state, ZERO))
        row = {t: p * scale for t, p in row.items()}
        value[state] *= scale
        for t in row:
            before[t].discard(state)
        for s in before.pop(state) - {state}:
            part = left[s].pop(state)
            value[s] += part * value[state]
            for t, p in row.items():
                left[s][t] = left[s].get(t, ZERO) + part * p
                before[t].add(s)
        done.append((state, row))
    for state, row in reversed(done):
        value[state] += sum((p * value[t] for t, p in row.items()), ZERO)
    return value


def able(choices: Choices, goal: Collection[int], through: Collection[int]) -> set[int]:
    """Return which states some choices lead to the goal, passing through some states only."""
    found, more = set(goal), True
    while more:
        fresh = {
            s
            for s in through
            if s not in found and any(not found.isdisjoint(row) for row in choices[s])
        }
        found |= fresh
        more = bool(fresh)
    return found


def forced(choices: Choices, goal: Collection[int], through: Collection[int]) -> set[int]:
    """Return which states reach the goal with some probability whatever is chosen."""
    found, more = set(goal), True
    while more:
        fresh = {
            s
            for s in through
            if s not in found and all(not found.isdisjoint(row) for row in choices[s])
        }
        found |= fresh
        more = bool(fresh)
    return found


def closed_classes(rows: Mapping[int, Row]) -> list[set[int]]:
    """Return the classes of states that are never left."""
    reach = {}
    for state in rows:
        seen, waiting = {state}, [state]
        while waiting:
            for after in rows.get(waiting.pop(), {}):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        reach[state] = seen
    return [
        seen
        for state, seen in reach.items()
        if min(seen) == state and all(t in reach and reach[t] == seen for t in seen)
    ]


def best(
    choices: Choices,
    payments: Payments,
    fixed: Mapping[int, Fraction],
    policy: dict[int, int],
    allowed: Mapping[int, Sequence[int]],
    pick: Pick,
) -> dict[int, Fraction]:
    """Improve a policy until no choice is better; return its values.

    Where a policy stays for ever outside what is fixed it earns nothing.
    """
    while True:
        rows = {s: choices[s][k] for s, k in policy.items()}
        known = dict(fixed)
        for members in closed_classes(rows):
            known.update(dict.fromkeys(members, ZERO))
        right = {
            s: payments[s][policy[s]]
            + sum((p * known[t] for t, p in row.items() if t in known), ZERO)
            for s, row in rows.items()
        }
        known.update(solve({s: row for s, row in rows.items() if s not in known}, right))
        better = {}
        for s, now in policy.items():
            worth = {
                k: payments[s][k] + sum((p * known[t] for t, p in choices[s][k].items()), ZERO)
                for k in allowed[s]
            }
            top = pick(worth.values())
            if top != known[s] and pick(top, known[s]) == top:
                better[s] = next(k for k in allowed[s] if worth[k] == top)
            else:
                better[s] = now
        if better == policy:
            return known
        policy = better


def _towards(
    choices: Choices,
    goal: Collection[int],
    states: Collection[int],
    allowed: Mapping[int, Sequence[int]],
) -> dict[int, int]:
    """Return a policy that leads nearer to the goal in each state."""
    policy: dict[int, int] = {}
    found, more = set(goal), True
    while more:
        fresh = {}
        for s in states:
            if s not in found:
                near = [k for k in allowed[s] if not found.isdisjoint(choices[s][k])]
                if near:
                    fresh[s] = near[0]
        policy.update(fresh)
        found |= fresh.keys()
        more = bool(fresh)
    return policy


def _nothing(choices: Choices) -> Payments:
    return [[ZERO] * len(rows) for rows in choices]


def until(
    choices: Choices, remain: Collection[int], goal: Collection[int], pick: Pick
) -> list[Fraction]:
    """P(remain U goal) of each state."""
    passing = set(remain) - set(goal)
    some = able(choices, goal, passing) if pick is max else forced(choices, goal, passing)
    fixed = {
        s: ONE if s in goal else ZERO for s in range(len(choices)) if s in goal or s not in some
    }
    states = [s for s in some if s not in goal]
    allowed = {s: range(len(choices[s])) for s in states}
    policy = _towards(choices, goal, states, allowed) if pick is max else dict.fromkeys(states, 0)
    values = best(choices, _nothing(choices), fixed, policy, allowed, pick)
    return [values[s] for s in range(len(choices))]


def reachability_reward(
    choices: Choices, payments: Payments, goal: Collection[int], pick: Pick
) -> list[Value]:
    """R [ F goal ] of each state; infinite where the goal may be missed."""
    everywhere = set(range(len(choices)))
    others = everywhere - set(goal)
    if pick is max:
        sure = everywhere - able(choices, everywhere - forced(choices, goal, others), others)
        allowed = {s: range(len(choices[s])) for s in sure - set(goal)}
        policy = dict.fromkeys(allowed, 0)
    else:
        sure = everywhere
        while True:
            allowed = {
                s: [k for k, row in enumerate(choices[s]) if sure.issuperset(row)]
                for s in sure - set(goal)
            }
            policy = _towards(choices, goal, list(allowed), allowed)
            if set(policy) == set(allowed):
                break
            sure = set(policy) | set(goal)
    values = best(choices, payments, dict.fromkeys(goal, ZERO), policy, allowed, pick)
    return [values.get(s, INFINITY) for s in range(len(choices))]


def end_components(choices: Choices, inside: Collection[int]) -> list[set[int]]:
    """Return the maximal end components of the states inside."""
    parts, found = [set(inside)], []
    while parts:
        part = parts.pop()
        kept = set(part)
        while True:
            staying = {s for s in kept if any(kept.issuperset(row) for row in choices[s])}
            if staying == kept:
                break
            kept = staying
        links = {s: {t for row in choices[s] if kept.issuperset(row) for t in row} for s in kept}
        classes = _strong_components(links)
        if classes == [part]:
            found.append(part)
        else:
            parts += classes
    return found


def _strong_components(links: Mapping[int, set[int]]) -> list[set[int]]:
    reach = {}
    for state in links:
        seen, waiting = {state}, [state]
        while waiting:
            for after in links[waiting.pop()] - seen:
                seen.add(after)
                waiting.append(after)
        reach[state] = seen
    classes = {frozenset(t for t in seen if s in reach[t]) for s, seen in reach.items()}
    return [set(members) for members in classes]


def total_reward(choices: Choices, payments: Payments) -> list[Value]:
    """The largest R [ C ] of each state."""
    size = len(choices)
    earning: set[int] = set()
    for part in end_components(choices, range(size)):
        if any(
            payments[s][k] and part.issuperset(row)
            for s in part
            for k, row in enumerate(choices[s])
        ):
            earning |= part
    infinite = able(choices, earning, range(size)) if earning else set()
    allowed = {s: range(len(choices[s])) for s in range(size) if s not in infinite}
    values = best(choices, payments, {}, dict.fromkeys(allowed, 0), allowed, max)
    return [values.get(s, INFINITY) for s in range(size)]


def infinitely_often(choices: Choices, often: Collection[int], pick: Pick) -> list[Fraction]:
    """P(G F often) of each state."""
    everywhere = range(len(choices))
    if pick is min:
        rest = set(everywhere) - set(often)
        return [1 - p for p in at_last_always(choices, rest, max)]
    parts = end_components(choices, everywhere)
    goal = {s for part in parts if not part.isdisjoint(often) for s in part}
    return until(choices, everywhere, goal, max)


def at_last_always(choices: Choices, inside: Collection[int], pick: Pick) -> list[Fraction]:
    """P(F G inside) of each state."""
    everywhere = range(len(choices))
    if pick is min:
        rest = set(everywhere) - set(inside)
        return [1 - p for p in infinitely_often(choices, rest, max)]
    goal = {s for part in end_components(choices, inside) for s in part}
    return until(choices, everywhere, goal, max)


def both(
    choices: Choices, one: Collection[int], two: Collection[int], start: int, pick: Pick
) -> Fraction:
    """P((F one) & (F two)) of a state, in the product with what has been seen."""
    size = len(choices)

    def place(state: int, seen: int) -> int:
        return (seen | (state in one) | 2 * (state in two)) * size + state

    product = [
        [{place(t, seen): p for t, p in row.items()} for row in choices[state]]
        for seen in range(4)
        for state in range(size)
    ]
    goal = range(3 * size, 4 * size)
    return until(product, range(4 * size), goal, pick)[place(start, 0)]


def long_run(case: Case, earned: Sequence[Fraction]) -> list[Fraction]:
    """The long-run mean of what the states of a chain earn, by the step or by time."""
    rows = {s: some[0] for s, some in enumerate(steps_of(case))}
    known: dict[int, Fraction] = {}
    for members in closed_classes(rows):
        first = min(members)
        others = members - {first}
        backwards = {j: {i: rows[i][j] for i in others if j in rows[i]} for j in others}
        visits = {first: ONE, **solve(backwards, {j: rows[first].get(j, ZERO) for j in others})}
        if case.kind is CTMC:
            visits = {j: v / (sum(case.choices[j][0].values()) or 1) for j, v in visits.items()}
        whole = sum(visits.values())
        mean = sum((v * earned[j] for j, v in visits.items()), ZERO) / whole
        known.update(dict.fromkeys(members, mean))
    others = {s: row for s, row in rows.items() if s not in known}
    right = {
        s: sum((p * known[t] for t, p in row.items() if t in known), ZERO)
        for s, row in others.items()
    }
    known.update(solve(others, right))
    return [known[s] for s in range(case.size)]


def sweeps(
    choices: Choices,
    start: Sequence[Fraction],
    steps: int,
    pick: Pick,
    *,
    payments: Payments | None = None,
    after: Callable[[int, list[Fraction]], list[Fraction]] = lambda _, x: x,
) -> list[Fraction]:
    """The best expectation of `start` after a number of steps, and of what they earn.

    `after` changes the values of each step, given how many steps come before it.
    """
    paid = _nothing(choices) if payments is None else payments
    x = list(start)
    for made in range(steps):
        x = [
            pick(
                more + sum((p * x[t] for t, p in row.items()), ZERO)
                for row, more in zip(rows, of_rows, strict=True)
            )
            for rows, of_rows in zip(choices, paid, strict=True)
        ]
        x = after(steps - made - 1, x)
    return x


def bounded_until(
    choices: Choices,
    remain: Collection[int],
    goal: Collection[int],
    bounds: tuple[int, int],
    pick: Pick,
) -> list[Fraction]:
    """P(remain U[lower,upper] goal) of each state, from the last step to the first."""
    hit = [Fraction(int(s in goal)) for s in range(len(choices))]

    def after(made: int, x: list[Fraction]) -> list[Fraction]:
        x = [v if s in remain else ZERO for s, v in enumerate(x)]
        return [max(h, v) for h, v in zip(hit, x, strict=True)] if made >= bounds[0] else x

    return sweeps(choices, hit, bounds[1], pick, after=after)


def exponential(
    case: Case,
    time: Fraction,
    moving: Collection[int] | None = None,
    column: Sequence[Fraction] | None = None,
) -> list[list[Fraction]]:
    """Return e^(Qt), by Taylor's series of Q t / 2^k in fixed-point numbers, squared k times.

    States that do not move are absorbing. With a column r, the matrix has one more column, the
    integral of e^(Qu) r from 0 to t. The series ends where a term has no digit left: the norm of
    Q t / 2^k is below 2^-8.
    """
    size = case.size + (column is not None)
    generator = [[ZERO] * size for _ in range(size)]
    for s, (row,) in enumerate(case.choices):
        for t, rate in row.items() if moving is None or s in moving else ():
            generator[s][t] += rate
            generator[s][s] -= rate
        if column is not None:
            generator[s][-1] = column[s]
    largest = max(sum(abs(entry) for entry in row) for row in generator) * time
    halvings = 8 + (int(largest) + 1).bit_length()
    places = PLACES + 2 * halvings
    scaled = time * 2 ** (places - halvings)
    q = np.array([[int(entry * scaled) for entry in row] for row in generator], dtype=object)
    one = np.array([[int(i == j) << places for j in range(size)] for i in range(size)], object)
    term, result, k = one, one.copy(), 1
    while term.any() and k < 100:
        term = (term.dot(q) >> places) // k
        # Shifts round down: −1 is nothing.
        term[term == -1] = 0
        result, k = result + term, k + 1
    for _ in range(halvings):
        result = result.dot(result) >> places
    return [[Fraction(entry, 1 << places) for entry in row] for row in result.tolist()]


def at_time(
    case: Case,
    time: Fraction,
    start: Sequence[Fraction],
    moving: Collection[int] | None = None,
) -> list[Fraction]:
    """The expectation of `start` at a time."""
    return [
        sum((p * x for p, x in zip(row, start, strict=True)), ZERO)
        for row in exponential(case, time, moving)
    ]


def timed_until(case: Case, lower: Fraction, upper: Fraction) -> list[Fraction]:
    """P(a U[lower,upper] b) of each state."""
    hit = [Fraction(int(s in case.right)) for s in range(case.size)]
    x = at_time(case, upper - lower, hit, case.left - case.right)
    if not lower:
        return x
    kept = [v if s in case.left else ZERO for s, v in enumerate(x)]
    return at_time(case, lower, kept, case.left)


def earned_until(case: Case, time: Fraction) -> list[Fraction]:
    """R [ C<=t ] of each state."""
    return [row[-1] for row in exponential(case, time, column=case.state_rewards)[: case.size]]
