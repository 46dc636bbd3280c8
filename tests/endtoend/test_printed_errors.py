"""Errors behind results that PRISM's explicit engine makes of ours: what they have, or none."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.prism

QUEUE = """{kind}
module queue
  s : [0..9];
  [] s=0 -> {up}:(s'=1) + {low}:(s'=0);
  [] s>0 & s<9 -> {up}:(s'=s+1) + {down}:(s'=s-1);
  [] s=9 -> {down}:(s'=8) + {high}:(s'=9);
endmodule
rewards
  true : s;
endrewards
"""
CHAINS = {
    "ctmc": ({"up": 0.75, "down": 1.5, "low": 0.25, "high": 0.25}, 0.5),
    "dtmc": ({"up": 0.25, "down": 0.75, "low": 0.75, "high": 0.25}, 1 / 3),
}
"""Rates or probabilities, and what each state has of the probability of the one before it."""
RESULT = re.compile(r"^Result: (\S+) \(\+/- (\S+) estimated; rel err \S+\)$", re.MULTILINE)


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("method", [(), ("-power", "-gpuinfo")], ids=["PRISM's default", "power"])
def test_the_exact_value_lies_within_what_is_printed(prism_gpu, tmp_path, kind, method):
    rates, ratio = CHAINS[kind]
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind=kind, **rates))
    run = prism_gpu(str(model), "-pf", "S=? [ s=0 ]; R=? [ S ]", "-explicit", *method)
    weights = [ratio**s for s in range(10)]
    exact = weights[0], sum(s * weight for s, weight in enumerate(weights))
    for (value, error), expected in zip(RESULT.findall(run.output), exact, strict=True):
        wanted = expected / sum(weights)
        assert abs(float(value) - wanted) <= float(error) < 1e-3 * wanted


@pytest.mark.parametrize("engine", [(), ("-explicit",)], ids=["default", "explicit"])
def test_arithmetic_has_not_the_error_of_an_operand(prism_gpu, tmp_path, engine):
    rates, _ = CHAINS["dtmc"]
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind="dtmc", **rates))
    asked = ("P=? [ F s=9 ]", "(R=? [ F s=9 ])", "R=? [ F s=9 ] - 80000", "max(R=? [ F s=9 ], 1)")
    run = prism_gpu(str(model), "-pf", "; ".join(asked), *engine)
    told = re.findall(r"^Result: \S+(?P<error> \(.*)?$", run.output, re.MULTILINE)
    assert [bool(error) for error in told] == [True, True, False, False]
