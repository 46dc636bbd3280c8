"""Lines of PRISM's log on a solve: while it goes on, and what `-gpuinfo` tells afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from enum import Enum, auto
from typing import Any

from engines.model.events import Kind, told
from engines.model.progress import Progress, SweepReport, announcement
from engines.model.result import SolveResult
from prism_hooks.exit_gate import GATE
from prism_hooks.record import RunRecord
from prism_hooks.sweep_bar import SweepBar


class Ending(Enum):
    """What ends the sweeps of a task, and so what is known of its error."""

    CONVERGENCE = auto()
    """A test of convergence: the error is an estimate, or a bound where the method has one."""
    STEPS = auto()
    """A number of steps: nothing but rounding, which PRISM calls exact floating point."""
    TIME = auto()
    """A time: truncation and rounding, together an absolute error."""


def progress_lines(
    problem: Any,
    ending: Ending,
    bar: SweepBar | None = None,
    record: RunRecord | None = None,
) -> Progress:
    """Return a callback that prints PRISM's progress line every five seconds.

    Parameters
    ----------
    problem
        The `prismgpu.Problem` whose log is printed to.
    ending
        What ends the sweeps, which says what their second number is: the last change, or for a
        time the share of the sum that is still to come.
    bar
        Shows the same on a terminal.
    record
        Keeps the numbers of all sweeps.
    """
    # PRISM's own pace of progress lines.
    due = pace = 5.0
    kind = "" if problem.absolute else "relative "

    def report(sweeps: SweepReport) -> None:
        nonlocal due
        GATE.stop_if_ending()
        if sweeps.iterations == 0:
            problem.say(f"\n{announcement(sweeps)}")
            return
        if record is not None:
            record.sweeps(sweeps)
        if bar is not None:
            bar(sweeps)
        number, seconds = sweeps.number, sweeps.seconds
        if seconds < due:
            return
        due = seconds + pace
        so_far = {
            Ending.CONVERGENCE: f": max {kind}diff={number:f}",
            Ending.STEPS: f" (of at most {int(problem.upper)})",
            Ending.TIME: f": {100.0 * (1.0 - number):.1f} % of the sum",
        }[ending]
        with nullcontext() if bar is None else bar.aside():
            problem.progress(f"Iteration {sweeps.iterations}{so_far}, {seconds:.2f} sec so far")

    return report


def unannounced(progress: Progress) -> Progress:
    """Return a callback without the announcement of a long solve, for which PRISM has no line.

    Parameters
    ----------
    progress
        The callback.
    """

    def report(sweeps: SweepReport) -> None:
        if sweeps.iterations > 0:
            progress(sweeps)

    return report


def note_and_warnings(result: SolveResult) -> tuple[str, tuple[str, ...]]:
    """Return what the log says of the events of a solve: a remark, and warnings.

    Parameters
    ----------
    result
        The solve, where PRISM's own lines are not repeated. A warning is that a named method
        stopped far from the solution.
    """
    remarks = tuple(event for event in result.events if event.kind is not Kind.CHANGE_MISLEADS)
    warnings = (str(event) for event in result.events if event.kind is Kind.CHANGE_MISLEADS)
    return told(remarks), tuple(dict.fromkeys(warnings))


def iterations_line(result: SolveResult, name: str = "") -> str:
    """Return method, sweeps and seconds as PRISM prints them after a solve.

    Parameters
    ----------
    result
        A finished solve.
    name
        What PRISM calls the method; empty for its own name.

    Returns
    -------
    One line, such as ``Jacobi: 22 iterations in 0.01 seconds (average 0.000123, setup 0.00)``.
    """
    return (
        f"{name or result.method}: {result.iterations} iterations in {result.seconds:.2f} seconds "
        f"(average {result.sweep_seconds:.6f}, setup {result.setup_seconds:.2f})"
    )


def solve_line(result: SolveResult, device_number: int) -> str:
    """Return engine, kernel, format, sweeps, memory and speed of a solve in one line.

    Parameters
    ----------
    result
        A finished solve.
    device_number
        Which GPU the run uses.
    """
    cost = result.cost
    parts = [cost.engine, f"kernel {cost.kernel}", f"format {cost.format}"]
    if cost.estimates:
        parts.append(cost.estimates)
    parts.append(f"solved in {result.seconds:.4f} s")
    parts.append(f"{result.iterations} sweeps")
    if cost.gpus:
        from engines.cuda.pool import peak_bytes

        parts.append(f"at most {peak_bytes(set(cost.gpus)) / 1e6:.1f} MB of device memory")
    if result.sweep_seconds > 0.0 and cost.bytes_per_sweep:
        rate = cost.bytes_per_sweep / result.sweep_seconds
        parts.append(f"{result.sweep_seconds * 1e6:.2f} us a sweep")
        parts.append(f"{rate / 1e9:.0f} GB/s")
        if cost.gpus and not cost.cpu_as_well:
            from engines.cuda.bandwidth import copy_bandwidth

            ceiling = copy_bandwidth(device_number) * len(cost.gpus)
            parts.append(f"{100 * rate / ceiling:.0f} % of copy bandwidth")
    parts.append(f"error {'below' if result.two_sided else 'about'} {result.error_estimate:.1e}")
    parts.append(f"residual {result.residual:.2e}")
    parts.append("two-sided" if result.two_sided else "one-sided")
    return "prism-gpu: " + ", ".join(parts)
