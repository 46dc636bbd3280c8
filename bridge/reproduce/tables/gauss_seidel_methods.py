"""Sections 5.1, 5.3 and 5.4 of the thesis of 2013: our own CPU, means, and methods over colours."""

from __future__ import annotations

import statistics

from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.instances.gauss_seidel import InColours
from bridge.reproduce.jobs import Scale, Solve, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import gauss_seidel_means
from bridge.reproduce.store import Record
from bridge.reproduce.tables.solves import MEASURED, REMARKS, pair
from bridge.reproduce.tables.table import Cell, Column, Table, number, origin, ratio, seconds
from engines.cuda.colour_parts import sums_bytes

OWN_CPU = (Column("ours on the CPU: check s"), Column("ours: GPU over our CPU, check"))
METHODS = ("CPU", "direct", "split")


def own_cpu_cells(row: Solve, host: Host, ours: Record | None, results: Results) -> list[Cell]:
    """Return the cells of `OWN_CPU`.

    Parameters
    ----------
    row
        The row.
    host
        The machine.
    ours
        Our result that may be shown, or None.
    results
        What was measured.
    """
    job = gauss_seidel.own_cpu_job(row, host)
    record = None if job is None else results.of(job)
    if record is None:
        return ["", ""]
    on_cpu = record["check_seconds"]
    return [seconds(on_cpu), ratio(on_cpu, None if ours is None else ours["check_seconds"])]


def means(scale: Scale, host: Host, results: Results) -> Table:
    """Return what the rows come to together, beside section 5.3 of the thesis.

    Parameters
    ----------
    scale, host, results
        As in `bridge.reproduce.tables.gauss_seidel.tables`.
    """
    over_prism, over_cpu, shares = [], [], []
    largest: tuple[float, str, Record, Record] | None = None
    for row in gauss_seidel.solves(scale):
        ours, prism, _ = pair(row, results)
        own = gauss_seidel.own_cpu_job(row, host)
        on_cpu = None if own is None else results.of(own)
        if ours is None:
            continue
        if on_cpu is not None:
            over_cpu.append(on_cpu["check_seconds"] / ours["check_seconds"])
        if prism is None or not prism.get("sweeps"):
            continue
        factor = prism["check_seconds"] / ours["check_seconds"]
        over_prism.append(factor)
        shares.append(100.0 * ours["sweeps"] / prism["sweeps"])
        if largest is None or factor > largest[0]:
            largest = factor, f"{row.label}, {row.asked}", ours, prism
    paper = gauss_seidel_means()
    rows = [
        [
            "speed-up over PRISM's -pgs, mean",
            *_mean(over_prism),
            f"{paper['mean_speed_up_over_prism']} ×",
        ],
        ["its standard deviation", *_deviation(over_prism), f"{paper['deviation']} ×"],
        [
            *("largest speed-up over PRISM's -pgs", "1" if largest else "", _largest(largest)),
            f"{paper['largest_speed_up_over_prism']} × ({paper['largest_case']}: "
            f"{paper['prism_seconds']:,} s, {paper['gpu_seconds']} s)",
        ],
        [
            *("fewest sweeps, % of PRISM's", number(len(shares)) if shares else ""),
            *(number(min(shares, default=None)), f"{paper['fewest_sweeps_percent']}"),
        ],
        ["speed-up over our own CPU, mean", *_mean(over_cpu), ""],
    ]
    return Table(
        "gauss-seidel-means",
        str(Subject.GAUSS_SEIDEL),
        "All cases together (thesis of 2013: section 5.3)",
        "Means are of the rows above whose both sides were measured; seconds of checking. The "
        "thesis counts its iterations alone, over its cases of at least five seconds.",
        [
            *(Column("what", text=True), Column("cases"), Column("ours")),
            Column("2013", theirs=True),
        ],
        rows,
    )


def _mean(values: list[float]) -> list[Cell]:
    if not values:
        return ["", ""]
    return [number(len(values)), f"{number(statistics.mean(values))} ×"]


def _deviation(values: list[float]) -> list[Cell]:
    if len(values) < 2:
        return ["", ""]
    return [number(len(values)), f"{number(statistics.stdev(values))} ×"]


def _largest(found: tuple[float, str, Record, Record] | None) -> Cell:
    if found is None:
        return ""
    factor, name, ours, prism = found
    times = f"{seconds(prism['check_seconds'])} s, {seconds(ours['check_seconds'])} s"
    return f"{number(factor)} × ({name}: {times})"


def methods(scale: Scale, host: Host, results: Results) -> Table:
    """Return each case in 2 to 8 colours on the CPU, on the GPU and split.

    Parameters
    ----------
    scale, host, results
        As in `bridge.reproduce.tables.gauss_seidel.tables`.
    """
    return Table(
        "gauss-seidel-methods",
        str(Subject.GAUSS_SEIDEL),
        "CPU, direct and split method over colours (thesis of 2013: sections 5.1, 5.4 and 5.5)",
        f"Slices of {gauss_seidel.SLICE_SIZE} states, in so many colours; ours on "
        f"{host.device_name}. Split: with a quarter of the bytes of the matrix (-gpumaxmem), from "
        "where parts of the colours travel. Sums: the vector of a colour's sums, by equation 4.1.",
        [
            *(Column("instance", text=True), Column("property", text=True), Column("colours")),
            *(Column(f"{method}: sweeps") for method in METHODS),
            *(Column(f"{method}: µs a sweep") for method in METHODS),
            *(Column(f"{method}: check s") for method in METHODS),
            *(Column("sums MB"), MEASURED, REMARKS),
        ],
        [_case(case, results) for case in gauss_seidel.method_cases(scale, host)],
    )


def _case(case: InColours, results: Results) -> list[Cell]:
    records = {name: results.of(job) for name, job in case.jobs.items()}
    remarks = [
        f"{name}: {results.why(job)}" for name, job in case.jobs.items() if records[name] is None
    ]
    there = [record["sweeps"] for record in records.values() if record is not None]
    if there and max(there) - min(there) > 1:
        remarks.append("DIFFERENT numbers of sweeps")

    def cells(field: str) -> list[Cell]:
        found = (records.get(name) for name in METHODS)
        shown = seconds if field == "check_seconds" else number
        return ["" if record is None else shown(record.get(field)) for record in found]

    counts = case.row.model.counts(case.row.size)
    known = next((record for record in records.values() if record is not None), None)
    states = counts[0] if counts else None if known is None else known["states"]
    sums = None if states is None else sums_bytes(states, gauss_seidel.SLICE_SIZE, case.colours)
    first = next((origin(record) for record in records.values() if record is not None), "")
    return [
        *(case.row.label, case.row.asked, number(case.colours)),
        *(*cells("sweeps"), *cells("sweep_microseconds"), *cells("check_seconds")),
        *("" if sums is None else number(sums / 1e6), first, "; ".join(remarks)),
    ]
