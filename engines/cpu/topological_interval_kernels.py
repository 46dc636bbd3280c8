"""Interval iteration component by component: both bounds, outwards by what rounding may be.

Each function runs as it stands, on lists, or compiled by `engines.cpu.topological`, on arrays.
"""

from __future__ import annotations

from typing import NamedTuple

from engines.cpu.graph_closures import Vector
from engines.cpu.topological_kernels import (
    COMPONENT,
    DONE,
    ELSEWHERE,
    INFINITY,
    ITERATIONS,
    LIMIT,
    MET,
    OUT_OF_BUDGET,
    OUTSIDE,
    PATIENTLY,
    SLOW,
    SWEEPS,
    WORK,
    Equations,
    Numbers,
    Order,
)
from engines.two_sided import SMALLEST, UNIT_ROUNDOFF

WIDTH, RISE, FALL, CROSSING, MOVED, WIDTH_BEFORE, CHECKED_AT = range(7)
"""What the last sweep did, as `engines.two_sided.SweepRecord` has it; and the width at the last
look at the speed of a component, and after how many sweeps that was."""

WORST = 0
"""In the totals: the largest step in the wrong direction, instead of a change."""

CROSSED = 5
"""Why a walk stopped: a lower bound exceeds its upper one."""

TESTED_EVERY = 512
"""After so many sweeps the speed of a component is looked at."""


class IntervalRule(NamedTuple):
    """How to sweep, and until when.

    Parameters
    ----------
    minimise
        Whether the least row of a state is taken, else the greatest.
    absolute
        How widths are measured.
    monotonic_below, monotonic_above
        Whether no sweep lowers a lower value, or raises an upper one.
    slack
        Rounding of a row beside that of its sum, in units of roundoff.
    raised_by
        What is added to the first upper values of a component of several states.
    limit
        Most sweeps of a component.
    slow_after
        Sweeps after which a component is given up that will need as many more; 0 for never.
    """

    minimise: bool
    absolute: bool
    monotonic_below: bool
    monotonic_above: bool
    slack: float
    raised_by: float
    limit: int
    slow_after: int


def best_lower(equations: Equations, rule: IntervalRule, state: int, lower: Numbers) -> float:
    """Return a lower bound of a state's best row, from lower bounds of its successors."""
    offsets, columns, values = equations.offsets, equations.columns, equations.values
    best = INFINITY if rule.minimise else -INFINITY
    for row in range(equations.groups[state], equations.groups[state + 1]):
        total = equations.offset[row] if len(equations.offset) else 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry] * lower[columns[entry]]
        length = offsets[row + 1] - offsets[row]
        total *= 1.0 - (length + rule.slack) * UNIT_ROUNDOFF
        total -= (length + 1.0) * SMALLEST
        if (total < best) if rule.minimise else (total > best):
            best = total
    return max(best, 0.0)


def best_upper(equations: Equations, rule: IntervalRule, state: int, upper: Numbers) -> float:
    """Return an upper bound of a state's best row, from upper bounds of its successors."""
    offsets, columns, values = equations.offsets, equations.columns, equations.values
    best = INFINITY if rule.minimise else -INFINITY
    for row in range(equations.groups[state], equations.groups[state + 1]):
        total = equations.offset[row] if len(equations.offset) else 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry] * upper[columns[entry]]
        length = offsets[row + 1] - offsets[row]
        total *= 1.0 + (length + rule.slack) * UNIT_ROUNDOFF
        total += (length + 1.0) * SMALLEST
        if (total < best) if rule.minimise else (total > best):
            best = total
    return best


def share(part: float, whole: float) -> float:
    """Return a part in relation to the whole; infinite where that is 0."""
    return part / whole if whole > 0.0 else INFINITY


