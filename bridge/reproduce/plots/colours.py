"""Figures 5.5b to 5.17b of the thesis of 2013: sweeps against the number of colours."""

from __future__ import annotations

from typing import Any

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.jobs import Job, Scale
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import gauss_seidel_2013

COLOURINGS = (
    ("levels", "ours, colours by level", style.OURS, "o", "-"),
    ("slices", "ours, colours by slice", style.PALETTE[2], "^", "-"),
)


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw a curve a colouring and family.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    jobs = gauss_seidel.colour_jobs(scale)
    there = [(job, record) for job in jobs if (record := results.partly(job)) is not None]
    if not there:
        return None
    columns = 2 if len(there) > 1 else 1
    lines = -(-len(there) // columns)
    figure, grid = style.subplots(lines, columns, 4.9 * columns, 3.3 * lines + 0.7)
    for axes, (job, record) in zip(grid.flat, there, strict=False):
        _curves(axes, record["points"])
        _published(axes, job)
        label = FAMILIES[job.parameters["family"]].label(job.size)
        style.frame(axes, f"{label}: {record['states']:,} states", "colours", "sweeps")
        axes.set_xticks(gauss_seidel.COLOURS)
        axes.set_ylim(bottom=0)
        axes.margins(y=0.1)
    for axes in list(grid.flat)[len(there) :]:
        axes.set_visible(False)
    return style.Drawing(
        figure,
        "Sweeps of Gauss-Seidel to a relative change of 1e-6 against the number of colours, as in "
        f"Figures 5.5 to 5.17 of the thesis of 2013, on {host.device_name}. A point that is "
        "missing did not converge.",
        legend_columns=2,
    )


def _curves(axes: Any, points: list[dict[str, Any]]) -> None:
    for colouring, label, colour, marker, line in COLOURINGS:
        curve = [
            (point["colours"], point["sweeps"])
            for point in points
            if point["colouring"] == colouring and point["sweeps"] is not None
        ]
        if curve:
            axes.plot(
                *zip(*curve, strict=True), line, color=colour, marker=marker, label=label, ms=5
            )


def _published(axes: Any, job: Job) -> None:
    """Draw the thesis's best point and PRISM's count at its time, where it has the same size."""
    asked = {"tandem": "customers", "polling": "s1", "kanban": "throughput", "fms": "productivity"}
    family = job.parameters["family"]
    row = gauss_seidel_2013().row(family=family, property=asked[family], size=job.size)
    if row is None:
        return
    axes.plot(
        [row["colours"]], [row["psor"]], "x", color=style.THEIRS, ms=8, label="2013: its best"
    )
    axes.axhline(
        row["psor_prism"], color=style.THEIRS_TOO, ls=":", label="2013: PRISM's pseudo Gauss-Seidel"
    )
