"""The declarations in a model's text."""

from __future__ import annotations

import pytest

from bridge.language.model_outline import outline
from bridge.language.parser import parse_expression
from engines.errors import InvalidModelError

MODEL = """// a comment
const double q = p*2;
rate p = 0.25;
label "done" = x=K;
formula ok = x>1 | b;
probabilistic
module one
 x : [-2..K] init -1;
 w : int;
 [] x<2 -> q : (x'=x+1) + 1-q : (x'=-2);
 [go] x<1 -> (x'=2);
endmodule
const K;
const bool flag = true;
global g : [0..2];
module two
 b : bool init false;
 y : [0..2];
 [stop] y=2 & !b -> (y'=1) & (g'=2);
 [go] true -> (b'=!b);
endmodule
module three = two [ b=c, y=z, stop=halt ] endmodule
rewards
 ok : x+2;
 [go] x<1 : 3;
 [] true : 2;
endrewards
rewards "r2"
endrewards
init x<=1 endinit
"""


def small(declarations: str) -> str:
    return f"{declarations}\nmodule m\n x:[0..1];\n [] true -> (x'=1);\nendmodule\n"


def test_every_declaration_is_found():
    found = outline(MODEL, "m.pm")
    assert found.kind == "dtmc"
    assert [(item.name, item.type, str(item.value)) for item in found.constants] == [
        ("q", "double", "p*2"),
        ("p", "double", "0.25"),
        ("K", "int", "None"),
        ("flag", "bool", "true"),
    ]
    assert found.constants[2].value is None
    assert dict(found.formulas) == {"ok": parse_expression("x>1 | b")}
    assert dict(found.labels) == {"done": parse_expression("x=K")}
    assert found.initial == parse_expression("x<=1")
    assert found.modules == ("one", "two", "three")
    assert found.reward_names == ("", "r2")


def test_global_variables_come_first_and_renamed_modules_have_their_own():
    assert outline(MODEL, "").variables == ("g", "x", "w", "b", "y", "c", "z")


def test_actions_are_in_the_order_of_their_first_use():
    assert outline(MODEL, "").actions == ("go", "stop", "halt")


def test_items_of_rewards_know_states_from_actions():
    items = outline(MODEL, "").rewards[0].items
    assert [item.action for item in items] == [None, "go", ""]
    assert [str(item.guard) for item in items] == ["ok", "x<1", "true"]
    assert [str(item.value) for item in items] == ["x+2", "3", "2"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("", None),
        ("mdp", "mdp"),
        ("nondeterministic", "mdp"),
        ("stochastic", "ctmc"),
        ("pomdp", "pomdp"),
        ("smg", "smg"),
    ],
)
def test_the_kind_has_its_word_of_today(word, kind):
    assert outline(small(word), "").kind == kind


def test_a_module_may_rename_one_that_comes_later_or_is_renamed_itself():
    text = """mdp module c = b [ y=z ] endmodule module b = a [ x=y ] endmodule
    module a x:bool; [] x -> true; endmodule"""
    found = outline(text, "")
    assert found.modules == ("c", "b", "a")
    assert found.variables == ("z", "y", "x")


def test_words_inside_commands_are_no_declarations():
    text = small(
        'dtmc const int a = 1; // const int b = 2;\nlabel "l" = (x=0); formula f = min(x, a);'
    )
    found = outline(text, "")
    assert [item.name for item in found.constants] == ["a"]
    assert found.variables == ("x",)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (small("dtmc\nmdp"), "multiple model type declarations", 2),
        (small("const N;\nconst N;"), "Name of constant N is already used for a constant", 2),
        (small("formula x = 1;"), "Name of variable x is already used for a formula", 3),
        (small('label "l" = true;\n\nlabel "l" = true;'), 'Name of label "l"', 3),
        (small("label l = true;"), "Label names must be enclosed in double-quotes", 1),
        (small('rewards "r" endrewards\nrewards "r" endrewards'), "Duplicated reward", 2),
        (small("module m x:bool; endmodule\n"), 'Duplicated module name "m"', 3),
        (small("module n = k [ x=y ] endmodule"), "No such module k", 1),
        (small("module n = n [ x=y ] endmodule"), "No such module n", 1),
        (small("init true endinit\ninit true endinit"), "multiple init...endinit", 2),
        (small("rewards\n true:1; [b] true : 1; endrewards"), "Unknown action name b in reward", 2),
        (small("const int N = ;"), "Syntax error", 1),
        (small("nonsense"), "Syntax error", 1),
        ("dtmc\nmodule m\n x:[0..1];\n [] true -> (x'=1)\n", "Syntax error", 4),
        ("dtmc\nmodule m\n x:[0..1];\n", "Syntax error", 3),
    ],
)
def test_errors_say_where(text, message, line):
    with pytest.raises(InvalidModelError, match=message) as caught:
        outline(text, "m.pm")
    assert f"line {line}, column " in str(caught.value)


def test_a_name_made_twice_by_renaming_is_refused():
    with pytest.raises(InvalidModelError, match="variable y is already used for a constant"):
        outline(small("const int y = 1; module n = m [ x=y ] endmodule"), "m.pm")


def test_a_renamed_module_has_new_names_for_its_variables():
    with pytest.raises(InvalidModelError, match='"n" must rename variable "x"'):
        outline(small("module n = m [ y=z ] endmodule"), "m.pm")


@pytest.mark.prism
@pytest.mark.parametrize(
    "name",
    [
        "dtmcs/herman/herman7.pm",
        "mdps/csma/csma2_2.nm",
        "mdps/zeroconf/zeroconf.nm",
    ],
)
def test_prism_lists_the_same_names(name, prism, prism_examples):
    file = prism_examples / name
    found = outline(file.read_text(encoding="utf-8"), name)
    run = prism(file, "-nobuild")
    said = dict(line.split(":", 1) for line in run.output.splitlines() if ": " in line)
    assert said["Type"].strip() == (found.kind or "mdp").upper()
    assert said["Modules"].split() == list(found.modules)
    assert said["Variables"].split() == list(found.variables)
