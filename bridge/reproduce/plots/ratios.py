"""Figures 5.18 and 5.19 of the thesis of 2013: share of PRISM's sweeps, and speed-up."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.jobs import Scale
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import gauss_seidel_2013
from bridge.reproduce.tables.solves import pair


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw a bar a row of the table.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    paper = gauss_seidel_2013()
    names: list[str] = []
    shares: list[float] = []
    factors: list[float] = []
    theirs: list[tuple[float, float] | None] = []
    for row in gauss_seidel.solves(scale):
        ours, prism, _ = pair(row, results)
        if ours is None or prism is None or not prism.get("sweeps"):
            continue
        names.append(f"{row.label}, {row.asked}")
        shares.append(ours["sweeps"] / prism["sweeps"])
        factors.append(prism["check_seconds"] / ours["check_seconds"])
        found = paper.row(family=row.family, property=row.asked, size=row.size)
        known = None if found is None else (found["psor"] / found["psor_prism"], found["factor"])
        theirs.append(known)
    if not names:
        return None
    figure, grid = style.subplots(1, 2, 11, 1.6 + 0.42 * len(names))
    places = range(len(names))
    for axes, ours_values, which in ((grid[0][0], shares, 0), (grid[0][1], factors, 1)):
        # From 1, which is PRISM, to the value: a bar on a logarithmic axis has no foot.
        axes.hlines(places, 1, ours_values, color=style.OURS_TOO, lw=3)
        axes.plot(ours_values, places, "o", color=style.OURS, ms=8, label="ours")
        known_points = [
            (values[which], place) for place, values in enumerate(theirs) if values is not None
        ]
        if known_points:
            x, y = zip(*known_points, strict=True)
            axes.plot(x, y, "D", color=style.PALETTE[4], mec="black", ms=6, label="thesis, 2013")
        axes.axvline(1, color="black", lw=0.8)
        axes.invert_yaxis()
    style.frame(grid[0][0], "Sweeps", "sweeps, as a multiple of PRISM's -pgs", "")
    style.frame(grid[0][1], "Speed-up", "times as fast as PRISM's -pgs (thesis: as its CPU)", "")
    grid[0][0].set_yticks(list(places), names, fontsize=9)
    grid[0][1].set_yticks(list(places), [""] * len(names))
    drawn = [values[1] for values in theirs if values is not None]
    style.logarithmic(grid[0][1].xaxis, [*factors, *drawn, 1.0])
    grid[0][0].set_xlim(left=0)
    return style.Drawing(
        figure,
        "Sweeps and speed-up of Gauss-Seidel in colours over PRISM's pseudo Gauss-Seidel on the "
        f"same host, as in Figures 5.18 and 5.19 of the thesis of 2013; ours on "
        f"{host.device_name}. Speed-ups are of wall-clock seconds of checking. "
        "The thesis's speed-ups are over its own code on the CPU.",
    )
