"""Runs of the two programs in processes of their own, and what their logs say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job
from engines.process import child

MOST_ITERATIONS = "1000000"
LONG_SECONDS = 10.0
"""A run that takes longer is not made again, where another has compiled what it needs; nor is a
solve: nothing takes so long to compile."""

METHOD = re.compile(
    r"^(?P<method>(?:Backwards |Symmetric )?(?:Pseudo )?"
    r"(?:Jacobi|JOR|Gauss-Seidel|SOR|Power method|Multilevel)[^:]*): "
    r"(?P<sweeps>\d+) iterations in (?P<seconds>[\d.]+) seconds "
    r"\(average (?P<average>[\d.]+), setup (?P<setup>[\d.]+)\)",
    re.M,
)
SOLVE = re.compile(
    r"^prism-gpu: (?P<engine>.+?), kernel (?P<kernel>.+?), format (?P<format>.+?), "
    r"solved in (?P<seconds>[\d.]+) s, (?P<sweeps>\d+) sweeps"
    r"(?:, at most (?P<memory>[\d.]+) MB of device memory)?"
    r"(?:, (?P<speed>[\d.]+) us a sweep)?(?P<rest>.*)",
    re.M,
)
SHARE = re.compile(r"(\d+) % of copy bandwidth")
SPLIT = re.compile(r"split into \d+ (?:blocks|parts), (\d+) of which")
COLOURS = re.compile(r"(\d+) colours")
RESULT = re.compile(r"^Result[^:\n]*: ([^\s(]+)", re.M)
ERROR = re.compile(r"^Error: (.*)", re.M)
FIELDS = {
    "states": re.compile(r"^States:\s+(\d+)", re.M),
    "transitions": re.compile(r"^Transitions:\s+(\d+)", re.M),
    "build_seconds": re.compile(r"^Time for model construction: ([\d.E-]+) seconds", re.M),
    "check_seconds": re.compile(r"^Time for model checking: ([\d.E-]+) seconds", re.M),
}

Record = dict[str, Any]

_running: set[subprocess.Popen[str]] = set()


class Stopped(Exception):  # noqa: N818 - no error: a run that took longer than it may
    """A run took longer than it may."""


class Failed(Exception):  # noqa: N818 - what a program says of itself
    """A run ended without a result; the text says why."""


def printed(command: Sequence[str], limit: float, environment: Mapping[str, str]) -> str:
    """Return what a command prints on its standard output.

    Parameters
    ----------
    command
        The command.
    limit
        Seconds after which it is ended, with all that it started.
    environment
        Variables beside those of this process.

    Raises
    ------
    Stopped
        When it takes longer.
    Failed
        When it ends with an error.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **environment},
        # Its own group: it ends as a whole, and when we say so.
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Stopped from None
        finally:
            end_group(process)
            _running.discard(process)
    if process.returncode:
        said = ERROR.search(output)
        lines = [line for line in errors.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {process.returncode}"
        raise Failed(said[1] if said else last)
    return output


def end_running() -> None:
    """End the commands that other threads wait for; each of these fails."""
    for process in list(_running):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process, if it has not ended, and all that it started.

    Parameters
    ----------
    process
        The leader of a session of its own.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def parsed(output: str) -> Record:
    """Return what a report says, PRISM's or ours.

    Parameters
    ----------
    output
        The report.

    Raises
    ------
    Failed
        When it holds no result.
    """
    result = RESULT.search(output)
    if result is None:
        said = ERROR.search(output)
        raise Failed(said[1] if said else "the report holds no result")
    record: Record = {"value": float(result[1])}
    for name, pattern in FIELDS.items():
        found = pattern.search(output)
        number = float(found[1]) if found else None
        record[name] = int(number) if number is not None and "seconds" not in name else number
    methods = list(METHOD.finditer(output))
    if methods:
        # Where a property takes several solves, the longest is what the table is about.
        main = max(methods, key=lambda found: int(found["sweeps"]))
        record |= {
            "method": main["method"],
            "sweeps": int(main["sweeps"]),
            "solve_seconds": float(main["seconds"]),
            "setup_seconds": float(main["setup"]),
            "sweep_microseconds": 1e6 * float(main["average"]),
        }
    solves = list(SOLVE.finditer(output))
    if solves:
        best = max(solves, key=lambda found: int(found["sweeps"]))
        record["solve_seconds"] = float(best["seconds"])
        held = best["format"].partition(",")[0]
        record["engine"] = f"{best['engine']}, {best['kernel']}, {held}"
        if best["memory"]:
            record["device_megabytes"] = float(best["memory"])
        if share := SHARE.search(best["rest"]):
            record["copy_share_percent"] = float(share[1])
        if best["speed"]:
            record["sweep_microseconds"] = float(best["speed"])
        if split := SPLIT.search(output):
            record["travelling_parts"] = int(split[1])
        if colours := COLOURS.search(output):
            record["colours"] = int(colours[1])
    return record


def in_cpu_time(record: Record) -> Record:
    """Return a record of PRISM's log with the names of what it measures in CPU time.

    The sparse and hybrid engines print of a solve the CPU time of the whole process, user and
    system. Building and checking are measured by the wall clock, by PRISM as by us.

    Parameters
    ----------
    record
        As `parsed` returns it.
    """
    names = {
        "solve_seconds": "solve_cpu_seconds",
        "setup_seconds": "setup_cpu_seconds",
        "sweep_microseconds": "sweep_cpu_microseconds",
    }
    return {names.get(name, name): value for name, value in record.items()}


class Programs:
    """Both programs on this machine.

    Parameters
    ----------
    host
        The machine.
    folder
        Where models are written that have no constant for their size.
    """

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        self._folder = folder
        # Switches of the methods that have been run on each kind of device.
        self._warm: set[tuple[str, ...]] = set()
        # The values of commands that name none: each is the reference of many rows.
        self._without_method: dict[tuple[str, ...], float] = {}

    def _question(self, job: Job) -> list[str]:
        family, size = FAMILIES[job.parameters["family"]], job.parameters["size"]
        model, constants = family.model(size, self._folder)
        words = [str(model), "-pctl", family.properties[job.parameters["property"]]]
        if constants:
            words += ["-const", ",".join(f"{name}={value}" for name, value in constants.items())]
        return [*words, "-maxiters", MOST_ITERATIONS]

    def ours(self, job: Job, limit: float, deadline: float) -> Record:
        """Return what prism-gpu says of a row, after the checks of its answer.

        The value is compared with the known one, or, where none is kept, with that of our own
        method, which goes on until the error is below epsilon. A short run is made twice where
        the first one may have compiled something: on a GPU for each model, on the CPU for each
        method.

        Parameters
        ----------
        job
            The row.
        limit
            Seconds that each of the runs may take.
        deadline
            When the last one must have ended, by `time.monotonic`.

        Raises
        ------
        Stopped, Failed
            As `printed`.
        """
        host = self._host
        device = job.parameters.get("on", host.device)
        where = ["-gpu"] if device == "gpu" else ["-nogpu"]
        where += ["-frontend", host.front_end]
        base = [*child.module("bridge"), *self._question(job), *where, "-gpuinfo"]
        switches = list(job.parameters["switches"])
        family, size = FAMILIES[job.parameters["family"]], job.parameters["size"]
        known = family.value(job.parameters["property"], size)
        environment = {"PRISM_DIR": str(host.prism.root)} if host.prism else {}
        checked_by_run = known is None
        if known is None:
            if tuple(base) not in self._without_method:
                other = self._timed(base, limit, deadline, environment)
                self._without_method[tuple(base)] = other["value"]
            value = self._without_method[tuple(base)]
            known = value, "prism-gpu, no method named: error below epsilon"
        command = [*base, *switches]
        record = self._timed(command, limit, deadline, environment)
        text = family.properties[job.parameters["property"]]
        method = (
            device,
            *switches,
            "steady" if "[ S ]" in text or text.startswith("S") else "reach",
        )
        cold = device == "gpu" or method not in self._warm
        short = (record.get("solve_seconds") or 0.0) < LONG_SECONDS
        # Nor is a run made again that has built for long.
        short &= record["wall_seconds"] < 60.0
        # The run that checks the value has compiled the same, but for the method's own kernel.
        if checked_by_run and record["wall_seconds"] > LONG_SECONDS:
            short = False
        if cold and short:
            record = self._timed(command, limit, deadline, environment)
        self._warm.add(method)
        record["command"] = _shown(command[3:])
        record["expected"], record["expected_source"] = known
        judge(record, known[0], job.parameters["tolerance"], family.counts(size))
        return record

    def _timed(
        self, command: list[str], limit: float, deadline: float, environment: Mapping[str, str]
    ) -> Record:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Stopped
        started = time.perf_counter()
        record = parsed(printed(command, min(limit, left), environment))
        record["wall_seconds"] = time.perf_counter() - started
        return record

    def peer(self, job: Job, limit: float, deadline: float) -> Record:
        """Return what PRISM alone says of a row.

        Parameters
        ----------
        job
            The row.
        limit
            Seconds that it may take.
        deadline
            When it must have ended, by `time.monotonic`.

        Raises
        ------
        Stopped, Failed
            As `printed`.
        """
        host = self._host
        assert host.prism is not None
        assert host.java is not None
        script = host.prism.root / "bin" / "prism"
        # Ours does not get it: it would build diagrams where the explorer is faster.
        memory = ["-cuddmaxmem", "4g"] if host.memory >= 32 << 30 else []
        command = [str(script), *self._question(job), *memory, *job.parameters["switches"]]
        environment = {"PRISM_JAVA": str(host.java.home / "bin" / "java")}
        record = in_cpu_time(self._timed(command, limit, deadline, environment))
        record["command"] = _shown(["prism", *command[1:]], program="")
        record["status"] = "done"
        return record


def judge(
    record: Record, expected: float, tolerance: float, counts: tuple[int, int] | None
) -> None:
    """Compare a result with what is known, and put down whether it may be shown.

    Parameters
    ----------
    record
        The result; gets "status", "wrong" and "error".
    expected
        The value.
    tolerance
        The largest relative difference.
    counts
        States and transitions, where they are known.
    """
    wrong = []
    error = abs(record["value"] - expected) / abs(expected)
    # Not a number is no agreement either.
    if not error <= tolerance:
        wrong.append(f"the value is {record['value']:.9g}, and {expected:.9g} was expected")
    if counts is not None:
        for name, count in zip(("states", "transitions"), counts, strict=True):
            if record[name] != count:
                wrong.append(f"{record[name]:,} {name}, and {count:,} were expected")
    record["error"] = error
    record["wrong"] = "; ".join(wrong)
    record["status"] = "wrong" if wrong else "done"


def _shown(words: Sequence[str], program: str = "prism-gpu") -> str:
    """Return a command as it can be typed."""
    import shlex

    shown = shlex.join(words)
    return f"{program} {shown}" if program else shown
