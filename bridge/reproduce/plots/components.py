"""Tables 1 and 2 of CAV 2014 as pictures: seconds of each graph, on CPU and GPU."""

from __future__ import annotations

from typing import Any

from bridge.reproduce.host import Host
from bridge.reproduce.instances import decomposition
from bridge.reproduce.jobs import Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style
from bridge.reproduce.published import components_2014
from bridge.reproduce.tables.decomposition import title_of

TITLES = {"scc": "Strongly connected components", "mec": "Maximal end components"}


def of(what: str) -> Any:
    """Return what draws a decomposition.

    Parameters
    ----------
    what
        "scc" or "mec".
    """

    def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
        return _draw(what, scale, host, results)

    return draw


def _draw(what: str, scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    jobs = decomposition.jobs({Subject(what)}, scale, host)
    there = []
    for job in jobs:
        record = results.partly(job)
        if record is not None and len(record["checked"].get(what, [])) > 1:
            there.append((job, record))
    if not there:
        return None
    figure, grid = style.subplots(1, 1, 9, 1.9 + 0.4 * len(there))
    axes = grid[0][0]
    size = decomposition.SCALES[scale]
    for place, (job, record) in enumerate(there):
        paper = components_2014()[job.parameters["family"]]
        theirs = (paper.tarjan, paper.gpu_scc) if what == "scc" else (paper.cpu_mec, paper.gpu_mec)
        marks = [
            (record.get(f"cpu_{what}_seconds"), "s", style.PALETTE[2], "ours: CPU, one core"),
            (record.get(f"gpu_{what}_seconds"), "o", style.OURS, "ours: GPU"),
            (
                record.get(f"tarjan_{what}_seconds"),
                "D",
                style.PALETTE[4],
                "textbook: CPU, one core",
            ),
        ]
        if size == 1.0 and "scale" in job.parameters:
            marks += [
                (theirs[0], "x", style.THEIRS, "2014: Intel E5-2620, one core"),
                (theirs[1], "+", style.THEIRS, "2014: NVIDIA K20m"),
            ]
        for value, marker, colour, label in marks:
            if value is not None:
                axes.plot([value], [place], marker, color=colour, label=label, ms=8)
    names = [f"{title_of(job)}\n{record['states']:,} states" for job, record in there]
    axes.set_yticks(range(len(there)), names, fontsize=8)
    axes.invert_yaxis()
    style.logarithmic(axes.xaxis, [float(x) for line in axes.get_lines() for x in line.get_xdata()])
    style.frame(axes, TITLES[what], "seconds", "")
    where = f"CPU: one core of {host.processor}"
    if host.device == "gpu":
        where = f"GPU: {host.device_name}, the graph in its memory; {where}"
    rest = "" if size == 1.0 else f" The graphs have {size:g} of the published sizes."
    return style.Drawing(
        figure,
        f"{TITLES[what]}: seconds of each graph; {where}.{rest}",
        legend_columns=4,
    )
