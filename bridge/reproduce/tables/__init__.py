"""Tables of results: a module a paper, each with a function `tables`."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.tables import apmc, decomposition, gauss_seidel, jacobi
from bridge.reproduce.tables.table import Table


def all_tables(
    subjects: Iterable[Subject], scale: Scale, host: Host, results: Results
) -> list[Table]:
    """Return the tables of some subjects.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large the instances are.
    host
        The machine.
    results
        What was measured.
    """
    wanted = set(subjects)
    found: list[Table] = []
    for module in (jacobi, gauss_seidel, decomposition, apmc):
        found += module.tables(wanted, scale, host, results)
    return [table.compact() for table in found]
