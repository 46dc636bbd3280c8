"""LTL runs through PRISM's product construction, with our engines on the product."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.references import answers, relative_error

pytestmark = pytest.mark.prism

TIGHT = ("-epsilon", "1e-9", "-maxiters", "1000000")

# model, constants, property, the name of our method or None where no state is left to solve for
CASES = {
    "coin2-FG": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmax=? [ F G ("finished" & !"agree") ]',
        "Iterative method",
    ),
    "coin2-GF": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmin=? [ G F ("finished" & "agree") ]',
        "Iterative method",
    ),
    "coin2-min-FG": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmin=? [ F G "all_coins_equal_1" ]',
        "Iterative method",
    ),
    "coin2-next": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmax=? [ (G F "finished") & (F (counter=left & (X counter>left))) ]',
        "Iterative method",
    ),
    "csma": (
        "mdps/csma/csma2_2.nm",
        None,
        "Pmax=? [ F G (max_collisions>=2) ]",
        None,
    ),
    "zeroconf": (
        "mdps/zeroconf/zeroconf.nm",
        "N=20,K=2,reset=true,err=100",
        "Pmin=? [ G F (l=4 & ip=1) ]",
        "Iterative method",
    ),
    "dice": (
        "simple/dice/dice.pm",
        None,
        "P=? [ (F s=2) & (G !(d=6)) ]",
        "Jacobi",
    ),
    "herman": (
        "dtmcs/herman/herman5.pm",
        None,
        "filter(max, P=? [ (F num_tokens=3) & (G num_tokens<5) ])",
        None,
    ),
    "brp": (
        "dtmcs/brp/brp.pm",
        "N=16,MAX=2",
        "P=? [ (F G s=5) & (F srep=2) ]",
        None,
    ),
    "cluster": (
        "ctmcs/cluster/cluster.sm",
        "N=3",
        'P=? [ (!"premium") U ("premium" & (X !"premium")) & (G F "minimum") ]',
        None,
    ),
    "polling": (
        "ctmcs/polling/poll4.sm",
        None,
        "P=? [ (!(s=2 & a=1)) U ((s=1 & a=1) & (X s1=0)) ]",
        "Jacobi",
    ),
}


LONG = ("coin2-min-FG", "coin2-next", "csma", "herman", "cluster", "brp")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CASES]
)
def test_ltl_is_solved_by_our_engines_on_prism_s_product(prism_gpu, prism, prism_examples, name):
    model, constants, text, method = CASES[name]
    words = [prism_examples / model, "-pctl", text, *TIGHT]
    words += ["-const", constants] if constants else []
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    (mine,), (other,) = answers(ours.output), answers(theirs.output)
    assert relative_error(mine, float(other)) <= 1e-6
    if method is not None:
        product = ours.output.index("product")
        assert re.search(rf"^{method}: \d+ iterations in ", ours.output[product:], re.MULTILINE)
    assert "is not done by our engines" not in ours.output


def test_an_ltl_value_with_the_default_settings_is_right(prism_gpu, prism_examples):
    run = prism_gpu(
        prism_examples / "mdps" / "consensus" / "coin2.nm",
        *("-const", "K=2", "-pctl", 'Pmax=? [ F G ("finished" & !"agree") ]'),
    )
    # values.json: 13/120, from Storm's rational engine.
    assert run.numbers() == pytest.approx([13 / 120], rel=1e-6)
