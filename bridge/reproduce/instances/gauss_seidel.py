"""The thesis of 2013: Figures 5.3 to 5.19. Pseudo Gauss-Seidel, colours, shapes of matrices."""

from __future__ import annotations

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
        Unused: the largest rows are the published ones.
    """
    del host
    if Subject.GAUSS_SEIDEL not in subjects:
        return []
    rows = [job for row in solves(scale) for job in row.jobs()]
    return [*rows, *colour_jobs(scale), *shape_jobs()]
