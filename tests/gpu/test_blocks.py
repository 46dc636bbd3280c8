"""Equations over shared blocks have one solution, wherever they are swept."""

from __future__ import annotations

import numpy as np
import pytest

import prism_gpu as pg
from tests.prism_gpu.test_blocks import drawn


@pytest.mark.parametrize("omega", [1.0, 0.8])
@pytest.mark.parametrize("size", [300, 20_000])
def test_the_gpu_finds_the_cpu_s_solution(size, omega):
    blocks, instances, right, diagonal = drawn(1, size)
    how = {"omega": omega, "epsilon": 1e-13, "stop": "absolute", "colours": 3, "slice_size": 64}
    cpu, gpu = (
        pg.solve_blocks(blocks, instances, right, diagonal, device=device, **how)
        for device in ("cpu", "gpu")
    )
    assert gpu.device == "GPU 0"
    assert (gpu.converged, gpu.iterations) == (True, cpu.iterations)
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-10, atol=1e-13)
