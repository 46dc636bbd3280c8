"""Lines that the log of PRISM's engines has around a solve, in PRISM's form.

They are printed where the user named the engine, and the method too unless the question has none:
who names both reads the log of PRISM with the numbers of our solve. What PRISM's lines have no
place for is behind `-gpuinfo`. The numbers come from arrays that are at hand, in the units of
PRISM's storage; nothing is looked through for a line of the log alone beyond `COUNTED` entries.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engines.model.environment import Method
from engines.model.events import Event, Kind
from engines.model.result import SolveResult, Status
from engines.questions.uniformisation import PRISMS_FINER
from prism_hooks.options import HookOptions
from prism_hooks.report import Ending
from prism_hooks.sparse_lines import bounded_lines, sparse_lines
from prism_hooks.told_solve import (
    CONFIGURED,
    LONG_RUN,
    STEADY_STATE,
    Asked,
    EngineLines,
    entries_of,
    summed,
    width_line,
)

SWEEPS = {
    Method.POWER: "Power method",
    Method.JACOBI: "Jacobi",
    Method.GAUSS_SEIDEL: "Gauss-Seidel",
    Method.BACKWARDS_GAUSS_SEIDEL: "Backwards Gauss-Seidel",
    # The explicit engine's word for the sweeps of an MDP.
    Method.VALUE_ITERATION: "Power method",
}
"""What PRISM's explicit engine calls the sweeps of its value iteration."""

POLICIES = {
    Method.POLICY_ITERATION: "policy iteration",
    Method.MODIFIED_POLICY_ITERATION: "modified policy iteration",
}
"""What it calls methods that go from one policy to the next."""

EXACT = "exact floating point"
"""What PRISM says of values that the last sweep did not change."""

SPARSE_NAMES = {
    *SWEEPS,
    *(Method.JOR, Method.SOR, Method.BACKWARDS_SOR),
}
"""Methods of the sparse engine."""


def engine_lines(problem: Any, asked: Asked, options: HookOptions) -> EngineLines | None:
    """Return the lines of PRISM's engine around a solve; None where ours are printed.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    asked
        What is solved.
    options
        What the user named.
    """
    swept, explicit = asked.ending is Ending.CONVERGENCE, problem.parts is None
    # Without methods, the engine of our choice has nothing else to tell either.
    if not options.engine_named and (swept or not explicit):
        return None
    if options.method is not None or problem.topological:
        return None
    if swept and problem.intervals is not None:
        hybrid = options.symbolic_engine == "hybrid"
        if hybrid or asked.method not in SWEEPS or not asked.bounds_probabilities:
            return None
        return _interval_iteration(asked) if explicit else bounded_lines(asked)
    if problem.told:
        return EngineLines("", lambda _: "")
    if explicit:
        known = not swept or asked.method in SWEEPS or asked.method in POLICIES
        return _explicit(asked) if known else None
    if not options.symbolic_engine or (swept and asked.method not in SPARSE_NAMES):
        return None
    return sparse_lines(problem, asked, hybrid=options.symbolic_engine == "hybrid")


def printed_for_error(result: SolveResult, task: str, method: Method, ending: Ending) -> str | None:
    """Return what PRISM prints in place of the error of a solve; None where it prints an error.

    Parameters
    ----------
    result
        The finished solve.
    task
        The name that `prismgpu.Problem` gives it.
    method
        The method that the user named.
    ending
        What ended its sweeps.
    """
    if ending is Ending.TIME or task in (STEADY_STATE, *LONG_RUN) or method in POLICIES:
        return ""
    return EXACT if ending is Ending.CONVERGENCE and result.change == 0.0 else None


# The explicit engine.


def _explicit(asked: Asked) -> EngineLines | None:
    if asked.ending is Ending.STEPS:
        return EngineLines("", lambda _: "")
    if asked.ending is Ending.TIME:
        return EngineLines("", lambda result: _fox_glynn_explicit(asked, result))
    if asked.task == STEADY_STATE:
        return EngineLines(
            "Starting value iteration...",
            lambda result: (
                f"{result.method}: {result.iterations} iterations in {_java(result)} seconds."
            ),
        )
    earns = asked.question.rewards is not None
    if not asked.is_until or (asked.method is Method.MODIFIED_POLICY_ITERATION and earns):
        # PRISM's modified policy iteration is for probabilities alone.
        return None
    return _policies(asked) if asked.method in POLICIES else _value_iteration(asked)


