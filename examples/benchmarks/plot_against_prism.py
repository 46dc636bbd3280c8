"""Draw what `against_prism.py --json FILE` measured.

python examples/benchmarks/plot_against_prism.py FILE PICTURE
"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("measured", type=click.Path(exists=True, dir_okay=False))
@click.argument("picture", type=click.Path(dir_okay=False))
def main(measured: str, picture: str) -> None:
    """Draw the times of checking of both programs, and their ratio, as a PNG or SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    record = json.loads(Path(measured).read_text(encoding="utf-8"))
    rows = record["rows"]
    rows.sort(key=lambda row: row["prism_check_seconds"])
    places = range(len(rows))
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    axes.barh(
        [place + 0.2 for place in places],
        [row["prism_check_seconds"] for row in rows],
        height=0.38,
        color="#9aa5b1",
        label="PRISM, sparse engine, one core",
    )
    axes.barh(
        [place - 0.2 for place in places],
        [row["check_seconds"] for row in rows],
        height=0.38,
        color="#1f77b4",
        label=f"prism-gpu, {record.get('device', 'CPU')}",
    )
    for place, row in zip(places, rows, strict=True):
        axes.text(
            row["check_seconds"] * 1.1,
            place - 0.2,
            f"{row['check_seconds']:.2f} s, {row['ratio']:.0f} times as fast",
            va="center",
            fontsize=9,
        )
        axes.text(
            row["prism_check_seconds"] * 1.1,
            place + 0.2,
            f"{row['prism_check_seconds']:.1f} s",
            va="center",
            fontsize=9,
        )
    axes.set_xscale("log")
    axes.set_xlim(0.01, 200)
    axes.set_xlabel("seconds of checking by the wall clock, Jacobi")
    axes.set_yticks(
        list(places), [f"{row['case']}\n{row['states']:,} states" for row in rows], fontsize=9
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main()
