"""Random models in PRISM's files: real PRISM, our engines inside it, and ours without it agree."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from bridge.files.writer import write_model
from engines.model.explicit import ModelKind
from tests.engines.random_models import RandomModel, Row, seeded_model

pytestmark = pytest.mark.prism

PARTS, STATES = 4, 30
"""Models in one pair of files, side by side: a process takes longer to start than to solve them."""

CHAINS = (
    'P=? [ "remain" U "target" ]',
    'P=? [ G !"target" ]',
    'P=? [ X "target" ]',
    'R=? [ F "target" ]',
    "R=? [ C ]",
    "R=? [ S ]",
    'S=? [ "target" ]',
)
STEPS = (
    'P{of}=? [ "remain" U<=5 "target" ]',
    'P{of}=? [ "remain" U[2,9] "target" ]',
    'P{of}=? [ "remain" U[4,4] "target" ]',
    'P{of}=? [ "remain" U>=3 "target" ]',
    "R{of}=? [ C<=11 ]",
    "R{of}=? [ I=3 ]",
)
TIMES = (
    'P=? [ "remain" U<=0.5 "target" ]',
    'P=? [ "remain" U[0.25,1.5] "target" ]',
    'P=? [ "remain" U[0.75,0.75] "target" ]',
    'P=? [ "remain" U>=0.5 "target" ]',
    "R=? [ C<=2 ]",
    "R=? [ I=0.3 ]",
)
DECISIONS = (
    'P{of}=? [ "remain" U "target" ]',
    'P{of}=? [ G "remain" ]',
    'P{of}=? [ X "target" ]',
    'R{of}=? [ F "target" ]',
)
TEXTS = {
    ModelKind.DTMC: (*CHAINS, *(text.format(of="") for text in STEPS)),
    ModelKind.CTMC: (*CHAINS, *TIMES),
    ModelKind.MDP: (
        *(text.format(of=of) for of in ("min", "max") for text in (*DECISIONS, *STEPS)),
        # PRISM knows no minimum of it.
        "Rmax=? [ C ]",
    ),
}
# PRISM's own Fox-Glynn method gives up at a smaller epsilon.
EPSILON = {ModelKind.DTMC: "1e-13", ModelKind.CTMC: "1e-9", ModelKind.MDP: "1e-13"}
TOLERANCE = {ModelKind.DTMC: 1e-8, ModelKind.CTMC: 1e-6, ModelKind.MDP: 1e-8}


def side_by_side(cases: list[RandomModel]) -> RandomModel:
    """Return the models as one, without a way from one to another."""

    def moved(row: Row, by: int) -> Row:
        return {state + by: value for state, value in row.items()}

    firsts = [sum(case.size for case in cases[:k]) for k in range(len(cases))]
    pairs = list(zip(cases, firsts, strict=True))
    return replace(
        cases[0],
        choices=tuple(
            tuple(moved(row, by) for row in rows) for case, by in pairs for rows in case.choices
        ),
        state_rewards=tuple(paid for case in cases for paid in case.state_rewards),
        choice_rewards=tuple(paid for case in cases for paid in case.choice_rewards),
        remain=frozenset(s + by for case, by in pairs for s in case.remain),
        target=frozenset(s + by for case, by in pairs for s in case.target),
        initial=tuple(share / Fraction(len(cases)) for case in cases for share in case.initial),
    )


def vectors(output: str) -> list[list[float] | str]:
    """Return for each property its value in every state, or its error."""
    found: list[list[float] | str] = []
    for block in re.split(r"^Model checking: ", output, flags=re.MULTILINE)[1:]:
        error = re.search(r"^Error: .*", block, re.MULTILINE)
        lines = re.findall(r"^\d+(?::\(\d+\))?=(\S+)$", block, re.MULTILINE)
        found.append(error[0] if error else [float(value) for value in lines])
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "first_seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (4, 8))]
)
@pytest.mark.parametrize("kind", ModelKind)
def test_every_state_has_prism_s_value(prism, prism_gpu, tmp_path, kind, first_seed):
    seeds = range(first_seed, first_seed + PARTS)
    case = side_by_side([seeded_model(kind, seed, STATES, rare=False) for seed in seeds])
    model = replace(
        case.model,
        initial_states=case.initial_vector > 0.0,
        labels={"remain": case.remain_mask, "target": case.target_mask},
        rewards=(case.rewards,),
    )
    files = {path.suffix: path for path in write_model(model, tmp_path / "random", headers=False)}
    properties = tmp_path / "random.props"
    texts = TEXTS[kind]
    lines = (f"filter(printall, {text}, true);\n" for text in texts)
    properties.write_text("".join(lines), encoding="utf-8")
    accuracy = ("-epsilon", EPSILON[kind], "-maxiters", "1000000")
    solving = (properties, f"-{kind.lower()}", *accuracy)
    words = [
        *("-importtrans", files[".tra"], "-importlabels", files[".lab"]),
        *("-importstaterewards", files[".srew"], "-importtransrewards", files[".trew"]),
        *(*solving, "-explicit"),
    ]
    theirs = vectors(prism(*words).output)
    ours = {
        "inside PRISM": prism_gpu(*words),
        "without PRISM": prism_gpu(files[".tra"], *solving, PRISM_DIR="/nowhere"),
    }
    for way, run in ours.items():
        found = vectors(run.output)
        assert len(found) == len(theirs) == len(texts), run.output[-2000:] + run.errors
        for text, mine, other in zip(texts, found, theirs, strict=True):
            assert not isinstance(mine, str), (way, text, mine)
            assert not isinstance(other, str), (text, other)
            assert len(mine) == len(other) == PARTS * STATES
            wrong = [
                (state, x, y)
                for state, (x, y) in enumerate(zip(mine, other, strict=True))
                if not math.isclose(x, y, rel_tol=TOLERANCE[kind], abs_tol=1e-12)
            ]
            assert not wrong, (way, text, wrong[:5])
