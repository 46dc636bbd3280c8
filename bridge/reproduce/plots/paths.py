"""Figures 3 and 5 of APMC, 2005: time against philosophers, and against workers."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import apmc
from bridge.reproduce.jobs import Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import apmc_2005


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw both curves.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    found = [(job, results.of(job)) for job in apmc.jobs({Subject.APMC}, scale, host)]
    there = [(job.parameters, record) for job, record in found if record is not None]
    by_number = [(p["philosophers"], r["sample_seconds"]) for p, r in there if not p["threads"]]
    by_worker = [(p["threads"], r["sample_seconds"]) for p, r in there if p["threads"]]
    if not by_number and not by_worker:
        return None
    figure, grid = style.subplots(1, 2, 10.5, 4.4)
    left, right = grid[0]
    paths = apmc.PATHS[scale]
    if by_number:
        left.plot(*zip(*by_number, strict=True), color=style.OURS, marker="o", label="ours")
    known = [row for row in apmc_2005().rows if row["paths"] == paths]
    for row in known:
        left.plot(
            [row["philosophers"]],
            [row["seconds"]],
            "x",
            color=style.THEIRS,
            ms=8,
            label=f"2005: {row['computers']} computers",
        )
        style.logarithmic(left.yaxis, [time for _, time in by_number] + [row["seconds"]])
    style.frame(left, f"{paths:,} paths of {apmc.STEPS} steps", "philosophers", "seconds")
    if not known:
        left.set_ylim(bottom=0)
    if by_worker:
        right.plot(
            *zip(*by_worker, strict=True), color=style.PALETTE[2], marker="s", label="threads"
        )
        first = by_worker[0][1]
        counts = [workers for workers, _ in by_worker]
        ideal = [first * counts[0] / workers for workers in counts]
        right.plot(counts, ideal, ":", color="black", lw=1, label="if each did its full share")
        right.set_xscale("log", base=2)
        style.logarithmic(right.yaxis, [time for _, time in by_worker] + ideal)
        style.plain_ticks(right.xaxis, counts)
    n = apmc.AT_WORKERS[scale]
    style.frame(right, f"{n} philosophers, on the CPU", "workers (threads)", "seconds")
    style.legend_below(figure, grid[0])
    return style.Drawing(
        figure,
        "Time of sampling against the number of philosophers (Figure 5 of 2005), ours on "
        f"{host.device_name}, and against the number of workers (Figure 3), which are threads "
        f"of {host.processor}.",
    )
