"""What a worker of a cluster does, and who has which batch."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engines.montecarlo.tally import PathBatch


class PathSampler(Protocol):
    """What samples paths; path i is the same wherever it is sampled."""

    def run(self, first_path: int, num_paths: int) -> PathBatch:
        """Sample consecutive paths."""
        ...


class PathTaker(Protocol):
    """What a run feeds; `engines.montecarlo.methods.SeveralMethods` is one."""

    @property
    def finished(self) -> bool:
        """Whether it has enough paths."""
        ...

    @property
    def needs_order(self) -> bool:
        """Whether it takes single outcomes, and drops those that it has no use for."""
        ...

    @property
    def num_paths(self) -> int:
        """The number of the first path that it has not used."""
        ...

    @property
    def num_questions(self) -> int:
        """How many answers a path has."""
        ...

    @property
    def stops(self) -> Sequence[int]:
        """The paths before which a batch must end, unless `needs_order` is set."""
        ...

    def feed(self, batch: PathBatch) -> None:
        """Take the next paths."""
        ...

    def start_over(self) -> None:
        """Forget all paths."""
        ...


SamplerSpec = Callable[[], PathSampler]
"""Makes a sampler; pickled to the workers, each of which calls it once."""


_samplers: dict[bytes, PathSampler] = {}
"""Of this process, by the digest of the pickled maker."""


def sample_batch(pickled: bytes, first_path: int, num_paths: int) -> tuple[PathBatch, str]:
    """Sample a batch on a worker; with its checksum, so that damage on the way is seen."""
    digest = hashlib.blake2b(pickled, digest_size=16).digest()
    sampler = _samplers.get(digest)
    if sampler is None:
        # One run at a time: what an earlier one compiled is not kept for ever.
        _samplers.clear()
        sampler = _samplers[digest] = pickle.loads(pickled)()
    batch = sampler.run(first_path, num_paths)
    return batch, batch.digest()


@dataclass
class Attempt:
    """One worker at one batch."""

    worker: str
    future: Any
    since: float
    """When the worker could begin: when it was asked, or done with its earlier batch."""


@dataclass
class Work:
    """One batch, and who has it or had it."""

    first_path: int
    num_paths: int
    wanted: int
    """How many workers must agree: 1, or 2 for a batch that is confirmed."""
    attempts: list[Attempt] = field(default_factory=list)
    answers: dict[str, PathBatch] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    settled: bool = False
    """Whether the coordinating process has sampled it itself, so that nobody need confirm it."""

    @property
    def missing(self) -> int:
        """How many more workers must be asked."""
        if self.settled or self.errors:
            return 0
        return max(0, self.wanted - len(self.answers) - len(self.attempts))

    @property
    def done(self) -> bool:
        """Whether it is answered, and confirmed as wanted."""
        return self.settled or len(self.answers) >= self.wanted

    def may_go_to(self, worker: str) -> bool:
        """Tell whether a worker has neither answered it nor been asked."""
        asked = (attempt.worker for attempt in self.attempts)
        return worker not in self.answers and worker not in self.errors and worker not in asked