def _policies(asked: Asked) -> EngineLines:
    name = POLICIES[asked.method]

    def after(result: SolveResult) -> str:
        # Where all is known there is one policy, and nothing to sweep.
        found = (event for event in result.events if event.kind is Kind.POLICIES)
        policies = next((dict(event.details)["policies"] for event in found), 1)
        return (
            f"{name.capitalize()} took {policies} cycles "
            f"({result.iterations} iterations in total) and {_java(result)} seconds."
        )

    return EngineLines(f"Starting {name} ({asked.question.direction})...", after)


def _value_iteration(asked: Asked) -> EngineLines:
    question, how = asked.question, _sweeping(asked)
    # PRISM has a space there, for rewards of a chain.
    space = " " if question.direction is None and question.rewards is not None else ""
    entries = entries_of(asked.model, question.states)
    return EngineLines(
        f"Starting value iteration ({how}){space}...",
        lambda result: _took(f"Value iteration ({how})", entries, result),
    )


def _interval_iteration(asked: Asked) -> EngineLines:
    how, interval = _sweeping(asked), asked.environment.interval
    entries = entries_of(asked.model, asked.question.states)
    sides = (("above", interval.monotonic_above), ("below", interval.monotonic_below))
    notes = (
        f"\n{CONFIGURED} not enforce monotonicity from {side}."
        for side, enforced in sides
        if not enforced
    )

    def after(result: SolveResult) -> str:
        took = _took(f"Interval iteration ({how})", 2 * entries, result)
        if result.status is not Status.CONVERGED:
            return took
        return f"{width_line(asked, result, '.12g')}\n{took}"

    return EngineLines(f"Starting interval iteration ({how})...{''.join(notes)}", after)


def _sweeping(asked: Asked) -> str:
    """Return how the explicit engine says that it sweeps."""
    how, direction = f"with {SWEEPS[asked.method]}", asked.question.direction
    return how if direction is None else f"{direction}, {how}"


def _took(what: str, entries: int, result: SolveResult) -> str:
    """Return the explicit engine's line after sweeps over so many entries each."""
    # PRISM counts the step by which nothing changes where all is known.
    steps = max(1, result.iterations)
    return (
        f"{what} took {steps} iterations, {steps * entries} multiplications and "
        f"{_java(result)} seconds."
    )


def _java(result: SolveResult) -> str:
    """Return the seconds as Java prints milliseconds."""
    return str(round(result.seconds, 3))


def _fox_glynn_explicit(asked: Asked, result: SolveResult) -> str:
    found = summed(result)
    if found is None:
        return ""
    rate, time, product = (found[name] for name in ("rate", "time", "product"))
    environment = asked.environment
    accuracy = f"{found['truncation']:.3g}"
    if environment.repeats_prism:
        accuracy = _java_number(environment.epsilon / PRISMS_FINER)
    return (
        f"\nUniformisation: q.t = {rate} x {time} = {product}\n"
        f"Fox-Glynn ({accuracy}): left = {found['left']}, right = {found['right']}"
    )


def _java_number(number: float) -> str:
    """Return a number as Java prints it."""
    if 1e-3 <= number < 1e7:
        return str(number)
    mantissa, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


# What is not in PRISM's lines.


ANSWERS_TO_SWITCHES = (
    *(Kind.GPU_REFUSED, Kind.MOVED_TO_CPU, Kind.NOT_SHARED_OUT, Kind.FORMAT_REFUSED),
    *(Kind.SINGLE_AS_CSR, Kind.DOUBLE_INSTEAD, Kind.SINGLE_STALLED, Kind.SINGLE_THEN_DOUBLE),
    *(Kind.SINGLE, Kind.SINGLE_BUT, Kind.SINGLE_UNKNOWN, Kind.SINGLE_AT_END),
)
"""What is said whoever reads: that a switch of ours was not followed, or what it has cost."""

PERHAPS_WRONG = (
    *(Kind.FAILED, Kind.FAILED_BY_ROUNDING, Kind.CERTIFIED_APART, Kind.BOUNDS_AT_REST),
    Kind.UNCONFIRMED,
)


def warning_of(event: Event) -> bool:
    """Return whether an event says that a result may be farther off than PRISM would claim.

    Parameters
    ----------
    event
        What happened in a solve.
    """
    if event.kind is Kind.CHANGE_MISLEADS:
        details = dict(event.details)
        # PRISM takes a result for as good as ten times epsilon.
        return not float(details["error"]) <= 10.0 * float(details["epsilon"])
    return event.kind in PERHAPS_WRONG
