"""Components of PRISM's own models, of every type and as views: PRISM's sets, from our engines."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

import bridge
from engines.model.environment import DeviceChoice
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions
from prism_hooks.sets import words_of
from tests.engines.published import FOLDER

pytestmark = pytest.mark.prism

ON_GPU = "-gpu" in os.environ.get("PRISM_GPU_TEST_SWITCHES", "").split()
DEVICE = DeviceChoice.GPU if ON_GPU else DeviceChoice.CPU
VERIFY = "prism-tests/functionality/verify"
MODELS = {
    "dtmc": ("prism-examples/simple/dice/dice.pm", {}),
    "ctmc": ("prism-examples/ctmcs/tandem/tandem.sm", {"c": 3}),
    "bsccs": (f"{VERIFY}/multiple_bsccs_ss.sm", {}),
    "mdp": ("prism-examples/mdps/consensus/coin2.nm", {"K": 2}),
    "zeroconf": (
        "prism-examples/mdps/zeroconf/zeroconf.nm",
        {"N": 20, "K": 2, "reset": True, "err": 0.1},
    ),
    "idtmc": (f"{VERIFY}/idtmcs/brp_int.prism", {"N": 16, "MAX": 2, "err": 0.01}),
    "imdp": (f"{VERIFY}/imdps/robot-ltl.prism", {"e": 0.01, "unc": 0.01, "p": 0.1}),
    "pomdp": ("prism-examples/pomdps/simple/maze.prism", {}),
    "lts": (f"{VERIFY}/ltss/lec9ctl1.prism", {}),
}


def java(name):
    """Return a class of the running JVM."""
    import jpype

    return jpype.JClass(name)


@pytest.fixture
def built(prism_install):
    """Return a function that builds a model and gives the Java object."""
    from bridge import jvm

    sessions = []

    def build(file, constants):
        # PRISM's benchmarks are a repository of their own, beside PRISM's.
        near = prism_install.root.parent
        path = next((p for folder in (near, near.parent) if (p := folder / file).is_file()), None)
        if path is None:
            pytest.skip(f"needs PRISM's repositories: there is no {file} near {near}")
        session = bridge.open(path, constants, device="cpu", prism_dir=str(prism_install.root))
        sessions.append(session)
        # Graphs of any size are for the engines.
        jvm.install_engines(HookOptions(device=DEVICE, smallest_graph=0))
        return session._opened.prism.getBuiltModelExplicit()

    yield build
    for session in sessions:
        session.close()


def sets(bit_sets):
    """BitSets as sets of numbers, in their order."""
    return [frozenset(map(int, re.findall(r"\d+", str(one)))) for one in bit_sets]


def bit_set(mask):
    import jpype

    return java("java.util.BitSet").valueOf(jpype.JArray(jpype.JLong)(words_of(mask)))


def strong(name, model, *, trivial=False, within=None):
    """SCCs and BSCCs as PRISM's consumer stores them."""
    store = java("explicit.SCCConsumerStore")()
    computer = java(name)(java("prism.PrismComponent")(), model, store)
    computer.computeSCCs(not trivial, None if within is None else within.get)
    return sets(store.getSCCs()), sets(store.getBSCCs())


def ends(name, model, *, within=None, accept=None):
    computer = java(name)(java("prism.PrismComponent")(), model)
    computer.computeMECStates(within, accept)
    return sets(computer.getMECStates())


def some(model, seed, share):
    return np.random.default_rng(seed).random(int(model.getNumStates())) < share


def assert_strong_components_are_prisms(model):
    within = bit_set(some(model, 1, 0.8))
    for trivial in (False, True):
        for restrict in (None, within):
            ours, theirs = (
                strong(name, model, trivial=trivial, within=restrict)
                for name in ("prismgpu.GpuSCCComputer", "explicit.SCCComputerTarjan")
            )
            for mine, other in zip(ours, theirs, strict=True):
                assert mine == sorted(other, key=min)


def assert_end_components_are_prisms(model):
    within, accept = bit_set(some(model, 2, 0.9)), bit_set(some(model, 3, 0.1))
    for restrict in (None, within, bit_set(some(model, 4, 0.0))):
        for accepted in (None, accept):
            ours, theirs = (
                ends(name, model, within=restrict, accept=accepted)
                for name in ("prismgpu.GpuECComputer", "explicit.ECComputerDefault")
            )
            assert ours == sorted(theirs, key=min)


@pytest.mark.parametrize("name", MODELS)
def test_components_of_a_model_are_prisms(built, name):
    model = built(*MODELS[name])
    assert_strong_components_are_prisms(model)
    if str(model.getModelType()) not in ("DTMC", "CTMC", "IDTMC", "LTS"):
        assert_end_components_are_prisms(model)


def test_an_embedded_chain_has_the_loops_that_its_ctmc_lacks(built, tmp_path):
    file = tmp_path / "absorbing.sm"
    file.write_text(
        "ctmc\nmodule m\n s:[0..3];\n [] s<2 -> 2:(s'=s+1);\n [] s=0 -> 1:(s'=3);\n"
        " [] s=3 -> 1:(s'=0);\nendmodule\n"
    )
    ctmc = built(file, {})
    embedded = java("explicit.DTMCEmbeddedSimple")(ctmc)
    assert strong("prismgpu.GpuSCCComputer", embedded)[1] == [{2}]
    assert_strong_components_are_prisms(embedded)
    assert_strong_components_are_prisms(ctmc)


