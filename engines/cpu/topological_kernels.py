"""Solving a system component by component: each takes the finished values of those it leads to.

Each function runs as it stands, on lists, or compiled by `engines.cpu.topological`, on arrays.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from engines.cpu.graph_closures import Vector
from engines.system import ROUNDING_OF_A_SUM

DONE, OUTSIDE, SLOW, OUT_OF_BUDGET, LIMIT = range(5)
"""Why a walk stopped: at its end; at a component that is solved elsewhere, whose sweeps are too
slow, or that reached the limit of sweeps; or anywhere, to report."""

HERE, ELSEWHERE, PATIENTLY = range(3)
"""How a component is solved: by the walk, elsewhere, or by the walk however slow it is."""

COMPONENT, SWEEPS, ITERATIONS, MET, FAILED, UNMET = range(6)
"""Where a walk is: the component, the sweeps made in it, all evaluations of single states and
sweeps so far, how often in a row the automatic test was met, how often no upper bound was found,
and the components that were left before they met the test."""

CHANGE, WORK = range(2)
"""The largest last change of the components, and the entries looked at."""

WINDOW = 64
"""Contraction is observed over so many sweeps."""

TESTED_EVERY = 32
"""An automatic solve looks at the contraction after so many sweeps."""

ROUNDING = 1e-13
"""Relative changes below this are mostly rounding and say nothing about contraction."""

ROUNDING_A_SWEEP = 4.0 * 2.0**-53
"""By how much, relative to it, a sweep may change a value by rounding alone."""

MOST_FAILURES = 4
FINER = 0.1
"""How often an upper bound is looked for, and by what factor the error must be less in between."""

INFINITY = float("inf")


class Numbers(Protocol):
    """A list of floating-point numbers, or a NumPy array of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> float: ...

    def __setitem__(self, index: int, value: float, /) -> None: ...


class Equations(NamedTuple):
    """The equations x = b + A x, by states.

    Parameters
    ----------
    groups
        Shape (states + 1,): the rows of state s are ``groups[s]`` to ``groups[s + 1] - 1``; a
        known state has none.
    offsets, columns, values
        The rows' entries, none of them 0.
    offset
        The vector b, shape (rows,), or empty for zero.
    """

    groups: Vector
    offsets: Vector
    columns: Vector
    values: Numbers
    offset: Numbers


class Order(NamedTuple):
    """The strongly connected components, each after those that it leads to.

    Parameters
    ----------
    found, bounds
        Component k is the states ``found[bounds[k]]`` to ``found[bounds[k + 1] - 1]``.
    component
        Shape (states,): the component of each state, −1 for known ones.
    """

    found: Vector
    bounds: Vector
    component: Vector


class Rule(NamedTuple):
    """How to sweep, and until when.

    Parameters
    ----------
    minimise
        Whether the least row of a state is taken, else the greatest.
    omega
        Relaxation; 1 for none.
    absolute, epsilon
        How changes are measured, and below which one a component is finished.
    automatic
        Whether the expected error must be below epsilon too, twice in a row.
    rising
        Whether values rise from 0, so that an automatic solve can prove its error.
    limit
        Most sweeps of a component.
    slow_after
        Sweeps after which an automatic solve gives up a component that contracts too slowly.
    """

    minimise: bool
    omega: float
    absolute: bool
    epsilon: float
    automatic: bool
    rising: bool
    limit: int
    slow_after: int


def entries_of(equations: Equations, state: int) -> int:
    """Return the entries of a state's rows, and two for the state itself."""
    groups, offsets = equations.groups, equations.offsets
    return offsets[groups[state + 1]] - offsets[groups[state]] + 2


def best_row(
    equations: Equations, state: int, x: Numbers, minimise: bool, without_loops: bool
) -> float:
    """Return the value of a state's best row.

    Where no other state of the component is left, rows are solved for their own state; one that
    only loops is worth nothing, or for ever more.
    """
    offsets, columns, values = equations.offsets, equations.columns, equations.values
    best = INFINITY if minimise else -INFINITY
    for row in range(equations.groups[state], equations.groups[state + 1]):
        total = equations.offset[row] if len(equations.offset) else 0.0
        loop, others = 0.0, 0.0
        leaves = False
        for entry in range(offsets[row], offsets[row + 1]):
            column = columns[entry]
            if without_loops and column == state:
                loop += values[entry]
            else:
                leaves = True
                others += values[entry]
                total += values[entry] * x[column]
        if loop > 0.0:
            if not leaves:
                total = INFINITY if total > 0.0 else 0.0
            elif abs(others + loop - 1.0) <= ROUNDING_OF_A_SUM:
                total /= others
            elif loop < 1.0:
                total /= 1.0 - loop
        if (total < best) if minimise else (total > best):
            best = total
    return best


