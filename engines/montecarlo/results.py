"""Arrays of what paths answered, before they become a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engines.montecarlo.questions import Question, RewardQuestion
from engines.montecarlo.tally import (
    BooleanOutcomes,
    Outcomes,
    PathBatch,
    PathLengths,
    RewardOutcomes,
)


@dataclass(frozen=True)
class PathArrays:
    """Answers and lengths of consecutive paths.

    Parameters
    ----------
    first_path
        The number of the first.
    booleans
        0, 1 or 2 (undecided) for each Boolean question and path.
    rewards
        The reward, or not-a-number where undecided, for each other question and path.
    lengths
        In steps; −1 − steps of a path that met an error.
    """

    first_path: int
    booleans: NDArray[np.uint8]
    rewards: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @classmethod
    def empty(cls, first_path: int, num_paths: int, questions: Sequence[Question]) -> PathArrays:
        """Return arrays to be filled, of shapes (questions, paths) and (paths,)."""
        num_rewards = sum(isinstance(question, RewardQuestion) for question in questions)
        num_booleans = len(questions) - num_rewards
        return cls(
            first_path,
            np.empty((num_booleans, num_paths), dtype=np.uint8),
            np.empty((num_rewards, num_paths), dtype=np.float64),
            np.empty(num_paths, dtype=np.int64),
        )

    @property
    def num_paths(self) -> int:
        """How many paths there are."""
        return int(self.lengths.size)

    @property
    def first_failed(self) -> int | None:
        """The number of the first path that met an error."""
        failed = np.flatnonzero(self.lengths < 0)
        return self.first_path + int(failed[0]) if failed.size else None

    def batch(self, questions: Sequence[Question]) -> PathBatch:
        """Return the batch of paths without errors; the sums in it are exact."""
        outcomes: list[Outcomes] = []
        booleans, rewards = iter(self.booleans), iter(self.rewards)
        for question in questions:
            if isinstance(question, RewardQuestion):
                outcomes.append(RewardOutcomes.of(next(rewards)))
            else:
                outcomes.append(BooleanOutcomes.of(next(booleans)))
        lengths = self.lengths
        kept = PathLengths(int(lengths.sum()), int(lengths.min()), int(lengths.max()))
        return PathBatch(self.first_path, self.num_paths, tuple(outcomes), kept)


def joined(parts: Sequence[PathArrays]) -> PathArrays:
    """Return the answers of consecutive paths that were sampled in parts, digit for digit.

    Parameters
    ----------
    parts
        In path order, at least one; one alone is returned as it is.

    Raises
    ------
    ValueError
        If a part does not begin where the one before ends.
    """
    for part, after in pairwise(parts):
        end = part.first_path + part.num_paths
        if after.first_path != end:
            raise ValueError(f"paths from {end} on are missing: {after.first_path} comes next")
    if len(parts) == 1:
        return parts[0]
    return PathArrays(
        parts[0].first_path,
        np.concatenate([part.booleans for part in parts], axis=1),
        np.concatenate([part.rewards for part in parts], axis=1),
        np.concatenate([part.lengths for part in parts]),
    )
