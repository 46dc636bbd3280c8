"""Figures 3 and 5 of APMC, 2005: time against workers, and against philosophers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.reproduce.host import Host
from bridge.reproduce.instances import apmc
from bridge.reproduce.jobs import Kind, Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import apmc_2005

Points = list[tuple[int, float]]


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw the time against philosophers, and against workers, and what of it workers lose.

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
    there = [(job.kind, job.parameters, record) for job, record in found if record is not None]
    sampled = [(p, r["sample_seconds"]) for kind, p, r in there if kind is Kind.PATHS]
    workers = [(p, r["total_seconds"]) for kind, p, r in there if kind is Kind.WORKERS]
    curves = _by_philosophers(sampled, scale, host)
    places = _by_workers(sampled, workers)
    if not curves and not places:
        return None
    figure, grid = style.subplots(1, 3, 13.5, 4.6)
    left, middle, right = grid[0]
    _draw_philosophers(left, curves, scale)
    _draw_workers(middle, right, places, scale)
    return style.Drawing(
        figure,
        "Time of sampling against the number of philosophers (Figure 5 of 2005), ours on "
        f"{host.device_name} and, for each way to synchronise, by "
        f"{apmc.FIGURE_5_WORKERS[scale]} threads of {host.processor}; time against the number of "
        "workers (Figure 3(a)), of processes and hosts the whole of deployment, compiling and "
        "sampling, of threads sampling alone; and the share of its speed that each worker keeps "
        "(Figure 3(b)). Hosts are network namespaces of one machine.",
        legend_columns=4,
    )


def _by_philosophers(
    sampled: Sequence[tuple[Any, float]], scale: Scale, host: Host
) -> dict[str, Points]:
    ours = "the GPU" if host.device == "gpu" else "the CPU"
    curves: dict[str, Points] = {}
    for asked, time in sampled:
        synchronised, point = asked["synchronisation"], (asked["philosophers"], time)
        if synchronised:
            curves.setdefault(f"threads, {synchronised}", []).append(point)
        elif not asked["threads"] and asked["paths"] == apmc.PATHS[scale]:
            curves.setdefault(ours, []).append(point)
    return _long_enough(curves)


def _by_workers(
    sampled: Sequence[tuple[Any, float]], workers: Sequence[tuple[Any, float]]
) -> dict[str, Points]:
    curves: dict[str, Points] = {}
    for asked, time in sampled:
        if asked["threads"] and not asked["synchronisation"]:
            curves.setdefault("threads", []).append((asked["threads"], time))
    for asked, time in workers:
        if asked["where"] in apmc.PLACES:
            curves.setdefault(asked["where"], []).append((asked["workers"], time))
    return _long_enough(curves)


def _long_enough(curves: dict[str, Points]) -> dict[str, Points]:
    return {name: points for name, points in curves.items() if len(points) >= 2}


def _draw_philosophers(axes: Any, curves: dict[str, Points], scale: Scale) -> None:
    times = [time for points in curves.values() for _, time in points]
    for (name, points), colour in zip(curves.items(), style.PALETTE, strict=False):
        axes.plot(*zip(*points, strict=True), color=colour, marker="o", ms=4, label=name)
    paths = apmc.PATHS[scale]
    for row in apmc_2005().rows:
        if row["paths"] == paths:
            at, time = row["philosophers"], row["seconds"]
            label = f"2005: {row['computers']} computers"
            axes.plot([at], [time], "x", color=style.THEIRS, ms=8, label=label)
            times.append(time)
    if times:
        style.logarithmic(axes.yaxis, times)
    few = min(paths, apmc.PATHS[Scale.PAPER])
    title = f"{paths:,} paths" if few == paths else f"{paths:,} paths, threads {few:,}"
    style.frame(axes, f"{title} of {apmc.STEPS} steps", "philosophers", "seconds")


def _draw_workers(times: Any, shares: Any, places: dict[str, Points], scale: Scale) -> None:
    counts = sorted({count for points in places.values() for count, _ in points})
    drawn = [time for points in places.values() for _, time in points]
    for i, (name, points) in enumerate(places.items()):
        colour = style.PALETTE[(i + 4) % len(style.PALETTE)]
        times.plot(*zip(*points, strict=True), color=colour, marker="s", ms=4, label=name)
        first, alone = points[0]
        kept = [(count, first * alone / (count * time)) for count, time in points]
        shares.plot(*zip(*kept, strict=True), color=colour, marker="s", ms=4, label=name)
    for axes in (times, shares):
        axes.set_xscale("log", base=2)
        if counts:
            style.plain_ticks(axes.xaxis, counts)
    if drawn:
        style.logarithmic(times.yaxis, drawn)
    shares.set_ylim(0, 1.1)
    shares.axhline(1, ls=":", color="black", lw=1)
    n = apmc.AT_WORKERS[scale]
    style.frame(times, f"{n} philosophers", "workers", "seconds")
    style.frame(shares, "what each keeps of one's speed", "workers x", "t1 / (x tx)")
