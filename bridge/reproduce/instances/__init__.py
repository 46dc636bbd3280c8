"""What is measured for each subject and scale: a module a paper, with a function `jobs`."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.reproduce.host import Host
from bridge.reproduce.instances import apmc, decomposition, gauss_seidel, jacobi
from bridge.reproduce.jobs import Job, Kind, Scale, Subject

_LAST = (Kind.PEER,)


def plan(subjects: Iterable[Subject], scale: Scale, host: Host) -> list[Job]:
    """Return the jobs of some subjects, each once, in the order in which they are done.

    PRISM's runs are the longest and come last: whoever stops a run has all of ours.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large the instances are.
    host
        The machine.
    """
    wanted = set(subjects)
    found: list[Job] = []
    for module in (jacobi, gauss_seidel, decomposition, apmc):
        found += module.jobs(wanted, scale, host)
    unique = {(job.kind, repr(job.parameters)): job for job in reversed(found)}
    jobs = sorted(unique.values(), key=found.index)
    return sorted(jobs, key=lambda job: job.kind in _LAST)
