"""How a run on a cluster deals with its workers, and what it reports of them."""

from __future__ import annotations

from dataclasses import dataclass, field


class ClusterError(RuntimeError):
    """The workers cannot finish the run; the message says why and what to do."""


@dataclass(frozen=True)
class ClusterOptions:
    """How a run deals with its workers.

    Parameters
    ----------
    batch_paths
        Paths in a batch.
    confirmed_share
        Which share of the batches is sampled by a second worker, between 0 and 1; the first batch
        of each worker is in any case.
    deadline_s
        Seconds after which a worker hangs that has not answered a batch that it could sample; None
        for 20 times what a batch takes, at least 20 s, and 200 s for a worker's first.
    patience_s
        Seconds without any worker after which the run is given up.
    """

    batch_paths: int = 65_536
    confirmed_share: float = 0.05
    deadline_s: float | None = None
    patience_s: float = 60.0


@dataclass
class ClusterReport:
    """What happened during a run.

    Parameters
    ----------
    batches
        Batches whose paths the result rests on.
    sampled
        Answers that arrived, the repeated and the useless ones included.
    repeated
        Batches given to another worker since theirs was slow, dead or cut off.
    lost
        Workers that died.
    cut_off
        Workers that were cut off, with the reason.
    workers
        Workers that there are just now, without those.
    """

    batches: int = 0
    sampled: int = 0
    repeated: int = 0
    lost: int = 0
    cut_off: dict[str, str] = field(default_factory=dict)
    workers: int = 0

    @property
    def trouble(self) -> str:
        """What went wrong with workers, in words; empty if nothing did."""
        parts = [f"{self.lost} died"] if self.lost else []
        parts += [f"{worker} was cut off: {why}" for worker, why in self.cut_off.items()]
        return "; ".join(parts)
