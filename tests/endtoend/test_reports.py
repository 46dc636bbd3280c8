"""Filters, nesting, experiments and exports come out as PRISM's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.endtoend.comparing import assert_same_files, assert_same_lines, comparable

pytestmark = pytest.mark.prism

EPSILON = ("-epsilon", "1e-9")

HERMAN = """
const int k;
label "few" = num_tokens<=k;
filter(max, R=? [ F "stable" ], "few");
filter(min, R=? [ F "stable" ]);
filter(range, P=? [ F "stable" ], "few");
filter(range, R=? [ F "stable" ]);
filter(forall, P>=1 [ F "stable" ]);
filter(forall, R<3 [ F "stable" ]);
filter(exists, R>4 [ F "stable" ]);
filter(count, P<1 [ X "stable" ]);
filter(avg, R=? [ F "stable" ]);
filter(sum, R=? [ F "stable" ], "init");
filter(argmax, R=? [ F "stable" ]);
filter(argmin, R=? [ F "stable" ], num_tokens=3);
filter(first, R=? [ F "stable" ]);
filter(state, R=? [ F "stable" ], x1=0 & x2=0 & x3=0 & x4=0 & x5=0);
filter(print, R=? [ F "stable" ], "few");
filter(printall, P=? [ X "stable" ]);
filter(print, R>=3 [ F "stable" ]);
P>=0.5 [ F P<0.1 [ X "stable" ] ];
P>=0.5 [ F P>0.1 [ X "stable" ] ];
"init" => P>=1 [ F "stable" ];
R<5 [ F "stable" ];
R<3 [ F "stable" ];
"""

CLUSTER = """
"premium_now": P=? [ !"minimum" U "premium" ];
S=? [ "premium" ];
S>0.5 [ "premium" ];
R{"percent_op"}=? [ S ];
filter(min, "premium_now", !"minimum");
filter(max, P=? [ !"minimum" U "premium" ], !"minimum");
filter(avg, S=? [ "premium" ], "minimum");
P>=1 [ F "premium" ];
S>=0.9 [ P>=0.5 [ X "premium" ] ];
"""

COIN = """
label "heads" = coin1=1 & coin2=1 & pc1=3 & pc2=3;
Pmin=? [ F "heads" ];
filter(print, Pmax=? [ F "heads" ], counter=left | counter=right-1);
filter(count, P>=0.3 [ F "heads" ]);
R{"steps"}max=? [ F "finished" ];
R{"steps"}<=500 [ F "finished" ];
P>=0.4 [ F "heads" ];
Pmax=? [ F P>=0.45 [ F "heads" ] ];
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "text", "constants"),
    [
        ("dtmcs/herman/herman5.pm", HERMAN, "k=3"),
        ("ctmcs/cluster/cluster.sm", CLUSTER, "N=3"),
        ("mdps/consensus/coin2.nm", COIN, "K=2"),
    ],
    ids=["dtmc", "ctmc", "mdp"],
)
def test_filters_nesting_and_bounds_are_reported_as_prism_reports_them(
    prism_gpu, prism, prism_examples, tmp_path, model, text, constants
):
    properties = tmp_path / "filters.props"
    properties.write_text(text, encoding="utf-8")
    words = (prism_examples / model, properties, "-const", constants, *EPSILON)
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert_same_lines(comparable(ours.output), comparable(theirs.output))
    assert ours.code == theirs.code == 0
    checked, answered = (
        len(re.findall(pattern, theirs.output, re.MULTILINE))
        for pattern in (r"^Model checking:", r"^Result\b")
    )
    assert checked == answered > 5


def test_ties_of_a_maximum_are_those_that_prism_counts(prism_gpu, prism, prism_examples):
    # Two of the four states differ from the greatest value by 4e-7, which PRISM calls the same.
    words = (
        prism_examples / "ctmcs" / "cluster" / "cluster.sm",
        *("-const", "N=2", "-epsilon", "1e-10"),
        *("-pctl", 'filter(max, P=? [ !"minimum" U "premium" ], !"minimum")'),
    )
    found = [
        [line for line in run.output.splitlines() if line.startswith("There are")]
        for run in (prism_gpu(*words), prism(*words, "-explicit"))
    ]
    assert found[0] == found[1]


def exported(run_one, folder: Path, words: list[object], switches: dict[str, str]) -> str:
    """Run with exports into a folder of its own; return the log."""
    folder.mkdir()
    for switch, name in switches.items():
        words = [*words, f"-{switch}", folder / name]
    run = run_one(*words, *EPSILON)
    assert run.code == 0, run.output + run.errors
    return run.output.replace(str(folder), "FOLDER")


