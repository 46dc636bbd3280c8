"""What all pictures share: colours, markers, the frame of an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Okabe and Ito's palette, which colour-blind readers tell apart.
OURS = "#0072B2"
OURS_TOO = "#56B4E9"
PRISM = "#D55E00"
THEIRS = "#7f7f7f"
THEIRS_TOO = "#b5b5b5"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Drawing:
    """A figure of matplotlib's, and what it shows.

    Parameters
    ----------
    figure
        The figure.
    caption
        What is seen.
    legend_columns
        Entries in a line of its legend.
    """

    figure: Any
    caption: str
    legend_columns: int = 3

    def save(self, file: Path) -> None:
        """Write the picture whole or not at all, and free it.

        Parameters
        ----------
        file
            A PNG.
        """
        from bridge.files.atomic import replacing

        with replacing(file) as draft:
            self.figure.savefig(draft, dpi=140, format="png")
        pyplot().close(self.figure)


def pyplot() -> Any:
    """Return matplotlib's plotting module, which draws to files."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def subplots(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """Return a figure and its axes, as an array of two dimensions.

    Parameters
    ----------
    rows, columns
        How many axes.
    width, height
        Inches of the figure.
    """
    figure, axes = pyplot().subplots(
        rows, columns, figsize=(width, height), layout="constrained", squeeze=False
    )
    return figure, axes


def frame(axes: Any, title: str, x: str, y: str) -> None:
    """Give axes a title, labels and a grid.

    Parameters
    ----------
    axes
        The axes.
    title
        Their title.
    x, y
        The labels, with units.
    """
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.title.set_fontsize(11)
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(drawing: Drawing) -> None:
    """Put one legend below all axes, where it covers nothing: each name once.

    Parameters
    ----------
    drawing
        The picture, without the axes that are not shown.
    """
    found: dict[str, Any] = {}
    for axes in drawing.figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    drawing.figure.legend(
        found.values(),
        found.keys(),
        loc="outside lower center",
        ncols=min(drawing.legend_columns, len(found)),
        frameon=False,
        fontsize=9,
    )


def with_points(drawing: Drawing) -> Drawing | None:
    """Return a picture without the axes that show fewer than two measured points; None for none.

    A matrix counts as many; published curves, and lines without a label, count as none.

    Parameters
    ----------
    drawing
        The picture, which is changed, and freed where nothing is left of it.
    """
    kept: list[Any] = []
    for axes in drawing.figure.axes:
        if not axes.get_visible():
            continue
        counts: Counter[str] = Counter()
        for line in axes.get_lines():
            label = str(line.get_label())
            if not label.startswith("_") and line.get_color() not in (THEIRS, THEIRS_TOO):
                counts[label] += len(line.get_xdata())
        if axes.images or max(counts.values(), default=0) > 1:
            kept.append(axes)
    if not kept:
        pyplot().close(drawing.figure)
        return None
    if len(kept) == len(drawing.figure.axes):
        return drawing
    columns = _close_up(drawing.figure, kept)
    fitting = min(drawing.legend_columns, 2 if columns == 1 else 3)
    return replace(drawing, legend_columns=fitting)


def _close_up(figure: Any, kept: list[Any]) -> int:
    """Leave only some of the axes in a smaller figure; return how many are side by side."""
    grid = kept[0].get_gridspec()
    columns = min(int(grid.ncols), len(kept))
    lines = -(-len(kept) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width * columns / grid.ncols, height * lines / grid.nrows)
    for axes in figure.axes:
        if axes not in kept:
            axes.remove()
    closer = figure.add_gridspec(lines, columns)
    for axes, place in zip(kept, closer, strict=False):
        axes.set_subplotspec(place)
    return columns


def logarithmic(axis: Any, values: Iterable[float]) -> None:
    """Make an axis logarithmic, with plain numbers where the values span less than two decades.

    Parameters
    ----------
    axis
        The x or the y axis of some axes.
    values
        What is drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    set_scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    set_scale("log")
    there = [value for value in values if value > 0]
    if there and max(there) < 100 * min(there):
        narrow = max(there) < 10 * min(there)
        axis.set_major_locator(
            LogLocator(base=10, subs=(1, 1.5, 2, 3, 5, 7) if narrow else (1, 2, 5))
        )
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def plain_ticks(axis: Any, values: list[int]) -> None:
    """Mark an axis at given values, written as they are; too many of them are thinned out.

    Parameters
    ----------
    axis
        An axis of matplotlib's.
    values
        Where.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
