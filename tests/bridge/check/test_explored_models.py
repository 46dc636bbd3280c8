"""Models built from their text are those of PRISM's explicit engine, array for array."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bridge
from bridge.check.model_text import ModelText
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import build
from tests.bridge.session_models import MODELS, QUICK

pytestmark = pytest.mark.prism

CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow, id="-".join(case))
    for case in MODELS
]


def values_of(constants):
    """The values in a text such as ``N=2,reset=true``."""
    given = (item.split("=") for item in constants.split(",") if item)
    return {name: number(value) for name, value in given}


def number(text):
    """The value of a constant."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def explored(path, constants):
    """The program of a model's file, and the model that it is built to."""
    text = ModelText(path.read_text(), str(path))
    program = text.built_program(text.constants(constants), checked=True)
    return program, build(program)


def require_same(session, model):
    """Compare a model with PRISM's to the last bit."""
    theirs = session.model
    for what in ("row_offsets", "columns", "values"):
        ours, wanted = getattr(model.matrix, what), getattr(theirs.matrix, what)
        assert np.array_equal(ours, wanted), what
    if theirs.row_group_offsets is not None:
        assert np.array_equal(model.row_group_offsets, theirs.row_group_offsets)
    assert list(model.labels) == session.label_names
    for name in session.label_names:
        assert np.array_equal(model.labels[name], session.labels[name]), name
    assert [rewards.name for rewards in model.rewards] == [x.name for x in theirs.rewards]
    for ours, wanted in zip(model.rewards, theirs.rewards, strict=True):
        assert np.array_equal(ours.state_rewards, wanted.state_rewards)
        choices = wanted.choice_rewards
        if ours.choice_rewards is None:
            assert choices is None or not choices.any()
        else:
            assert np.array_equal(ours.choice_rewards, choices)


@pytest.mark.parametrize(("file", "constants"), CASES)
def test_arrays_are_prisms(prism_install, prism_examples, file, constants):
    given, path = values_of(constants), prism_examples / file
    with bridge.open(path, given, prism_dir=str(prism_install.root)) as session:
        require_same(session, explored(path, given)[1].model)


