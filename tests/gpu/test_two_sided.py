"""Two-sided sweeps on the GPU: the bounds of the CPU, and its iterations, on large models."""

from __future__ import annotations

import numpy as np
import pytest

from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import RewardStructure
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.until import until_probabilities
from tests.engines import models
from tests.gpu import big

pytestmark = pytest.mark.gpu

SIZE = 200_000


def both(solve, method):
    devices = (DeviceChoice.CPU, DeviceChoice.GPU)
    return [solve(Environment(method=method, device=device, bounds=True)) for device in devices]


def check_same(cpu, gpu, method):
    """The bounds are the same, after as many sweeps; of guesses, those that hold."""
    if method is Method.OPTIMISTIC:
        # When a guess is looked at depends on the seconds that a batch of sweeps takes.
        (cpu_lower, cpu_upper), (gpu_lower, gpu_upper) = cpu.bounds, gpu.bounds
        assert (cpu_lower <= gpu_upper * (1 + 1e-12)).all()
        assert (gpu_lower <= cpu_upper * (1 + 1e-12)).all()
        assert cpu.status is gpu.status
        return
    assert gpu.iterations == cpu.iterations
    for a, b in zip(cpu.bounds, gpu.bounds, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("method", [Method.INTERVAL, Method.POWER, Method.OPTIMISTIC])
@pytest.mark.parametrize("per_row", [6, 60])
def test_chains(method, per_row):
    model = big.random_dtmc(1, SIZE // per_row * 6, per_row)
    size = model.num_states
    target = models.mask(size, [0])
    cpu, gpu = both(lambda e: until_probabilities(model, np.ones(size, bool), target, e), method)
    assert gpu.cost.engine.startswith("GPU")
    check_same(cpu, gpu, method)
    rewards = RewardStructure("", np.linspace(0.0, 1.0, size))
    target = models.mask(size, [0, 1])
    cpu, gpu = both(lambda e: reachability_rewards(model, rewards, target, e), method)
    check_same(cpu, gpu, method)


@pytest.mark.parametrize("method", [Method.INTERVAL, Method.OPTIMISTIC])
@pytest.mark.parametrize("direction", [models.MIN, models.MAX])
def test_mdps(method, direction):
    model = big.random_mdp(2, SIZE)
    target = models.mask(SIZE, [0])

    def solve(environment):
        everywhere = np.ones(SIZE, bool)
        return until_probabilities(model, everywhere, target, environment, direction=direction)

    cpu, gpu = both(solve, method)
    assert gpu.cost.engine.startswith("GPU")
    check_same(cpu, gpu, method)
