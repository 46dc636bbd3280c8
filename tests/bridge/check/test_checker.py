"""Properties checked without PRISM: values known by hand, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from bridge.check.checker import Checker
from bridge.language.parser import parse_property
from bridge.language.properties_file import parse_properties
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import SolverEnvironment
from tests.bridge.check.models import dice, gamble, queue, two_sources

TIGHT = SolverEnvironment(epsilon=1e-10)


def check(model, text, **options):
    lines: list[str] = []
    checker = Checker(model, TIGHT, log=lines.append, **options)
    result = checker.check(parse_property(text))
    return result, "\n".join(lines)


def value(model, text, **options):
    return check(model, text, **options)[0].value


DICE = {
    'P=? [ F "six" ]': 1 / 6,
    "P=? [ F s=7 & d=2 ]": 1 / 6,
    "P=? [ G s<7 ]": 0.0,
    "P=? [ X s=2 ]": 0.5,
    "P=? [ X (X s=3) ]": 0.25,
    "P=? [ F<=3 s=7 ]": 0.75,
    "P=? [ F<3 s=7 ]": 0.0,
    "P=? [ F=3 s=7 ]": 0.75,
    "P=? [ F>=4 s=3 ]": 1 / 16,
    "P=? [ F[3,5] s=3 ]": 0.0625,
    "P=? [ s<2 U s=3 ]": 0.25,
    "P=? [ s<2 W s=3 ]": 0.25,
    "P=? [ s=3 R s<5 ]": 0.25,
    "P=? [ G<=2 s<7 ]": 1.0,
    "P=? [ G<=3 s<7 ]": 0.25,
    "P=? [ !(F d=1) ]": 5 / 6,
    "P=? [ F G d=2 ]": 1 / 6,
    "P=? [ (F s=3) => (F d=3) ]": 19 / 24,
    'R{"coin_flips"}=? [ F s=7 ]': 11 / 3,
    "R=? [ C<=2 ]": 2.0,
    "R=? [ C<=4 ]": 3.25,
    "R=? [ I=2 ]": 1.0,
    "R=? [ I=3 ]": 0.25,
    "R=? [ C ]": 11 / 3,
    "R{1}=? [ S ]": 0.0,
    "R=? [ s<7 U s=7 ]": 11 / 3,
    "R=? [ X true ]": 1.0,
    "R=? [ X (X s>=0) ]": 2.0,
    "R=? [ s=0 ]": 0.0,
    "R=? [ s=1 ]": float("inf"),
    "R=? [ (F s=7) & (X s>0) ]": 11 / 3,
    "R=? [ (F s>2) | (X (X (X true))) ]": 2.0,
    "S=? [ d=4 ]": 1 / 6,
    "2*P=? [ F d=1 ]": 1 / 3,
    "P>=1 [ F s=7 ]": True,
    "P>=1 [ G s<7 ]": False,
    "P<=0 [ G s<7 ]": True,
    "P>0 [ G d!=3 ]": True,
    "filter(count, P>=1 [ G d!=3 ])": 8,
    "filter(count, P<=0 [ F d=3 ])": 8,
    "filter(count, P<1 [ F d=3 ])": 12,
    "P<0.1 [ F d=1 ]": False,
    "R<4 [ F s=7 ]": True,
    "S>0.1 [ d=1 ]": True,
    "E [ F d=6 ]": True,
    "A [ F d=6 ]": False,
    "A [ G s<8 ]": True,
    "A [ F s=7 ]": False,
    "E [ G s<7 ]": True,
    "E [ X s=1 ]": True,
    "A [ X s=1 ]": False,
    "E [ s<2 U s=3 ]": True,
    "A [ G (s=7 => (F s=7)) ]": True,
    "E [ G F s=1 ]": True,
    "E [ (G F s=1) & (F s=7) ]": False,
    "A [ (G F s=1) => (G F s=3) ]": True,
    "A [ F G s=7 ]": False,
    "E [ X X s=3 ]": True,
    "A [ X X (s>2 & (E [ X s=7 ])) ]": True,
    "E [ s<2 W s=7 ]": False,
    "P=? [ F P>=0.5 [ X d=6 ] ]": 0.25,
    'filter(max, P=? [ F "six" ], s<3)': 1 / 3,
    'filter(count, P>0.1 [ F "six" ], s<3)': 2,
    'filter(sum, P=? [ F "six" ], s<3)': 0.5,
    'filter(avg, P=? [ F "six" ], s<3)': 1 / 6,
    'filter(range, P=? [ F "six" ], s<3)': (0.0, 1 / 3),
    'filter(first, P=? [ F "six" ], s=6)': 2 / 3,
    'filter(state, P=? [ F "six" ], s=6)': 2 / 3,
    "filter(forall, s<7 => P>=1 [ F s=7 ])": True,
    'filter(exists, P>=1 [ F "six" ])': True,
    "filter(sum, s+d)": 84,
    "filter(argmax, s+d)": False,
    "s+d": 0,
    "s=0 & d<1": True,
    "P=? [ F s=7 & d=6 {s=2} ]": 1 / 3,
    "P=? [ F s=7 & d=6 {s<3}{max} ]": 1 / 3,
}


@pytest.mark.parametrize("text", DICE)
def test_values_of_a_die_are_those_known_by_hand(text):
    expected = DICE[text]
    found = value(dice(), text)
    assert type(found) is type(expected)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


GAMBLE = {
    'Pmax=? [ F "won" ]': 0.6,
    'Pmin=? [ F "won" ]': 0.3,
    'Pmin=? [ G !"lost" ]': 0.3,
    'Pmax=? [ G !"lost" ]': 0.6,
    'Pmax=? [ F<=1 "won" ]': 0.3,
    'Pmax=? [ F<=2 "won" ]': 0.6,
    'Pmax=? [ X "won" ]': 0.3,
    'Pmin=? [ X "won" ]': 0.0,
    'Pmax=? [ F G "won" ]': 0.6,
    'P>=0.29 [ F "won" ]': True,
    'P>0.31 [ F "won" ]': False,
    'P<0.59 [ F "won" ]': False,
    'P<=0.61 [ F "won" ]': True,
    'P>0 [ F "won" ]': True,
    'P>=1 [ F "won" ]': False,
    'P<1 [ G !"won" ]': True,
    'P>=1 [ F "won"|"lost" ]': True,
    'Rmax=? [ F "won"|"lost" ]': 2.0,
    'R{"steps"}min=? [ F "won"|"lost" ]': 1.0,
    "Rmax=? [ C<=5 ]": 2.0,
    "Rmin=? [ X true ]": 1.0,
    'Rmax=? [ (X true) & (F "won"|"lost") ]': 2.0,
    'Rmin=? [ (X (X true)) & (F "won"|"lost") ]': 1.0,
    "Rmax=? [ I=1 ]": 1.0,
    "Rmin=? [ I=1 ]": 0.0,
    "Rmax=? [ C ]": 2.0,
    'E [ F "won" ]': True,
    'A [ F "won" ]': False,
}


@pytest.mark.parametrize("text", GAMBLE)
def test_values_of_an_mdp_are_those_known_by_hand(text):
    assert value(gamble(), text) == pytest.approx(GAMBLE[text], rel=1e-9)


def generator(model) -> np.ndarray:
    matrix = model.model.matrix
    dense = np.zeros((matrix.num_rows, matrix.num_columns))
    dense[matrix.row_of_entry(), matrix.columns] = matrix.values
    return dense - np.diag(dense.sum(axis=1))


def test_time_bounded_properties_of_a_queue_agree_with_the_matrix_exponential():
    model = queue()
    rates = generator(model)
    absorbing = rates.copy()
    absorbing[3] = 0.0
    customers = np.arange(4.0)
    at = {time: expm(rates * time) for time in (0.5, 2.0)}
    stopped = {time: expm(absorbing * time) for time in (0.5, 1.5, 2.0)}
    integral, steps = np.zeros(4), 20_000
    grid = expm(rates * 2.0 / steps)
    moment = customers.copy()
    for _ in range(steps):
        following = grid @ moment
        integral += (moment + following) / 2 * (2.0 / steps)
        moment = following
    expected = {
        'P=? [ F<=2 "full" ]': stopped[2.0][0, 3],
        'P=? [ F[0.5,2] "full" ]': (at[0.5] @ stopped[1.5])[0, 3],
        'P=? [ F[2,2] "full" ]': at[2.0][0, 3],
        'P=? [ G<=2 !"full" ]': 1 - stopped[2.0][0, 3],
        'P=? [ F<=0 "full" ]': 0.0,
        'P=? [ F>=2 "full" ]': 1.0,
        'R{"customers"}=? [ I=2 ]': (at[2.0] @ customers)[0],
        'R{"customers"}=? [ C<=2 ]': integral[0],
        'S=? [ "full" ]': 1 / 15,
        'R{"customers"}=? [ S ]': (8 * 0 + 4 * 1 + 2 * 2 + 1 * 3) / 15,
        'P=? [ X "full" ]': 0.0,
    }
    for text, number in expected.items():
        assert value(model, text) == pytest.approx(number, rel=1e-7, abs=1e-12), text


def test_several_initial_states_give_a_range():
    assert value(two_sources(), 'P=? [ F "goal" ]') == pytest.approx((0.25, 0.5))
    assert value(two_sources(), 'P>=0.2 [ F "goal" ]') is True
    assert value(two_sources(), 'P>=0.4 [ F "goal" ]') is False


def test_named_properties_labels_and_constants_are_looked_up():
    file = parse_properties(
        'const int k; label "small" = d<k; "hit": P=? [ F s=7 & "small" ]; 1-"hit";', ""
    )
    checker = Checker(dice(), TIGHT, properties=file, constants={"k": 3}, log=lambda _: None)
    assert checker.check(file.properties[0].expression).value == pytest.approx(1 / 3)
    assert checker.check(file.properties[1].expression).value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('P=? [ F "nowhere" ]', InvalidModelError, "nowhere"),
        ("P=? [ F t=1 ]", InvalidModelError, "t"),
        ("P=? [ F s=mod(7,-3) ]", InvalidModelError, r'"mod(7, -3\)", line 1, column 11\)$'),
        ("P=? [ F s=pow(2,31) ]", InvalidModelError, r'"pow(2, 31\)", line 1, column 11\)$'),
        ('R{"none"}=? [ F s=7 ]', InvalidModelError, 'structure index "none"'),
        ("R{2}=? [ F s=7 ]", InvalidModelError, 'structure index "2"'),
        ("P=? [ F<=-1 s=7 ]", InvalidModelError, "Negative bound in true U<=-1 s=7$"),
        ("P=? [ F<0 s=7 ]", InvalidModelError, "Negative bound in true U<0 s=7$"),
        ("P=? [ !(G<0 s=7) ]", InvalidModelError, "Negative bound in true U<0 !s=7$"),
        ("P=? [ s<2 W<0 s=7 ]", InvalidModelError, "bound in s<2&!s=7 U<0 !s<2&!s=7$"),
        ("P=? [ (s<2) R<0 s=7 ]", InvalidModelError, r"bound in !(s<2\) U<0 !s=7$"),
        ("P=? [ s<2 U<0 s=7 ]", InvalidModelError, "Negative bound in s<2 U<0 s=7$"),
        ("P=? [ F<=1.5 s=7 ]", InvalidModelError, "on the F operator must be integers for DTMCs"),
        ("R=? [ C<=1.5 ]", InvalidModelError, "on the C operator must be integers for DTMCs"),
        ("P=? [ F[3,2] s=7 ]", InvalidModelError, r"Empty bound in true U\[3,2\] s=7$"),
        ("R=? [ C<=-1 ]", InvalidModelError, "Invalid time bound -1 in cumulative reward formula"),
        ("P>=1.5 [ F s=7 ]", InvalidModelError, "Invalid probability bound 1.5"),
        ("P>=s [ F s=7 ]", InvalidModelError, "s"),
        ("filter(state, s, s<3)", InvalidModelError, "exactly 1 state"),
        ("filter(max, s, s>9)", InvalidModelError, "Filter satisfies no states"),
        ("filter(max, s=1)", InvalidModelError, "max"),
        (
            "P=? [ F (s=1 U<=2 s=3) ]",
            UnsupportedError,
            r"Time-bounded operators not supported in LTL: F (s=1 U<=2 s=3\)$",
        ),
        (
            "R=? [ F (s=1 & (F<=2 s=3)) ]",
            UnsupportedError,
            r"Time-bounded operators not supported in LTL: F (s=1&(F<=2 s=3\)\)$",
        ),
        ("P=? [ s<2 W>=2 s=3 ]", UnsupportedError, "W. with lower bounds is not yet"),
        ("P>0 [ s<2 W[1,2] s=3 ]", UnsupportedError, "W. with lower bounds is not yet"),
        ('R{"coin_flips"}/{"coin_flips"}=? [ C ]', UnsupportedError, "ratios"),
        ("R=? [ G s=0 ]", UnsupportedError, "co-safe"),
        ("R=? [ F<=3 s=7 ]", UnsupportedError, "bounds are for C and I"),
        ("E [ F<=3 s=7 ]", UnsupportedError, "bounded CTL"),
    ],
)
def test_faults_are_named(text, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")):
        check(dice(), text)


def test_a_model_without_rewards_is_refused_in_prisms_words():
    with pytest.raises(InvalidModelError, match=r"^Model has no rewards specified$"):
        check(replace(dice(), rewards=()), "R=? [ F s=7 ]")


def test_bounds_in_ltl_of_a_ctmc_are_refused_in_prisms_words():
    with pytest.raises(UnsupportedError) as raised:
        check(queue(), "P=? [ (F<=3 n=3) & (G n<3) ]")
    assert str(raised.value) == "LTL formulas with time bounds not supported for CTMCs"


def test_an_mdp_wants_a_direction_and_has_no_steady_state():
    with pytest.raises(InvalidModelError, match="Pmin"):
        check(gamble(), 'P=? [ F "won" ]')
    with pytest.raises(UnsupportedError, match="cannot be used for MDPs"):
        check(gamble(), 'S=? [ "won" ]')


def test_ways_of_a_game_are_refused_of_an_mdp_in_prisms_words():
    for operator in ("Pmaxmin", "Pminmin", "Rminmax"):
        with pytest.raises(InvalidModelError) as raised:
            check(gamble(), f'{operator}=? [ F "won" ]')
        assert str(raised.value) == f"Can't use \"{operator}=? for MDPs"


def test_rewards_are_compared_with_negative_bounds_too():
    assert value(dice(), "R>=-1 [ F s=7 ]") == True  # noqa: E712
    assert value(dice(), "R<=-1 [ F s=7 ]") == False  # noqa: E712


def test_a_value_too_near_to_its_bound_is_compared_exactly():
    for relation, holds in ((">=", True), ("<=", True), (">", False), ("<", False)):
        assert value(dice(), f"P{relation}1/3 [ F s=7&d<3 ]") == holds
        assert value(dice(), f"P{relation}2/3 [ G !(s=7&d<3) ]") == holds


def test_vectors_are_available_for_every_state():
    checker = Checker(dice(), TIGHT, log=lambda _: None)
    values = checker.values(parse_property('P=? [ F "six" ]'))
    np.testing.assert_allclose(values[:3], [1 / 6, 0.0, 1 / 3], rtol=1e-9)
    assert [record.text for record in checker.records] == ['P=? [ F "six" ]']


def test_what_prism_prints_of_filters_is_printed():
    _, log = check(dice(), 'filter(max, P=? [ F "six" ], s<3)')
    assert "States satisfying filter s<3: 3" in log
    assert "Maximum value over states satisfying filter: 0.333333" in log
    assert "There are 1 states with (approximately) this value:\n2:(2,0)" in log
    _, log = check(dice(), "filter(print, s, d>4)")
    assert "Results (non-zero only) for filter d>4:\n11:(7,5)=7\n12:(7,6)=7" in log
    _, log = check(dice(), "filter(print, s=9, d>4)")
    assert "Satisfying states that are also in filter d>4:\n(none)" in log
