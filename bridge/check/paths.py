"""P: the probability of a path formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.accuracy import Bounded
from bridge.check.bounds import (
    StepBounds,
    TimeBounds,
    require_no_lower_bound,
    step_bounds,
    time_bounds,
)
from bridge.check.outcome import Outcome
from bridge.language.ast import Binary, Expression, Literal, Parentheses, Temporal, Unary
from bridge.model import UnexploredStates
from engines.arrays import MaskArray
from engines.automata import ltl
from engines.errors import UnsupportedError
from engines.model.explicit import ModelKind
from engines.systems.one_sided import Direction

if TYPE_CHECKING:
    from bridge.check.checker import Checker

TRUE = Literal(True, "true")

UNEXPLORED = "states without a name"
"""An atom's name that no state formula has for its text."""


@dataclass(frozen=True)
class SimplePath:
    """A path formula with one temporal operator, over state formulas: X or U, possibly negated."""

    operator: str
    remain: Expression
    target: Expression
    bounded: Temporal | None
    negated: bool


def path_probability(checker: Checker, path: Expression, direction: Direction | None) -> Outcome:
    """Return the probability of a path formula in every state.

    Parameters
    ----------
    checker
        Evaluates the state formulas in it.
    path
        The formula: a temporal operator over state formulas, or any LTL formula.
    direction
        MDPs: minimum or maximum.

    Raises
    ------
    UnsupportedError
        For bounds inside LTL formulas.
    """
    simple = simple_path(path)
    if simple is None:
        return _ltl(checker, path, direction)
    if simple.negated:
        direction = opposite(direction)
    outcome = _simple(checker, simple, direction)
    return outcome.one_minus() if simple.negated else outcome


def certain_path(
    checker: Checker,
    path: Expression,
    direction: Direction | None,
    relation: str,
    bound: float,
) -> MaskArray | None:
    """Return the states that satisfy ``P>=1``, ``P<1``, ``P>0`` or ``P<=0`` by the graph alone.

    No number takes part, so the answer is exact where rounding would leave it open.

    Parameters
    ----------
    checker, path, direction
        As in `path_probability`.
    relation, bound
        What the probability is compared with.

    Returns
    -------
    The states; None where the graph does not decide: for other bounds, for formulas that are not
    an unbounded until.
    """
    simple = simple_path(path)
    if simple is None or simple.bounded is not None or simple.operator != "U":
        return None
    if (relation, bound) not in ((">=", 1.0), ("<", 1.0), (">", 0.0), ("<=", 0.0)):
        return None
    from engines.graph.prob01 import prob0, prob1

    # Of the negation the probability is one minus this one, in the other direction.
    one = (bound == 1.0) != simple.negated
    towards = opposite(direction) if simple.negated else direction
    find = prob1 if one else prob0
    remain, target = _states(checker, simple)
    found = find(
        checker.engine_model,
        remain,
        target,
        towards,
        environment=checker.environment,
    )
    return found if relation in (">=", "<=") else ~found


def opposite(direction: Direction | None) -> Direction | None:
    """Return the other direction; None stays None."""
    if direction is None:
        return None
    return Direction.MAXIMISE if direction is Direction.MINIMISE else Direction.MINIMISE


def simple_path(path: Expression) -> SimplePath | None:
    """Return a path formula in terms of X or U, or None if it is a proper LTL formula.

    Parameters
    ----------
    path
        A path formula. A state formula is none that is simple.
    """
    negated = False
    while isinstance(path, Parentheses) or (isinstance(path, Unary) and path.operator == "!"):
        negated ^= isinstance(path, Unary)
        path = path.operand
    if not isinstance(path, Temporal):
        return None
    left = TRUE if path.left is None else path.left
    right = path.right
    if has_temporal(left) or has_temporal(right):
        return None
    bounded = path if path.bound is not None else None
    match path.operator:
        case "X":
            return SimplePath("X", TRUE, right, bounded, negated)
        case "F" | "U":
            return SimplePath("U", left, right, bounded, negated)
        case "G":
            return SimplePath("U", TRUE, negation(right), bounded, not negated)
        case "W":
            require_no_lower_bound(path)
            # a W b fails just where a stops holding before b has held.
            neither = Binary("&", negation(left), negation(right))
            still = Binary("&", Parentheses(left), negation(right))
            return SimplePath("U", still, neither, bounded, not negated)
        case _:
            return SimplePath("U", negation(left), negation(right), bounded, not negated)


