"""Samplers for the tests of clusters: each path's answer is a hash of the seed and its number."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engines.montecarlo.tally import BooleanOutcomes, PathBatch, PathLengths, RewardOutcomes


def hashed(seed, paths):
    """SplitMix64 of the path numbers: uniform numbers in [0, 1), one a path."""
    with np.errstate(over="ignore"):
        x = paths.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


class HashSampler:
    """A Boolean question of a given probability, and an exponential reward."""

    def __init__(self, seed, probability, ordered, seconds):
        self.seed, self.probability, self.ordered = seed, probability, ordered
        self.seconds = seconds

    def run(self, first_path, num_paths):
        time.sleep(self.seconds)
        uniform = hashed(self.seed, np.arange(first_path, first_path + num_paths))
        answers = BooleanOutcomes.of(uniform < self.probability)
        rewards = RewardOutcomes.of(-np.log1p(-uniform))
        if not self.ordered:
            answers = BooleanOutcomes(num_paths, answers.num_true)
            rewards = RewardOutcomes(rewards.moments)
        steps = (uniform * 10).astype(np.int64)
        lengths = PathLengths(int(steps.sum()), int(steps.min()), int(steps.max()))
        return PathBatch(first_path, num_paths, (answers, rewards), lengths)


@dataclass(frozen=True)
class Spec:
    """Makes the sampler above, in which one process behaves badly.

    Parameters
    ----------
    folder
        Each process that samples leaves a file named by its number here, the first one first.
    mischief
        What the process does that finds the folder empty.
    """

    folder: str
    seed: int = 1
    probability: float = 0.3
    ordered: bool = False
    seconds: float = 0.01
    mischief: str = ""
    coordinator: int = field(default_factory=os.getpid)

    def __call__(self):
        good = HashSampler(self.seed, self.probability, self.ordered, self.seconds)
        if os.getpid() == self.coordinator:
            return good
        folder = Path(self.folder)
        (folder / str(os.getpid())).touch()
        try:
            (folder / "first").touch(exist_ok=False)
        except FileExistsError:
            return good
        return BadSampler(good, self.mischief) if self.mischief else good


class BadSampler:
    def __init__(self, good, mischief):
        self.good, self.mischief, self.calls = good, mischief, 0

    def run(self, first_path, num_paths):
        self.calls += 1
        batch = self.good.run(first_path, num_paths)
        answers, rewards = batch.outcomes
        more = BooleanOutcomes(num_paths, min(num_paths, answers.num_true + 7))
        match self.mischief:
            case "lies":
                return PathBatch(first_path, num_paths, (more, rewards), batch.lengths)
            case "lies later" if self.calls > 3:
                return PathBatch(first_path, num_paths, (more, rewards), batch.lengths)
            case "contradicts itself":
                wrong = BooleanOutcomes(num_paths, num_paths + 1)
                return PathBatch(first_path, num_paths, (wrong, rewards), batch.lengths)
            case "other paths":
                return self.good.run(first_path + 1, num_paths)
            case "raises":
                raise ValueError("something that other processes do not raise")
            case "hangs":
                time.sleep(3600)
            case "is slow":
                time.sleep(3)
            case "dies" if self.calls > 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return batch
