"""Rates and times whose sums or products overflow, with and without PRISM: an error in words."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.prism

HUGE = "3 3\n0 1 1e308\n0 2 1e308\n2 2 1\n"
WIDE = "3 3\n0 1 1\n1 2 1e300\n2 2 1\n"
SMALL = "3 3\n0 1 100\n1 2 1\n2 2 1\n"
ZERO = "3 3\n0 1 1\n1 2 0\n2 2 1\n"
LABELS = '0="init" 1="deadlock" 2="t"\n0: 0\n2: 2\n'
ROUTES = ["files", "-hybrid", "-explicit"]
FOX_GLYNN = "Overflow in Fox-Glynn computation (time bound too big?)"
REFUSED = {
    "exit rate": (HUGE, 'P=? [ F "t" ];S=? [ "t" ]', "state 0"),
    "rate and time": (WIDE, 'P=? [ F<=1 "t" ]', FOX_GLYNN),
    "product": (SMALL, 'P=? [ F<=1e308 "t" ]', "rate 100 of state 0 times"),
    "endless time": (SMALL, 'P=? [ F<=1/0 "t" ]', FOX_GLYNN),
}


def arguments(route, text, tmp_path):
    path = tmp_path / "m.tra"
    path.write_text(text)
    path.with_suffix(".lab").write_text(LABELS)
    return ([path] if route == "files" else ["-importmodel", f"{path},lab", route]) + ["-ctmc"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("route", ROUTES)
def test_what_overflows_is_refused_in_plain_words(case, route, prism_gpu, tmp_path):
    text, asked, words = REFUSED[case]
    run = prism_gpu(*arguments(route, text, tmp_path), "-pf", asked)
    assert "Result" not in run.output
    assert "unexpectedly" not in run.output
    assert "Traceback" not in run.output
    assert "Exception" not in run.output
    (error, *_) = [line for line in run.output.splitlines() if line.startswith("Error:")]
    assert words in error


@pytest.mark.parametrize("route", ["files", "-hybrid"])
def test_a_state_whose_only_rate_is_0_is_a_deadlock(route, prism_gpu, tmp_path):
    path = arguments(route, ZERO, tmp_path)
    run = prism_gpu(*path, "-pf", 'P=? [ F<=10 "deadlock" ]')
    (value,) = run.numbers()
    assert value == pytest.approx(0.9999546000702375, rel=1e-9)
