"""APMC, 2005: Figures 3 and 5, and the runs of section 4. Sampled paths of dining philosophers."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job, Kind, Scale, Subject

PATHS = {Scale.SMALL: 20_000, Scale.PAPER: 940_000, Scale.MAX: 9_400_000}
"""940,000 is what the paper takes for an error of 0.01 with confidence 1 − 10⁻¹⁰."""

SECTION_4 = ((160, 940_000), (160, 9_400_000))
"""Philosophers and paths of the paper's two runs on 500 computers."""

STEPS = 200
PHILOSOPHERS = {
    Scale.SMALL: (3, 10, 20, 40),
    Scale.PAPER: (3, 10, 20, 30, 50, 70, 100, 130, 160),
    Scale.MAX: (3, 10, 20, 30, 50, 70, 100, 130, 160),
}
SYNCHRONISATIONS = ("compile", "runtime", "lazy")
"""The paper's section 3.3, by the values of `-gpusimsync`."""

FIGURE_5_WORKERS = {Scale.SMALL: 2, Scale.PAPER: 32, Scale.MAX: 32}
AT_WORKERS = {Scale.SMALL: 20, Scale.PAPER: 160, Scale.MAX: 160}
"""How many philosophers the curve against workers is measured with."""

PLACES = ("processes", "hosts")
_MANY = (1, 2, 4, 8, 16, 32)
WORKERS: dict[Scale, dict[str, tuple[int, ...]]] = {
    Scale.SMALL: {"processes": (1, 2, 4, 8, 16), "hosts": (1, 2, 4)},
    Scale.PAPER: dict.fromkeys(PLACES, _MANY),
    Scale.MAX: dict.fromkeys(PLACES, _MANY),
}
"""Workers that are processes of this machine, and network namespaces of it."""


def worker_counts(cores: int) -> list[int]:
    """Return powers of two up to the number of cores, and that number.

    Parameters
    ----------
    cores
        Cores of the machine.
    """
    counts = [2**i for i in range(cores.bit_length()) if 2**i < cores]
    return [*counts, cores]


def jobs(subjects: set[Subject], scale: Scale, host: Host) -> list[Job]:
    """Return a point a job: Figure 5, then Figure 3 over threads, processes and hosts.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large.
    host
        The machine.
    """
    if Subject.APMC not in subjects:
        return []
    found = [_paths(n, PATHS[scale]) for n in PHILOSOPHERS[scale]]
    if scale is not Scale.SMALL:
        found += [job for run in SECTION_4 if (job := _paths(*run)) not in found]
    few = min(PATHS[scale], PATHS[Scale.PAPER])
    for synchronisation in SYNCHRONISATIONS:
        for n in PHILOSOPHERS[scale]:
            # Figure 5 ends with so many philosophers.
            if n <= 130:
                found.append(_paths(n, few, FIGURE_5_WORKERS[scale], synchronisation))
    n = AT_WORKERS[scale]
    found += [_paths(n, few, threads) for threads in worker_counts(host.cores)]
    for place in PLACES:
        found += [_workers(n, few, place, count) for count in WORKERS[scale][place]]
    # So many processes also take what others leave of the cores.
    return [*found, _workers(n, few, "low", 4)]


def _paths(n: int, paths: int, threads: int = 0, synchronisation: str = "") -> Job:
    parameters = {
        "philosophers": n,
        "paths": paths,
        "steps": STEPS,
        "threads": threads,
        "synchronisation": synchronisation,
    }
    name = f"{n} philosophers, {paths} paths"
    name += f", {threads} threads" if threads else ""
    name += f", {synchronisation}" if synchronisation else ""
    return Job(Subject.APMC, name, Kind.PATHS, parameters, n)


def _workers(n: int, paths: int, place: str, count: int) -> Job:
    parameters = {
        "philosophers": n,
        "paths": paths,
        "steps": STEPS,
        "where": place,
        "workers": count,
    }
    name = f"{n} philosophers, {paths} paths, {count} workers: {place}"
    return Job(Subject.APMC, name, Kind.WORKERS, parameters, count)
