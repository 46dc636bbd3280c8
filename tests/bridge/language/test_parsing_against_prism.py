"""Every published property, and many odd ones, parsed by PRISM's own parser and by ours."""

import json
import random
from pathlib import Path

import pytest

from bridge.language.lexer import PropertySyntaxError
from bridge.language.parser import parse_expression
from bridge.language.properties_file import parse_properties
from engines.errors import InvalidModelError

pytestmark = pytest.mark.prism

# PRISM's parser takes it, and PRISM then refuses the file for the name of a function.
WITH_A_TYPING_ERROR = {"leader_async/leader.pctl": 'Unknown function "fiter" (line 2, column 1)'}


def _ours(text):
    try:
        file = parse_properties(text, "")
    except InvalidModelError as error:
        return {"error": str(error)}
    return {
        "value": {
            "properties": [item.text for item in file.properties],
            "constants": [
                [item.name, item.type, None if item.value is None else str(item.value)]
                for item in file.constants
            ],
            "labels": [[name, str(value)] for name, value in file.labels.items()],
        }
    }


def _published(examples):
    tests = examples.parent / "prism-tests"
    for folder in filter(Path.is_dir, (examples, tests)):
        for kind in ("props", "pctl", "csl"):
            yield from sorted(folder.rglob(f"*.{kind}"))


def test_published_lists_of_properties(prism_says, prism_examples):
    files = list(_published(prism_examples))
    assert len(files) > 50
    properties = 0
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        theirs, ours = prism_says("properties", text), _ours(text)
        name = f"{path.parent.name}/{path.name}"
        if name in WITH_A_TYPING_ERROR:
            assert ours == {"error": WITH_A_TYPING_ERROR[name]}
            continue
        assert ours == theirs, path
        properties += len(theirs.get("value", {}).get("properties", ()))
    assert properties > 200


def test_the_reference_values_properties(prism_says, reference_properties):
    for text in reference_properties:
        assert _ours(text) == prism_says("properties", text), text


@pytest.fixture(scope="module")
def reference_properties():
    path = Path(__file__).parents[4] / "shared" / "reference" / "values.json"
    if not path.is_file():
        pytest.skip(f"needs the reference values: there is no {path}")
    return sorted({item["property"] for item in json.loads(path.read_text())})


ODD = r"""
 |a+| a +\n|a +\t|x\t\t+|P=? [ F a|9999999999 |9999999999+1|"a b"|"min"|label "init"=true;
label x=true;|R{"init"}=? [ C ]|x'=1|P=? [ F x'=1]|a<-1|#abc#|#abc|1.|1..2|"a|"a" "|min|min(
foo(1,)|a]]|const int;|const int N|formula f=1;|F a|P=? [ F<=3 a U b U c ]|a = !b|!a = b & c
P=?[F<=t (b)]|P=?[F<=t (b)&(c)]|P=?[F=t (b)]|P=?[F<=min(a,b) (b)]|-a^b|R=?[S=?[a]]
R=?[S>0.5[a+]]|R=?[S(]|filter(+,a|<<>> P=? [ F a ]|[[*]] R=? [ F a ]|<<a,1>> (P=? [ F a ])
<<a,1>> (P=? [ F a ], P=? [F b])|<<a,>> P=?[F a]|P>0.5 [ F P>0.5 [ F a ]]|<<1>> S=? [ a ]
multi(P=?[F a],R>1[C])|Pminmax=? [ F a ]|P min max =? [ F a ]|Rmaxmin=?[C]|Rmin{"a"}=?[C]
R{1}/{"b"}min=?[C<=3]|S=?[a{b}]|S>0.1[a{b}{min}]|P=?[F a{b}{max}{min}{max}]|a=>b=>c|(a=>b)=>c
a<=>b=>c|a?b:c?d:e|(a?b:c)?d:e|a-(b-c)|a=b=c|a=(b=c)|"x": "y": true|a b|a -b|true R=? [ C ]
P=? [ (F a) R (G b) ]|I=3|R=?[I=3]|R=?[I<=3]|R=?[C<3]|R=?[C<=3 {a}]|A [ F a ]|E[ a U b ]|A[F|007
1e5|1e|.5|1.5.2|2e-3|0x1|\ta\n\t)|//c\na //d\n b|\r\na\r)|a & true'|func(min, a, b)|func a
deadlock|"deadlock"|rate a = 3; prob b=2;|const a=3;|a;;b|; a|init|"init"|" init "|" a "|"a\n"
P=? [ F[1,2] a ]|P=? [ F[1,2 a ]|P=? [ a U>=3 b ]|P=? [ a W>3 b ]|P=? [ G<3 b ]|P=? [ F>=(a) b ]
P>=a?b:c [ F a ]|P>=(a?b:c) [ F a ]|a ^ b ^ c|(a^b)^c|a / b * c|a/(b*c)|!(!a)|!!a|- -a|--a|!-a|-!a
R>5 [ F a ] & true|((((a))))|P=?[!F a]|P=?[!(F a)]|P=?[ !a U !b ]|P=?[ F a & b ]|P=? [ X X F G a ]
P=? [ a & X b ]|P=? [ a U X b ]|filter(printall, a, b)|filter(store,a)|filter(&, a)|filter(min,a,b
"""


