"""Solves that begin on the CPU and go over to a real GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.devices import choice
from engines.methods import stretches
from engines.model.environment import DeviceChoice, Method
from engines.model.explicit import ModelKind
from engines.model.result import Status
from tests.engines.late_gpu_cases import (
    AUTOMATIC,
    begun_on_cpu,
    birth_and_death,
    entries_of_ruin,
    nothing_is_open,
    ruin,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("size", [2_100, 3_000])
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.MDP])
def test_a_long_solve_goes_over_and_is_as_right(monkeypatch, kind, size):
    nothing_is_open(monkeypatch, 64, entries_of_ruin(size))
    result, exact = ruin(AUTOMATIC, size, kind)
    assert result.status is Status.CONVERGED
    assert begun_on_cpu(result) == 64
    assert ", then on GPU 0, " in result.note
    assert result.values == pytest.approx(exact, rel=1e-6)


def test_a_named_method_makes_as_many_sweeps_in_two_places(monkeypatch):
    environment = replace(AUTOMATIC, method=Method.JACOBI, epsilon=1e-9, max_iterations=100_000)
    nothing_is_open(monkeypatch, 500, entries_of_ruin())
    result, _ = ruin(environment)
    alone, _ = ruin(replace(environment, device=DeviceChoice.CPU))
    assert result.cost.engine == "CPU and GPU 0"
    assert result.iterations == alone.iterations
    np.testing.assert_allclose(result.values, alone.values, rtol=1e-12)


def test_a_long_run_goes_over(monkeypatch):
    monkeypatch.setattr(stretches, "AFTER", ())
    nothing_is_open(monkeypatch, 64, 398 + 200 * choice.ROW_IN_ORDER)
    result, exact = birth_and_death(replace(AUTOMATIC, epsilon=1e-10))
    assert ", then on GPU 0, " in result.note
    assert result.values == pytest.approx(exact, rel=1e-8)