TEXTS = {
    "several initial states": """mdp
        global g : bool;
        module a x : [-2..3]; [go] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=-2); [] g -> (g'=false); endmodule
        module b = a [ x=y ] endmodule
        init x+y<=0 & x>=y endinit
        rewards [go] x=y : 1; [] true : 0.1*(x+2); true : y+2; endrewards
        label "low" = x<0 | g;""",
    "unbounded": """dtmc
        const int N = 40000;
        module a n : int init -N; [] n<N -> 1/3:(n'=n+2*N/5) + 2/3:(n'=min(N, n+N/4)); endmodule
        """.replace("2*N/5", "floor(2*N/5)").replace("N/4", "floor(N/4)"),
    "parallel transitions": """ctmc
        module a x : [0..2]; [] true -> 0.1:(x'=1) + 0.2:(x'=1); [p] x=1 -> 0.7:(x'=1);
        [p] x<2 -> 0.3:(x'=2); [] x=0 -> 0.3:(x'=1); endmodule
        module b [p] true -> 1:true; [q] true -> true; endmodule
        module c y : bool; [p] y -> 0.1:(y'=false) + 0.9:true; [p] !y -> (y'=true); endmodule
        rewards [p] x=1 : 0.1; [] true : 0.7; x=2 : 0.3; endrewards""",
    "the same choice twice": """mdp
        module a x : [0..2]; [] true -> 0.5:(x'=0) + 0.5:(x'=1);
        [] true -> 0.5:(x'=1) + 0.5:(x'=0); [p] true -> (x'=2); [p] x>=0 -> (x'=2); endmodule""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_arrays_of_texts_are_prisms(prism_install, tmp_path, name):
    path = tmp_path / "model.prism"
    path.write_text(TEXTS[name])
    with bridge.open(path, prism_dir=str(prism_install.root)) as session:
        require_same(session, explored(path, {})[1].model)


EXPORTED = [
    ("mdps/csma/csma2_2.nm", ""),
    ("ctmcs/polling/poll4.sm", ""),
    ("dtmcs/herman/herman5.pm", ""),
    ("mdps/zeroconf/zeroconf.nm", "N=20,K=2,reset=true,err=0.1"),
]


@pytest.mark.parametrize(("file", "constants"), EXPORTED)
def test_states_and_actions_are_prisms(prism, prism_examples, tmp_path, file, constants):
    path, target = prism_examples / file, tmp_path / "model.all"
    switches = ["-const", constants] if constants else []
    prism(path, "-explicit", "-exportmodel", target, *switches)
    program, built = explored(path, values_of(constants))
    columns = [built.packing.column(built.states, i) for i in range(len(program.variables))]
    states = [
        ",".join(str(value).lower() for value in row)
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]
    found = re.findall(r"^\d+:\((.*)\)$", (tmp_path / "model.sta").read_text(), re.MULTILINE)
    assert states == found
    lines = (tmp_path / "model.tra").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")][1:]
    names = [
        "" if action < 0 else program.actions[action]
        for action in ([] if built.actions is None else built.actions.tolist())
    ]
    matrix, model = built.model.matrix, built.model
    origins = matrix.row_of_entry().tolist()
    if model.row_group_offsets is not None:
        names = [names[row] if names else "" for row in origins]
        of_rows = model.states_of_rows()
        choices = np.arange(matrix.num_rows) - model.row_group_offsets[of_rows]
        ours = [
            (int(of_rows[row]), int(choices[row]), column, name)
            for row, column, name in zip(origins, matrix.columns.tolist(), names, strict=True)
        ]
        theirs = [(*map(int, row[:3]), "".join(row[4:])) for row in rows]
    else:
        names = names or [""] * matrix.num_entries
        ours = sorted(zip(origins, matrix.columns.tolist(), names, strict=True))
        theirs = sorted((*map(int, row[:2]), "".join(row[3:])) for row in rows)
    assert ours == theirs


@pytest.mark.parametrize(
    ("commands", "rewards"),
    [
        ("[] x<3 -> 0.5 : (x'=x+1) + 0.4 : true;", ""),
        ("[] true -> 1/x : (x'=1) + 0.5 : (x'=0);", ""),
        ("[] x=0 -> (x'=3); [] x=3 -> x-4 : true + 2 : (x'=0);", ""),
        ("[] true -> x : true + x : (x'=0);", ""),
        ("[] true -> x : true;", ""),
        ("[] mod(1,x)=0 -> true;", ""),
        ("[] x<3 -> (x'=x+1);", "x=2 : x-3;"),
        ("[] x<3 -> (x'=x+1);", "[] x=1 : log(x-2, 2);"),
    ],
)
def test_faults_have_prisms_words(prism_install, tmp_path, commands, rewards):
    path = tmp_path / "model.prism"
    structure = f"rewards {rewards} endrewards" if rewards else ""
    path.write_text(f"dtmc module m x : [0..5]; b : bool; {commands} endmodule {structure}")
    with pytest.raises(InvalidModelError) as ours:
        explored(path, {})
    with (
        pytest.raises(InvalidModelError) as theirs,
        bridge.open(path, prism_dir=str(prism_install.root)) as session,
    ):
        assert session.model is None
    # PRISM says where in the text, ours which command.
    words = str(theirs.value).split(" (line")[0].split(' ("')[0]
    assert str(ours.value).startswith(words)


def test_what_is_not_built_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="system definition"):
        ModelText("mdp module m x : bool; [] true -> true; endmodule system m endsystem", "m")
    with pytest.raises(UnsupportedError, match="type PTA"):
        ModelText("pta module m x : bool; [] true -> true; endmodule", "m")