def sweep_bounds(
    equations: Equations,
    order: Order,
    rule: IntervalRule,
    own: int,
    lower: Numbers,
    upper: Numbers,
    fresh_lower: Numbers,
    fresh_upper: Numbers,
    record: Numbers,
) -> None:
    """Make one sweep of both bounds of a component, from those before it."""
    begin, end = order.bounds[own], order.bounds[own + 1]
    record[WIDTH], record[RISE], record[FALL] = 0.0, 0.0, 0.0
    record[CROSSING], record[MOVED] = 0.0, 0.0
    for at in range(begin, end):
        state = order.found[at]
        low, up = lower[state], upper[state]
        new_low = best_lower(equations, rule, state, lower)
        new_up = best_upper(equations, rule, state, upper)
        if new_up > up:
            record[RISE] = max(record[RISE], share(new_up - up, up))
            if rule.monotonic_above:
                new_up = up
        if new_low < low:
            record[FALL] = max(record[FALL], share(low - new_low, low))
            if rule.monotonic_below:
                new_low = low
        if new_low != low or new_up != up:
            record[MOVED] = 1.0
        width = new_up - new_low
        if width < 0.0:
            record[CROSSING] = max(record[CROSSING], -width)
        elif width > 0.0:
            measured = width if rule.absolute else share(width, new_low)
            record[WIDTH] = max(record[WIDTH], measured)
        fresh_lower[at - begin] = new_low
        fresh_upper[at - begin] = new_up
    for at in range(begin, end):
        lower[order.found[at]] = fresh_lower[at - begin]
        upper[order.found[at]] = fresh_upper[at - begin]


def too_slow(rule: IntervalRule, epsilon: float, sweeps: int, record: Numbers) -> bool:
    """Return whether many sweeps were made, and as many more will not do."""
    before, since = record[WIDTH_BEFORE], sweeps - record[CHECKED_AT]
    record[WIDTH_BEFORE], record[CHECKED_AT] = record[WIDTH], sweeps
    if sweeps < rule.slow_after or not before < INFINITY:
        return False
    if record[WIDTH] >= before:
        return True
    rate = (record[WIDTH] / before) ** (1.0 / since)
    return bool(record[WIDTH] * rate**rule.slow_after >= epsilon)


def narrow_components(
    equations: Equations,
    order: Order,
    rule: IntervalRule,
    how: Vector,
    epsilons: Numbers,
    lower: Numbers,
    upper: Numbers,
    fresh_lower: Numbers,
    fresh_upper: Numbers,
    record: Numbers,
    place: Vector,
    totals: Numbers,
    budget: int,
) -> int:
    """Go on with a walk until something is to be done elsewhere; return what.

    `how` and `epsilons` have a number for each component, `fresh_lower` and `fresh_upper` one for
    each state of the largest. ``place[MET]`` counts the components that came to rest before their
    bounds were close. Up to about `budget` entries are looked at.
    """
    offsets, groups = equations.offsets, equations.groups
    worked = 0
    while place[COMPONENT] < len(order.bounds) - 1:
        own = place[COMPONENT]
        begin, end = order.bounds[own], order.bounds[own + 1]
        if how[own] == ELSEWHERE:
            return OUTSIDE
        weight = 0
        for at in range(begin, end):
            state = order.found[at]
            weight += offsets[groups[state + 1]] - offsets[groups[state]] + 2
        if end - begin == 1:
            state = order.found[begin]
            lower[state] = best_lower(equations, rule, state, lower)
            upper[state] = best_upper(equations, rule, state, upper)
            worked += weight
            totals[WORK] += weight
            place[ITERATIONS] += 1
            place[COMPONENT] = own + 1
            if lower[state] > upper[state]:
                record[CROSSING] = lower[state] - upper[state]
                return CROSSED
            if worked > budget:
                return OUT_OF_BUDGET
            continue
        if place[SWEEPS] == 0:
            record[WIDTH_BEFORE], record[CHECKED_AT] = INFINITY, 0.0
            for at in range(begin, end):
                upper[order.found[at]] += rule.raised_by
        while place[COMPONENT] == own:
            if worked > budget:
                return OUT_OF_BUDGET
            if place[SWEEPS] >= rule.limit:
                return LIMIT
            sweep_bounds(
                equations, order, rule, own, lower, upper, fresh_lower, fresh_upper, record
            )
            place[SWEEPS] += 1
            place[ITERATIONS] += 1
            worked += weight
            totals[WORK] += weight
            totals[WORST] = max(totals[WORST], record[RISE], record[FALL])
            sweeps = place[SWEEPS]
            if record[CROSSING] > 0.0:
                return CROSSED
            close = record[WIDTH] < epsilons[own] or record[WIDTH] == 0.0
            if close or record[MOVED] == 0.0:
                place[COMPONENT], place[SWEEPS] = own + 1, 0
                place[MET] += 0 if close else 1
            elif (
                rule.slow_after > 0
                and how[own] != PATIENTLY
                and sweeps % TESTED_EVERY == 0
                and too_slow(rule, epsilons[own], sweeps, record)
            ):
                return SLOW
    return DONE
