"""`-explicit`: our explorer builds the models, which PRISM reads, writes and checks as its own."""

from __future__ import annotations

import pytest

from tests.endtoend.comparing import assert_same_lines, comparable

pytestmark = pytest.mark.prism

EXPORTS = {
    "trans": "model.tra",
    "states": "model.sta",
    "labels": "model.lab",
    "staterewards": "model.srew",
    "transrewards": "model.trew",
}
BUILT = "prism-gpu: built by PRISM: "

# model, constants, properties
CASES = {
    "dtmc": ("dtmcs/brp/brp.pm", "N=16,MAX=2", ("P=? [ F s=5 ]", 'P>0.9 [ F s>3 ]')),
    "initial states": (
        "dtmcs/herman/herman5.pm",
        "",
        ("filter(max, R=? [ F num_tokens=1 ])", "filter(first, P=? [ F<=2 num_tokens=1 ])"),
    ),
    "ctmc": (
        "ctmcs/tandem/tandem.sm",
        "c=5",
        ('R{"customers"}=? [ S ]', "P=? [ F<=0.2 sm=c ]", "S=? [ sc=c ]", "P=? [ G<=1 !(sc=c) ]"),
    ),
    "absorbed": (
        "ctmcs/embedded/embedded.sm",
        "MAX_COUNT=2",
        ('P=? [ comp U i<2 ]', "R{\"danger\"}=? [ F !comp ]"),
    ),
    "mdp": (
        "mdps/csma/csma2_2.nm",
        "",
        ('Rmin=? [ F "all_delivered" ]', "Pmax=? [ F min_backoff_after_success<=2 ]"),
    ),
    "ltl": (
        "mdps/consensus/coin2.nm",
        "K=2",
        ('Pmin=? [ G F "finished" ]', 'R{"steps"}max=? [ F "finished" ]'),
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_exports_are_prisms_to_the_byte_and_results_its_own(
    prism_gpu, prism, prism_examples, tmp_path, name
):
    model, constants, properties = CASES[name]
    words = [prism_examples / model, "-explicit", "-pf", ";".join(properties)]
    words += ["-const", constants] if constants else []
    runs, folders = [], []
    for run, side in ((prism_gpu, "ours"), (prism, "theirs")):
        folder = tmp_path / side
        folder.mkdir()
        exports = [word for what, file in EXPORTS.items() for word in (f"-export{what}", file)]
        exports = [folder / word if "." in word else word for word in exports]
        runs.append(run(*words, *exports))
        folders.append({file.name: file.read_bytes() for file in folder.iterdir()})
    ours, theirs = runs
    assert ours.code == theirs.code == 0, ours.output
    assert BUILT not in ours.output
    assert folders[0] == folders[1]
    assert {"model.tra", "model.sta", "model.lab"} <= {
        file for file, text in folders[0].items() if text
    }
    assert len(ours.results()) == len(properties)
    for mine, other in zip(ours.results(), theirs.results(), strict=True):
        if mine in ("true", "false"):
            assert mine == other
        else:
            assert float(mine) == pytest.approx(float(other), rel=1e-3)
    building = [run.output.partition("Building model")[2] for run in runs]
    lines = [comparable(text.partition("\nExporting")[0]) for text in building]
    assert_same_lines(*lines)


FAULTS = {
    "sum": ("[] x=0 -> 0.5:(x'=1) + 0.4:(x'=2);", ()),
    "division": ("[] x<3 -> 1/(x-2):(x'=3) + 1-1/(x-2):(x'=x+1);", ()),
    "no fix": ("[] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);", ("-nofixdl",)),
    "range": ("[] x<3 -> 0.5:(x'=x+2) + 0.5:(x'=0);", ()),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_prisms_with_its_exit_code(prism_gpu, prism, tmp_path, name):
    command, switches = FAULTS[name]
    model = tmp_path / "m.prism"
    model.write_text(f"dtmc\nmodule m\n  x : [0..3] init 0;\n  {command}\nendmodule\n")
    ours, theirs = (
        run(model, "-explicit", *switches, "-pf", "P=? [ F x=3 ]") for run in (prism_gpu, prism)
    )
    assert ours.code == theirs.code

    def said(run):
        lines = comparable(run.output)
        return [line for line in lines if "Error" in line or "deadlock" in line]

    assert said(ours) == said(theirs)
    assert (said(theirs) == []) == (name == "range")
    # PRISM's explicit engine does not look at ranges, and prints what it finds.
    assert (BUILT in ours.output) == (name in ("range", "no fix"))


def test_what_prism_explores_by_itself_is_left_alone(prism_gpu, prism, prism_examples, tmp_path):
    model = prism_examples / "simple/dice/dice.pm"
    knuth = tmp_path / "knuth.pm"
    knuth.write_text(model.read_text().replace("0.5", "p").replace("dtmc", "dtmc const double p;"))
    for words in (
        (model, "-exact", "-pf", "P=? [ F d=1 ]"),
        (knuth, "-param", "p=0:1", "-pf", "P=? [ F d=1 ]"),
    ):
        ours, theirs = prism_gpu(*words), prism(*words)
        assert ours.code == theirs.code == 0
        assert ours.results() == theirs.results() != []
        assert BUILT not in ours.output


def test_arrays_that_were_built_here_are_not_read_back(prism_gpu, prism_examples):
    words = (prism_examples / "ctmcs/tandem/tandem.sm", "-const", "c=5", "-gpuinfo")
    run = prism_gpu(*words, "-explicit", "-pf", 'R{"customers"}=? [ S ]')
    assert run.code == 0
    assert "solved in" in run.output
    assert "prism-gpu: read " not in run.output


def test_sums_that_prism_lets_pass_are_mended_in_both_copies(prism_gpu, tmp_path):
    model = tmp_path / "m.prism"
    # PRISM divides the probabilities of a DTMC by itself.
    model.write_text(
        "mdp\nmodule m\n  x : [0..2] init 0;\n"
        "  [] x=0 -> 0.3333333333333:(x'=1) + 0.3333333333334:(x'=2) + 0.333333333333:(x'=0);\n"
        "endmodule\n"
    )
    run = prism_gpu(model, "-explicit", "-gpuinfo", "-pf", "Pmax=? [ F x=1 ]")
    assert run.code == 0
    assert "the probabilities of 1 choice do not sum to 1 and are divided" in run.output
    # What the engines had is no longer the model.
    assert "prism-gpu: read 3 states" in run.output
