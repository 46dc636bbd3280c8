"""Figure 2 of GPU-PRISM, 2011: time of an iteration against n, double and single precision."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import jacobi
from bridge.reproduce.jobs import Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import gpu_prism_2011
from bridge.reproduce.tables.solves import pair


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw microseconds a sweep of tandem.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    found = [results.of(job) for job in jacobi.sweep_jobs(scale)]
    points = [record for record in found if record is not None]
    if not points:
        return None
    states = [record["states"] for record in points]
    figure, grid = style.subplots(1, 1, 8, 5)
    axes = grid[0][0]
    for precision, colour, marker in (
        ("double", style.OURS, "o"),
        ("single", style.PALETTE[2], "^"),
    ):
        times = [record[precision] for record in points]
        axes.plot(states, times, color=colour, marker=marker, label=f"ours, {precision}")
    prism = []
    for row in jacobi.solves(Subject.TANDEM, scale, host):
        _, other, _ = pair(row, results)
        # PRISM prints whole microseconds; what it prints as none is no point.
        if other is not None and other.get("sweep_cpu_microseconds"):
            prism.append((other["states"], other["sweep_cpu_microseconds"]))
    if prism:
        label = "PRISM today, sparse, double (CPU time)"
        axes.plot(*zip(*prism, strict=True), color=style.PRISM, marker="s", label=label)
    largest = max(states)
    for name, label, line, marker in (
        ("cpu_32", "2011: PRISM, Athlon 64, run over iterations", "--", "x"),
        ("gpu_32", "2011: GTX 280, run over iterations", "--", "+"),
    ):
        theirs = [
            (row["states"], 1e6 * row[name] / row["iterations"])
            for row in gpu_prism_2011().rows
            if row["family"] == "tandem" and row[name] and row["states"] <= 16 * largest
        ]
        if theirs:
            axes.plot(
                *zip(*theirs, strict=True), line, color=style.THEIRS, marker=marker, label=label
            )
    axes.set(xscale="log", yscale="log")
    style.frame(axes, "tandem: time of a sweep of Jacobi", "n, number of states", "microseconds")
    return style.Drawing(
        figure,
        f"Time of a sweep against the number of states, as in Figure 2 of 2011. Ours on "
        f"{host.device_name}, sweeps alone, by the wall clock; PRISM prints its CPU time; "
        "the grey curves divide the seconds of Table 4 by the "
        "iterations of Table 1, since the figure prints no numbers.",
        legend_columns=2,
    )