def test_views_and_parts_of_a_model(built):
    mdp = built(*MODELS["zeroconf"])
    dropped = java("explicit.modelviews.MDPDroppedChoicesCached")(
        mdp, lambda state, choice: choice > 0 and state % 2 == 0
    )
    assert_strong_components_are_prisms(dropped)
    assert_end_components_are_prisms(dropped)
    allowed = java("java.util.HashMap")()
    states = java("java.util.BitSet")()
    for state in range(0, int(mdp.getNumStates())):
        choices = java("java.util.BitSet")()
        choices.set(0, mdp.getNumChoices(state))
        allowed.put(java("java.lang.Integer")(state), choices)
        states.set(state)
    part = java("explicit.SubNondetModel")(mdp, states, allowed, states)
    assert_strong_components_are_prisms(part)
    assert_end_components_are_prisms(part)


def test_an_order_of_prisms_is_topological(built):
    model = built(*MODELS["zeroconf"])
    size = int(model.getNumStates())
    info = java("explicit.SCCInfo")(size)
    java("prismgpu.GpuSCCComputer")(java("prism.PrismComponent")(), model, info).computeSCCs(
        False, None
    )
    order = [int(info.getSCCIndex(state)) for state in range(size)]
    for state in range(size):
        successors = model.getSuccessors(state)
        while successors.hasNext():
            assert order[successors.nextInt()] <= order[state]
    assert int(info.getNumSCCs()) == max(order) + 1
    assert len(set(order)) > 100


def test_found_sets_are_a_list_that_prism_may_add_to(built):
    model = built(*MODELS["mdp"])
    computer = java("prismgpu.GpuECComputer")(java("prism.PrismComponent")(), model)
    assert len(computer.getMECStates()) == 0
    computer.computeMECStates()
    found = computer.getMECStates()
    before = sets(found)
    more = bit_set(some(model, 5, 0.5))
    found.add(more)
    assert sets(found) == [*before, *sets([more])]


@pytest.fixture
def asked(monkeypatch):
    """Return the tasks that the engines are asked, and let a test say what they answer."""
    tasks: list[str] = []
    given: dict[str, str] = {}
    solve = EngineBackend.solve

    def note(self, problem):
        tasks.append(str(problem.task))
        if given:
            for field, text in given.items():
                setattr(problem, field, text)
        else:
            solve(self, problem)

    monkeypatch.setattr(EngineBackend, "solve", note)
    return tasks, given


def test_small_parts_and_steps_of_prism_s_own_decomposition_stay_with_prism(built, asked):
    from bridge import jvm

    tasks, _ = asked
    mdp = built(*MODELS["zeroconf"])
    jvm.install_engines(HookOptions(device=DEVICE, smallest_graph=300))
    few = np.zeros(int(mdp.getNumStates()), dtype=np.bool_)
    few[:40] = True
    ends("prismgpu.GpuECComputer", mdp, within=bit_set(few))
    strong("prismgpu.GpuSCCComputer", mdp, within=bit_set(few))
    assert ends("explicit.ECComputerDefault", mdp)
    assert tasks == []
    assert ends("prismgpu.GpuECComputer", mdp)
    assert strong("prismgpu.GpuSCCComputer", mdp)
    assert tasks == ["end components", "strong components"]


def test_what_the_engines_refuse_prism_finds_and_an_error_is_one(built, asked):
    import jpype

    tasks, given = asked
    mdp = built(*MODELS["mdp"])
    expected = ends("explicit.ECComputerDefault", mdp), strong("explicit.SCCComputerTarjan", mdp)
    given["refusal"] = "components (for a test)"
    found = ends("prismgpu.GpuECComputer", mdp), strong("prismgpu.GpuSCCComputer", mdp)
    assert found == expected
    assert len(tasks) == 2
    given.clear()
    given["error"] = "out of memory"
    for decompose in (
        lambda: ends("prismgpu.GpuECComputer", mdp),
        lambda: strong("prismgpu.GpuSCCComputer", mdp),
    ):
        with pytest.raises(jpype.JException, match="out of memory"):
            decompose()


def counts():
    file = FOLDER / "mec.json"
    return json.loads(file.read_text(encoding="utf-8"))["models"] if file.is_file() else []


SMALL = 10_000
"""States and transitions of a model that is built in a moment."""


def of_size(entry):
    name = f"{entry['model'].rsplit('/', 1)[1]} {entry['constants']}".strip()
    marks = [pytest.mark.slow] if entry["states"] + entry["transitions"] > SMALL else []
    return pytest.param(entry, id=name, marks=marks)


def value(text):
    return {"true": True, "false": False}.get(text) if text in ("true", "false") else int(text)


@pytest.mark.parametrize("entry", [of_size(entry) for entry in counts()])
def test_models_have_the_published_numbers_of_components(built, entry):
    constants = dict(part.split("=") for part in entry["constants"].split(",") if part)
    model = built(entry["model"], {name: value(text) for name, text in constants.items()})
    assert int(model.getNumStates()) == entry["states"]
    every, bottom = strong("prismgpu.GpuSCCComputer", model, trivial=True)
    assert len(every) == entry["sccs"]
    assert len(bottom) == entry["bsccs"]
    assert len(strong("prismgpu.GpuSCCComputer", model)[0]) == entry["nontrivial_sccs"]
    assert max(map(len, every)) == entry["largest_scc"]
    if "mecs" in entry:
        assert len(ends("prismgpu.GpuECComputer", model)) == entry["mecs"]
