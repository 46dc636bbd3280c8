"""Builds models by PRISM and by the engines, and compares them, array for array.

`python -m tests.conformance.construction_worker` answers each line of JSON, a question, by others:
outcomes, each twice, when the work on it begins and when it is known.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bridge import jvm
from bridge.built import BuiltExplicitly
from bridge.check.model_text import ModelText
from bridge.language.model_check import check_with_constants
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import ExploredModel, build
from engines.exploration.rewards import InvalidRewardError
from engines.program.program import Program

HELPER = Path(__file__).parent / "java" / "ModelArrays.java"
MOST_VALUES_OF_CONSTANTS = 16
OPEN_CONSTANTS = {"int": "1:3", "double": "0.25:0.25:0.75", "bool": "true"}
"""Values, by type, of constants that no list beside a model names."""
JAVA_MEMORY = "6g"
SAME, ROUNDED = "same", "same to one unit in the last place"
DIFFERENT, TOO_SLOW = "different", "too slow"
TOO_LARGE_FOR_PRISM = f"beyond PRISM's memory of {JAVA_MEMORY}"
END = "{}"
"""The line after the last outcome of a question, and before the first question."""


class TooLargeError(Exception):
    """A model has more states than are of interest."""


@dataclass(frozen=True)
class Question:
    """Models that are to be built and compared.

    Parameters
    ----------
    file
        Of the model.
    switches
        Values of constants, as PRISM's switch -const has them.
    known
        Of values that need not be looked at again, `Outcome.constants`.
    most_states
        Larger models are of no interest.
    """

    file: str
    switches: list[str]
    known: list[str]
    most_states: int


@dataclass
class Outcome:
    """What came of a model; `detail` says what is different, or why it was not compared."""

    file: str
    constants: str
    outcome: str = TOO_SLOW
    detail: str = ""
    states: int = 0
    transitions: int = 0
    our_seconds: float = 0.0
    prism_seconds: float = 0.0


class DiffersError(AssertionError):
    """Two models are not the same."""


def java(name: str) -> Any:
    """Return a class of the running JVM."""
    import jpype

    return jpype.JClass(name)


def start(folder: str) -> None:
    """Start PRISM in this process, its classes without our engines, and compile the helper."""
    import jpype

    runtime = jvm.find_runtime()
    jvm.start(runtime, replace(jvm.default_options(), max_memory=JAVA_MEMORY))
    compiler = java("javax.tools.ToolProvider").getSystemJavaCompiler()
    path = ":".join(str(part) for part in runtime.prism.classpath)
    if compiler.run(None, None, None, ["-cp", path, "-d", folder, str(HELPER)]) != 0:
        raise RuntimeError(f"{HELPER} was not compiled")
    jpype.addClassPath(folder)


def own(text: ModelText, constants: dict[str, Any], most: int) -> tuple[Program, ExploredModel]:
    """Build by the engines; rewards that have a fault are left out."""

    def count(found: int) -> None:
        if found > most:
            raise TooLargeError

    values = text.constants(constants)
    check_with_constants(text.outline, values)
    program = text.built_program(values, checked=True)
    try:
        return program, build(program, progress=count)
    except InvalidRewardError:
        program = replace(program, reward_structures=())
        return program, build(program, progress=count)


class Peer:
    """A model that PRISM parses and builds, for each of some values of its constants."""

    def __init__(self, file: str, switch: str) -> None:
        self.prism = java("prismgpu.GpuPrism")(java("prism.PrismDevNullLog")())
        self.prism.setEngine(self.prism.EXPLICIT)
        self.prism.initialise()
        self.modules = self.prism.parseModelFile(java("java.io.File")(file))
        self.prism.loadPRISMModel(self.modules)
        self.undefined = [str(name) for name in self.modules.getUndefinedConstants()]
        self.values = java("prism.UndefinedConstants")(self.modules, None)
        self.values.defineUsingConstSwitch(",".join(self._chosen(switch)))

    def _chosen(self, switch: str) -> Iterator[str]:
        """Yield values of all open constants, as the switch has them where it names them."""
        parts = {part.split("=")[0]: part for part in switch.split(",")}
        constants = self.modules.getConstantList()
        for name in self.undefined:
            kind = str(constants.getConstantType(constants.getConstantIndex(name)))
            yield parts.get(name, f"{name}={OPEN_CONSTANTS[kind]}")

    def kind(self) -> str:
        """Return PRISM's word for the type of the model."""
        return str(self.modules.getModelType())

    def each(self) -> Iterator[dict[str, Any]]:
        """Yield each of the constants' values in turn, by which a model is built next."""
        for _ in range(min(self.values.getNumModelIterations(), MOST_VALUES_OF_CONSTANTS)):
            self._next = self.values.getMFConstantValues()
            yield {name: plain(self._next.getValueOf(name)) for name in self.undefined}
            self.values.iterateModel()

    def build(self) -> Any:
        """Return the model that PRISM's own classes make."""
        self.prism.setPRISMModelConstants(self._next)
        self.prism.buildModel()
        model = self.prism.getBuiltModelExplicit()
        assert model.getStatesList().getClass().getSimpleName() == "ArrayList"
        return model


