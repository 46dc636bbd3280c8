"""Components of the models whose counts are known from other tools, built by PRISM as diagrams."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bridge
from engines.cuda.driver import gpu_refusal
from engines.devices.graph import operations_of
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ModelKind
from tests.endtoend.references import SHARED, model_path

pytestmark = pytest.mark.prism

FILE = SHARED / "reference" / "mec.json"
QUICK = 30_000
"""Transitions up to which a model is always tried."""


def reference_models():
    """The entries of the file, the large ones marked slow."""
    if not FILE.is_file():
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=f"needs {FILE}"))]
    cases = []
    for entry in json.loads(FILE.read_text(encoding="utf-8"))["models"]:
        name = entry["model"].rsplit("/", 1)[1].partition(".")[0]
        folder = entry["model"].split("/")[-2]
        marks = pytest.mark.slow if entry["transitions"] > QUICK else ()
        text = f"{folder}-{name}-{entry['constants']}".rstrip("-")
        cases.append(pytest.param(entry, id=text, marks=marks))
    return cases


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def environment(request):
    if request.param == "gpu" and (refusal := gpu_refusal()) is not None:
        pytest.skip(f"no GPU: {refusal}")
    return SolverEnvironment(device=DeviceChoice(request.param))


def constants_of(text):
    return dict(item.split("=") for item in text.split(",") if item)


@pytest.mark.parametrize("entry", reference_models())
def test_the_counts_are_those_of_the_other_tools(prism_install, prism_examples, entry, environment):
    path = model_path(prism_examples, entry["model"])
    root = str(prism_install.root)
    with bridge.open(
        path, constants_of(entry["constants"]), device="cpu", prism_dir=root, symbolic=True
    ) as session:
        model = session.model
    assert model.num_states == entry["states"]
    graph = operations_of(model, environment)
    labels, count = graph.strong_components(np.ones(model.num_states, dtype=np.bool_))
    assert count == entry["sccs"]
    sizes = np.bincount(labels)
    assert (sizes.max(), int((sizes > 1).sum())) == (entry["largest_scc"], entry["sccs_size_gt1"])
    left = graph.components_left(labels, count)
    assert int((~left).sum()) == entry["bsccs"]
    assert int(sizes[~left].sum()) == entry["states_in_bsccs"]
    if model.kind is not ModelKind.MDP:
        return
    everything = np.ones(model.matrix.num_rows, dtype=np.bool_)
    _, count, kept = graph.end_components(np.ones(model.num_states, dtype=np.bool_), everything)
    assert count == entry["mecs"]
    # Diagrams keep one of several choices that are the same.
    if model.matrix.num_rows == entry["choices"]:
        assert int(kept.sum()) == entry["choices_in_mecs"]