EXPERIMENT = (
    "ctmcs/cluster/cluster.sm",
    'S=? [ "premium" ]; P=? [ !"minimum" U "premium" ]; R{"percent_op"}=? [ S ]',
)


@pytest.mark.parametrize(
    ("sort", "name", "engine"),
    [
        ("csv", "results.csv", "-explicit"),
        ("", "results.txt", "-hybrid"),
        pytest.param("csv", "results.csv", "-hybrid", marks=pytest.mark.slow),
        pytest.param("", "results.txt", "-explicit", marks=pytest.mark.slow),
        pytest.param("matrix", "results.txt", "-explicit", marks=pytest.mark.slow),
        pytest.param("dataframe", "results.csv", "-explicit", marks=pytest.mark.slow),
        pytest.param("comment", "results.txt", "-explicit", marks=pytest.mark.slow),
    ],
)
def test_results_of_an_experiment_are_exported_as_prism_exports_them(
    prism_gpu, prism, prism_examples, tmp_path, sort, name, engine
):
    model, texts = EXPERIMENT
    method = ["-jor", "-omega", "0.9"] if engine == "-hybrid" else []
    words = [prism_examples / model, "-pctl", texts, "-const", "N=2:2:8"]
    files = []
    for run_one, extra, folder in ((prism_gpu, [], "ours"), (prism, [engine, *method], "prism's")):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / name)
        target = f"{files[-1]}:{sort}" if sort else files[-1]
        run = run_one(*words, "-exportresults", target, *EPSILON, *extra)
        assert run.code == 0
    assert_same_files(*files)


def test_an_experiment_is_logged_as_prism_logs_it(prism_gpu, prism, prism_examples):
    model, texts = EXPERIMENT
    words = [prism_examples / model, "-pctl", texts, "-const", "N=2:2:8", *EPSILON]
    words += ["-exportresults", "stdout"]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert_same_lines(comparable(ours.output), comparable(theirs.output))


def test_an_experiment_over_a_property_s_constant_is_logged_as_prism_logs_it(
    prism_gpu, prism, prism_examples
):
    words = [prism_examples / "dtmcs" / "herman" / "herman7.pm", "-const", "k=1:2:7"]
    words += ["-pf", 'const int k; filter(max, R=? [ F "stable" ], num_tokens=k)', *EPSILON]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert_same_lines(comparable(ours.output), comparable(theirs.output))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "constants", "text", "engine"),
    [
        ("dtmcs/herman/herman5.pm", None, 'R=? [ F "stable" ]', "-explicit"),
        ("ctmcs/tandem/tandem.sm", "c=5", "P=? [ sm<c U sc=c ]", "-explicit"),
        ("ctmcs/tandem/tandem.sm", "c=5", "P=? [ sm<c U sc=c ]", "-sparse"),
        ("mdps/consensus/coin2.nm", "K=2", 'Pmin=? [ F "all_coins_equal_0" ]', "-hybrid"),
    ],
    ids=["dtmc", "ctmc", "ctmc-sparse", "mdp"],
)
def test_vectors_and_models_are_exported_as_prism_exports_them(
    prism_gpu, prism, prism_examples, tmp_path, model, constants, text, engine
):
    files = {
        "exportvector": "values.vec",
        "exporttrans": "model.tra",
        "exportlabels": "model.lab",
        "exportstates": "model.sta",
        "exportmodel": "all.tra,sta,lab",
    }
    words = [prism_examples / model, "-pctl", text]
    words += ["-const", constants] if constants else []
    logs = [
        exported(prism_gpu, tmp_path / "ours", [*words, engine], files),
        exported(prism, tmp_path / "prism's", [*words, engine], files),
    ]
    if engine == "-explicit":
        assert_same_lines(*map(comparable, logs))
    for theirs in sorted((tmp_path / "prism's").iterdir()):
        ours = tmp_path / "ours" / theirs.name
        if theirs.suffix == ".vec":
            assert_same_files(ours, theirs)
        else:
            assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("name", ["herman5", pytest.param("dice", marks=pytest.mark.slow)])
def test_exports_to_the_log_are_prism_s(prism_gpu, prism, prism_examples, name):
    model = {
        "herman5": prism_examples / "dtmcs" / "herman" / "herman5.pm",
        "dice": prism_examples / "simple" / "dice" / "dice.pm",
    }[name]
    words = [model, "-exporttrans", "stdout", "-exportlabels", "stdout", *EPSILON]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert_same_lines(comparable(ours.output), comparable(theirs.output))
