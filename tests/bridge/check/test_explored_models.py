"""Models built from their text: what PRISM's explicit engine exports, and its words for faults."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bridge
from bridge.check.model_text import ModelText
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import build

pytestmark = pytest.mark.prism


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


EXPORTED = [
    ("mdps/csma/csma2_2.nm", ""),
    ("ctmcs/polling/poll4.sm", ""),
    ("dtmcs/herman/herman5.pm", ""),
    ("mdps/zeroconf/zeroconf.nm", "N=20,K=2,reset=true,err=0.1"),
]


@pytest.mark.sampled(2)
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
