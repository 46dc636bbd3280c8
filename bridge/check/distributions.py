"""PRISM's -ss and -tr: the distribution over the states, in the long run or at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bridge.check.outputs import write_output
from bridge.files.names import with_suffix
from bridge.language.constants import parse_const_switch
from bridge.language.text import RULE, seconds_text, value_text
from bridge.model import CheckableModel
from engines.arrays import FloatArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult

Log = Callable[[str], None]
Compute = Callable[[FloatArray], SolveResult]
OnSolve = Callable[[SolveResult], None] | None


def report_steady_state(
    model: CheckableModel,
    environment: SolverEnvironment,
    target: str | None,
    log: Log,
    progress: Progress | None = None,
    on_solve: OnSolve = None,
) -> None:
    """Compute and show the steady-state distribution.

    Parameters
    ----------
    model
        A DTMC or CTMC.
    environment
        How to solve.
    target
        A file; None or "stdout" for the log.
    log
        Where the report goes.
    progress
        Called after each batch of sweeps.
    on_solve
        Called with the result of the solve.

    Raises
    ------
    UnsupportedError
        For MDPs.
    """
    from engines.questions.long_run_distribution import steady_state_distribution

    _refuse_mdp(model, "Steady-state")
    log(f"\n{RULE}\n\nComputing steady-state probabilities...")

    def compute(initial: FloatArray) -> SolveResult:
        result = steady_state_distribution(model.model, initial, environment, progress=progress)
        if result.bounds is not None:
            lower, upper = result.bounds
            log(f"\nThe bounds of each probability are at most {np.max(upper - lower):.1e} apart.")
        return result

    found = _computed(model, compute, "steady-state", log, on_solve)
    to_file = _exported(model, found, "steady-state", target, log)
    if to_file is not None:
        # PRISM's file of a steady state has no numbers of states.
        write_output(to_file, (f"{value_text(value)}\n" for value in found.tolist()))


def report_transient(
    model: CheckableModel,
    times: str,
    environment: SolverEnvironment,
    target: str | None,
    log: Log,
    progress: Progress | None = None,
    on_solve: OnSolve = None,
) -> None:
    """Compute and show the distribution at one time or several.

    Parameters
    ----------
    model
        A DTMC or CTMC.
    times
        What -tr gave: a time, or a range such as 0:0.5:2.
    environment, log, progress, on_solve
        As in `report_steady_state`.
    target
        A file; None or "stdout" for the log. Of several times each has a file of its own, with
        the time before the name's ending.

    Raises
    ------
    UnsupportedError
        For MDPs.
    InvalidModelError
        For a time that is none, or for a DTMC no number of steps.
    BridgeError, OSError
        If a file cannot be written.
    """
    from engines.questions.bounded import distribution_after
    from engines.questions.time_bounded import distribution_at

    _refuse_mdp(model, "Transient")
    continuous = model.model.kind is ModelKind.CTMC
    moments = transient_times(times, continuous)
    for moment in moments:
        log(f"\n{RULE}\n\nComputing transient probabilities (time = {value_text(moment)})...")

        def compute(initial: FloatArray, moment: float = moment) -> SolveResult:
            if continuous:
                return distribution_at(
                    model.model, initial, float(moment), environment, progress=progress
                )
            return distribution_after(
                model.model, initial, int(moment), environment, progress=progress
            )

        found = _computed(model, compute, "transient", log, on_solve)
        named = target
        if target is not None and target != "stdout" and len(moments) > 1:
            named = with_suffix(target, value_text(moment))
        to_file = _exported(model, found, "transient", named, log)
        if to_file is not None:
            pairs = enumerate(found.tolist())
            write_output(to_file, (f"{state}={value_text(value)}\n" for state, value in pairs))


def transient_times(text: str, continuous: bool) -> list[int] | list[float]:
    """Return the times that -tr names.

    Parameters
    ----------
    text
        A number, or a range with or without a step.
    continuous
        Whether times may be fractions.

    Raises
    ------
    InvalidModelError
        When they are no times.
    """
    kind = "double" if continuous else "int"
    try:
        values = parse_const_switch(f"time={text}")["time"].values("time", kind)
    except InvalidModelError as error:
        what = f"time{' range' if ':' in text else ''} for a {'CTMC' if continuous else 'DTMC'}"
        raise InvalidModelError(f'"{text}" is not a valid {what}') from error
    if any(value < 0 for value in values):
        raise InvalidModelError("Cannot compute transient probabilities for negative time value")
    return [float(value) for value in values] if continuous else [int(value) for value in values]


def _refuse_mdp(model: CheckableModel, what: str) -> None:
    if model.model.kind is ModelKind.MDP:
        raise UnsupportedError(f"{what} probabilities only computed for DTMCs/CTMCs")


def _computed(
    model: CheckableModel, compute: Compute, name: str, log: Log, on_solve: OnSolve
) -> FloatArray:
    started = time.perf_counter()
    initial = model.initial_states / np.count_nonzero(model.initial_states)
    result = compute(initial)
    if on_solve is not None:
        on_solve(result)
    result.raise_unless_converged()
    taken = seconds_text(time.perf_counter() - started)
    log(f"\nTime for {name} probability computation: {taken} seconds.")
    return result.values


def _exported(
    model: CheckableModel, found: FloatArray, name: str, target: str | None, log: Log
) -> Path | None:
    """Announce an export, and return the file that it goes to; None where the log has it."""
    if target is not None and target != "stdout":
        log(f'\nExporting {name} probabilities in plain text format to file "{target}"...')
        return Path(target)
    log(f"\nExporting {name} probabilities in plain text format below:")
    lines = [
        f"{model.state_line(int(state))}={value_text(float(found[state]))}"
        for state in np.flatnonzero(found)
    ]
    log("\n".join(lines))
    return None