def inherited_error(equations: Equations, order: Order, errors: Numbers, own: int) -> float:
    """Return the largest error of the components that one leads to.

    Probabilities of leaving add up to 1 at most, so that values which are off by some amount or
    share, all of them, move a solution by no more.
    """
    offsets, columns, component = equations.offsets, equations.columns, order.component
    largest = 0.0
    for at in range(order.bounds[own], order.bounds[own + 1]):
        state = order.found[at]
        first, last = equations.groups[state], equations.groups[state + 1]
        for entry in range(offsets[first], offsets[last]):
            other = component[columns[entry]]
            if other >= 0 and other != own and errors[other] > largest:
                largest = errors[other]
    return largest


def depths(equations: Equations, order: Order, depth: Vector) -> int:
    """Write how many components of several states follow each other from each on, itself included.

    Returns the most.
    """
    offsets, columns, component = equations.offsets, equations.columns, order.component
    deepest = 0
    for own in range(len(order.bounds) - 1):
        begin, end = order.bounds[own], order.bounds[own + 1]
        below = 0
        for at in range(begin, end):
            state = order.found[at]
            first, last = equations.groups[state], equations.groups[state + 1]
            for entry in range(offsets[first], offsets[last]):
                other = component[columns[entry]]
                if other >= 0 and other != own and depth[other] > below:
                    below = depth[other]
        depth[own] = below + 1 if end - begin > 1 else below
        if depth[own] > deepest:
            deepest = depth[own]
    return deepest


def sweep(
    equations: Equations, order: Order, rule: Rule, x: Numbers, fresh: Numbers, own: int
) -> float:
    """Make one sweep of a component, from the values before it; return the largest change."""
    begin, end = order.bounds[own], order.bounds[own + 1]
    largest = 0.0
    for at in range(begin, end):
        state = order.found[at]
        before = x[state]
        after = best_row(equations, state, x, rule.minimise, False)
        if rule.omega != 1.0:
            after = (1.0 - rule.omega) * before + rule.omega * after
        fresh[at - begin] = after
        change = abs(after - before)
        # Comparisons with NaN fail, so that infinity less infinity counts as no change.
        if rule.absolute:
            if change > largest:
                largest = change
        elif change > largest * abs(before):
            largest = change / abs(before) if before != 0.0 else INFINITY
    for at in range(begin, end):
        x[order.found[at]] = fresh[at - begin]
    return largest


def contraction(changes: Numbers, sweeps: int) -> float:
    """Return by what factor the last sweeps contracted: 0 for mere rounding, infinite if unknown.

    `changes` is a ring of the last changes. Maxima over each half of them are compared, because
    the change may swing within a period of the chain; rises from 0, which are infinite changes,
    end the look back.
    """
    seen = 0
    while seen < min(sweeps, WINDOW) and changes[(sweeps - 1 - seen) % WINDOW] < INFINITY:
        seen += 1
    half = seen // 2
    early, late = 0.0, 0.0
    for back in range(seen):
        change = changes[(sweeps - 1 - back) % WINDOW]
        if back < seen - half:
            late = max(late, change)
        else:
            early = max(early, change)
    if max(early, late) <= ROUNDING and seen > 0:
        return 0.0
    if half == 0 or early <= ROUNDING:
        return INFINITY
    return float((max(late, ROUNDING) / early) ** (1.0 / (seen - half)))


def expected_error(change: float, rate: float) -> float:
    """Return the error to expect after a sweep with this change, at this contraction."""
    if change == 0.0:
        return 0.0
    if rate == 0.0:
        return change
    return change * rate / (1.0 - rate) if rate < 1.0 else INFINITY


def proven_error(
    equations: Equations,
    order: Order,
    rule: Rule,
    x: Numbers,
    fresh: Numbers,
    before: Numbers,
    guess: Numbers,
    own: int,
    sweeps: int,
) -> tuple[float, int]:
    """Bound how far the solution lies above the values of a component; count the sweeps it takes.

    Values a little enlarged are an upper bound if some sweeps take them to what is nowhere above:
    Park's induction, as in Hartmanns and Kaminski (2020), Optimistic Value Iteration. The bound is
    infinite if `sweeps` of them do not.
    """
    begin, end = order.bounds[own], order.bounds[own + 1]
    for at in range(begin, end):
        value = x[order.found[at]]
        before[at - begin] = value
        guess[at - begin] = value + rule.epsilon if rule.absolute else value * (1.0 + rule.epsilon)
        x[order.found[at]] = guess[at - begin]
    done, rises = 0, True
    while rises and done < sweeps:
        sweep(equations, order, rule, x, fresh, own)
        done += 1
        rises = False
        for at in range(end - begin):
            if fresh[at] > guess[at] * (1.0 + done * ROUNDING_A_SWEEP):
                rises = True
                break
    for at in range(begin, end):
        x[order.found[at]] = before[at - begin]
    return (INFINITY if rises else rule.epsilon), done


