"""What PRISM refuses of a model's text, in its words; PRISM itself confirms where it is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.language.constants import define_constants
from bridge.language.model_check import CHECKED, check_with_constants, checked_outline
from engines.errors import InvalidModelError, UnsupportedError

MODEL = """dtmc
const int N = 2;
const double p = 0.5;
formula far = x>N;
global g : [0..N] init 0;
module m
  x : [0..4] init 3;
  b : bool init false;
  [] far & !b -> p : (x'=x-1) + 1-p : (b'=true);
  [go] x<=N -> (x'=min(x+1,4));
  [] b -> (g'=N);
endmodule
module other = m [ x=y, b=c ] endmodule
label "l" = far;
rewards "r"
  [go] true : x/2;
  far : 1;
endrewards
"""
_USED = "Name of {} is already used for a {} in the model"
_X = '"x : bool init false"'
# What is changed into what; PRISM's message, what it shows, and the line and column.
FAULTS = [
    ("x-1", "x/2", 'Type error in update to variable "x"', '"x/2"', (9, 26)),
    ("x-1", "p", 'Type error in update to variable "x"', '"p"', (9, 26)),
    ("(b'=true)", "(b'=1)", 'Type error in update to variable "b"', '"1"', (9, 43)),
    ("x-1", "z", "Undeclared identifier", '"z"', (9, 26)),
    ("(x'=x-1)", "(z'=1)", 'Unknown variable "z" in update', '"z"', (9, 23)),
    ("(x'=x-1)", "(y'=1)", 'Module "m" is not allowed to modify variable "y"', '"y"', (9, 23)),
    ("(x'=x-1)", "(x'=1)&(x'=2)", 'Variable "x" is set twice in the same update', '"x"', (9, 30)),
    ("x<=N ->", "x ->", "Type error: Guard is not Boolean", '"x"', (10, 8)),
    ("x<=N ->", "x & b ->", "Type error: & applied to non-Boolean expression", '"x"', (10, 8)),
    ("[] b", "[go] b", "Synchronous command cannot modify global variable", '"g"', (11, 14)),
    ("p :", "b :", "Type error: Update probability/rate cannot have type bool", '"b"', (9, 18)),
    ("init 3", "init x", 'Initial variable value of variable "x" is not constant', '"x"', (7, 19)),
    ("init 3", "init z", "Undeclared identifier", '"z"', (7, 19)),
    ("init 3", "init 5", "Value 5 out of range for variable x", '"5"', (7, 19)),
    (
        "init 3",
        "init 2.5",
        'Type error: Initial value of variable "x" does not match',
        '"2.5"',
        (7, 19),
    ),
    (
        "[0..4]",
        "[0..p]",
        'Type error: Integer range upper bound "p" is not an integer',
        '"p"',
        (7, 11),
    ),
    ("[0..4] init 3", "[4..4]", 'Invalid range (4-4) for variable "x"', '"[4..4]"', (7, 7)),
    (
        "global",
        "global t : clock; global",
        "Clock variables are not allowed in DTMC models",
        '"clock"',
        (5, 12),
    ),
    ("N = 2", "N = 2.5", 'Type mismatch in definition of constant "N"', '"2.5"', (2, 15)),
    ("N = 2", "N = g", 'Definition of constant "N" is not constant', '"g"', (2, 15)),
    ('"l" = far', '"l" = x', 'Type error: Label "l" is not Boolean', '"x"', (14, 13)),
    (
        "true : x/2",
        "x : x/2",
        "Type error in reward struct item: guard must be Boolean",
        '"x"',
        (16, 8),
    ),
    (
        "true : x/2",
        "true : b",
        "Type error in reward struct item: value must be an int or double",
        '"b"',
        (16, 15),
    ),
    ("far = x>N", "far = x>b", "Type error: > cannot compare int and bool", '"x>b"', (4, 15)),
    ("x+1", "mod(x,p)", 'Type error: non-integer argument to  function "mod"', '"p"', (10, 30)),
    (
        "label",
        "init x=1 endinit label",
        'Cannot use both "init...endinit" and initial values for variables',
        '"0"',
        (5, 24),
    ),
    (
        'label "l"',
        'label "deadlock" = true; label "l"',
        'Cannot define a label called "deadlock" - this is a built-in label',
        '"true"',
        (14, 20),
    ),
    # A name is declared twice: the formula comes first, wherever it stands, and variables last.
    ("b : bool init", "x : bool init", _USED.format("variable x", "variable"), _X, (8, 3)),
    ("g : [0..N] init 0", "N : bool", _USED.format("variable N", "constant"), '"N : bool"', (5, 8)),
    ("double p", "double far", _USED.format("constant far", "formula"), '"far"', (3, 14)),
    (
        'label "l" = far;',
        'label "l" = far; label "l" = b;',
        _USED.format('label "l"', "label"),
        '"l"',
        (14, 25),
    ),
    (
        "module other",
        "module other = m [ x=z, b=a ] endmodule\nmodule other",
        'Duplicated module name "other"',
        '"other"',
        (14, 8),
    ),
    (
        "endrewards",
        'endrewards rewards "r" far : 1; endrewards',
        'Duplicated reward structure name "r"',
        None,
        (18, 12),
    ),
    (
        "b=c ]",
        "b=c,\n far=b ]",
        'Formula "far" cannot be renamed since formulas are expanded before module renaming',
        '"far"',
        (14, 2),
    ),
    ("x=y, b=c", "x=y", 'Definition of module "other" must rename variable "b"', None, (13, 1)),
]


def ours(text: str) -> object:
    """Return what the tests compare: the variables, or the error."""
    try:
        model = checked_outline(text, "")
        if model.kind in CHECKED and all(item.value is not None for item in model.constants):
            values = define_constants(model.constants, {}, formulas=model.formulas)
            check_with_constants(model, values)
    except InvalidModelError as error:
        return {"error": str(error)}
    return {"value": list(model.variables)}


def whole(message: str, shown: str | None, place: tuple[int, int]) -> str:
    line, column = place
    return f"{message} ({f'{shown}, ' if shown else ''}line {line}, column {column})"


def changed(old: str, new: str) -> str:
    assert old in MODEL
    return MODEL.replace(old, new, 1)


def test_a_model_without_fault_passes():
    assert ours(MODEL) == {"value": ["g", "x", "b", "y", "c"]}


@pytest.mark.parametrize(("old", "new", "message", "shown", "place"), FAULTS)
def test_a_fault_is_refused_in_prisms_words(old, new, message, shown, place):
    assert ours(changed(old, new)) == {"error": whole(message, shown, place)}


@pytest.mark.prism
def test_prism_says_the_same(prism_says):
    for old, new, message, *details in FAULTS:
        if "out of range" not in message and "Invalid range" not in message:  # seen when it builds
            assert prism_says("model", changed(old, new)) == {"error": whole(message, *details)}


@pytest.mark.prism
def test_what_prism_accepts_is_accepted(prism_says, prism_examples):
    folders = (prism_examples, prism_examples.parent / "prism-tests")
    files = [
        path
        for folder in folders
        for path in sorted(folder.rglob("*.?m"))
        if path.stat().st_size < 4_000
    ]
    compared = 0
    for path in (*files, *_beside_this_project()):
        text = path.read_text(encoding="utf-8", errors="replace")
        if not re.search(r"^\s*(dtmc|ctmc|mdp|probabilistic|stochastic)\b", text, re.MULTILINE):
            continue
        try:
            found = ours(text)
        except UnsupportedError:
            continue
        compared += 1
        assert found == prism_says("model", text), path
    assert compared > 50


def _beside_this_project() -> list[Path]:
    return sorted((Path(__file__).parents[3] / "examples").rglob("*.?m"))
