"""Who is wrong: planted numbers, refusals and missing answers, with and without the truth."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.regress.answers import Answer, Claim, Kind
from bridge.regress.compare import Tolerance
from bridge.regress.judge import Judge, builds_of, needs_arbiter
from bridge.regress.solvers import BOUNDS
from bridge.regress.verdicts import Outcome, Standing
from tests.bridge.regress.records import (
    CELL,
    CPU,
    CPU_EXPLICIT,
    CPU_SPARSE,
    EXACT,
    EXACTLY,
    EXPLICIT,
    HYBRID,
    SPARSE,
    TIGHT,
    TRUTH,
    answer,
    model,
    records,
)

PLANTED = TRUTH * np.array([1.0, 1.0 + 1e-5, 1.0, 1.0])


def judged(folder, answers, arbiters=None, models=None):
    told = records(folder, {**answers, **(arbiters or {})}, models)
    judge = Judge(builds_of(0, told), Tolerance())
    return judge.verdict("case", CELL, answers, arbiters or {})


def standings(verdict):
    return {item.engine: item.standing for item in verdict.findings}


def test_equal_values_agree_without_a_judge(tmp_path):
    verdict = judged(
        tmp_path, {EXPLICIT: answer(tmp_path / "a", TRUTH), CPU: answer(tmp_path / "b", TRUTH)}
    )
    assert (verdict.outcome, verdict.judge, verdict.num_states) == (Outcome.AGREES, "", 4)


@pytest.mark.parametrize("ours", [True, False])
def test_a_planted_number_is_found_and_exact_fractions_say_whose_it_is(tmp_path, ours):
    right, wrong = answer(tmp_path / "a", TRUTH), answer(tmp_path / "b", PLANTED)
    answers = {
        EXPLICIT: right if ours else wrong,
        EXACT: answer(tmp_path / "c", TRUTH, claim=EXACTLY),
        CPU: wrong if ours else right,
    }
    verdict = judged(tmp_path, answers)
    assert verdict.outcome is (Outcome.OURS_WRONG if ours else Outcome.PRISM_WRONG)
    assert verdict.judge == "exact"
    assert verdict.outcome.fails is ours
    (finding,) = (item for item in verdict.findings if item.standing is Standing.WRONG)
    assert finding.engine == ("cpu" if ours else "explicit")
    assert finding.distance is not None
    assert finding.distance.relative == pytest.approx(1e-5, rel=1e-3)
    assert "1 states differ from exact; worst in state 1 (x=0, y=1): 0.500005" in finding.message
    assert "relative 1e-05; it claims 1e-09 relative" in finding.message


@pytest.mark.parametrize(
    ("error", "standing", "outcome"),
    [
        (1.1e-5, Standing.WITHIN, Outcome.WITHIN),
        (0.9e-5, Standing.WRONG, Outcome.PRISM_WRONG),
    ],
)
def test_a_difference_that_the_claimed_error_explains_is_not_wrong(
    tmp_path, error, standing, outcome
):
    estimate = Claim("ESTIMATED_BOUNDED", error, absolute=False)
    # What is left of the tolerance is not to decide here.
    off = TRUTH * np.array([1.0, 1.0 + 1.1e-5, 1.0, 1.0])
    answers = {
        EXPLICIT: answer(tmp_path / "a", off, claim=estimate),
        EXACT: answer(tmp_path / "c", TRUTH, claim=EXACTLY),
        CPU: answer(tmp_path / "b", TRUTH),
    }
    verdict = judged(tmp_path, answers)
    assert standings(verdict)["explicit"] is standing
    assert (verdict.outcome, verdict.judge) == (outcome, "exact")
    assert not verdict.outcome.fails
    assert f"it claims {error:.3g} relative" in verdict.findings[0].message


def test_a_fault_of_ours_is_looked_into_even_where_prism_claims_so_much(tmp_path):
    estimate = Claim("ESTIMATED_BOUNDED", 1e-4, absolute=False)
    answers = {
        EXPLICIT: answer(tmp_path / "a", TRUTH, claim=estimate),
        CPU: answer(tmp_path / "b", PLANTED),
    }
    verdict = judged(tmp_path, answers)
    assert needs_arbiter(verdict)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "what both claim explains it" in verdict.findings[1].message
    bounds = answer(tmp_path / "c", TRUTH, claim=Claim("BOUNDED", 1e-8, absolute=False))
    decided = judged(tmp_path, answers, {TIGHT: bounds})
    assert decided.outcome is Outcome.OURS_WRONG


def test_the_largest_difference_is_that_of_any_pair_of_engines(tmp_path):
    loose = Claim("BOUNDED", 1e-2, absolute=False)
    far = TRUTH * np.array([1.0, 1.0, 1.0 + 5e-3, 1.0])
    answers = {
        EXPLICIT: answer(tmp_path / "a", far, claim=loose),
        SPARSE: answer(tmp_path / "b", PLANTED),
        CPU: answer(tmp_path / "c", TRUTH),
    }
    found = {item.engine: item for item in judged(tmp_path, answers).findings}
    # Its worst pair is the one that nothing explains; its largest difference is from another.
    assert found["cpu"].standing is Standing.DIFFERS
    assert "differ from sparse" in found["cpu"].message
    assert found["cpu"].distance.relative == pytest.approx(5e-3, rel=1e-2)


def test_the_numbers_of_states_do_not_matter_but_their_variables(tmp_path):
    order = (3, 1, 0, 2)
    answers = {
        EXPLICIT: answer(tmp_path / "a", TRUTH),
        CPU: answer(tmp_path / "b", TRUTH, order),
    }
    models = {CPU: model(tmp_path / "m", order)}
    assert judged(tmp_path, answers, models=models).outcome is Outcome.AGREES
    answers[CPU] = answer(tmp_path / "b", PLANTED, order)
    verdict = judged(tmp_path, answers, models=models)
    assert "state 1 (x=0, y=1)" in verdict.findings[1].message


def test_values_by_other_states_are_no_agreement(tmp_path):
    answers = {EXPLICIT: answer(tmp_path / "a", TRUTH), CPU: answer(tmp_path / "b", TRUTH)}
    facts = model(tmp_path / "m")
    facts.states.write_text(facts.states.read_text().replace("(1,1)", "(2,2)"))
    verdict = judged(tmp_path, answers, models={CPU: facts})
    assert verdict.outcome is Outcome.UNDECIDED
    assert standings(verdict)["cpu"] is Standing.DIFFERS


def test_without_the_truth_a_difference_is_undecided_until_arbiters_agree(tmp_path):
    answers = {
        EXPLICIT: answer(tmp_path / "a", PLANTED),
        CPU: answer(tmp_path / "b", TRUTH),
    }
    verdict = judged(tmp_path, answers)
    assert verdict.outcome is Outcome.UNDECIDED
    assert needs_arbiter(verdict)
    bounds = answer(tmp_path / "c", TRUTH, claim=Claim("BOUNDED", 1e-8, absolute=False))
    tight = answer(tmp_path / "d", TRUTH * (1 + 1e-9), epsilon=1e-12)
    decided = judged(tmp_path, answers, {BOUNDS: bounds, TIGHT: tight})
    assert (decided.outcome, decided.judge) == (Outcome.PRISM_WRONG, "bounds and tight")
    assert standings(decided) == {"explicit": Standing.WRONG, "cpu": Standing.AGREES}
    # Two arbiters that contradict each other decide nothing.
    disputed = judged(tmp_path, answers, {BOUNDS: bounds, TIGHT: answer(tmp_path / "d", PLANTED)})
    assert disputed.outcome is Outcome.UNDECIDED
    assert "those that were to decide differ too" in disputed.findings[0].message


def test_all_engines_alike_are_wrong_if_the_truth_says_so(tmp_path):
    answers = {
        EXPLICIT: answer(tmp_path / "a", PLANTED),
        CPU: answer(tmp_path / "b", PLANTED),
        EXACT: answer(tmp_path / "c", TRUTH, claim=EXACTLY),
    }
    verdict = judged(tmp_path, answers)
    assert verdict.outcome is Outcome.OURS_WRONG
    assert standings(verdict)["explicit"] is Standing.WRONG


def test_a_result_that_is_not_in_any_state_counts_too(tmp_path):
    ours = replace(answer(tmp_path / "b", TRUTH), value="[0.25,0.75]")
    answers = {EXPLICIT: replace(answer(tmp_path / "a", TRUTH), value="[0.25,1.0]"), CPU: ours}
    verdict = judged(tmp_path, answers)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "result [0.25,1.0] of explicit, [0.25,0.75] of cpu" in verdict.findings[1].message


def refused(text):
    return Answer(CELL, Kind.REFUSED, text)


def nothing(text):
    return Answer(CELL, Kind.NOTHING, text)


@pytest.mark.parametrize(
    ("peer", "ours", "outcome", "standing"),
    [
        (refused("no S"), refused("no S"), Outcome.REFUSED, Standing.REFUSED),
        (refused("no S"), refused("no s"), Outcome.OURS_WRONG, Standing.WRONG),
        (refused("no S"), None, Outcome.UNDECIDED, Standing.DIFFERS),
        (refused("-ii is currently not supported"), None, Outcome.BEYOND, Standing.BEYOND),
        (refused("PRISM failed: java.lang.X"), None, Outcome.BEYOND, Standing.BEYOND),
        (None, refused("no S"), Outcome.OURS_WRONG, Standing.WRONG),
        (None, nothing("time-out"), Outcome.OURS_WRONG, Standing.MISSING),
        (nothing("time-out"), nothing("time-out"), Outcome.NOT_COMPARED, Standing.NOTHING),
        (nothing("no convergence"), None, Outcome.NOT_COMPARED, Standing.AGREES),
    ],
)
def test_refusals_and_missing_answers_are_judged_by_the_peer(
    tmp_path, peer, ours, outcome, standing
):
    answers = {
        HYBRID: peer or answer(tmp_path / "a", TRUTH),
        CPU: ours or answer(tmp_path / "b", TRUTH),
    }
    verdict = judged(tmp_path, answers)
    assert (verdict.outcome, standings(verdict)["cpu"]) == (outcome, standing)


def test_values_of_all_states_are_missed_where_the_peer_has_them(tmp_path):
    result = replace(answer(tmp_path / "b", TRUTH), vector=None)
    answers = {HYBRID: answer(tmp_path / "a", TRUTH), CPU: result}
    verdict = judged(tmp_path, answers)
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.findings[1].message == "it has no values of all states, where hybrid has"
    # Where neither has any, the results are compared.
    answers[HYBRID] = replace(answers[HYBRID], vector=None)
    assert judged(tmp_path, answers).outcome is Outcome.AGREES


def test_what_one_engine_of_prism_refuses_its_counterpart_refuses_and_no_other(tmp_path):
    answers = {
        EXPLICIT: refused("only symbolic"),
        SPARSE: answer(tmp_path / "a", TRUTH),
        HYBRID: answer(tmp_path / "b", TRUTH),
        CPU_SPARSE: answer(tmp_path / "c", TRUTH),
        CPU_EXPLICIT: refused("only symbolic"),
    }
    assert judged(tmp_path, answers).outcome is Outcome.AGREES
