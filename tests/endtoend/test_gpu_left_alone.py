"""Small models on a machine with a GPU, which takes longer to open than they take to solve."""

from __future__ import annotations

import pytest

from tests.endtoend.references import answers
from tests.endtoend.test_graph_searches import runner

pytestmark = pytest.mark.prism

WITH_DRIVER = """
from engines.cuda import driver
def opened():
    raise SystemExit("a GPU was opened")
driver.driver_present = lambda: True
driver.find_cupy = opened
from bridge import cli
cli.main()
"""
CASES = {
    "dtmc": (
        "dtmcs/herman/herman7.pm",
        'filter(max, R=? [ F "stable" ], "init"); filter(avg, S=? [ "stable" ], "init");'
        ' P>=1 [ F "stable" ]; filter(max, P=? [ G F x1=1 ], "init"); R=? [ C<=4 ]',
    ),
    "ctmc": (
        "ctmcs/tandem/tandem.sm",
        "S=? [ sc=c ]; P=? [ F<=2 sc=c ]; R=? [ S ]; P=? [ true U sc=c ]",
    ),
    "mdp": (
        "mdps/consensus/coin2.nm",
        'Pmin=? [ F "finished" & "agree" ]; R{"steps"}max=? [ F "finished" ];'
        ' Pmax=? [ G F "finished" ]; Pmax=? [ F<=9 "finished" ]',
    ),
}
CONSTANTS = {"ctmc": ("-const", "c=15"), "mdp": ("-const", "K=4")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["-hybrid", "-explicit"])
@pytest.mark.parametrize("name", CASES)
def test_a_small_model_opens_no_gpu(name, engine, prism_gpu, prism_install):
    model, asked = CASES[name]
    path = prism_install.root.parent / "prism-examples" / model
    words = (path, "-pf", asked, *CONSTANTS.get(name, ()), engine)
    run = runner(WITH_DRIVER, prism_install)(*words)
    assert run.code == 0, run.output + run.errors
    assert "a GPU was opened" not in run.output + run.errors
    assert answers(run.output) == answers(prism_gpu(*words, "-nogpu").output)


def test_it_would_be_noticed(prism_install):
    path = prism_install.root.parent / "prism-examples/dtmcs/herman/herman7.pm"
    asked = 'filter(max, R=? [ F "stable" ], "init")'
    run = runner(WITH_DRIVER, prism_install)(path, "-pf", asked, "-gpu")
    assert "a GPU was opened" in run.output + run.errors
