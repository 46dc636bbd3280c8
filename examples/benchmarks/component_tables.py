"""The tables of the component benchmark, drawn from what `components.py --json` wrote.

    python examples/benchmarks/component_tables.py FILE.json ... [--into PAGE.md]

With `--into`, the tables replace what lies between the two marks in that file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from component_cases import PAPER

BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"

Record = dict[str, Any]


def ratio(slow: float | None, fast: float | None) -> str:
    """Return how many times as long the first took, to two digits."""
    if slow is None or not fast:
        return ""
    value = slow / fast
    return f"{value:.0f} ×" if value >= 9.5 else f"{value:.1f} ×"


def seconds(value: float | None) -> str:
    """Return a time to three digits."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def fastest(*times: float | None) -> float | None:
    """Return the least of the times that there are."""
    return min((time for time in times if time is not None), default=None)


def millions(value: float) -> str:
    """Return a number as the paper does: in millions, small ones as they are."""
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value:,.0f}"


def compared(rows: list[Record], what: str) -> list[Record]:
    """Return the rows in which two have found the same: times of others are not shown."""
    return [row for row in rows if len(set(row["checked"].get(what, []))) > 1]


def checked(row: Record, what: str) -> str:
    """Return who agrees on the components."""
    return ", ".join(dict.fromkeys(row["checked"].get(what, [])))


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """Return a table without the columns that are empty in every line."""
    full = [i for i in range(len(head)) if any(line[i] for line in lines)]
    table = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line[i] for i in full) + " |" for line in table)


def strong_components(rows: list[Record]) -> str:
    """Return table 1: strong components."""
    head = [
        *("graph", "states", "transitions", "out", "SCCs", "GPU s", "GPU + copy s"),
        *("Tarjan s", "ours, CPU s", "SciPy s", "PRISM s"),
        *("Tarjan : GPU", "ours : GPU", "SciPy : GPU", "best CPU : GPU + copy"),
        *("paper's graph", "its Tarjan s", "its GPU s", "its ratio", "compared"),
    ]
    lines = []
    for row in compared(rows, "scc"):
        times, paper = row["times"], PAPER[row["family"]]
        gpu, first = times.get("gpu scc"), times.get("gpu scc first")
        tarjan, core, scipy = (times.get(f"{peer} scc") for peer in ("tarjan", "cpu", "scipy"))
        best = fastest(tarjan, core, scipy)
        lines.append(
            [
                *(row["name"], millions(row["states"]), millions(row["transitions"])),
                *(f"{row['transitions'] / row['states']:.2f}", millions(row["counts"]["scc"])),
                *(seconds(gpu), seconds(first), seconds(tarjan), seconds(core)),
                *(seconds(scipy), seconds(times.get("prism scc"))),
                *(ratio(tarjan, gpu), ratio(core, gpu), ratio(scipy, gpu), ratio(best, first)),
                f"{paper.model}, {millions(paper.states)} ({millions(paper.sccs)} SCCs)",
                *(seconds(paper.tarjan), seconds(paper.gpu_scc)),
                *(ratio(paper.tarjan, paper.gpu_scc), checked(row, "scc")),
            ]
        )
    return markdown(head, lines) if lines else ""


def end_components(rows: list[Record]) -> str:
    """Return table 2: maximal end components."""
    head = [
        *("graph", "states", "choices", "MECs", "GPU s", "GPU + copy s"),
        *("basic s", "ours, CPU s", "PRISM s", "Storm s"),
        *("basic : GPU", "ours : GPU", "best CPU : GPU + copy"),
        *("paper's CPU s", "its GPU s", "its ratio", "compared"),
    ]
    lines = []
    for row in compared(rows, "mec"):
        times, paper = row["times"], PAPER[row["family"]]
        gpu, first = times.get("gpu mec"), times.get("gpu mec first")
        basic, core = times.get("tarjan mec"), times.get("cpu mec")
        best = fastest(basic, core)
        lines.append(
            [
                *(row["name"], millions(row["states"]), millions(row["choices"])),
                *(millions(row["counts"]["mec"]), seconds(gpu), seconds(first)),
                *(seconds(basic), seconds(core)),
                *(seconds(times.get("prism mec")), seconds(times.get("storm mec"))),
                *(ratio(basic, gpu), ratio(core, gpu), ratio(best, first)),
                *(seconds(paper.cpu_mec), seconds(paper.gpu_mec)),
                *(ratio(paper.cpu_mec, paper.gpu_mec), checked(row, "mec")),
            ]
        )
    return markdown(head, lines) if lines else ""


def floor_bytes(row: Record) -> int:
    """Return the fewest bytes that strong components take.

    Each edge is read once a direction, and with it each state's place among the edges; each state's
    label is written once.
    """
    edges, states = row["transitions"], row["states"]
    return int(2 * 4 * (edges + states) + 4 * states)


def device(rows: list[Record]) -> str:
    """Return table 3: rates and memory on the device."""
    head = [
        *("graph", "edges a second", "floor ms", "times the floor", "rounds, SCC", "rounds, MEC"),
        *("2·V + E + 1 integers MiB", "GPU memory MiB, SCC", "times that", "MEC", "times that"),
        "remarks",
    ]
    lines = []
    for row in compared(rows, "scc"):
        gpu = row["times"].get("gpu scc")
        if gpu is None:
            continue
        floor = floor_bytes(row) / row["copy_bandwidth"]
        least = row["graph_bytes"]
        lines.append(
            [
                *(row["name"], f"{row['transitions'] / gpu:.2e}", f"{floor * 1e3:.3g}"),
                f"{gpu / floor:.1f}",
                *(f"{row['rounds'][what]:,}" for what in ("scc", "mec")),
                f"{least / 2**20:,.0f}",
                *(
                    text
                    for what in ("scc", "mec")
                    for text in (
                        f"{row['gpu_bytes'][what] / 2**20:,.0f}",
                        f"{row['gpu_bytes'][what] / least:.1f}",
                    )
                ),
                "; ".join(note for note in row["notes"] if note.startswith("GPU")),
            ]
        )
    return markdown(head, lines) if lines else ""


def tables(records: list[Record]) -> str:
    """Return the tables of several records as Markdown."""
    parts = []
    for record in records:
        rows = record["rows"]
        parts.append(f"`{record['command']}`, {record['date']}, {record['device']}.")
        for title, table in (
            ("Strong components", strong_components(rows)),
            ("Maximal end components", end_components(rows)),
            ("The device", device(rows)),
        ):
            if table:
                parts += [f"**{title}**", table]
        notes = [
            f"* {row['name']}: {note}"
            for row in rows
            for note in row["notes"]
            if not note.startswith("GPU")
        ]
        if notes:
            parts.append("\n".join(notes))
    return "\n\n".join(parts)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--into", type=click.Path(exists=True, path_type=Path), help="A file with marks.")
def main(files: tuple[Path, ...], into: Path | None) -> None:
    """Print the tables of the files, or put them into a page."""
    text = tables([json.loads(file.read_text(encoding="utf-8")) for file in files])
    if into is None:
        click.echo(text)
        return
    page = into.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise click.UsageError(f"{into} has no marks {BEGIN} and {END}")
    into.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
