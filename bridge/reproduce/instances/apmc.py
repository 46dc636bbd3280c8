"""APMC, 2005: Figures 3 and 5. Sampled paths of the dining philosophers."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job, Kind, Scale, Subject

PATHS = {Scale.SMALL: 20_000, Scale.PAPER: 940_000, Scale.MAX: 9_400_000}
"""940,000 is what the paper takes for an error of 0.01 with confidence 1 − 10⁻¹⁰."""

STEPS = 200
PHILOSOPHERS = {
    Scale.SMALL: (3, 10, 20, 40),
    Scale.PAPER: (3, 10, 20, 30, 50, 70, 100, 130, 160),
    Scale.MAX: (3, 10, 20, 30, 50, 70, 100, 130, 160),
}
AT_WORKERS = {Scale.SMALL: 20, Scale.PAPER: 160, Scale.MAX: 160}
"""How many philosophers the curve against workers is measured with."""


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
    """Return a point a job: numbers of philosophers, then numbers of workers of the CPU.

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
    points = [(n, 0) for n in PHILOSOPHERS[scale]]
    points += [(AT_WORKERS[scale], threads) for threads in worker_counts(host.cores)]
    found = []
    for n, threads in points:
        where = f", {threads} workers" if threads else ""
        paths = min(PATHS[scale], PATHS[Scale.PAPER]) if threads else PATHS[scale]
        parameters = {"philosophers": n, "paths": paths, "steps": STEPS, "threads": threads}
        name = f"{n} philosophers{where}, paths"
        found.append(Job(Subject.APMC, name, Kind.PATHS, parameters, n))
    return found
