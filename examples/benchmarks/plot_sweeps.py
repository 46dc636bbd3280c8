"""Draw what `formats.py --json FILE` and `residuals.py FILE` measured.

python examples/benchmarks/plot_sweeps.py [--formats FILE PICTURE] [--residuals FILE PICTURE]
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

COLOURS = {
    "csr": "#1f77b4",
    "values": "#2ca02c",
    "patterns": "#d62728",
    "segments": "#7f7f7f",
    "panels": "#9467bd",
}


def pyplot() -> Any:
    """Return matplotlib's plotting module, which draws to files."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def by(rows: list[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    """Return rows by a column, in the order in which they come."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[key]), []).append(row)
    return found


def draw_formats(record: dict[str, Any], picture: str) -> None:
    """Draw microseconds a sweep against the number of states, with the copy of a vector below."""
    plt = pyplot()
    families: dict[str, list[dict[str, Any]]] = {}
    for row in record["rows"]:
        families.setdefault(row["case"].partition(" ")[0], []).append(row)
    figure, all_axes = plt.subplots(
        1, len(families), figsize=(4.6 * len(families), 4.2), layout="constrained", squeeze=False
    )
    for axes, (family, rows) in zip(all_axes[0], families.items(), strict=True):
        for name, of_format in by(rows, "wanted").items():
            there = sorted(
                (row["states"], row["microseconds"])
                for row in of_format
                if name == "auto" or row["format"] == name
            )
            if not there:
                continue
            style = {"color": COLOURS.get(name), "marker": "o", "ms": 4}
            if name == "auto":
                style = {"color": "black", "marker": "s", "ms": 8, "mfc": "none", "ls": "none"}
            axes.plot(*zip(*there, strict=True), label=name, **style)
        floor = sorted(
            {
                row["states"]: row["microseconds"] / row["times_the_vector_copy"] for row in rows
            }.items()
        )
        axes.plot(*zip(*floor, strict=True), "--", color="black", lw=1, label="copying the vector")
        axes.set(xscale="log", yscale="log", title=family, xlabel="states")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0][0].set_ylabel("microseconds a sweep of Jacobi")
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False, fontsize=9)
    figure.suptitle(record["device"], fontsize=10)
    figure.savefig(picture, dpi=150)


def draw_residuals(record: dict[str, Any], picture: str) -> None:
    """Draw residuals against sweeps, and against seconds."""
    plt = pyplot()
    cases = by(record["rows"], "case")
    figure, all_axes = plt.subplots(
        len(cases), 2, figsize=(10, 3.6 * len(cases)), layout="constrained", squeeze=False
    )
    for (case, rows), pair in zip(cases.items(), all_axes, strict=True):
        for axes, column in zip(pair, ("sweeps", "seconds"), strict=True):
            for row in rows:
                dashed = "--" if row["method"].endswith("mixed") else "-"
                axes.plot(row[column], row["residual"], dashed, label=row["method"], lw=1.4)
            axes.set(xscale="log", yscale="log", xlabel=column, ylim=(1e-17, None))
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        pair[0].set_ylabel(f"{case}, {rows[0]['states']:,} states\nlargest residual")
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    figure.suptitle(f"{record['device']}; a cycle of multilevel is one sweep", fontsize=10)
    figure.savefig(picture, dpi=150)


@click.command()
@click.option("--formats", type=(click.Path(exists=True), click.Path()), help="FILE PICTURE")
@click.option("--residuals", type=(click.Path(exists=True), click.Path()), help="FILE PICTURE")
def main(formats: tuple[str, str] | None, residuals: tuple[str, str] | None) -> None:
    """Draw one figure or both, as PNG or SVG."""
    if not (formats or residuals):
        raise click.UsageError("name --formats FILE PICTURE, --residuals FILE PICTURE, or both")
    for named, draw in ((formats, draw_formats), (residuals, draw_residuals)):
        if named:
            measured, picture = named
            draw(json.loads(Path(measured).read_text(encoding="utf-8")), picture)


if __name__ == "__main__":
    main()