def negation(expression: Expression) -> Expression:
    """Return the negation of a state formula."""
    return Unary("!", Parentheses(expression))


def has_temporal(expression: Expression) -> bool:
    """Return whether a formula has a temporal operator outside P, R, S, A, E and filters."""
    return next(_temporal_operators(expression), None) is not None


def _temporal_operators(expression: Expression) -> Iterator[Temporal]:
    """Return a formula's temporal operators outside P, R, S, A, E and filters."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        match node:
            case Temporal(_, left, right):
                yield node
                waiting += [right] if left is None else [left, right]
            case Parentheses(operand) | Unary(_, operand):
                waiting.append(operand)
            case Binary(_, left, right):
                waiting += (left, right)


def _states(checker: Checker, path: SimplePath) -> tuple[MaskArray, MaskArray]:
    """Return the states that may be passed, and the targets."""
    remain, target = checker.mask(path.remain), checker.mask(path.target)
    unexplored = checker.unexplored
    if unexplored is None:
        return remain, target
    # Both, because a bound from below asks for more than reaching a target.
    won = unexplored.won != path.negated
    return unexplored.targets(remain, won), unexplored.targets(target, won)


def _simple(checker: Checker, path: SimplePath, direction: Direction | None) -> Outcome:
    remain, target = _states(checker, path)
    if path.operator == "X":
        if path.bounded is not None:
            raise UnsupportedError("the operator X takes no bound")
        from engines.questions.bounded import next_probabilities

        model, environment = checker.engine_model, checker.environment
        result = next_probabilities(model, target, environment, direction=direction)
        return checker.solved(result, Bounded.STEPS)
    if path.bounded is None:
        return _until(checker, remain, target, direction)
    if checker.engine_model.kind is ModelKind.CTMC:
        return _time_bounded(checker, remain, target, time_bounds(checker, path.bounded))
    return _step_bounded(checker, remain, target, step_bounds(checker, path.bounded), direction)


def _until(
    checker: Checker, remain: MaskArray, target: MaskArray, direction: Direction | None
) -> Outcome:
    from engines.questions.until import until_probabilities

    return checker.solved(
        until_probabilities(
            checker.engine_model,
            remain,
            target,
            checker.environment,
            direction=direction,
            progress=checker.progress,
            want_strategy=checker.want_strategy,
        )
    )


def _step_bounded(
    checker: Checker,
    remain: MaskArray,
    target: MaskArray,
    bounds: StepBounds,
    direction: Direction | None,
) -> Outcome:
    from engines.questions import bounded

    model, environment = checker.engine_model, checker.environment
    if bounds.upper is not None:
        return checker.solved(
            bounded.bounded_until(
                model,
                remain,
                target,
                bounds.upper,
                environment,
                direction=direction,
                lower=bounds.lower,
                progress=checker.progress,
            ),
            Bounded.STEPS,
        )
    unbounded = _until(checker, remain, target, direction)
    if bounds.lower == 0:
        return unbounded
    later = bounded.after(
        *(model, remain, unbounded.numbers, bounds.lower, environment),
        direction=direction,
        exactly=unbounded.exactly,
    )
    outcome = checker.solved(later, Bounded.STEPS).no_better_than(unbounded)
    accuracy = outcome.accuracy
    if accuracy is not None and accuracy.error > 0.0:
        # The steps round too.
        accuracy = accuracy.at_least(accuracy.error + later.error_estimate)
    return replace(outcome, accuracy=accuracy, exactly=later.exactly)


def _time_bounded(
    checker: Checker, remain: MaskArray, target: MaskArray, bounds: TimeBounds
) -> Outcome:
    from engines.questions import time_bounded

    model, environment = checker.engine_model, checker.environment
    if bounds.upper == 0.0:
        return Outcome(np.where(target, 1.0, 0.0))
    if bounds.upper is not None:
        return checker.solved(
            time_bounded.time_bounded_until(
                model,
                remain,
                target,
                bounds.lower,
                bounds.upper,
                environment,
                progress=checker.progress,
            ),
            Bounded.TIME,
        )
    unbounded = _until(checker, remain, target, None)
    if bounds.lower == 0.0:
        return unbounded
    later = time_bounded.time_bounded_after(
        model, remain, unbounded.numbers, bounds.lower, environment, progress=checker.progress
    )
    return checker.solved(later, Bounded.TIME).no_better_than(unbounded)


def _ltl(checker: Checker, path: Expression, direction: Direction | None) -> Outcome:
    from engines.questions.ltl import ltl_probabilities

    atoms: dict[str, MaskArray] = {}
    formula = ltl_formula(checker, path, atoms)
    if checker.unexplored is not None:
        formula = _counted(formula, checker.unexplored, atoms)
    return checker.solved(
        ltl_probabilities(
            checker.engine_model,
            formula,
            atoms,
            checker.environment,
            direction=direction,
            progress=checker.progress,
        )
    )


def _counted(
    formula: ltl.Formula, unexplored: UnexploredStates, atoms: dict[str, MaskArray]
) -> ltl.Formula:
    """Return a formula that paths to unexplored states satisfy where these are won, else do not."""
    atoms[UNEXPLORED] = unexplored.states
    left_out = ltl.eventually(ltl.atom(UNEXPLORED))
    if unexplored.won:
        return ltl.disjunction(formula, left_out)
    return ltl.conjunction(formula, ltl.negation(left_out))


def ltl_formula(checker: Checker, path: Expression, atoms: dict[str, MaskArray]) -> ltl.Formula:
    """Return an LTL formula; its atoms are the state formulas in it, named by their text.

    Parameters
    ----------
    checker
        Evaluates the state formulas.
    path
        The formula.
    atoms
        Filled with the states of each atom, shape (states,).

    Raises
    ------
    UnsupportedError
        For bounds inside it, in PRISM's words, and for what is no LTL.
    """
    if any(operator.bound is not None for operator in _temporal_operators(path)):
        if checker.engine_model.kind is ModelKind.CTMC:
            raise UnsupportedError("LTL formulas with time bounds not supported for CTMCs")
        raise UnsupportedError(f"Time-bounded operators not supported in LTL: {path}")
    return _formula(checker, path, atoms)


def _formula(checker: Checker, path: Expression, atoms: dict[str, MaskArray]) -> ltl.Formula:
    if not has_temporal(path):
        name = str(path)
        if name not in atoms:
            atoms[name] = checker.mask(path)
        return ltl.atom(name)

    def below(operand: Expression) -> ltl.Formula:
        return _formula(checker, operand, atoms)

    match path:
        case Parentheses(operand):
            return below(operand)
        case Unary("!", operand):
            return ltl.negation(below(operand))
        case Binary("&", left, right):
            return ltl.conjunction(below(left), below(right))
        case Binary("|", left, right):
            return ltl.disjunction(below(left), below(right))
        case Binary("=>", left, right):
            return ltl.implies(below(left), below(right))
        case Binary("<=>", left, right):
            return ltl.iff(below(left), below(right))
        case Temporal():
            before = None if path.left is None else below(path.left)
            return _temporal(path, below(path.right), before)
        case _:
            raise UnsupportedError(f"{path} is no LTL formula that can be checked")


def _temporal(path: Temporal, right: ltl.Formula, left: ltl.Formula | None) -> ltl.Formula:
    match path.operator:
        case "X":
            return ltl.next_(right)
        case "F":
            return ltl.eventually(right)
        case "G":
            return ltl.always(right)
    assert left is not None
    binary = {"U": ltl.until, "W": ltl.weak_until, "R": ltl.release}
    return binary[path.operator](left, right)
