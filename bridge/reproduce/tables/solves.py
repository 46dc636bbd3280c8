"""The cells that all tables of solves share: ours, PRISM's, and whether they agree."""

from __future__ import annotations

from bridge.reproduce.jobs import Kind, Solve
from bridge.reproduce.perform import Results
from bridge.reproduce.store import Record
from bridge.reproduce.tables.table import Cell, Column, number, ratio, relative, seconds

SIZES = (
    Column("instance", text=True),
    Column("states"),
    Column("transitions"),
)
OURS_AND_PRISM = (
    Column("sweeps, ours"),
    Column("sweeps, PRISM today"),
    Column("relative error, ours"),
    Column("PRISM today: check s"),
    Column("ours: check s"),
    Column("speed-up, check"),
    Column("PRISM today: solve, CPU time s"),
    Column("ours: solve s"),
    Column("PRISM today: whole run s"),
    Column("ours: whole run s"),
    Column("speed-up, whole run"),
    Column("ours: µs a sweep"),
    Column("ours: GPU memory MB"),
)
SECONDS = (
    "Seconds are wall-clock ones. Check: what both programs print as time for model checking, all "
    "of a property's work on a model that is built; whole run: building and checking, without the "
    "start of the program. Solve: from the matrix to the solution, set-up included; PRISM prints "
    "the CPU time of its process for it, which is not compared with ours."
)
"""What the columns of `OURS_AND_PRISM` hold."""
REMARKS = Column("remarks", text=True)
MEASURED = Column("measured", text=True)
"""When and where; comes before the remarks."""
PUBLISHED_ONLY = "published only"


def size_cells(row: Solve, ours: Record | None) -> list[Cell]:
    """Return instance, states and transitions.

    Parameters
    ----------
    row
        The row.
    ours
        Our result, where it is there; else what is known of the model.
    """
    counts = row.model.counts(row.size) or (None, None)
    if ours is not None:
        counts = ours["states"], ours["transitions"]
    return [row.label, number(counts[0]), number(counts[1])]


def disagreement(row: Solve, ours: Record | None, theirs: Record | None) -> str:
    """Return how the two programs differ by more than they may; empty where they do not.

    Parameters
    ----------
    row
        The row, with its tolerance.
    ours, theirs
        The results; None where one is missing.
    """
    if ours is None or theirs is None:
        return ""
    # PRISM may be as far from the value as ours.
    if not abs(ours["value"] - theirs["value"]) <= 2 * row.tolerance * abs(theirs["value"]):
        return f"PRISM says {theirs['value']:.9g}, ours {ours['value']:.9g}"
    if (ours["states"], ours["transitions"]) != (theirs["states"], theirs["transitions"]):
        return f"PRISM builds {theirs['states']:,} states, ours {ours['states']:,}"
    if row.same_sweeps and abs(ours["sweeps"] - theirs["sweeps"]) > 1:
        return f"PRISM makes {theirs['sweeps']:,} sweeps, ours {ours['sweeps']:,}"
    return ""


def pair(row: Solve, results: Results) -> tuple[Record | None, Record | None, list[str]]:
    """Return both results, or None for what may not be shown, and remarks.

    Parameters
    ----------
    row
        The row.
    results
        What was measured.
    """
    jobs = row.job(Kind.OURS), row.job(Kind.PEER)
    ours, theirs = (results.of(job) for job in jobs)
    remarks = []
    if ours is None:
        remarks.append(f"ours: {results.why(jobs[0])}")
    if theirs is None:
        remarks.append(f"PRISM: {results.why(jobs[1])}")
    if differs := disagreement(row, ours, theirs):
        # Whoever is right, no time is shown of an answer that is in doubt.
        return None, None, [f"DIFFERENT: {differs}"]
    return ours, theirs, remarks


def run_seconds(record: Record | None) -> float | None:
    """Return the seconds of building and checking, or None.

    Parameters
    ----------
    record
        A result.
    """
    if record is None or record["build_seconds"] is None or record["check_seconds"] is None:
        return None
    return float(record["build_seconds"] + record["check_seconds"])


def compared_cells(row: Solve, ours: Record | None, theirs: Record | None, why: str) -> list[Cell]:
    """Return the cells of `OURS_AND_PRISM`.

    Parameters
    ----------
    row
        The row.
    ours, theirs
        The results that may be shown.
    why
        What stands in place of PRISM's seconds where there are none.
    """
    del row
    mine, other = ours or {}, theirs or {}
    whole, theirs_whole = run_seconds(ours), run_seconds(theirs)
    return [
        number(mine.get("sweeps")),
        number(other.get("sweeps")),
        relative(mine["error"]) if mine else "",
        seconds(other.get("check_seconds")) or why,
        seconds(mine.get("check_seconds")),
        ratio(other.get("check_seconds"), mine.get("check_seconds")),
        _cpu_seconds(other.get("solve_cpu_seconds")),
        seconds(mine.get("solve_seconds")),
        seconds(theirs_whole) or why,
        seconds(whole),
        ratio(theirs_whole, whole),
        number(mine.get("sweep_microseconds")),
        number(mine.get("device_megabytes")),
    ]


def _cpu_seconds(value: float | None) -> Cell:
    """Return seconds of PRISM's log, which has hundredths and none smaller."""
    return "< 0.01" if value is not None and value < 0.005 else seconds(value)


def short_reason(remark: str) -> str:
    """Return the part of a reason that fits a cell: "> 120 s" of a run that was stopped.

    Parameters
    ----------
    remark
        A reason.
    """
    return remark.partition(",")[0] if remark.startswith(">") else "–"
