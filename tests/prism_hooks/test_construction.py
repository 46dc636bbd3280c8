"""What the engines hand to PRISM when it has a model built, but for Java's side."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engines.cuda import driver
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.exploration import build as exploration
from engines.model.environment import DeviceChoice
from engines.model.events import Kind
from prism_hooks import construction, held
from prism_hooks.backend import EngineBackend
from prism_hooks.construction import GivingUp
from prism_hooks.options import HookOptions

RING = {
    "kind": "ctmc",
    "checked": True,
    "variables": [
        {"name": "x", "type": "int", "low": 2, "high": 4, "initial": 2, "module": 0},
        {"name": "b", "type": "bool", "low": 0, "high": 1, "initial": False, "module": 0},
    ],
    "actions": ["go"],
    "modules": [
        {
            "name": "m",
            "alphabet": [1],
            "commands": [
                {"action": 1, "guard": ["v0", 4, "<"], "updates": [[[3.0], [0, ["v0", 1, "+"]]]]},
                {"action": 0, "guard": ["v0", 2, ">"], "updates": [[[1.0], [0, [2]]]]},
            ],
        }
    ],
    "rewards": [],
    "labels": [["high", ["v0", 3, ">"]]],
}
FIELDS = {"fieldWords": [0, 0], "shifts": [1, 0], "masks": [3, 1], "lows": [2, 0]}


class Asked(SimpleNamespace):
    """A `prismgpu.Construction`, its arrays NumPy's."""

    def __init__(self, program: object) -> None:
        super().__init__(
            id=7, program=json.dumps(program), faultyState=None, refusal=None, error=None,
            groupOffsets=None, actions=None, labels=[], begun=0, told=[], mayStartAnew=False,
            heapBytes=1 << 30,
        )  # fmt: skip

    def begin(self) -> None:
        self.begun += 1

    def showProgress(self, found: int) -> None:  # noqa: N802 - the name is Java's
        self.told.append(found)

    def addLabel(self, states: np.ndarray) -> None:  # noqa: N802 - as above
        self.labels.append(states.tolist())


@pytest.fixture(autouse=True)
def _without_java(monkeypatch):
    monkeypatch.setattr(construction, "java_array", lambda array: array)
    monkeypatch.setattr(construction, "java_type", lambda kind: kind)
    monkeypatch.setattr(held, "java_array", lambda array: array)


def asked_of(backend: EngineBackend, program: object = RING) -> Asked:
    asked = Asked(program)
    backend.build(asked)
    return asked


def test_arrays_and_labels_are_handed_over():
    asked = asked_of(EngineBackend(HookOptions()))
    assert (asked.error, asked.refusal, asked.begun) == (None, None, 1)
    assert asked.told[-1] == asked.numStates == 3
    assert asked.numTransitions == 4
    assert asked.hasActions
    assert asked.held.rowOffsets().tolist() == [0, 1, 3, 4]
    assert asked.held.columns().tolist() == [1, 0, 2, 0]
    assert asked.held.values().tolist() == [3.0, 1.0, 3.0, 1.0]
    assert asked.held.actions().tolist() == [0, -1, 0, -1]
    assert asked.words == 1
    assert asked.held.states().tolist() == [0 << 1, 1 << 1, 2 << 1]
    assert {name: getattr(asked, name).tolist() for name in FIELDS} == FIELDS
    assert asked.initial.tolist() == [0b001]
    assert not asked.deadlocks.any()
    assert asked.labels == [[0b100]]


def test_a_model_that_was_built_is_not_read():
    backend = EngineBackend(HookOptions())
    asked = asked_of(backend)
    problem = SimpleNamespace(modelId=asked.id)
    model = backend._model(problem, False)
    assert model.matrix.values.tolist() == asked.held.values().tolist()
    assert backend._model(problem, True).matrix.row_sums() == pytest.approx([1.0, 1.0, 1.0])


def test_a_fault_is_handed_over_with_its_state():
    faulty = json.loads(json.dumps(RING))
    faulty["modules"][0]["commands"][1]["updates"][0][0] = [-1.0]
    asked = asked_of(EngineBackend(HookOptions()), faulty)
    assert list(asked.faultyState) == [3, 0]
    assert asked.refusal.startswith("Rate is negative in state (x=3,b=false)")
    assert asked.error is None


