"""What is to be measured: jobs, each with a result of its own in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from bridge.reproduce.families import FAMILIES, Family


class Subject(StrEnum):
    """What can be reproduced, by the words of the command line."""

    HERMAN = "herman"
    CLUSTER = "cluster"
    TANDEM = "tandem"
    GAUSS_SEIDEL = "gauss-seidel"
    SCC = "scc"
    MEC = "mec"
    APMC = "apmc"


class Scale(StrEnum):
    """How large the instances are."""

    SMALL = "small"
    PAPER = "paper"
    MAX = "max"


class Kind(StrEnum):
    """How a job is done: a run of one of the two programs, or a task of the worker."""

    OURS = "prism-gpu"
    PEER = "PRISM"
    COLOURS = "colours"
    SWEEPS = "sweeps"
    PATTERNS = "patterns"
    COMPONENTS = "components"
    PATHS = "paths"
    WORKERS = "workers"


RUNS = (Kind.OURS, Kind.PEER)


@dataclass(frozen=True)
class Job:
    """Something to be measured.

    Parameters
    ----------
    subject
        What it belongs to.
    name
        How the progress, the log and the file names call it.
    kind
        How it is done.
    parameters
        All that the result depends on, besides versions and machine; JSON's types only.
    size
        What a series is ordered by.
    bytes_needed
        About how much memory the larger of host and device must have; 0 for little.
    """

    subject: Subject
    name: str
    kind: Kind
    parameters: Mapping[str, Any] = field(hash=False)
    size: int = 0
    bytes_needed: int = 0

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU does it, whatever devices there are."""
        if self.kind in (Kind.PEER, Kind.WORKERS):
            return True
        return self.parameters.get("on") == "cpu" or bool(self.parameters.get("threads"))

    @property
    def series(self) -> tuple[str, ...]:
        """What the job shares with those that differ in size only."""
        rest = {key: value for key, value in self.parameters.items() if key != "size"}
        return (self.kind, repr(sorted(rest.items())))


@dataclass(frozen=True)
class Solve:
    """A row of a table: a property of a model, solved by both programs.

    Parameters
    ----------
    subject
        What it belongs to.
    family, size, asked
        Which model, how large, and the short name of its property.
    ours, peer
        The switches of the method, for each program.
    tolerance
        The largest relative difference from the known value, or between the programs.
    same_sweeps
        Whether both programs must need as many sweeps, but for one.
    """

    subject: Subject
    family: str
    size: int
    asked: str
    ours: tuple[str, ...]
    peer: tuple[str, ...]
    tolerance: float = 1e-4
    same_sweeps: bool = False

    @property
    def model(self) -> Family:
        """The model's family."""
        return FAMILIES[self.family]

    @property
    def label(self) -> str:
        """How tables name the row."""
        return self.model.label(self.size)

    def variant(self, kind: Kind, switches: Sequence[str], **how: Any) -> Job:
        """Return the job of one of the two programs with other switches.

        Parameters
        ----------
        kind
            Which program.
        switches
            All of the method's switches.
        **how
            What else the result depends on: "on", the device, where that is not the run's own;
            "gpus", how many of them are needed.
        """
        plain = self.job(kind)
        words = " ".join([*switches, *(f"({name} {value})" for name, value in how.items())])
        return replace(
            plain,
            name=f"{self.family} {self.size} {self.asked}, {kind} {words}",
            parameters={**plain.parameters, "switches": list(switches), **how},
        )

    def job(self, kind: Kind) -> Job:
        """Return the job of one of the two programs.

        Parameters
        ----------
        kind
            Which program.
        """
        switches = self.ours if kind is Kind.OURS else self.peer
        counts = self.model.counts(self.size)
        # Words of an entry, and of a state, in the copies that are there at a time.
        needed = 40 * counts[1] + 120 * counts[0] if counts else 0
        return Job(
            self.subject,
            f"{self.family} {self.size} {self.asked}, {kind} {' '.join(switches)}",
            kind,
            {
                "family": self.family,
                "property": self.asked,
                "size": self.size,
                "switches": list(switches),
                "tolerance": self.tolerance,
            },
            self.size,
            needed if kind is Kind.OURS else 0,
        )

    def jobs(self) -> list[Job]:
        """Return the jobs of both programs."""
        return [self.job(kind) for kind in RUNS]
