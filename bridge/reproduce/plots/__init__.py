"""Figures: a module each, with a function `draw`; matplotlib is loaded when the first is drawn."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import (
    colours,
    components,
    gauss_seidel_times,
    iteration_time,
    methods,
    paths,
    ratios,
    shapes,
    style,
    time_and_speedup,
)
from bridge.reproduce.plots.style import Drawing

HINT = 'no pictures: matplotlib is not installed (pip install "prism-gpu[plots]")'

Draw = Callable[[Scale, Host, Results], Drawing | None]


@dataclass(frozen=True)
class Figure:
    """A picture of the report.

    Parameters
    ----------
    name
        A short name, for files.
    subjects
        Which subjects want it.
    draw
        Returns the picture and its caption, or None where there is nothing to draw.
    """

    name: str
    subjects: tuple[Subject, ...]
    draw: Draw


FIGURES = (
    *(
        Figure(f"{subject}_time", (subject,), time_and_speedup.of(subject))
        for subject in (Subject.HERMAN, Subject.CLUSTER, Subject.TANDEM)
    ),
    Figure("tandem_iteration", (Subject.TANDEM,), iteration_time.draw),
    Figure("shapes", (Subject.GAUSS_SEIDEL,), shapes.draw),
    Figure("gauss_seidel_time", (Subject.GAUSS_SEIDEL,), gauss_seidel_times.draw),
    Figure("colours", (Subject.GAUSS_SEIDEL,), colours.draw),
    Figure("gauss_seidel_methods", (Subject.GAUSS_SEIDEL,), methods.draw),
    Figure("gauss_seidel_ratios", (Subject.GAUSS_SEIDEL,), ratios.draw),
    Figure("scc", (Subject.SCC,), components.of("scc")),
    Figure("mec", (Subject.MEC,), components.of("mec")),
    Figure("apmc", (Subject.APMC,), paths.draw),
)


@dataclass(frozen=True)
class Picture:
    """A picture that was drawn.

    Parameters
    ----------
    name, subject
        Its short name, and where it belongs.
    file
        The PNG.
    caption
        What is seen.
    """

    name: str
    subject: Subject
    file: Path
    caption: str


def available() -> bool:
    """Tell whether pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_all(
    subjects: Iterable[Subject], scale: Scale, host: Host, results: Results, folder: Path
) -> list[Picture]:
    """Draw the pictures of some subjects as PNG.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large the instances are.
    host
        The machine.
    results
        What was measured.
    folder
        Where the files go.
    """
    wanted, drawn = set(subjects), []
    folder.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        if not wanted & set(figure.subjects):
            continue
        file = folder / f"{figure.name}.png"
        drawing = figure.draw(scale, host, results)
        if drawing is not None:
            drawing = style.with_points(drawing)
        if drawing is None:
            file.unlink(missing_ok=True)
            continue
        style.add_legend(drawing)
        drawing.save(file)
        drawn.append(Picture(figure.name, figure.subjects[0], file, drawing.caption))
    return drawn