def test_odd_texts(prism_says):
    texts = [text for line in ODD.strip("\n").split("\n") for text in line.split("|")]
    texts = [text.encode().decode("unicode_escape") for text in texts]
    texts += ["filter(|, a, b)", "a | b & c => d"]
    assert len(texts) > 130
    for text in texts:
        assert _ours(text) == prism_says("properties", text), text


@pytest.mark.parametrize(
    "text",
    [
        "P=? [ X<=3 true ]",
        "filter(foo, true)",
        "P(x)>0.5 [ F true ]",
        "S(x)>0.5 [ true ]",
        '"x": true "x": false',
        "foo(true)",
        "func(f, true)",
        "mod(1)",
        "floor(1, 2)",
        'label "deadlock"=true;',
        "const int a=b; const int b=a;",
        "const int b=a+c; const int c=1; const int a=b;",
        "const int a=a;",
        "const int a; const bool a;",
        'label "a"=true; label "a"=false;',
        'label "a"=true; "a": true',
        '"a": P>0.1 [F "b"] "b": P>0.1 [F "a"]',
        '"ab": P>0.1 [F "ab"]',
        "const int n=foo(3); bar(3)",
    ],
)
def test_faults_that_the_grammar_allows(prism_says, text):
    theirs = prism_says("properties", text, tidy=True)
    assert "error" in theirs
    assert _ours(text) == theirs


def test_damaged_texts(prism_says):
    source = random.Random(7)
    whole = 'R{"r"}min=? [ F<=t+1 (a>=2 & !"b") {c}{max} ] + filter(avg, P>0.5 [ x U[1,2] y ])'
    pieces = ["(", ")", "]", "U", "F", "<=", "=?", '"', "1", "a", "!", "{min}", ",", "-", " "]
    refused = 0
    for _ in range(300):
        place = source.randrange(len(whole))
        length = source.choice((0, 1, 2, 5))
        text = whole[:place] + source.choice(pieces) + whole[place + length :]
        theirs = prism_says("properties", text)
        refused += "error" in theirs
        ours = _ours(text)
        if "value" in theirs and ours.get("error", "").startswith("Unknown"):
            # Names of functions and filters are what PRISM looks at later.
            continue
        assert ours == theirs, text
    assert 100 < refused < 300


def test_single_expressions(prism_says):
    for text in ("a+b", 'P=? [ F "a" ]', '"a"', "a;", "a U b", " ", "(a", "a=>b?c:d", "max(1,2)^3"):
        theirs = prism_says("expression", text)
        try:
            ours = {"value": str(parse_expression(text))}
        except PropertySyntaxError as error:
            ours = {"error": str(error)}
        assert ours == theirs, text
