"""What the log says of results for which nothing was solved."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.prism

LINE = "prism-gpu: decided by the graph of the model, nothing was left to solve, residual 0, exact"
BLOCKS = re.compile(r"^Model checking: ", re.M)
CASES = {
    "dtmcs/herman/herman5.pm": {
        'P>=1 [ F "stable" ]': True,
        'filter(min, P=? [ F G "stable" ], "init")': True,
        'filter(max, P=? [ F<=3 "stable" ], "init")': False,
        'filter(max, P=? [ X (P>=1 [ F "stable" ]) ], "init")': False,
        'filter(max, R=? [ F "stable" ], "init")': False,
        'filter(avg, S=? [ "stable" ], "init")': False,
        "filter(forall, num_tokens>0)": False,
        'filter(max, S>0.5 [ P>=1 [ F "stable" ] ] ? P=? [ F "stable" ] : 0, "init")': False,
    },
    "mdps/consensus/coin2.nm": {
        'P>=1 [ F "finished" ]': True,
        'filter(min, Pmin=? [ F "finished" ], counter>3)': True,
        'filter(min, Pmin=? [ F "finished" & "agree" ], counter>3)': False,
        'Pmax=? [ X (P>=1 [ F "finished" ]) ]': False,
        'Pmin=? [ F<=4 (pc1=3 & P>=1 [ F "finished" ]) ]': False,
    },
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["-hybrid", "-explicit"])
@pytest.mark.parametrize("model", CASES)
def test_what_a_graph_decides_is_said_to_be_exact(model, engine, prism_gpu, prism_install):
    path = prism_install.root.parent / "prism-examples" / model
    cases = CASES[model]
    constants = () if "herman" in model else ("-const", "K=2")
    run = prism_gpu(path, "-pf", "; ".join(cases), *constants, engine, "-gpuinfo")
    assert run.code == 0, run.output
    blocks = BLOCKS.split(run.output)[1:]
    for question, block in zip(cases, blocks, strict=True):
        assert block.startswith(question.split("(")[0])
        assert (LINE in block) == cases[question], block
        assert block.count("residual") >= 1 or not cases[question]


def test_it_is_said_only_where_solves_are_shown(prism_gpu, prism_install):
    path = prism_install.root.parent / "prism-examples/dtmcs/herman/herman5.pm"
    run = prism_gpu(path, "-pf", 'filter(forall, P>=1 [ F "stable" ])')
    assert run.code == 0
    assert "decided" not in run.output


def test_it_is_not_said_of_what_another_engine_of_prisms_computes(prism_gpu, prism_install):
    path = prism_install.root.parent / "prism-examples/dtmcs/herman/herman5.pm"
    asked = 'filter(forall, P>=1 [ F "stable" ]); filter(max, R=? [ F "stable" ], "init")'
    for switch in ("-mtbdd", "-exact"):
        run = prism_gpu(path, "-pf", asked, switch, "-gpuinfo")
        assert run.code == 0
        assert "decided" not in run.output


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("engine", "said"), [("-hybrid", True), ("-sparse", True), ("-mtbdd", False)]
)
def test_next_on_a_diagram_is_said_to_be_prisms(engine, said, prism_gpu, prism_install):
    examples = prism_install.root.parent / "prism-examples"
    line = "prism-gpu: next, one product on a diagram, is not done by our engines"
    cases = {
        "dtmcs/herman/herman5.pm": 'filter(max, P=? [ X "stable" ], true)',
        "ctmcs/tandem/tandem.sm": "P=? [ X sc>0 ]",
        "mdps/consensus/coin2.nm": "Pmax=? [ X pc1=1 ]",
    }
    for model, asked in cases.items():
        constant = {"tandem": ("-const", "c=3"), "coin2": ("-const", "K=2")}
        more = next((constant[name] for name in constant if name in model), ())
        run = prism_gpu(examples / model, "-pf", asked, *more, engine, "-gpuinfo")
        assert run.code == 0, run.output
        assert (line in run.output) == said


def test_next_on_a_diagram_is_told_of_with_gpuinfo_alone(prism_gpu, prism_install):
    dice = prism_install.root.parent / "prism-examples/simple/dice/dice.pm"
    run = prism_gpu(dice, "-pf", "P=? [ X s=1 ]", "-sparse")
    assert "Result: 0.5" in run.output
    assert "PRISM's own code" not in run.output
