"""GPU-PRISM, 2011: tables 1 to 5 and Figures 1 and 2. Jacobi on herman, cluster and tandem."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job, Kind, Scale, Solve, Subject
from bridge.reproduce.published import gpu_prism_2011

SUBJECTS = (Subject.HERMAN, Subject.CLUSTER, Subject.TANDEM)
PROPERTIES = {"herman": "three tokens", "cluster": "premium", "tandem": "customers"}
SMALL = {"herman": (9, 11, 13), "cluster": (26, 50, 68), "tandem": (31, 63, 127)}
"""Jacobi swings for ever on clusters of other small sizes."""

LARGER: dict[str, Callable[[int], int]] = {
    "herman": lambda size: size + 2,
    # The paper's sizes, too, leave a remainder of 2: else Jacobi may swing for ever.
    "cluster": lambda size: 6 * round(size * 1.25 / 6) + 2,
    "tandem": lambda size: round(size * 1.25),
}
SWEEP_SIZES = {
    Scale.SMALL: (31, 63, 127, 255),
    Scale.PAPER: (31, 63, 127, 255, 511, 1023, 2047, 3070),
    Scale.MAX: (31, 63, 127, 255, 511, 1023, 2047, 3070, 4095),
}
"""Capacities of tandem for Figure 2."""

OURS = ("-jacobi",)
"""No engine is named: PRISM's diagrams take longer to build the models than the solves take."""

PEER = ("-sparse", "-jacobi")


def solves(subject: Subject, scale: Scale, host: Host) -> list[Solve]:
    """Return the rows of a subject.

    Parameters
    ----------
    subject
        One of `SUBJECTS`.
    scale
        How large.
    host
        The machine: at `Scale.MAX`, rows are added as long as it holds them.
    """
    family = str(subject)
    if scale is Scale.SMALL:
        sizes = list(SMALL[family])
    else:
        rows = gpu_prism_2011().rows
        sizes = [int(row["size"]) for row in rows if row["family"] == family]
    if scale is Scale.MAX:
        sizes += list(_larger(family, sizes[-1], host))
    return [_solve(subject, size) for size in sizes]


def _solve(subject: Subject, size: int) -> Solve:
    family = str(subject)
    return Solve(subject, family, size, PROPERTIES[family], OURS, PEER, same_sweeps=True)


def other_jobs(row: Solve, scale: Scale, host: Host) -> dict[str, Job]:
    """Return what a row is measured by besides: other kernels of ours, other engines of PRISM's.

    Parameters
    ----------
    row
        The row.
    scale
        PRISM's other engines are asked at the papers' scale and beyond.
    host
        The machine; ours are a GPU's.
    """
    found = {}
    if host.device == "gpu":
        two = (*row.ours, "-gpudevices", "2")
        found["two"] = row.variant(Kind.OURS, two, gpus=2)
        found["scan"] = row.variant(Kind.OURS, (*row.ours, "-gpuformat", "segments"))
    if scale is not Scale.SMALL:
        found["hybrid"] = row.variant(Kind.PEER, ("-hybrid", "-jacobi"))
        found["mtbdd"] = row.variant(Kind.PEER, ("-mtbdd", "-jacobi"))
    return found


MEMORY = "1g"
MEMORY_BYTES = 1 << 30
PRECISIONS = ("double", "single")


def largest_in_memory() -> int:
    """Return the largest tandem queue whose solve takes no more of a GPU than `MEMORY_BYTES`.

    By the accounts of `engines.cuda.sweeper.device_bytes`. Sweeps in single precision are made
    beside those in double precision, which check them: they gain time, and nothing in size.
    """
    size = 1
    while _solve_bytes(size + 1) <= MEMORY_BYTES:
        size += 1
    return size


def _solve_bytes(size: int) -> int:
    states, transitions = FAMILIES["tandem"].counts(size) or (0, 0)
    # A balance equation's matrix is turned round on the device: it is there twice.
    a_sweep = 12 * transitions + 4 * (states + 1) + 16 * states
    return 2 * a_sweep + 24 * states + 16 * 4096


def memory_jobs(scale: Scale, host: Host) -> dict[tuple[str, int], Job]:
    """Return solves of the largest tandem queue that fits into 1 GiB, and of a larger one.

    Parameters
    ----------
    scale
        None are made at `Scale.SMALL`.
    host
        The machine; there are none without a GPU.

    Returns
    -------
    By precision and size.
    """
    if host.device != "gpu" or scale is Scale.SMALL:
        return {}
    fits = largest_in_memory()
    found = {}
    for precision in PRECISIONS:
        for size in (fits, fits * 51 // 50):
            row = _solve(Subject.TANDEM, size)
            words = (*row.ours, "-gpumaxmem", MEMORY, "-gpuprecision", precision)
            found[precision, size] = row.variant(Kind.OURS, words)
    return found


def _larger(family: str, size: int, host: Host) -> Iterator[int]:
    while True:
        size = LARGER[family](size)
        if _solve(Subject(family), size).job(Kind.OURS).bytes_needed > host.room:
            return
        yield size


def sweep_jobs(scale: Scale) -> list[Job]:
    """Return the points of Figure 2.

    Parameters
    ----------
    scale
        How large.
    """
    jobs = []
    for size in SWEEP_SIZES[scale]:
        row = _solve(Subject.TANDEM, size)
        parameters = {"family": "tandem", "size": size}
        needed = row.job(Kind.OURS).bytes_needed
        name = f"tandem {size}, time of a sweep"
        jobs.append(Job(Subject.TANDEM, name, Kind.SWEEPS, parameters, size, needed))
    return jobs


def jobs(subjects: set[Subject], scale: Scale, host: Host) -> list[Job]:
    """Return all that is measured for these tables.

    Parameters
    ----------
    subjects
        What is wanted; others than `SUBJECTS` are passed over.
    scale
        How large.
    host
        The machine.
    """
    found: list[Job] = []
    for subject in SUBJECTS:
        if subject in subjects:
            for row in solves(subject, scale, host):
                found += [*row.jobs(), *other_jobs(row, scale, host).values()]
    if Subject.TANDEM in subjects:
        found += [*sweep_jobs(scale), *memory_jobs(scale, host).values()]
    return found
