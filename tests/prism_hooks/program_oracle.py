"""Real PRISM's simulator, in a process of its own: a line of JSON for each model.

Given a file, it says how the model reads as a `prismgpu.ProgramText`, and what PRISM's model
generator finds in states on random walks: the transitions, and the rewards.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from typing import Any

WALKS, STATES = 8, 200
MOST_TRANSITIONS = 3000
"""So many transitions in all are looked at: some models have thousands from a single state."""
GUESSES: dict[str, tuple[str, ...]] = {
    "int": ("2", "3", "4", "1", "6", "8"),
    "double": ("0.25", "0.5", "1.0"),
    "bool": ("true",),
}
"""What a constant without a value is tried with."""


def _loaded(path: str) -> Any:
    """Return PRISM with a model whose constants have values, or None if no guess suits."""
    import jpype

    prism = jpype.JClass("prism.Prism")(jpype.JClass("prism.PrismDevNullLog")())
    for number in range(max(map(len, GUESSES.values()))):
        modules = prism.parseModelFile(jpype.JClass("java.io.File")(path))
        names = [str(name) for name in modules.getUndefinedConstants()]
        types = {
            name: str(modules.getConstantList().getConstantType(i).getTypeString())
            for name in names
            for i in [modules.getConstantList().getConstantIndex(name)]
        }
        guesses = {
            name: GUESSES[kind][min(number, len(GUESSES[kind]) - 1)] for name, kind in types.items()
        }
        try:
            prism.loadPRISMModel(modules)
            values = jpype.JClass("prism.UndefinedConstants")(modules, None)
            values.defineUsingConstSwitch(",".join(f"{k}={v}" for k, v in guesses.items()))
            prism.setPRISMModelConstants(values.getMFConstantValues())
            generator = prism.getModelGenerator()
            if generator.hasSingleInitialState():
                # PRISM finds several by going through all possible ones.
                generator.exploreState(generator.getInitialState())
                generator.getNumChoices()
            return prism
        except jpype.JException:
            if not names:
                raise
    return None


def _value(value: Any) -> int:
    text = str(value).lower()
    return int(text == "true") if text in ("true", "false") else int(text)


def _state(state: Any) -> list[int]:
    return [_value(value) for value in state.varValues]


def _explored(generator: Any, rewards: Any, state: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the successors of a state, and what the program must find there too."""
    import jpype

    generator.exploreState(state)
    targets, transitions = [], []
    for i in range(generator.getNumChoices()):
        action = generator.getChoiceAction(i)
        earned = [
            float(rewards.getStateActionReward(r, state, action, jpype.JBoolean(True)))
            for r in range(rewards.getNumRewardStructs())
        ]
        for j in range(generator.getNumTransitions(i)):
            target = generator.computeTransitionTarget(i, j)
            targets.append(target)
            weight = float(generator.getTransitionProbability(i, j))
            transitions.append([weight, _state(target), earned])
    here = [
        float(rewards.getStateReward(r, state, jpype.JBoolean(True)))
        for r in range(rewards.getNumRewardStructs())
    ]
    return targets, {"state": _state(state), "transitions": transitions, "rewards": here}


def _walks(generator: Any, rewards: Any) -> list[dict[str, Any]]:
    """Return what is found on random walks from the initial state."""
    draw = random.Random(1)
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    seen = 0
    for _ in range(WALKS):
        state = generator.getInitialState()
        for _ in itertools.repeat(None, STATES // WALKS):
            targets, record = _explored(generator, rewards, state)
            found[tuple(record["state"])] = record
            seen += len(targets)
            if seen > MOST_TRANSITIONS:
                return list(found.values())
            if not targets:
                break
            state = draw.choice(targets)
    return list(found.values())


def answer(path: str) -> dict[str, Any]:
    """Return a model's program and states, or why there are none."""
    import jpype

    try:
        prism = _loaded(path)
        if prism is None:
            return {"skipped": "no guess at its constants suits"}
        generator = prism.getModelGenerator()
        if not generator.hasSingleInitialState():
            return {"skipped": "several initial states"}
        text = str(jpype.JClass("prismgpu.ProgramText").of(generator, None, jpype.JBoolean(True)))
        kind = str(generator.getModelType().name())
        states = _walks(generator, prism.getRewardGenerator())
    except jpype.JException as error:
        return {"skipped": str(error.getMessage())}
    return {"kind": kind, "program": text, "states": states}


if __name__ == "__main__":
    from bridge.jvm import JvmOptions, find_runtime, start

    start(find_runtime(), JvmOptions(max_memory="1g"))
    for line in sys.stdin:
        print(json.dumps(answer(line.rstrip("\n"))), flush=True)