def test_an_unknown_word_is_refused_before_anything_is_said():
    unknown = json.loads(json.dumps(RING))
    unknown["labels"][0][1] = ["deadlock"]
    asked = asked_of(EngineBackend(HookOptions()), unknown)
    assert "'deadlock'" in asked.refusal
    assert asked.begun == 0


def test_what_java_has_no_arrays_for_is_refused(monkeypatch):
    monkeypatch.setattr(construction, "MOST_ELEMENTS", 3)
    asked = asked_of(EngineBackend(HookOptions()))
    assert asked.refusal == "an array of 4 elements, which Java cannot hold"


@pytest.mark.parametrize(
    ("raised", "field", "text"),
    [
        (UnsupportedError("too large"), "refusal", "too large"),
        (DeviceMemoryError("9 bytes"), "refusal", "memory does not suffice: 9 bytes"),
        (RuntimeError("what now"), "error", "please report this"),
    ],
)
def test_what_goes_wrong_is_told(monkeypatch, raised, field, text):
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(construction, "build", fail)
    asked = asked_of(EngineBackend(HookOptions()))
    assert text in getattr(asked, field)
    assert sum(x is not None for x in (asked.refusal, asked.error)) == 1


@pytest.mark.parametrize(
    ("device", "present", "gpu"),
    [
        (DeviceChoice.AUTO, True, 1),
        (DeviceChoice.GPU, True, 1),
        (DeviceChoice.AUTO, False, None),
        (DeviceChoice.CPU, True, None),
    ],
)
def test_a_gpu_may_take_models_over_where_there_is_a_driver(monkeypatch, device, present, gpu):
    seen = []

    def build(program, *, gpu, progress, **limits):
        seen.append(gpu)
        explored = exploration.build(program, progress=progress, **limits)
        return replace(explored, events=(Kind.BUILT_ON_CPU(reason="too wide"),))

    monkeypatch.setattr(construction, "build", build)
    monkeypatch.setattr(driver, "driver_present", lambda: present)
    asked = asked_of(EngineBackend(HookOptions(device=device, device_number=1)))
    assert seen == [gpu]
    assert asked.remark == "model built on the CPU: too wide"


def test_a_limit_of_states_is_an_error():
    asked = asked_of(EngineBackend(HookOptions(max_states=2)))
    text = "The model has more than 2 states, the limit that -maxstates sets"
    assert (asked.error, asked.refusal) == (text, None)
    asked = asked_of(EngineBackend(HookOptions(max_states=3)))
    assert (asked.error, asked.refusal) == (None, None)


@pytest.mark.parametrize(
    ("giving_up", "reason"),
    [
        (GivingUp(states_on_cpu=2), "the model has more than 2 states"),
        (GivingUp(transitions_on_cpu=3), "the model has more than 3 transitions"),
        (GivingUp(crowding=-1), "the model has more than -1 transitions beyond 64 a state"),
        (GivingUp(heap_share=1e-9), "the model's arrays take 0 MB, and 0 MB of Java's heap may"),
        (GivingUp(states_on_cpu=3, transitions_on_cpu=4), None),
    ],
)
def test_only_what_may_start_anew_is_given_up(giving_up, reason):
    asked = Asked(RING)
    assert construction.built_for_java(asked, HookOptions(device=DeviceChoice.CPU), giving_up)
    asked.mayStartAnew = True
    built = construction.built_for_java(asked, HookOptions(device=DeviceChoice.CPU), giving_up)
    assert asked.error is None
    assert (built is None) == (reason is not None)
    assert asked.refusal == reason or asked.refusal.startswith(reason)


def test_a_named_limit_below_the_others_stays_an_error():
    asked = Asked(RING)
    asked.mayStartAnew = True
    construction.built_for_java(asked, HookOptions(max_states=2), GivingUp(states_on_cpu=2))
    assert "-maxstates" in asked.error
    asked = Asked(RING)
    asked.mayStartAnew = True
    construction.built_for_java(asked, HookOptions(max_states=3), GivingUp(states_on_cpu=2))
    assert (asked.error, asked.refusal) == (None, "the model has more than 2 states")
