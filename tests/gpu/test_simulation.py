"""What `-sim` is given by a GPU is what the CPU gives it, path by path."""

from __future__ import annotations

import numpy as np
import pytest

from engines.environment import DeviceChoice
from prism_hooks.options import HookOptions
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
        for mine, other in zip(on_gpu.answers.values(), on_cpu.answers.values(), strict=True):
            assert np.array_equal(mine[good], other[good])
