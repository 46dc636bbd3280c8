"""Figures 5.5a to 5.17a of the thesis of 2013: time against the size of the model."""

from __future__ import annotations

from typing import Any

from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.jobs import Scale, Solve
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import gauss_seidel_2013
from bridge.reproduce.tables.solves import pair

Points = list[tuple[int, float]]


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw the seconds of each family and property.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    groups: dict[tuple[str, str], list[Solve]] = {}
    for row in gauss_seidel.solves(scale):
        groups.setdefault((row.family, row.asked), []).append(row)
    curves = {key: _curves(rows, results) for key, rows in groups.items()}
    there = {key: (ours, prism) for key, (ours, prism) in curves.items() if len(ours) > 1}
    if not there:
        return None
    columns = min(3, len(there))
    lines = -(-len(there) // columns)
    figure, grid = style.subplots(lines, columns, 4.2 * columns, 3.5 * lines + 0.6)
    for axes, ((family, asked), (ours, prism)) in zip(grid.flat, there.items(), strict=False):
        axes.plot(*zip(*ours, strict=True), color=style.OURS, marker="o", label="ours, check")
        if prism:
            label = "PRISM today, -hybrid -pgs, check"
            axes.plot(*zip(*prism, strict=True), color=style.PRISM, marker="s", label=label)
        published = _published(axes, family, asked)
        row = groups[family, asked][0]
        style.frame(axes, f"{family}, {asked}", f"{row.model.symbol}, size of the model", "seconds")
        style.logarithmic(axes.yaxis, [y for _, y in [*ours, *prism, *published]])
        sizes = sorted({x for x, _ in [*ours, *prism, *published]})
        if sizes[-1] > 20:
            style.logarithmic(axes.xaxis, [float(size) for size in sizes])
        style.plain_ticks(axes.xaxis, sizes)
    for axes in list(grid.flat)[len(there) :]:
        axes.set_visible(False)
    return style.Drawing(
        figure,
        "Time of Gauss-Seidel against the size of the model, as in Figures 5.5 to 5.17 of the "
        f"thesis of 2013, left: wall-clock seconds of checking, ours on {host.device_name}; grey "
        "curves are the thesis's, of sweeps alone.",
        legend_columns=2,
    )


def _curves(rows: list[Solve], results: Results) -> tuple[Points, Points]:
    ours: Points = []
    prism: Points = []
    for row in rows:
        mine, other, _ = pair(row, results)
        for record, points in ((mine, ours), (other, prism)):
            if record is not None and record.get("check_seconds"):
                points.append((row.size, record["check_seconds"]))
    return ours, prism


def _published(axes: Any, family: str, asked: str) -> Points:
    rows = [
        row
        for row in gauss_seidel_2013().rows
        if (row["family"], row["property"]) == (family, asked)
    ]
    drawn: Points = []
    for name, label, line, marker in (
        ("cpu", "2013: Core i7 950", "--", "x"),
        ("gpu", "2013: Kepler GK110", ":", "+"),
    ):
        points = [(int(row["size"]), float(row[name])) for row in rows]
        drawn += points
        axes.plot(*zip(*points, strict=True), line, color=style.THEIRS, marker=marker, label=label)
    return drawn
