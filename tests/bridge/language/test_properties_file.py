"""Lists of properties: what separates them, what they declare, and what is refused."""

import pytest

from bridge.language.ast import Binary, Identifier, Literal
from bridge.language.parser import parse_property
from bridge.language.properties_file import ConstantDeclaration, parse_properties
from engines.errors import InvalidModelError

TEXT = """
// Constants may stand between properties.
const int T;
P=? [ F<=T "a" ]
"named": R=? [ F x=2 ];;
const double eps = 1e-3; const bool on = true; const M = 4; rate r; prob p = 0.5;
label "a" = x > T;
"named" > 0.5
"""


def test_properties_and_declarations():
    file = parse_properties(TEXT, "file.props")
    assert [item.text for item in file.properties] == [
        'P=? [ F<=T "a" ]',
        '"named": R=? [ F x=2 ]',
        '"named">0.5',
    ]
    assert [item.name for item in file.properties] == ["", "named", ""]
    assert file.properties[0].expression == parse_property('P=? [ F<=T "a" ]')
    assert file.constants == (
        ConstantDeclaration("T", "int", None),
        ConstantDeclaration("eps", "double", Literal(0.001, "1e-3")),
        ConstantDeclaration("on", "bool", Literal(True, "true")),
        ConstantDeclaration("M", "int", Literal(4, "4")),
        ConstantDeclaration("r", "double", None),
        ConstantDeclaration("p", "double", Literal(0.5, "0.5")),
    )
    assert file.labels == {"a": Binary(">", Identifier("x"), Identifier("T"))}
    assert not file.formulas


def test_an_empty_list():
    assert parse_properties("// nothing\n", "").properties == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("formula f = 1;", 'Syntax error ("formula", line 1, column 1)'),
        ("const int N = 3\nP=? [ F a ]", 'Syntax error ("P", line 2, column 1)'),
        ("label a = b;", 'Label names must be enclosed in double-quotes ("a", line 1, column 7)'),
        ('label "init" = b;', 'Syntax error ("init", line 1, column 8)'),
        (
            'label "x"=a;\n"x": true',
            'Name of property "x" is already used for a label in the properties (""x": true", '
            "line 2, column 1)",
        ),
        (
            "const int a = b;\nconst int b = a;",
            'Cyclic dependency in definition of constant "a" ("b", line 1, column 15)',
        ),
        ("; true", 'Syntax error (";", line 1, column 1)'),
        ("true & bar(1)", 'Unknown function "bar" ("bar(1)", line 1, column 8)'),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(InvalidModelError) as raised:
        parse_properties(text, "file.props")
    assert str(raised.value) == message


MODEL_NAMES = {"c": "constant", "x": "variable", "f": "formula", '"l"': "label"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("const int c = 2;", "Name of constant c is already used for a constant in the model"),
        ("const int x = 2;", "Name of constant x is already used for a variable in the model"),
        ("const int f = 2;", "Name of constant f is already used for a formula in the model"),
        ('label "l" = true;', 'Name of label "l" is already used for a label in the model'),
        ('"l": true', 'Name of property "l" is already used for a label in the model'),
    ],
)
def test_names_of_the_model_are_not_declared_again(text, message):
    assert parse_properties(text, "")
    with pytest.raises(InvalidModelError) as raised:
        parse_properties(text, "", MODEL_NAMES)
    assert str(raised.value).startswith(f"{message} (")


def test_names_of_a_model_in_files_are_not_declared_again():
    with pytest.raises(InvalidModelError) as raised:
        parse_properties('label "g" = true;', "", {"x": "", '"g"': ""})
    assert str(raised.value).startswith('Identifier "g" is already used in the model (')
