"""What `-sim` is given by a GPU is what the CPU gives it, path by path."""

from __future__ import annotations

import numpy as np
import pytest

from engines.model.environment import ALL_DEVICES, DeviceChoice
from prism_hooks.options import HookOptions
from prism_hooks.simulation import Simulation
from prism_hooks.simulation_device import PlaceTuning
from tests.prism_hooks.test_simulation import INSIDE, STEPS, UNTIL_TOP, Sampling, program, sampled

GPU, CPU = (
    HookOptions(device=device, simulation_seed=3) for device in (DeviceChoice.GPU, DeviceChoice.CPU)
)
FORMULA = {"kind": "ltl", "atoms": [["v0", 5, "="]], "formula": ["a0", "X", "a0", "X", "&", "F::9"]}


@pytest.mark.parametrize("path_limit", [10_000, 20])
def test_outcomes_lengths_and_failures_are_the_cpu_s(path_limit):
    asked = [STEPS, UNTIL_TOP, FORMULA]
    texts = [program(INSIDE), program([True])]
    for text in texts:
        on_gpu, on_cpu = (
            sampled(Sampling(text, asked, pathLimit=path_limit), 20_000, options)
            for options in (GPU, CPU)
        )
        assert on_gpu.said[0].endswith("sampled on the GPU")
        assert on_cpu.said[0].endswith("sampled on the CPU")
        assert (on_gpu.numGood, on_gpu.failure) == (on_cpu.numGood, on_cpu.failure)
        assert on_gpu.failedIn == on_cpu.failedIn
        good = slice(on_gpu.numGood)
        assert np.array_equal(on_gpu.lengths[good], on_cpu.lengths[good])
        counts = sampled(Sampling(text, asked, pathLimit=path_limit, counted=True), 20_000, GPU)
        assert counts.answers[1] == on_cpu.answers[1][good].sum()
        for mine, other in zip(on_gpu.answers.values(), on_cpu.answers.values(), strict=True):
            assert np.array_equal(mine[good], other[good])


def test_all_gpus_together_are_the_cpu_too():
    shared = HookOptions(device=DeviceChoice.GPU, simulation_seed=3, num_devices=ALL_DEVICES)
    asked = [STEPS, UNTIL_TOP]
    on_gpus, on_cpu = (
        sampled(Sampling(program(INSIDE), asked), 5_000, options) for options in (shared, CPU)
    )
    assert "GPU" in on_gpus.said[0]
    for mine, other in zip(on_gpus.answers.values(), on_cpu.answers.values(), strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("wanted", [0, 200_000])
def test_a_run_that_moves_to_the_gpu_answers_as_the_cpu_alone(wanted):
    places = PlaceTuning(gpu_opens_s=0.0, measurable_s=0.0)
    asked, options = [STEPS, UNTIL_TOP, FORMULA], HookOptions(simulation_seed=3)
    for text in (program(INSIDE), program([True])):
        moved, on_cpu = (
            sampled(Sampling(text, asked, numWanted=wanted), 200_000, device, places)
            for device in (options, CPU)
        )
        assert moved.remark == "paths from number 128 on were sampled on the GPU"
        assert (moved.numGood, moved.failure) == (on_cpu.numGood, on_cpu.failure)
        assert moved.failedIn == on_cpu.failedIn
        good = slice(moved.numGood)
        assert np.array_equal(moved.lengths[good], on_cpu.lengths[good])
        for mine, other in zip(moved.answers.values(), on_cpu.answers.values(), strict=True):
            assert np.array_equal(mine[good], other[good])


def test_more_gpus_than_there_are_is_an_error():
    backend = Simulation(HookOptions(device=DeviceChoice.GPU, num_devices=99))
    sampling = Sampling(program(INSIDE), [STEPS])
    backend.sample(sampling)
    assert "not 99" in sampling.error
