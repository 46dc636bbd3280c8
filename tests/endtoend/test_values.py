"""Every reference value, at a tight epsilon and with no method named."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.endtoend.references import TIGHT, TOLERANCE, answers, check, instances, relative_error

pytestmark = pytest.mark.prism

FAST = (
    r"herman(3|5|7|9|11)\.pm$",
    r"simple/dice/",
    r"ctmcs/(cluster|tandem)/",
    r"consensus/coin2",
    r"leader_async/leader[34]",
)
SLOW_INSTANCES = (
    *("N=4", "N=8", "N=16", "N=64", "c=7", "c=31", "c=63", "c=127", "c=255"),
    *("coin2-K=4", "coin2-K=8", "herman5", "herman9", "herman11"),
)
# The families that the first engines must answer; the rest of the examples is below.
SLOW = (r"herman13\.pm$", r"nand/nand", r"consensus/coin4", r"leader_async/leader5")
OTHERS = r"prism-examples/(ctmcs/(polling|kanban|fms)|mdps/(?!consensus|leader_async))"


def values_cases() -> list[pytest.param]:
    """Return the instances of the must-show families, the long ones marked slow."""
    cases = []
    for pattern in FAST:
        for case in instances(pattern):
            slow = any(name in str(case.id) for name in SLOW_INSTANCES)
            marks = (*case.marks, pytest.mark.slow) if slow else case.marks
            cases.append(pytest.param(*case.values, id=case.id, marks=marks))
    for pattern in SLOW:
        cases += [
            pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.slow))
            for case in instances(pattern)
        ]
    return cases


@pytest.mark.sampled(5)
@pytest.mark.parametrize("entries", values_cases())
def test_reference_values_are_met_with_no_method_named(
    prism_gpu, prism_examples, tmp_path, entries
):
    errors = check(prism_gpu, prism_examples, tmp_path, entries)
    wrong = [(e.text, e.value, x) for e, x in zip(entries, errors, strict=True) if x > TOLERANCE]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("entries", instances(OTHERS))
def test_reference_values_of_all_other_examples_are_met(
    prism_gpu, prism_examples, tmp_path, entries
):
    errors = check(prism_gpu, prism_examples, tmp_path, entries)
    wrong = [(e.text, e.value, x) for e, x in zip(entries, errors, strict=True) if x > TOLERANCE]
    assert not wrong


def herman_tokens(size: int) -> list[str]:
    """Return property 3 and its minimum for every possible number of tokens."""
    return [
        f'filter({side}, R=? [ F "stable" ], num_tokens={tokens})'
        for tokens in range(1, size + 1, 2)
        for side in ("max", "min")
    ]


@pytest.mark.slow
def test_herman_15_agrees_with_prism_and_with_the_closed_form_for_three_tokens(
    prism_gpu, prism, prism_examples
):
    model = prism_examples / "dtmcs" / "herman" / "herman15.pm"
    texts = ";".join(herman_tokens(15))
    ours = [float(x) for x in answers(prism_gpu(model, "-pctl", texts, *TIGHT).output)]
    theirs = prism(model, "-pctl", texts, "-sparse", "-epsilon", "1e-10", timeout=1200)
    assert ours == pytest.approx(theirs.numbers(), rel=1e-6)
    # McIver and Morgan, "An elementary proof that Herman's Ring is Θ(N²)" (2005): three tokens
    # with gaps a, b, c meet after 4abc/N steps: 5·5·5 at most and 1·1·13 at least for N = 15.
    assert ours[2:4] == pytest.approx([4 * 5 * 5 * 5 / 15, 4 * 1 * 1 * 13 / 15], rel=1e-9)


PLAIN_CHAINS = {
    "brp": (
        "dtmcs/brp/brp.pm",
        "N=16,MAX=2",
        "P=? [ F s=5 ]; P=? [ F s=5 & srep=2 ]; P=? [ F s=5 & srep=1 & i>8 ]; "
        "P=? [ F !(srep=0) & !recv ]; P=? [ F s=4 | s=5 ]",
    ),
    "brp-64": (
        "dtmcs/brp/brp.pm",
        "N=64,MAX=5",
        "P=? [ F s=5 ]; P=? [ F s=5 & srep=2 ]; P=? [ F s=5 & srep=1 & i>8 ]",
    ),
    "leader_sync": (
        "dtmcs/leader_sync/leader4_4.pm",
        None,
        'P=? [ F "elected" ]; R{"num_rounds"}=? [ F "elected" ]',
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["brp", "leader_sync", pytest.param("brp-64", marks=pytest.mark.slow)]
)
def test_chains_without_reference_entries_agree_with_prism_s_exact_engine(
    prism_gpu, prism, prism_examples, name
):
    model, constants, texts = PLAIN_CHAINS[name]
    words = [prism_examples / model, "-pctl", texts]
    if constants:
        words += ["-const", constants]
    exact = [float(x) for x in decimals(prism(*words, "-exact").output)]
    found = answers(prism_gpu(*words, *TIGHT).output)
    errors = [relative_error(x, y) for x, y in zip(found, exact, strict=True)]
    assert max(errors) <= TOLERANCE


def decimals(output: str) -> list[str]:
    """Return the results of an exact run as decimals: PRISM adds them behind a long fraction."""
    return [str(float(Fraction(answer))) for answer in answers(output)]
