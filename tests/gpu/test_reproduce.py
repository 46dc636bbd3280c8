"""What `prism-gpu reproduce` measures on a GPU: compared with the CPU before it is timed."""

from __future__ import annotations

import pytest

from bridge.reproduce.forward_backward import VARIANTS
from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.tasks import colours, components, paths, sweeps
from tests.bridge.reproduce.test_tasks import tandem


@pytest.fixture(autouse=True)
def _small_models(monkeypatch):
    for task in (colours, sweeps):
        monkeypatch.setattr(task, "built", lambda *asked: tandem(asked[1]))


@pytest.mark.parametrize("family", list(GENERATED))
def test_components_are_those_of_construction_and_cpu(family):
    found = components.measure({"family": family, "scale": 0.001, "device": "gpu"}, lambda _: None)
    everyone = ["construction", "gpu", "cpu", "tarjan"]
    assert found["checked"] == {"scc": [*everyone, *VARIANTS], "mec": everyone}
    assert "wrong" not in found
    for what in ("scc", "mec"):
        assert found[f"gpu_{what}_seconds"] > 0
        # At the least the labels and the edges.
        assert found[f"gpu_{what}_bytes"] > 4 * found["states"]


def test_colours_need_the_sweeps_of_the_cpu():
    asked = {"family": "tandem", "size": 15, "front_end": "none", "colours": [2, 3, 5]}
    asked["slice_size"] = 8
    gpu, cpu = (
        colours.measure({**asked, "device": device}, lambda _: None) for device in ("gpu", "cpu")
    )
    assert "wrong" not in gpu
    for ours, theirs in zip(gpu["points"], cpu["points"], strict=True):
        assert abs(ours["sweeps"] - theirs["sweeps"]) <= 1


def test_the_time_of_a_sweep_is_there_in_both_precisions():
    asked = {"family": "tandem", "size": 63, "front_end": "none", "device": "gpu"}
    found = sweeps.measure(asked, lambda _: None)
    assert 0 < found["double"] < 1e4
    assert 0 < found["single"] < 1e4


def test_paths_of_the_gpu_are_the_interpreters():
    asked = {
        "philosophers": 5, "paths": 2000, "steps": 50, "device": "gpu", "threads": 0,
        "synchronisation": "lazy",
    }  # fmt: skip
    on_gpu = paths.measure(asked, lambda _: None)
    on_cpu = paths.measure({**asked, "threads": 1}, lambda _: None)
    assert (on_gpu["on"], on_cpu["on"]) == ("gpu", "cpu")
    assert on_gpu["estimate"] == on_cpu["estimate"]
