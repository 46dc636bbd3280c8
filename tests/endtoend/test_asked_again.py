"""Questions that a run asks twice: answered once, and reported as PRISM reports them."""

import re

import pytest

from tests.endtoend.references import relative_error

pytestmark = pytest.mark.prism

AGAIN = "prism-gpu: reusing the cached result"
SWEEPS = r"^(?!Prob)\S.*: (\d+) iterations in (\S+) seconds"
HERMAN = "dtmcs/herman/herman11.pm"
COIN = "mdps/consensus/coin2.nm"
FILTERS = """
filter(max, R=? [ F "stable" ]);
filter(max, P=? [ F<=5 "stable" ]);
filter(min, R=? [ F "stable" ], num_tokens=3);
filter(max, P=? [ F<=6 "stable" ]);
filter(avg, R=? [ F "stable" ]);
filter(min, P=? [ F<=6 "stable" ]);
"""
EXTREMES = """
filter(max, Pmin=? [ F "finished" & "all_coins_equal_1" ], counter=5);
filter(max, Pmax=? [ F "finished" & "all_coins_equal_1" ], counter=5);
filter(min, Pmax=? [ F "finished" & "all_coins_equal_1" ], counter=5);
filter(min, Pmin=? [ F "finished" & "all_coins_equal_1" ], counter=5);
filter(min, Pmin=? [ F "finished" & "all_coins_equal_0" ], counter=5);
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["-explicit", "-hybrid", "-sparse"])
@pytest.mark.parametrize(
    ("model", "text", "constants", "kept"),
    [("dtmcs/herman/herman7.pm", FILTERS, (), 3), (COIN, EXTREMES, ("-const", "K=2"), 2)],
)
def test_values_are_kept_for_the_same_question_alone(
    prism_gpu, prism, prism_examples, tmp_path, engine, model, text, constants, kept
):
    (tmp_path / "asked.props").write_text(text)
    words = (prism_examples / model, tmp_path / "asked.props", *constants, engine)
    theirs = prism(*words, "-epsilon", "1e-10")
    ours = prism_gpu(*words, "-epsilon", "1e-10", "-nogpu", "-gpuinfo")
    assert ours.code == theirs.code == 0, ours.output
    assert ours.output.count(AGAIN) == kept
    for mine, reference in zip(ours.numbers(), theirs.numbers(), strict=True):
        assert relative_error(str(mine), reference) < 1e-8


def test_what_is_kept_is_reported_with_its_sweeps(prism_gpu, prism_examples, tmp_path):
    (tmp_path / "asked.props").write_text(FILTERS)
    words = (prism_examples / HERMAN, tmp_path / "asked.props", "-nogpu", "-explicit")
    blocks = prism_gpu(*words).output.split("Model checking: ")[1:]
    first, again = (blocks[i] for i in (0, 2))
    assert AGAIN not in first
    assert AGAIN in again
    sweeps, kept = (re.search(SWEEPS, block, re.M) for block in (first, again))
    assert sweeps[1] == kept[1] != "0"
    assert kept[2] == "0.00"
    claims = [re.search(r"^Result: \S+(.*)", block, re.M)[1] for block in (first, again)]
    assert bool(claims[0]) == bool(claims[1])


def test_an_experiment_s_models_and_bounds_are_questions_of_their_own(
    prism_gpu, prism, prism_examples
):
    words = (prism_examples / "mdps/consensus/coin2.nm", "-explicit", "-epsilon", "1e-10")
    asked = ("-const", "K=1:2,k=2:3", "-pf", 'const int k; Pmax=? [ F<=10*k "agree" & "finished" ]')
    theirs, ours = prism(*words, *asked), prism_gpu(*words, *asked, "-nogpu")
    assert ours.numbers() == pytest.approx(theirs.numbers(), rel=1e-9)
    assert AGAIN not in ours.output


def test_a_plot_shows_the_sweeps_of_each_solve(prism_gpu, prism_examples, tmp_path):
    (tmp_path / "asked.props").write_text(FILTERS)
    file = tmp_path / "sweeps.svg"
    words = (prism_examples / HERMAN, tmp_path / "asked.props", "-nogpu", "-explicit")
    run = prism_gpu(*words, "-gpuplot", file)
    assert run.code == 0, run.output + run.errors
    assert AGAIN not in run.output
    assert file.is_file()


@pytest.mark.parametrize("engine", ["-hybrid", "-sparse"])
def test_a_product_that_is_made_again_is_the_same_model(prism_gpu, tmp_path, engine):
    # The library of diagrams gives it the same diagram; where it keeps the numbers of its states
    # differs from run to run.
    model, asked = tmp_path / "walk.sm", tmp_path / "asked.props"
    model.write_text(
        "ctmc module m x : [0..40] init 20; [] x<40 -> 1.5 : (x'=x+1);"
        " [] x>0 & x<40 -> 1 : (x'=x-1); endmodule rewards true : 1; endrewards"
    )
    question = "R=? [ (F x=40) & (F x=21) ]; "
    asked.write_text(question + "P=? [ (F x=3) & (F x=35) ]; " + question * 3)
    runs = [prism_gpu(model, asked, engine, "-nogpu") for _ in range(3)]
    assert all(run.code == 0 for run in runs), runs[0].output
    counts = {run.output.count(AGAIN) for run in runs}
    assert len(counts) == 1
    assert counts != {0}
