"""Constants: definitions, the switch -const, experiments; on their own and against PRISM."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.check.experiment import model_experiment, property_experiment
from bridge.language.constants import (
    constant_value,
    define_constants,
    experiment_values,
    parse_const_switch,
    undefined_constants,
)
from bridge.language.parser import parse_expression
from bridge.language.properties_file import ConstantDeclaration, parse_properties
from bridge.language.ranges import Range
from engines.errors import InvalidModelError


def _declared(text):
    return parse_properties(text, "").constants


def test_definitions_in_any_order_and_of_their_types():
    constants = _declared(
        "const double c = a; const int a = b + given; const int b = 2; const int given;"
        "const bool d = c > 4; const double half = a / 2;"
    )
    values = define_constants(constants, {"given": 3, "unknown": 7})
    assert values == {"c": 5.0, "a": 5, "b": 2, "given": 3, "d": True, "half": 2.5}
    assert list(values) == ["c", "a", "b", "given", "d", "half"]
    assert [type(value) for value in values.values()] == [float, int, int, int, bool, float]


def test_definitions_may_use_what_the_model_knows():
    constants = _declared("const int a = N + f;")
    formulas = {"f": parse_expression("2 * N"), "g": parse_expression("x + 1")}
    assert define_constants(constants, {}, known={"N": 4}, formulas=formulas) == {"a": 12}


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("const int a;", {}, 'Undefined constant "a" must be defined'),
        ("const int a; const int b;", {}, 'Undefined constants "a" and "b" must be defined'),
        (
            "const int a; const int b; const int c;",
            {},
            'Undefined constants "a", "b" and "c" must be defined',
        ),
        ("const int a = 2;", {"a": 3}, 'Constant "a" has already been defined'),
        ("const int a = 2.0;", {}, 'Type mismatch in definition of constant "a"'),
        ("const bool a = 1;", {}, 'Type mismatch in definition of constant "a"'),
        ("const int a;", {"a": 2.0}, "Value 2.0 for constant a is not a valid integer"),
        ("const bool a;", {"a": 1}, "Value 1 for constant a is not a valid Boolean"),
        ("const int a = x;", {}, 'Undeclared identifier ("x", line 1, column 15)'),
        (
            "const int a = mod(1,0);",
            {},
            'Attempt to compute modulo with non-positive divisor ("mod(1, 0)", line 1, column 15)',
        ),
        (
            "const int a = 2147483647 + 1;",
            {},
            'integer overflow ("2147483647+1", line 1, column 15)',
        ),
    ],
)
def test_wrong_definitions(text, given, message):
    with pytest.raises(InvalidModelError) as raised:
        define_constants(_declared(text), given)
    assert str(raised.value) == message


def test_cycles_through_formulas_are_named():
    constants = [ConstantDeclaration("a", "int", parse_expression("f + 1"))]
    with pytest.raises(InvalidModelError, match='Cyclic dependency in definition of formula "f"'):
        define_constants(constants, {}, formulas={"f": parse_expression("a")})


def test_a_constant_value_names_the_offender():
    assert constant_value(parse_expression("N / 2"), {"N": 3}) == 1.5
    assert constant_value(parse_expression("f"), {"N": 3}, {"f": parse_expression("N*N")}) == 9
    with pytest.raises(InvalidModelError, match=r'Undeclared identifier \("y", line 1, column 5\)'):
        constant_value(parse_expression("N + y"), {"N": 3})


def test_the_switch():
    assert parse_const_switch("N=1:3,p=0.1,,M=1:2:9,b=true") == {
        "N": Range("1", "3"),
        "p": Range("0.1"),
        "M": Range("1", "9", "2"),
        "b": Range("true"),
    }
    assert parse_const_switch("") == {}


@pytest.mark.parametrize("text", ["N", "=3", "N=", "N=1:", "N=1:2:3:4", "N=1,x", "N=:"])
def test_the_switch_in_no_form(text):
    with pytest.raises(InvalidModelError, match="Invalid format in definition of undefined const"):
        parse_const_switch(text)


@given(st.integers(-100, 100), st.integers(0, 50), st.integers(1, 9))
def test_ranges_of_integers(low, width, step):
    high = low + width
    text = f"N={low}:{step}:{high}"
    if step > width:
        with pytest.raises(InvalidModelError, match="bigger than the difference"):
            parse_const_switch(text)["N"].values("N", "int")
        return
    values = list(parse_const_switch(text)["N"].values("N", "int"))
    assert values == [low + k * step for k in range(width // step + 1)]


@given(st.integers(1, 200))
def test_ranges_of_doubles_reach_their_end(count):
    values = parse_const_switch(f"p=0:1/{count}:1")["p"].values("p", "double")
    assert len(values) == count + 1
    assert values[0] == 0.0
    assert math.isclose(values[-1], 1.0)


def test_the_last_constant_varies_fastest():
    ranges = parse_const_switch("b=true,N=1:2,p=0.5:0.5:1")
    constants = _declared("const int N; const int M = 3; const bool b; const double p;")
    assert list(experiment_values(constants, ranges)) == [
        {"N": 1, "b": True, "p": 0.5},
        {"N": 1, "b": True, "p": 1.0},
        {"N": 2, "b": True, "p": 0.5},
        {"N": 2, "b": True, "p": 1.0},
    ]
    assert list(experiment_values([], ranges)) == [{}]


FILE = """
const int N; const int M = N + K; const int K; const double unused; const bool flag;
label "a" = N > M; label "b" = !flag;
"first": P>0.5 [ F "a" ];
P=? [ F "first" ];
P=? [ F<=K "b" ];
R{K}=? [ C<=M ];
filter(count, true)
"""


def test_only_the_constants_that_a_property_needs():
    file = parse_properties(FILE, "")
    needed = [
        [item.name for item in undefined_constants(property_.expression, file)]
        for property_ in file.properties
    ]
    assert needed == [["N", "K"], ["N", "K"], ["K", "flag"], ["N", "K"], []]


@pytest.mark.prism
def test_the_constants_that_prism_needs(prism_says):
    file = parse_properties(FILE, "")
    ours = [
        sorted(item.name for item in undefined_constants(property_.expression, file))
        for property_ in file.properties
    ]
    assert ours == prism_says("needed", FILE)["value"]


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ("T=100", 'Constant "T" has already been defined'),
        ("T=1:2:9", 'Constant "T" has already been defined'),
        ("K=1,T=2", 'Constant "T" has already been defined'),
        ("K=1,K=2,T=2", 'Duplicate definitions for undefined constant "K"'),
        ("lam=5", 'Constant "lam" has already been defined in the model'),
        ("T=3,lam=5", 'Constant "lam" has already been defined in the model'),
    ],
)
def test_a_constant_with_a_value_cannot_be_given_another(switch, message):
    def experiments():
        model_experiment(_declared("const double lam = 0.1;"), switch)
        property_experiment(file.properties[0], file, switch)

    file = parse_properties("const int T = 1; const int K; const int V; P=? [ F<=K true ]", "")
    with pytest.raises(InvalidModelError) as raised:
        experiments()
    assert str(raised.value) == message


def test_other_constants_of_the_switch_are_passed_over():
    file = parse_properties("const int T = 1; const int V; P=? [ F<=T true ]", "")
    found = property_experiment(file.properties[0], file, "other=3,other=4,V=1,V=2")
    assert list(found.assignments()) == [{}]


DECLARED = "const int N; const double p; const bool b; const int M = N * 2; const double q = p + M;"


@pytest.mark.prism
@pytest.mark.parametrize(
    "switch",
    [
        "N=1,p=0.1,b=true",
        "N=1:3,p=0.1,b=false",
        "N=1:2:9,p=0:0.1:1,b=true",
        "N=1:2:9,p=0:1/3:1,b=true",
        "N=-5:-3,p=1e-3:2e-3:1e-2,b=true",
        "N=+4,p= .5 ,b=true",
        "N=1,p=1/4/2,b=true",
        "N=1,p=3f,b=true",
        "p=1,b=true,N=2,other=7",
        "N=1:3:3,p=0.1,b=true",
        "N=3:1,p=0.1,b=true",
        "N=1,p=1:0.5,b=true",
        "N=1:0:3,p=0.1,b=true",
        "N=1:-1:3,p=0.1,b=true",
        "N=1,p=0:0:1,b=true",
        "N=1,p=0:-0.5:1,b=true",
        "N=1,p=0:2:1,b=true",
        "N=1,p=0:20000000:10000000,b=true",
        "N=1::3,p=0.1,b=true",
        "N=:3,p=0.1,b=true",
        "N=1.0,p=0.1,b=true",
        "N=2147483648,p=0.1,b=true",
        "N= 1,p=0.1,b=true",
        "N=1_0,p=0.1,b=true",
        "N=1,p=abc,b=true",
        "N=1,p=1/0,b=true",
        "N=1,p=/2,b=true",
        "N=1,p=1e999,b=true",
        "N=1,p=NaN,b=true",
        "N=1,p=0.1,b=1",
        "N=1,p=0.1,b=true:false",
        "N=1,p=0.1",
        "N=1",
        "",
        "N=1,N=2,p=0.1,b=true",
        "x=1,x=2,N=1,p=0.1,b=true",
        "N=1,p=0.1,b=true,M=3",
        "M=3,M=4,N=1,p=0.1,b=true",
        "M=1:2:9,N=abc,p=0.1,b=true",
        "N=abc,M=3,p=0.1,b=true",
        "M=3",
        "N=1073741824,p=0.1,b=true",
        "N",
        "N=1:",
        "=1",
        "N=1:2:3:4",
        "N==1,p=0.1,b=true",
    ],
)
def test_experiments(prism_says, switch):
    theirs = prism_says("experiment", DECLARED, switch=switch)
    constants = _declared(DECLARED)
    try:
        assignments = [
            define_constants(constants, given)
            for given in experiment_values(constants, parse_const_switch(switch))
        ]
    except InvalidModelError as error:
        ours = {"error": str(error)}
    else:
        ours = {"value": assignments}
    if switch.startswith("N=1073741824"):
        # PRISM leaves out what it cannot compute, and says so when a property needs it.
        assert "M" not in theirs["value"][0]
        assert ours == {"error": 'integer overflow ("N*2", line 1, column 58)'}
        return
    assert ours == theirs
