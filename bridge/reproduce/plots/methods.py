"""Figures 5.20 to 5.23 of the thesis of 2013: CPU, direct and split method over colours."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.instances.gauss_seidel import InColours
from bridge.reproduce.jobs import Scale
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style

CURVES = (
    ("CPU", "ours, CPU", style.PALETTE[2], "^"),
    ("direct", "ours, GPU, direct", style.OURS, "o"),
    ("split", "ours, GPU, split", style.PALETTE[4], "s"),
)


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw the seconds of each case and method against the number of colours.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    groups: dict[str, list[InColours]] = {}
    for case in gauss_seidel.method_cases(scale, host):
        groups.setdefault(f"{case.row.label}, {case.row.asked}", []).append(case)
    curves = {}
    for name, cases in groups.items():
        found = {
            method: [
                (case.colours, record["check_seconds"])
                for case in cases
                if method in case.jobs and (record := results.of(case.jobs[method])) is not None
            ]
            for method, *_ in CURVES
        }
        if any(len(points) > 1 for points in found.values()):
            curves[name] = found
    if not curves:
        return None
    columns = min(3, len(curves))
    lines = -(-len(curves) // columns)
    figure, grid = style.subplots(lines, columns, 4.2 * columns, 3.4 * lines + 0.6)
    for axes, (name, found) in zip(grid.flat, curves.items(), strict=False):
        for method, label, colour, marker in CURVES:
            if found[method]:
                points = zip(*found[method], strict=True)
                axes.plot(*points, color=colour, marker=marker, label=label)
        style.frame(axes, name, "colours", "seconds of checking")
        times = [seconds for points in found.values() for _, seconds in points]
        style.logarithmic(axes.yaxis, times)
        style.plain_ticks(axes.xaxis, list(gauss_seidel.COLOURS))
    for axes in list(grid.flat)[len(curves) :]:
        axes.set_visible(False)
    return style.Drawing(
        figure,
        f"Gauss-Seidel in slices of {gauss_seidel.SLICE_SIZE} states against the number of colours "
        f"(thesis of 2013: Figures 5.5 to 5.17 and 5.20 to 5.21), ours on {host.device_name} and "
        f"on {host.processor}.",
    )
