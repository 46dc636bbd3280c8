"""The tests' programs mean to PRISM what they mean here: its exact engine has the same values."""

from __future__ import annotations

import pytest

from . import programs
from .explicit import Explicit

PROPERTIES = {
    "polling": (
        programs.POLLING,
        [
            "P=? [ !(busy & at=2) U (busy & at=1) ]",
            "P=? [ F<=1 job1=1 & job2=1 & job3=1 ]",
            "P=? [ job1=0 U[0.2,0.7] job2=1 ]",
            'R{"waiting"}=? [ C<=2 ]',
            'R{"served"}=? [ C<=2 ]',
            'R{"waiting"}=? [ I=0.5 ]',
            "P=? [ X at=2 ]",
        ],
    ),
    "sensors": (
        programs.SENSORS,
        [
            "P=? [ F<=10 !ok ]",
            "P=? [ ok U>=1 r=1 ]",
            'R{"up"}=? [ C<=5 ]',
            'R{"up"}=? [ F !ok ]',
        ],
    ),
    "agreeing": (
        programs.AGREEING,
        [
            "P=? [ (n<2 | x<2) U (x=3 & y=3) ]",
            "P=? [ F[1,6] x=2 & y=2 ]",
            'R{"work"}=? [ C<=7 ]',
            'R{"idle"}=? [ I=6 ]',
            'R{"work"}=? [ F x=3 & y=3 ]',
        ],
    ),
    "deadlock": (
        programs.DEADLOCK,
        ["P=? [ F x=3 ]", "P=? [ F[6,9] x=4 ]", 'R{"x"}=? [ C<=9 ]', 'R{"x"}=? [ I=9 ]'],
    ),
}


@pytest.mark.prism
@pytest.mark.parametrize("name", PROPERTIES)
def test_prisms_exact_values_are_those_of_the_tests(prism, tmp_path, name):
    text, properties = PROPERTIES[name]
    (tmp_path / "model.prism").write_text(text)
    run = prism(
        *(tmp_path / "model.prism", "-pf", "; ".join(properties)),
        *("-ex", "-epsilon", "1e-9", "-maxiters", "100000"),
    )
    found, program, questions = next(case for case in programs.cases() if case[0] == name)
    assert found == name
    exact = Explicit(program)
    expected = [exact.answer(question) for question in questions]
    assert run.numbers() == pytest.approx(expected, rel=1e-6)
