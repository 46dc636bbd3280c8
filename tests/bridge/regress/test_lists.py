"""Lists of runs in the form of PRISM's `auto` files."""

import pytest

from bridge.regress.lists import runs_of
from engines.errors import InvalidModelError


def test_a_run_may_name_the_program_or_not():
    text = "#!/bin/csh\nprism a.pm a.pctl -const x=3 # why\n\nb.pm b.pctl\n"
    assert runs_of(text, "auto") == [["a.pm", "a.pctl", "-const", "x=3"], ["b.pm", "b.pctl"]]


def test_loops_nest_and_their_variables_are_filled_in():
    text = 'foreach N (1 2)\n foreach K ( 7 )\n prism m"$N"_"$K".sm p -const N=$N,K=${K}\n end\nend'
    assert runs_of(text, "auto") == [
        ["m1_7.sm", "p", "-const", "N=1,K=7"],
        ["m2_7.sm", "p", "-const", "N=2,K=7"],
    ]


def test_quoted_words_keep_their_spaces():
    assert runs_of("prism a.pm -pf 'P=? [ F x=1 ]'", "auto") == [["a.pm", "-pf", "P=? [ F x=1 ]"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prism a.pm -const N=$N", r"auto, line 1: \$N has no value"),
        ("foreach N (1)\nprism a.pm", "line 1: a foreach without its end"),
        ("prism a.pm\nend", "line 2: an end without its foreach"),
        ("prism 'a.pm", "line 1: No closing quotation"),
    ],
)
def test_a_list_that_cannot_be_read_is_told_with_its_line(text, message):
    with pytest.raises(InvalidModelError, match=message):
        runs_of(text, "auto")
