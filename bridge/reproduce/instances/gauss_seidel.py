"""The thesis of 2013: Figures 5.3 to 5.19. Pseudo Gauss-Seidel, colours, shapes of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job, Kind, Scale, Solve, Subject

SIZES: dict[tuple[str, str], dict[Scale, tuple[int, ...]]] = {
    ("tandem", "customers"): {Scale.SMALL: (31, 63), Scale.PAPER: (255, 511)},
    ("polling", "before"): {Scale.SMALL: (8, 10), Scale.PAPER: (15, 16, 17, 18, 19, 20)},
    ("polling", "s1"): {Scale.SMALL: (10, 12), Scale.PAPER: (15, 16, 17, 18, 19, 20)},
    ("kanban", "throughput"): {Scale.SMALL: (2, 3), Scale.PAPER: (4, 5, 6, 7)},
    ("fms", "productivity"): {Scale.SMALL: (3, 4), Scale.PAPER: (5, 6, 7, 8, 9, 10)},
    ("nand", "reliable"): {Scale.SMALL: (), Scale.PAPER: (2, 3, 4)},
    ("egl", "messages"): {Scale.SMALL: (), Scale.PAPER: (2, 4)},
}
"""By family and property. The largest that are published lie near what one GPU holds."""

TOLERANCES = {"before": 2e-3}
"""PRISM's test stops early there, as its errors show; a named method of ours does the same."""

COLOURED = {
    Scale.SMALL: {"tandem": 31, "polling": 8, "kanban": 2, "fms": 2},
    Scale.PAPER: {"tandem": 255, "polling": 15, "kanban": 4, "fms": 5},
}
"""Whose sweeps are counted against the number of colours."""

COLOURS = tuple(range(2, 9))
SLICE_SIZE = 64
SHAPES = {"cluster": 8, "fms": 2, "herman": 7, "kanban": 2, "polling": 6, "tandem": 15}
"""Models of the matrices that Figure 5.3 is drawn of; larger ones look the same."""

METHODS_AT: dict[Scale, dict[tuple[str, str], int]] = {
    Scale.SMALL: {("polling", "before"): 8},
    Scale.PAPER: {
        **{("kanban", "throughput"): 5, ("polling", "before"): 16, ("nand", "reliable"): 2},
        **{("egl", "messages"): 2, ("tandem", "customers"): 255, ("polling", "s1"): 16},
        ("fms", "productivity"): 6,
    },
}
"""Which case of each property is swept in 2 to 8 colours, on the CPU, whole and split."""

OURS = ("-gs",)
PEER = ("-hybrid", "-pgs")


def solves(scale: Scale) -> list[Solve]:
    """Return the rows of the tables.

    Parameters
    ----------
    scale
        How large.
    """
    small = scale is Scale.SMALL
    return [
        Solve(
            Subject.GAUSS_SEIDEL,
            family,
            size,
            asked,
            OURS,
            PEER,
            tolerance=TOLERANCES.get(asked, 1e-4),
        )
        for (family, asked), sizes in SIZES.items()
        for size in sizes[Scale.SMALL if small else Scale.PAPER]
    ]


def own_cpu_job(row: Solve, host: Host) -> Job | None:
    """Return a row's job on our own CPU engine; None where that is the row's own.

    Parameters
    ----------
    row
        The row.
    host
        The machine.
    """
    return row.variant(Kind.OURS, row.ours, on="cpu") if host.device == "gpu" else None


@dataclass(frozen=True)
class InColours:
    """A case in a number of colours by slices, by each method.

    Parameters
    ----------
    row
        The case.
    colours
        How many.
    jobs
        By method: "CPU", and on a GPU "direct" and "split".
    """

    row: Solve
    colours: int
    jobs: Mapping[str, Job]


def method_cases(scale: Scale, host: Host) -> list[InColours]:
    """Return what Figures 5.5 to 5.17 and 5.20 to 5.23 are drawn of.

    Parameters
    ----------
    scale
        How large.
    host
        The machine.
    """
    found = []
    for (family, asked), size in METHODS_AT[
        Scale.SMALL if scale is Scale.SMALL else Scale.PAPER
    ].items():
        tolerance = TOLERANCES.get(asked, 1e-4)
        row = Solve(Subject.GAUSS_SEIDEL, family, size, asked, OURS, PEER, tolerance=tolerance)
        for colours in COLOURS:
            found.append(InColours(row, colours, _methods(row, colours, host)))
    return found


def _methods(row: Solve, colours: int, host: Host) -> dict[str, Job]:
    switches = (*OURS, "-gpuslice", str(SLICE_SIZE), "-gpucolours", str(colours))
    if host.device != "gpu":
        return {"CPU": row.variant(Kind.OURS, switches)}
    found = {
        "CPU": row.variant(Kind.OURS, switches, on="cpu"),
        "direct": row.variant(Kind.OURS, switches),
    }
    counts = row.model.counts(row.size)
    if counts is not None:
        # A quarter of what the entries take, vectors included.
        memory = ("-gpumaxmem", f"{12 * counts[1] // 4 >> 10}k")
        found["split"] = row.variant(Kind.OURS, (*switches, *memory))
    return found


def colour_jobs(scale: Scale) -> list[Job]:
    """Return the curves of sweeps against colours.

    Parameters
    ----------
    scale
        How large.
    """
    sizes = COLOURED[Scale.SMALL if scale is Scale.SMALL else Scale.PAPER]
    return [
        Job(
            Subject.GAUSS_SEIDEL,
            f"{family} {size}, sweeps against colours",
            Kind.COLOURS,
            {"family": family, "size": size, "colours": list(COLOURS), "slice_size": SLICE_SIZE},
            size,
        )
        for family, size in sizes.items()
    ]


def shape_jobs() -> list[Job]:
    """Return the pictures of Figure 5.3."""
    return [
        Job(
            Subject.GAUSS_SEIDEL,
            f"{family} {size}, shape of its matrix",
            Kind.PATTERNS,
            {"family": family, "size": size, "bins": 160},
            size,
        )
        for family, size in SHAPES.items()
    ]


def jobs(subjects: set[Subject], scale: Scale, host: Host) -> list[Job]:
    """Return all that is measured for these tables and figures.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large.
    host
        The machine: on a GPU, rows are measured on the CPU and split as well.
    """
    if Subject.GAUSS_SEIDEL not in subjects:
        return []
    found = []
    for row in solves(scale):
        own = own_cpu_job(row, host)
        found += [*row.jobs(), *(() if own is None else (own,))]
    methods = [job for case in method_cases(scale, host) for job in case.jobs.values()]
    return [*found, *colour_jobs(scale), *shape_jobs(), *methods]
