"""Records of engines, made by hand: what workers would have left on disk."""

from __future__ import annotations

import numpy as np

from bridge.regress.answers import Answer, Cell, Claim, Kind, ModelFacts, Record
from bridge.regress.solvers import OUR_ENGINES, PRISM_ENGINES, tight

EXPLICIT, SPARSE, EXACT = (PRISM_ENGINES[name] for name in ("explicit", "sparse", "exact"))
HYBRID = PRISM_ENGINES["hybrid"]
CPU, CPU_EXPLICIT, CPU_SPARSE = (
    OUR_ENGINES[name] for name in ("cpu", "cpu:explicit", "cpu:sparse")
)
TIGHT = tight(continuous_time=False)
CELL = Cell(0, text='P=? [ F "goal" ]')
TRUTH = np.array([0.25, 0.5, 1.0, 0.0])
EXACTLY = Claim("EXACT")
STATES = ("(0,0)", "(0,1)", "(1,0)", "(1,1)")
LABELS = {"init": [0], "deadlock": [], "goal": [2]}


def model(folder, order=(0, 1, 2, 3), labels=LABELS, **changed):
    """Return the facts of a model with four states, in an order of its own, and write its files."""
    folder.mkdir(parents=True, exist_ok=True)
    states, labelling = folder / "m.sta", folder / "m.lab"
    lines = [f"{number}:{STATES[place]}" for number, place in enumerate(order)]
    states.write_text("\n".join(["(x,y)", *lines]) + "\n")
    head = " ".join(f'{number}="{name}"' for number, name in enumerate(labels))
    body = [
        f"{number}: "
        + " ".join(str(label) for label, has in enumerate(labels.values()) if place in has)
        for number, place in enumerate(order)
        if any(place in has for has in labels.values())
    ]
    labelling.write_text("\n".join([head, *body]) + "\n")
    facts = {"type": "DTMC", "num_states": 4, "num_transitions": 6, **changed}
    return ModelFacts(0, "", states=states, labels=labelling, **facts)


def answer(folder, values, order=(0, 1, 2, 3), claim=None, **changed):
    """Return an answer with values that are given in the order of `STATES`."""
    folder.mkdir(parents=True, exist_ok=True)
    vector = folder / "values.npy"
    np.save(vector, np.asarray(values, dtype=np.float64)[list(order)])
    claim = claim or Claim("ESTIMATED_BOUNDED", 1e-9, absolute=False)
    return Answer(
        CELL, Kind.VALUES, value=repr(float(values[0])), vector=vector, claim=claim, **changed
    )


def records(folder, answers, models=None):
    """Return records by engine, each with a model like all others' where none is given."""
    models = models or {}
    return {
        solver: Record({0: models.get(solver) or model(folder / solver.name)}, {CELL: item})
        for solver, item in answers.items()
    }
