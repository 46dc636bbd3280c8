"""The backend that Java calls: what it reads from PRISM, and how often."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from prism_hooks.backend import MODELS_KEPT, EngineBackend
from prism_hooks.options import HookOptions

# Two states, rates 3 and 1 between them: in the long run a quarter of the time in state 0.
RING = SimpleNamespace(
    kind="CTMC",
    numStates=2,
    groupOffsets=None,
    rowOffsets=[0, 1, 2],
    columns=[1, 0],
    values=[3.0, 1.0],
)


def ask(reads: list[int], task: str, states: int, *, embedded: bool, model: int = 1, **more):
    """Return a `prismgpu.Problem`; reading its model is noted."""

    def read() -> SimpleNamespace:
        reads.append(model)
        return RING

    return SimpleNamespace(
        task=task, modelId=model, numStates=2, embedded=embedded, states=[states],
        model=read, start=[0.0, 1.0], startSets=None, rewards=None, held=None, direction=None,
        remain=None, lower=0.0, upper=0.0, method="Jacobi",
        omega=0.9, epsilon=1e-9, absolute=False,
        maxIterations=10_000, errorOnNonConvergence=True, say=lambda _: None, error=None,
        warn=lambda _: None, refusal=None, solution=None, iterations=0, errorBound=0.0,
        errorAbsolute=False, guaranteed=False, intervals=None, topological=False,
        detectsSteadyState=False,
        wantsStrategy=False, strategy=None, found=None, parts=None,
        told=False, bound=float("nan"), relation=None, **more,
    )  # fmt: skip


def solved(backend: EngineBackend, problem: SimpleNamespace) -> np.ndarray:
    backend.solve(problem)
    assert problem.error is None, problem.error
    assert problem.refusal is None
    return problem.solution


def test_until_and_then_the_steady_state_of_a_ctmc_read_it_once():
    reads: list[int] = []
    backend = EngineBackend(HookOptions())
    until = solved(backend, ask(reads, "reachability", 0b01, embedded=True))
    steady = solved(backend, ask(reads, "steady state", 0b11, embedded=False))
    assert until == pytest.approx([1.0, 1.0])
    assert steady == pytest.approx([0.25, 0.75], rel=1e-8)
    assert reads == [1]


def test_the_models_used_last_are_kept():
    reads: list[int] = []
    backend = EngineBackend(HookOptions())
    order = [*range(MODELS_KEPT + 1), MODELS_KEPT, 0]
    for model in order:
        solved(backend, ask(reads, "reachability", 0b01, embedded=True, model=model))
    assert reads == [*range(MODELS_KEPT + 1), 0]


@pytest.mark.parametrize(
    ("options", "missing", "answer"),
    [
        (HookOptions(), None, "refusal"),
        (HookOptions(device=DeviceChoice.GPU), None, "refusal"),
        (HookOptions(device=DeviceChoice.GPU), "no driver", "error"),
    ],
)
def test_only_a_missing_gpu_is_an_error_where_one_was_asked_for(
    monkeypatch, options, missing, answer
):
    def refuse(*_: object) -> None:
        raise UnsupportedError("not among our methods")

    monkeypatch.setattr("prism_hooks.backend.gpu_refusal", lambda _number: missing)
    monkeypatch.setattr(EngineBackend, "_solve", refuse)
    problem = ask([], "reachability", 0b01, embedded=False)
    EngineBackend(options).solve(problem)
    assert "not among our methods" in getattr(problem, answer)
    assert {"error": problem.refusal, "refusal": problem.error}[answer] is None
