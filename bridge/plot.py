"""`-gpuplot`: a run's sweeps, and the results of its experiments, as a picture."""

from __future__ import annotations

import importlib.util
import re
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.files.atomic import replacing
from bridge.own_switches import UsageError
from bridge.refusals import fault_text
from engines.errors import BridgeError
from engines.model.progress import Measure
from engines.model.result import Status
from prism_hooks.record import Constants, RunRecord, SolveRecord, SweepCurve

if TYPE_CHECKING:
    from bridge.arguments import Arguments

ENDINGS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which those who see no red or green tell apart, but for the yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "*")
STYLES = ("-", "--", "-.", ":")
NUMBERS = {
    Measure.CHANGE: "largest change of a sweep",
    Measure.WIDTH: "largest distance of the bounds",
    Measure.STEP: "largest change of a step",
    Measure.REMAINDER: "share of the sum still to come",
}

Line = tuple[str, list[float], list[float]]
"""A label, places and heights."""


def plot_record(arguments: Arguments) -> RunRecord:
    """Return what keeps a run, and draws it at its end into the file that `-gpuplot` names.

    Parameters
    ----------
    arguments
        A command line with `-gpuplot`.

    Raises
    ------
    UsageError
        For a file whose ending names no kind of picture.
    BridgeError
        If matplotlib is missing, or the file cannot be written.
    """
    path = Path(str(arguments.plot))
    require_plot(path)
    title = Path(arguments.files[0]).name if arguments.files else ""

    def draw(record: RunRecord) -> None:
        try:
            said = draw_run(record, path, title)
        except (OSError, MemoryError) as error:
            # The results are printed by now.
            said = f"-gpuplot: {path} was not written: {fault_text(error)}"
        print(f"\nprism-gpu: {said}", flush=True)

    return RunRecord(constants_named(arguments.prism), draw)


