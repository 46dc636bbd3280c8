"""Probabilities of files that sum to 1 only within PRISM's tolerance, with and without PRISM."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.prism

SLOW = "3 5\n0 0 0.99998\n0 1 0.000012\n1 1 0.999985\n1 0 0.000007\n2 2 1\n"
LEFT = "4 6\n0 0 0.99999\n0 3 0.000015\n0 1 0.000000001\n1 1 1\n2 2 1\n3 3 1\n"
CHOICES = "3 3 5\n0 0 0 0.99999\n0 0 1 0.000015\n0 0 2 0.000000001\n1 0 1 1\n2 0 2 1\n"
LABELS = '0="init" 1="deadlock" 2="t"\n0: 0\n'
CASES = {
    "long run": ("-dtmc", SLOW, 1, 'S=? [ "init" ]', 7 / 19, "2 states"),
    "until": ("-dtmc", LEFT, 3, 'P=? [ F "t" ]', 15000 / 15001, "1 state"),
    "choices": ("-mdp", CHOICES, 1, 'Pmin=? [ F "t" ]', 15000 / 15001, "1 choice"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("route", ["files", "-hybrid", "-explicit"])
def test_every_route_divides_such_rows_by_their_sums(case, route, prism_gpu, tmp_path):
    kind, text, target, asked, exact, rows = CASES[case]
    path = tmp_path / "m.tra"
    path.write_text(text)
    path.with_suffix(".lab").write_text(f"{LABELS}{target}: 2\n")
    model = [path] if route == "files" else ["-importmodel", f"{path},lab", route]
    for method in (["-ii"], ["-epsilon", "1e-9"]):
        run = prism_gpu(*model, kind, *method, "-pf", asked)
        assert run.code == 0, run.output
        line = f"prism-gpu: the probabilities of {rows} do not sum to 1 and are divided"
        assert run.output.count(line) == 1
        assert "state 0" in run.output.partition(line)[2].splitlines()[0]
        (value,) = run.numbers()
        assert value == pytest.approx(exact, rel=1e-6)
