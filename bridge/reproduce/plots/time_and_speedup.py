"""Figure 1 of GPU-PRISM, 2011: time of whole runs and speed-up against the size of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.reproduce.host import Host
from bridge.reproduce.instances import jacobi
from bridge.reproduce.jobs import Scale, Solve, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import gpu_prism_2011
from bridge.reproduce.tables.solves import pair, run_seconds

PUBLISHED = (
    ("cpu_32", "2011: PRISM, Athlon 64", "--", "x", style.THEIRS),
    ("gpu_32", "2011: GTX 280", "--", "+", style.THEIRS),
    ("cpu_64", "2011: PRISM, Core i7 920", ":", "1", style.THEIRS_TOO),
    ("gpu_64", "2011: GTX 285", ":", "2", style.THEIRS_TOO),
)
FACTORS = (
    ("factor_32", "2011: GTX 280 over PRISM", "--", "x", style.THEIRS),
    ("factor_64", "2011: GTX 285 over PRISM", ":", "1", style.THEIRS_TOO),
)
Points = list[tuple[int, float]]
Published = list[Mapping[str, Any]]


def of(subject: Subject) -> Any:
    """Return what draws a subject.

    Parameters
    ----------
    subject
        Herman, cluster or tandem.
    """

    def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
        return _draw(subject, jacobi.solves(subject, scale, host), host, results)

    return draw


@dataclass(frozen=True)
class _Measured:
    """Seconds and speed-up of whole runs and of the checks in them, against the model's size."""

    ours: Points = field(default_factory=list)
    our_checks: Points = field(default_factory=list)
    prism: Points = field(default_factory=list)
    prism_checks: Points = field(default_factory=list)
    faster: Points = field(default_factory=list)
    faster_checks: Points = field(default_factory=list)

    def add(self, row: Solve, results: Results) -> None:
        """Add what was measured of a row."""
        mine, other, _ = pair(row, results)
        checks = [(run or {}).get("check_seconds") for run in (mine, other)]
        for (ours, prism), of_ours, of_prism, ratios in (
            ((run_seconds(mine), run_seconds(other)), self.ours, self.prism, self.faster),
            (checks, self.our_checks, self.prism_checks, self.faster_checks),
        ):
            if ours:
                of_ours.append((row.size, ours))
            if prism:
                of_prism.append((row.size, prism))
            if ours and prism:
                ratios.append((row.size, prism / ours))


def _draw(
    subject: Subject, rows: list[Solve], host: Host, results: Results
) -> style.Drawing | None:
    measured = _Measured()
    for row in rows:
        measured.add(row, results)
    if not measured.ours:
        return None
    sizes = [row.size for row in rows]
    published = [
        row for row in gpu_prism_2011().rows if row["family"] == subject and row["size"] in sizes
    ]
    # Without PRISM there may be nothing to be compared with.
    compared = bool(measured.faster or measured.faster_checks) or any(
        row[name] for row in published for name, *_ in FACTORS
    )
    figure, grid = style.subplots(1, 1 + compared, 10.5 if compared else 7.0, 4.8)
    symbol = rows[0].model.symbol
    _draw_times(grid[0][0], measured, published)
    style.frame(grid[0][0], f"{subject}: time", f"{symbol}, size of the model", "seconds")
    if compared:
        speed = grid[0][1]
        _draw_speed(speed, measured, published)
        style.frame(speed, f"{subject}: speed-up", f"{symbol}, size of the model", "times as fast")
    for axes in grid[0]:
        drawn = [float(y) for line in axes.get_lines() for y in line.get_ydata()]
        style.logarithmic(axes.yaxis, drawn)
        if max(sizes) > 8 * min(sizes):
            axes.set_xscale("log", base=2)
        style.plain_ticks(axes.xaxis, _thinned(sizes))
    if compared:
        grid[0][1].axhline(1, color="black", lw=0.8)
    return style.Drawing(
        figure,
        f"{subject}: time{' and speed-up' * compared} against {symbol}, as in Figure 1 of 2011. "
        "Ours on "
        f"{host.device_name}; PRISM today is its sparse engine on the same host; grey curves are "
        "published ones, of whole runs. Seconds are wall-clock ones. PRISM's points are its runs "
        "that ended within the limit.",
    )


def _draw_times(axes: Any, measured: _Measured, published: Published) -> None:
    _curve(axes, measured.ours, "ours, whole run", style.OURS, "o")
    _curve(axes, measured.our_checks, "ours, check", style.OURS_TOO, "o", fill=False)
    _curve(axes, measured.prism, "PRISM today, whole run", style.PRISM, "s")
    _curve(axes, measured.prism_checks, "PRISM today, check", "#E69F00", "s", fill=False)
    _draw_published(axes, PUBLISHED, published)


def _draw_speed(axes: Any, measured: _Measured, published: Published) -> None:
    _curve(axes, measured.faster, "ours over PRISM today, whole run", style.OURS, "o")
    checks = "ours over PRISM today, check"
    _curve(axes, measured.faster_checks, checks, style.OURS_TOO, "o", fill=False)
    _draw_published(axes, FACTORS, published)


def _draw_published(
    axes: Any, curves: tuple[tuple[str, str, str, str, str], ...], published: Published
) -> None:
    for name, label, line, marker, colour in curves:
        points = [(int(row["size"]), row[name]) for row in published if row[name]]
        if points:
            axes.plot(*zip(*points, strict=True), line, color=colour, marker=marker, label=label)


def _thinned(sizes: list[int]) -> list[int]:
    """Return sizes that are far enough apart for their labels."""
    kept: list[int] = []
    span = max(sizes) - min(sizes) or 1
    wide = max(sizes) > 8 * min(sizes)
    for size in sizes:
        near = kept and (size < 1.4 * kept[-1] if wide else size - kept[-1] < 0.06 * span)
        if not near:
            kept.append(size)
    return kept


def _curve(
    axes: Any, points: Points, label: str, colour: str, marker: str, *, fill: bool = True
) -> None:
    if points:
        face = colour if fill else "none"
        line = "-" if fill else "--"
        axes.plot(
            *zip(*points, strict=True),
            line,
            color=colour,
            marker=marker,
            mfc=face,
            ms=5,
            label=label,
        )
