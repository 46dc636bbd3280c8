"""The CPU begins, a GPU takes over what would take the CPU too long, and paths are the same."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.failure import Failure, FailureKind, PathFailure
from engines.montecarlo.questions import Bounds, Until
from engines.montecarlo.results import PathArrays
from engines.montecarlo.sampler import Sampler
from engines.program import native
from engines.program.expressions import TRUE
from prism_hooks import simulation_device
from prism_hooks.simulation_device import (
    CpuPace,
    DeviceSampler,
    PlaceTuning,
    device_for,
)
from tests.engines.montecarlo import programs
from tests.engines.montecarlo.reader import read_model

AUTO, CPU, GPU = DeviceChoice.AUTO, DeviceChoice.CPU, DeviceChoice.GPU
SLOW, FAST = 1e-3, 1e-7
"""Seconds of a path on the CPU."""
QUESTION = Until(TRUE, TRUE)
TUNING = PlaceTuning()


class Machine:
    """A machine, with a GPU or without, whose CPU takes as long as it is told by its own clock."""

    def __init__(self):
        self.gpu = self.compiler = True
        self.nvrtc_error = ""
        self.seconds, self.path_s = 0.0, SLOW
        self.failing, self.opened, self.sampled = set(), [], []
        self.stall_at = None

    def make(self, device):
        if device is CPU and not self.compiler:
            raise UnsupportedError("no C compiler")
        if device is GPU and self.nvrtc_error:
            raise UnsupportedError(self.nvrtc_error)
        on_gpu = device is GPU or (device is AUTO and self.gpu)
        self.opened.append(device)
        return FakeSampler(self, on_gpu)

    def sampler(self, num_paths, device=AUTO, **more):
        return DeviceSampler(self.make, device, 0, num_paths, clock=lambda: self.seconds, **more)

    def paths_on(self, place):
        """Return which paths were sampled there, in order."""
        parts = [range(first, end) for where, first, end in self.sampled if where == place]
        return [path for part in parts for path in part]

    @property
    def num_moved(self):
        return sum(before[0] != after[0] for before, after in pairwise(self.sampled))


class FakeSampler:
    """Samples paths that are as long as their number, on a device that it notes."""

    def __init__(self, machine, on_gpu):
        self.machine, self.on_gpu, self.num_devices = machine, on_gpu, int(on_gpu)
        self.compiled = SimpleNamespace(questions=(QUESTION,))

    def sample(self, first_path, num_paths, progress=None):
        if num_paths < 1:
            raise ValueError("there are no such paths")
        machine, end = self.machine, first_path + num_paths
        machine.sampled.append(("GPU" if self.on_gpu else "CPU", first_path, end))
        machine.seconds += 1e-9 if self.on_gpu else num_paths * machine.path_s
        if machine.stall_at is not None and first_path <= machine.stall_at < end:
            machine.seconds += 2.0
        numbers = np.arange(first_path, end)
        failed = np.isin(numbers, list(machine.failing))
        if progress is not None:
            progress(num_paths)
        return PathArrays(
            first_path,
            (numbers[None] % 2).astype(np.uint8),
            np.empty((0, num_paths)),
            np.where(failed, -1 - numbers, numbers),
        )

    def run(self, first_path, num_paths, progress=None):
        arrays = self.sample(first_path, num_paths, progress)
        if arrays.first_failed is not None:
            raise PathFailure(Failure(FailureKind.SUM, arrays.first_failed, 0, (0,)))
        return arrays.batch((QUESTION,))


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(simulation_device, "driver_present", lambda: machine.gpu)
    refusal = lambda _: None if machine.gpu else "none"  # noqa: E731
    monkeypatch.setattr(simulation_device, "gpu_refusal", refusal)
    cuda = SimpleNamespace(Device=lambda _: nullcontext())
    monkeypatch.setattr(simulation_device, "cupy", lambda: SimpleNamespace(cuda=cuda))
    return machine


@pytest.mark.parametrize(
    ("asked", "num_paths", "alone", "worker"),
    [
        (AUTO, 0, CPU, CPU),
        (AUTO, TUNING.worker_paths - 1, CPU, CPU),
        (AUTO, TUNING.worker_paths, CPU, AUTO),
        (AUTO, TUNING.many_paths - 1, CPU, AUTO),
        (AUTO, TUNING.many_paths, AUTO, AUTO),
        (GPU, 1, GPU, GPU),
        (CPU, 10 * TUNING.many_paths, CPU, CPU),
    ],
)
def test_a_gpu_begins_where_paths_are_many_or_on_demand(machine, asked, num_paths, alone, worker):
    assert device_for(asked, num_paths) is alone
    assert device_for(asked, num_paths, on_cluster=True) is worker
    sampler = machine.sampler(num_paths, asked)
    assert machine.opened == [alone]
    assert sampler.on_gpu == (alone is not CPU)
    if asked is not AUTO or sampler.on_gpu:
        sampler.run(0, 5000)
        assert len(machine.sampled) == 1
        assert machine.opened == [alone]
        assert sampler.remark == ""
        assert sampler.place == ("on the GPU" if sampler.on_gpu else "on the CPU")


def test_a_fast_model_stays_on_the_cpu(machine):
    machine.path_s, number = FAST, 2_000_000
    sampler = machine.sampler(number)
    assert sampler.place.startswith("on the CPU")
    assert sampler.run(0, number).num_paths == number
    assert machine.opened == [CPU]
    assert machine.paths_on("CPU") == list(range(number))
    assert sampler.remark == ""


def test_a_slow_model_moves_once_with_exactly_the_remaining_paths(machine):
    seen, number = [], 50_000
    sampler = machine.sampler(number)
    batch = sampler.run(0, number, seen.append)
    on_cpu, on_gpu = machine.paths_on("CPU"), machine.paths_on("GPU")
    assert machine.opened == [CPU, GPU]
    assert on_cpu + on_gpu == list(range(number))
    assert machine.num_moved == 1
    # Two parts of 64 paths take 64 ms each, and the rest would take 50 s.
    assert len(on_cpu) == 2 * TUNING.first_paths
    assert sampler.remark == f"paths from number {len(on_cpu)} on were sampled on the GPU"
    assert sampler.place == "on the GPU"
    assert sum(seen) == number
    assert (batch.first_path, batch.num_paths) == (0, number)


@pytest.mark.parametrize("longer", [0.9, 1.1])
def test_the_rest_stays_as_long_as_the_cpu_is_done_before_a_gpu_is_open(machine, longer):
    number = 2 * TUNING.first_paths + int(longer * TUNING.gpu_opens_s / SLOW)
    machine.sampler(number).run(0, number)
    assert machine.opened == ([CPU] if longer < 1 else [CPU, GPU])


def test_all_paths_that_are_wanted_count_not_those_of_the_batch(machine):
    sampler = machine.sampler(10_000)
    sampler.run(0, 2 * TUNING.first_paths)
    sampler.run(2 * TUNING.first_paths, 10)
    assert machine.sampled[-1] == ("GPU", 128, 138)
    assert sampler.remark == "paths from number 128 on were sampled on the GPU"


@pytest.mark.parametrize("path_s", [1e-8, 1e-6, 1e-5, 1e-4, 1e-2])
def test_a_gpu_takes_over_soon_and_parts_are_few(machine, path_s):
    machine.path_s, number = path_s, TUNING.many_paths - 1
    pace = CpuPace()
    while not pace.expected_s(1) and pace.num_paths < number:
        part = min(pace.next_part(), number - pace.num_paths)
        assert (
            pace.num_paths <= part <= TUNING.largest_step * pace.num_paths
            or part == TUNING.first_paths
        )
        machine.sampled.append(("CPU", pace.num_paths, pace.num_paths + part))
        pace.note(part, part * path_s)
    assert len(machine.sampled) <= 9
    assert pace.num_paths <= 2 * TUNING.first_paths or pace.seconds <= 0.2
    if path_s > 1e-8:
        assert pace.expected_s(1) == pytest.approx(path_s)


def test_of_an_unknown_number_the_time_that_was_spent_counts_too(machine):
    sampler, first, size = machine.sampler(0), 0, 40
    while not sampler.on_gpu and first < 10_000:
        spent = machine.seconds
        sampler.run(first, size)
        first += size
    assert machine.opened == [CPU, GPU]
    # The batch that moved would have been over sooner than a GPU is open.
    assert size * SLOW < TUNING.gpu_opens_s < spent + size * SLOW + 1e-9
    assert spent <= TUNING.gpu_opens_s
    assert sampler.remark == f"paths from number {first - size} on were sampled on the GPU"
    sampler.run(first, 10**6)
    assert machine.num_moved == 1


def test_one_long_batch_of_an_unknown_number_moves_within(machine):
    sampler = machine.sampler(0)
    sampler.sample(0, 30_000)
    assert machine.paths_on("CPU") + machine.paths_on("GPU") == list(range(30_000))
    assert len(machine.paths_on("CPU")) == 2 * TUNING.first_paths


@pytest.mark.parametrize("known", [True, False])
def test_small_batches_are_measured_together(machine, known):
    machine.path_s, number, size = 1e-5, 10**6, 500
    sampler, first = machine.sampler(known * number), 0
    while not sampler.on_gpu and first < number:
        sampler.sample(first, size)
        first += size
    assert machine.opened == [CPU, GPU]
    # A batch takes 5 ms, and all of them 10 s.
    spent = len(machine.paths_on("CPU")) * machine.path_s
    assert spent < 0.1 if known else 0.39 < spent < 0.41


def test_one_part_that_had_to_wait_moves_nobody(machine):
    machine.path_s, machine.stall_at, number = FAST, 1000, 500_000
    machine.sampler(number).run(0, number)
    assert machine.seconds > 2.0
    assert machine.opened == [CPU]


def test_where_no_gpu_is_nobody_looks_for_one_nor_cuts_batches(machine):
    machine.gpu = False
    sampler = machine.sampler(10**6)
    sampler.run(0, 10**6)
    assert machine.sampled == [("CPU", 0, 10**6)]
    assert (machine.opened, sampler.remark, sampler.place) == ([CPU], "", "on the CPU")


@pytest.mark.parametrize("trouble", ["refusal", "nvrtc"])
def test_a_gpu_that_would_be_sooner_and_cannot_be_used_is_told(machine, monkeypatch, trouble):
    if trouble == "refusal":
        monkeypatch.setattr(simulation_device, "gpu_refusal", lambda _: "CuPy is not installed")
        expected = "GPU not used: CuPy is not installed"
    else:
        machine.nvrtc_error = "NVRTC did not compile the model: line 7\nand more"
        expected = "GPU not used: NVRTC did not compile the model: line 7"
    sampler = machine.sampler(20_000)
    assert sampler.run(0, 20_000).num_paths == 20_000
    assert machine.paths_on("CPU") == list(range(20_000))
    # Who cannot move does the rest in one part.
    assert len(machine.sampled) == 3
    assert (sampler.remark, sampler.place) == (expected, "on the CPU")


def test_without_a_compiler_a_gpu_samples_few_paths_too(machine):
    machine.compiler = False
    sampler = machine.sampler(10)
    sampler.run(0, 10)
    assert machine.sampled == [("GPU", 0, 10)]
    assert sampler.remark == ""
    machine.gpu = False
    with pytest.raises(UnsupportedError, match="no C compiler"):
        machine.sampler(10)


def test_with_a_cluster_this_process_stays_where_it_begins(machine):
    sampler = machine.sampler(TUNING.worker_paths - 1, on_cluster=True)
    for first in range(0, 4096, 64):
        sampler.sample(first, 64)
    assert machine.opened == [CPU]
    assert machine.sampler(TUNING.worker_paths, on_cluster=True).on_gpu


@pytest.mark.parametrize("failing", [{70, 5000}, {5000, 6000}], ids=["on the CPU", "on the GPU"])
def test_the_first_path_that_fails_is_told_wherever_it_was_sampled(machine, failing):
    machine.failing = failing
    sampler = machine.sampler(10_000)
    with pytest.raises(PathFailure) as caught:
        sampler.run(0, 10_000)
    first = min(failing)
    assert caught.value.failure.path == first
    opened = [CPU] if first == 70 else [CPU, GPU]
    assert machine.opened == opened
    # Nobody opens a GPU to count the paths before it, or to explain it.
    assert sampler.run(0, first).num_paths == first
    with pytest.raises(PathFailure):
        sampler.run(first, 1)
    assert machine.opened == opened
    assert np.flatnonzero(sampler.sample(0, 10_000).lengths < 0).tolist() == sorted(failing)


def test_a_path_that_fails_only_once_is_no_result(machine):
    sampler = machine.sampler(100)
    machine.failing = {5}
    with pytest.raises(RuntimeError, match="path 5 failed only once"):
        sampler.run(0, 100, lambda _number: machine.failing.clear() or _number)


@pytest.mark.parametrize("number", [0, -3])
def test_paths_that_there_are_not_are_refused(machine, number):
    with pytest.raises(ValueError, match="no such paths"):
        machine.sampler(10).run(0, number)


class OnGpu(Sampler):
    """The CPU's sampler, taken for a GPU's."""

    on_gpu = True
    num_devices = 1


@pytest.fixture
def real(machine):
    """Return a function that makes samplers of a program that move at once."""
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))

    def samplers(program, questions):
        def make(device):
            machine.opened.append(device)
            kind = OnGpu if device is GPU else Sampler
            return kind(program, questions, 11, CPU, threads=2)

        ticks = iter(range(10**6))
        moving = DeviceSampler(make, AUTO, 0, 10**6, clock=lambda: float(next(ticks)))
        return moving, Sampler(program, questions, 11, CPU, threads=2)

    return samplers


def test_answers_of_a_batch_that_moved_are_those_of_one_part(machine, real):
    _, program, questions = next(case for case in programs.cases() if case[0] == "die")
    moving, alone = real(program, questions)
    batch = moving.run(3, 5000)
    assert moving.on_gpu
    assert machine.opened == [CPU, GPU]
    first = 3 + 2 * TUNING.first_paths
    assert moving.remark == f"paths from number {first} on were sampled on the GPU"
    assert batch.digest() == alone.run(3, 5000).digest()
    arrays, other = real(program, questions)[0].sample(3, 5000), alone.sample(3, 5000)
    for name in ("booleans", "rewards", "lengths"):
        assert getattr(arrays, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("chance", [0.3, 0.12], ids=["in a first part", "in the rest"])
def test_the_failure_of_a_batch_that_moved_is_that_of_one_part(real, chance):
    program, e = read_model(
        f"dtmc\nmodule m\n x : [0..3];\n"
        f" [] true -> {1 - chance}:(x'=0) + {chance}:(x'=x+1);\nendmodule"
    )
    moving, alone = real(program, [Until(TRUE, e("x=4"), Bounds(0, 20))])
    failures = []
    for sampler in (moving, alone):
        with pytest.raises(PathFailure) as caught:
            sampler.run(0, 5000)
        failures.append(caught.value.failure)
    assert failures[0] == failures[1]
    assert moving.on_gpu == (failures[0].path >= 2 * TUNING.first_paths) == (chance < 0.2)
    first = failures[0].path
    assert moving.run(0, first).digest() == alone.run(0, first).digest()