def plain(value: Any) -> bool | int | float:
    """Return a constant's value as Python has it."""
    text = str(value).lower()
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def require_same(program: Program, ours: ExploredModel, peer: Peer, model: Any) -> bool:
    """Compare two models; return whether all values are the same to the last bit."""
    arrays = java("ModelArrays")
    columns = [ours.packing.column(ours.states, i) for i in range(len(program.variables))]
    states = np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int64)
    equal(states, np.asarray(arrays.states(model)), "states")
    built = BuiltExplicitly(java("prismgpu.BuiltModel")(peer.prism))
    theirs = built.model() if program.reward_structures else _without_rewards(built)
    for what in ("row_offsets", "columns"):
        equal(getattr(ours.model.matrix, what), getattr(theirs.matrix, what), what)
    exact = close(ours.model.matrix.values, theirs.matrix.values, "values")
    if theirs.row_group_offsets is not None:
        equal(ours.model.row_group_offsets, theirs.row_group_offsets, "choices")
    actions = np.asarray(arrays.actions(model, java("java.util.ArrayList")(program.actions)))
    count = len(actions)
    equal(np.full(count, -1) if ours.actions is None else ours.actions, actions, "actions")
    deadlocks = [int(state) for state in model.getDeadlockStates()]
    equal(np.flatnonzero(ours.deadlocks), np.array(deadlocks, dtype=np.int64), "deadlock states")
    if list(ours.model.labels) != built.label_names():
        raise DiffersError(f"labels {list(ours.model.labels)} and {built.label_names()}")
    for name in built.label_names():
        equal(ours.model.labels[name], built.label(name), f"label {name}")
    for mine, other in zip(ours.model.rewards, theirs.rewards, strict=True):
        if mine.name != other.name:
            raise DiffersError(f"rewards {mine.name} and {other.name}")
        exact &= close(mine.state_rewards, other.state_rewards, f"rewards {mine.name}")
        if other.choice_rewards is not None:
            of_choices = mine.choice_rewards
            of_choices = np.zeros(len(other.choice_rewards)) if of_choices is None else of_choices
            exact &= close(of_choices, other.choice_rewards, f"rewards of choices {mine.name}")
    return exact


def _without_rewards(built: BuiltExplicitly) -> Any:
    from prism_hooks.extract import extracted_model

    return extracted_model(built._built.transitions())


def equal(ours: Any, theirs: Any, what: str) -> None:
    """Require two arrays to be the same."""
    if np.shape(ours) != np.shape(theirs):
        raise DiffersError(f"{what}: {np.shape(ours)} and {np.shape(theirs)}")
    wrong = np.flatnonzero(np.asarray(ours) != np.asarray(theirs))
    if len(wrong):
        first = wrong[0]
        raise DiffersError(
            f"{what}: {ours[first]} and {theirs[first]} at {first}, {len(wrong)} in all"
        )


def close(ours: Any, theirs: Any, what: str) -> bool:
    """Require two arrays to be the same to one unit; return whether to the last bit."""
    if np.shape(ours) != np.shape(theirs):
        raise DiffersError(f"{what}: {np.shape(ours)} and {np.shape(theirs)}")
    apart = np.abs(ours - theirs)
    wrong = np.flatnonzero(~((ours == theirs) | (apart <= np.spacing(np.abs(theirs)))))
    if len(wrong):
        first = wrong[0]
        raise DiffersError(
            f"{what}: {ours[first]} and {theirs[first]} at {first}, {len(wrong)} in all"
        )
    return bool(np.array_equal(ours, theirs))


def compared(asked: Question) -> Iterator[Outcome]:
    """Yield what comes of a model for each of the values of its constants, each twice."""
    import jpype

    known = set(asked.known)
    for switch in asked.switches:
        try:
            peer = Peer(asked.file, switch)
        except jpype.JException as error:
            yield Outcome(asked.file, switch, "not parsed by PRISM", str(error.getMessage()))
            continue
        if peer.kind() not in ("DTMC", "CTMC", "MDP"):
            yield Outcome(asked.file, switch, "of another type", peer.kind())
            return
        for constants in peer.each():
            outcome = Outcome(asked.file, ",".join(f"{k}={v}" for k, v in constants.items()))
            if outcome.constants not in known:
                known.add(outcome.constants)
                yield outcome
                compare_one(peer, constants, asked.most_states, outcome)
                yield outcome
        peer.prism.closeDown()


def compare_one(peer: Peer, constants: dict[str, Any], most: int, outcome: Outcome) -> None:
    """Build and compare a model; fill in its outcome."""
    import jpype

    fault = None
    try:
        path = Path(outcome.file)
        text = ModelText(path.read_text(encoding="utf-8"), path.name)
        began = time.perf_counter()
        program, ours = own(text, constants, most)
        outcome.our_seconds = time.perf_counter() - began
        outcome.states = len(ours.states)
        outcome.transitions = ours.model.matrix.num_entries
        if outcome.states > most:
            raise TooLargeError
    except TooLargeError:
        outcome.outcome = "too large"
        return
    except UnsupportedError as error:
        outcome.outcome, outcome.detail = "refused", str(error)
        return
    except InvalidModelError as error:
        fault = str(error)
    try:
        began = time.perf_counter()
        model = peer.build()
        outcome.prism_seconds = time.perf_counter() - began
    except jpype.JClass("java.lang.OutOfMemoryError") as error:
        outcome.outcome, outcome.detail = TOO_LARGE_FOR_PRISM, str(error.getMessage())
        return
    except jpype.JException as error:
        outcome.outcome = DIFFERENT if fault is None else "fault in both"
        outcome.detail = f"{fault} | {error.getMessage()}"
        return
    if fault is not None:
        outcome.outcome, outcome.detail = DIFFERENT, f"{fault} | built by PRISM"
        return
    try:
        outcome.outcome = SAME if require_same(program, ours, peer, model) else ROUNDED
    except DiffersError as error:
        outcome.outcome, outcome.detail = DIFFERENT, str(error)


def main() -> None:
    """Answer lines until there are no more."""
    with TemporaryDirectory() as folder:
        start(folder)
        print(END, flush=True)
        for line in sys.stdin:
            for outcome in compared(Question(**json.loads(line))):
                print(json.dumps(asdict(outcome)), flush=True)
            print(END, flush=True)


if __name__ == "__main__":
    main()