def slowly(rule: Rule, error: float, rate: float, sweeps: int) -> bool:
    """Return whether many sweeps were made, and as many more will not do."""
    if sweeps < rule.slow_after:
        return False
    return not (rate < 1.0 and error * rate**rule.slow_after < rule.epsilon)


def finish(
    equations: Equations,
    order: Order,
    errors: Numbers,
    place: Vector,
    totals: Numbers,
    change: float,
    error: float,
) -> None:
    """Leave the present component, with its last change and its own error."""
    own = place[COMPONENT]
    errors[own] = error + inherited_error(equations, order, errors, own)
    totals[CHANGE] = max(totals[CHANGE], change)
    place[COMPONENT], place[SWEEPS], place[MET], place[FAILED] = own + 1, 0, 0, 0


def solve_components(
    equations: Equations,
    order: Order,
    rule: Rule,
    how: Vector,
    x: Numbers,
    fresh: Numbers,
    before: Numbers,
    guess: Numbers,
    changes: Numbers,
    errors: Numbers,
    place: Vector,
    totals: Numbers,
    budget: int,
) -> int:
    """Go on with a walk until something is to be done elsewhere; return what.

    `how` and `errors` have a number for each component; `fresh`, `before` and `guess` one for each
    state of the largest; `changes` is a ring of `WINDOW` numbers. Up to about `budget` entries are
    looked at.
    """
    worked = 0
    while place[COMPONENT] < len(order.bounds) - 1:
        own = place[COMPONENT]
        begin, end = order.bounds[own], order.bounds[own + 1]
        if end - begin == 1:
            state = order.found[begin]
            x[state] = best_row(equations, state, x, rule.minimise, True)
            worked += entries_of(equations, state)
            totals[WORK] += entries_of(equations, state)
            place[ITERATIONS] += 1
            finish(equations, order, errors, place, totals, 0.0, 0.0)
            if worked > budget:
                return OUT_OF_BUDGET
            continue
        if how[own] == ELSEWHERE:
            return OUTSIDE
        patient = how[own] == PATIENTLY
        weight = 0
        for at in range(begin, end):
            weight += entries_of(equations, order.found[at])
        while place[COMPONENT] == own:
            if worked > budget:
                return OUT_OF_BUDGET
            if place[SWEEPS] >= rule.limit:
                return LIMIT
            change = sweep(equations, order, rule, x, fresh, own)
            changes[place[SWEEPS] % WINDOW] = change
            place[SWEEPS] += 1
            place[ITERATIONS] += 1
            worked += weight
            totals[WORK] += weight
            sweeps = place[SWEEPS]
            if change == 0.0:
                error = sweeps * ROUNDING_A_SWEEP if rule.automatic else 0.0
                finish(equations, order, errors, place, totals, change, error)
            elif not rule.automatic:
                if change < rule.epsilon:
                    error = expected_error(change, contraction(changes, sweeps))
                    finish(equations, order, errors, place, totals, change, error)
            elif sweeps >= WINDOW and sweeps % TESTED_EVERY == 0:
                worst = 0.0
                for back in range(TESTED_EVERY):
                    worst = max(worst, changes[(sweeps - 1 - back) % WINDOW])
                rate = contraction(changes, sweeps)
                error = expected_error(worst, rate)
                wanted = rule.epsilon * FINER ** place[FAILED]
                met = worst < wanted and error < wanted
                # Further sweeps would only stir the last digits.
                at_rest = worst < min(ROUNDING, wanted) and not met
                place[MET] = place[MET] + 1 if met else 0
                if place[MET] == 2 and rule.rising and not patient:
                    error, proving = proven_error(
                        equations, order, rule, x, fresh, before, guess, own, max(64, sweeps // 2)
                    )
                    worked += proving * weight
                    totals[WORK] += proving * weight
                    if error == INFINITY:
                        place[FAILED], place[MET] = place[FAILED] + 1, 0
                if place[MET] == 2 or (at_rest and patient):
                    place[UNMET] += 0 if place[MET] == 2 else 1
                    finish(equations, order, errors, place, totals, change, error)
                elif not patient and (
                    at_rest or place[FAILED] == MOST_FAILURES or slowly(rule, error, rate, sweeps)
                ):
                    return SLOW
    return DONE