def constants_named(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names that the values of `-const` are given to, in their order.

    Parameters
    ----------
    words
        The words of a command line.
    """
    values = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-const", "--const")]
    return tuple(dict.fromkeys(re.findall(r"(\w+)\s*=", ",".join(values))))


def require_plot(path: Path) -> None:
    """Refuse a file that no plot could be written to, before hours have gone into what it shows.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    UsageError, BridgeError
        As `plot_record` says.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f'Invalid value "{path}" for -gpuplot switch: a file that ends in {", ".join(ENDINGS)}'
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise BridgeError(
            '-gpuplot needs matplotlib, which is missing: pip install "prism-gpu[plots]"'
        )
    is_new = not path.exists()
    try:
        with path.open("ab"), tempfile.TemporaryFile(dir=path.parent):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise BridgeError(f"-gpuplot cannot write {path}: {error.strerror or error}") from error


def draw_run(record: RunRecord, path: Path, title: str) -> str:
    """Draw a run, and return a line that says what was drawn or why nothing was.

    Parameters
    ----------
    record
        What the run left behind.
    path
        The picture's file, of one of the known endings.
    title
        What is drawn: the model.
    """
    import matplotlib

    # A dollar sign in a name begins no formula.
    with matplotlib.rc_context({"text.parse_math": False}):
        return _drawn(record, path, title)


def _drawn(record: RunRecord, path: Path, title: str) -> str:
    from matplotlib.figure import Figure

    experiments = [(name, *found) for name, rows in record.values.items() if (found := lines(rows))]
    # Those with the most sweeps.
    shown = sorted(record.solves, key=lambda solve: -solve.iterations)[:8]
    shown.sort(key=record.solves.index)
    kinds = [kind for kind in Measure if any(list(_curves(solve, kind)) for solve in shown)]
    diagrams = len(experiments) + len(kinds)
    if not diagrams:
        return f"-gpuplot: {path} was not written: no solve made sweeps, and there is no experiment"
    figure = Figure(figsize=(10.0, 4.0 * diagrams), layout="constrained")
    places = iter(figure.subplots(diagrams, 1, squeeze=False)[:, 0])
    for (name, constant, series), axes in zip(experiments, places, strict=False):
        _draw_experiment(axes, name, constant, series)
    for kind, axes in zip(kinds, places, strict=True):
        _draw_sweeps(axes, kind, shown)
    some = ""
    if len(shown) < record.num_solves:
        some = f", the {len(shown)} of {record.num_solves} solves with the most sweeps"
    figure.suptitle(f"{title}{some}" if title else some.removeprefix(", "))
    with replacing(path) as draft:
        figure.savefig(draft, format=path.suffix.lower().removeprefix("."), dpi=150)
    drawn = (
        f"the sweeps of {_counted(len(shown), 'solve')}{some}" if shown else "",
        f"{_counted(len(experiments), 'experiment')}" if experiments else "",
    )
    return f"{path} shows {' and '.join(filter(None, drawn))}"


def lines(rows: Sequence[tuple[Constants, float]]) -> tuple[str, list[Line]] | None:
    """Return the constant that an experiment is drawn over, and its lines.

    That is the constant with the most values, the first of those; each choice of values of the
    others makes a line.

    Parameters
    ----------
    rows
        Values of constants, and a result each.

    Returns
    -------
    None where no constant takes several values that are numbers, or no result is a number.
    """
    values: dict[str, dict[str, None]] = {}
    for constants, _ in rows:
        for name, value in constants.items():
            values.setdefault(name, {})[value] = None
    ranging = {name: found for name, found in values.items() if len(found) > 1}
    over = [name for name, found in ranging.items() if all(map(_is_number, found))]
    if not over or not any(np.isfinite(result) for _, result in rows):
        return None
    constant = max(over, key=lambda name: len(ranging[name]))
    found: dict[str, list[tuple[float, float]]] = {}
    for constants, result in rows:
        label = ", ".join(
            f"{name}={value}"
            for name, value in constants.items()
            if name in ranging and name != constant
        )
        found.setdefault(label, []).append((float(constants[constant]), result))
    series = []
    for label, points in found.items():
        points.sort(key=lambda point: point[0])
        series.append((label, [x for x, _ in points], [y for _, y in points]))
    return constant, series


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _draw_experiment(axes: Any, name: str, constant: str, series: list[Line]) -> None:
    for number, (label, places, heights) in enumerate(series):
        style = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": STYLES[number // len(COLOURS) % len(STYLES)],
        }
        axes.plot(places, heights, label=_wrapped(label), markersize=5, **style)
    axes.set_title("\n".join(textwrap.wrap(name, 90)), fontsize="medium")
    axes.set_xlabel(constant)
    axes.set_ylabel("result")
    axes.grid(alpha=0.3)
    if all(float(place).is_integer() for _, places, _ in series for place in places):
        axes.xaxis.get_major_locator().set_params(integer=True)
    if len(series) > 1:
        # So many lines are listed below each other.
        _legend(axes, columns=1 + (len(series) - 1) // 12)


def _draw_sweeps(axes: Any, kind: Measure, solves: list[SolveRecord]) -> None:
    numbers = count()
    epsilons: set[float] = set()
    made: list[int] = []
    for solve in solves:
        curves = list(_curves(solve, kind))
        for part, curve in curves:
            number = next(numbers)
            sweeps, heights = curve.points()
            # A change of 0 has no place on a logarithmic axis; neither have those of no number.
            drawn = np.isfinite(heights) & (heights > 0.0)
            last = part == len(solve.curves)
            unfinished = last and (solve.status is not Status.CONVERGED or solve.finished_by)
            axes.plot(
                sweeps[drawn],
                heights[drawn],
                color=COLOURS[number % len(COLOURS)],
                linestyle=STYLES[number % len(STYLES)],
                linewidth=1.2,
                marker="x" if unfinished else MARKERS[number % len(MARKERS)],
                markevery=[-1] if drawn.any() else None,
                markersize=7,
                label=_wrapped(_label(solve, part, curve)),
            )
            made.append(curve.iterations)
        if curves and kind in (Measure.CHANGE, Measure.WIDTH) and solve.epsilon > 0.0:
            epsilons.add(solve.epsilon)
    for epsilon in sorted(epsilons):
        axes.axhline(
            epsilon,
            color="0.35",
            linewidth=0.8,
            linestyle=(0, (6, 3)),
            label=f"epsilon {epsilon:g}",
        )
    absolute = {curve.absolute for solve in solves for _, curve in _curves(solve, kind)}
    scale = "" if kind is Measure.REMAINDER else _scale_text(absolute)
    axes.set_title(f"{NUMBERS[kind].capitalize()}, against sweeps", fontsize="medium")
    axes.set_xlabel("sweeps made")
    axes.set_ylabel(f"{NUMBERS[kind]}{scale}")
    _set_log(axes.yaxis)
    # Solves that differ by more share a logarithmic axis.
    if max(made) > 30 * min(made):
        _set_log(axes.xaxis)
    axes.grid(alpha=0.3)
    _legend(axes)


def _set_log(axis: Any) -> None:
    """Make an axis logarithmic; its ticks are plain numbers, since no text is a formula here."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _scale_text(absolute: set[bool]) -> str:
    if len(absolute) > 1:
        return ""
    return " (absolute)" if absolute == {True} else " (relative)"


def _curves(solve: SolveRecord, kind: Measure) -> Iterator[tuple[int, SweepCurve]]:
    for part, curve in enumerate(solve.curves, start=1):
        if curve.measure is kind and curve.iterations:
            yield part, curve


def _label(solve: SolveRecord, part: int, curve: SweepCurve) -> str:
    parts = f" (part {part} of {len(solve.curves)})" if len(solve.curves) > 1 else ""
    ended = ""
    if part == len(solve.curves) and solve.status is not Status.CONVERGED:
        ended = f", {solve.status}"
    elif part == len(solve.curves) and solve.finished_by:
        ended = f", then {solve.finished_by}"
    return f"{solve.question}: {solve.method}{parts}, {_counted(curve.iterations, 'sweep')}{ended}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 40))


def _legend(axes: Any, columns: int = 1) -> None:
    """Put the legend beside the diagram, where it covers nothing."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": columns}
    axes.legend(fontsize="small", frameon=False, **place)
