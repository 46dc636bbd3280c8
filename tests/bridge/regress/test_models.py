"""Planted labels, states and sizes of models."""

import pytest

from bridge.regress.answers import ModelFacts
from bridge.regress.judge import builds_of
from bridge.regress.models import model_verdict
from bridge.regress.verdicts import Outcome
from tests.bridge.regress.records import (
    CPU,
    EXPLICIT,
    HYBRID,
    LABELS,
    TRUTH,
    answer,
    model,
    records,
)


def judged(folder, models):
    told = records(
        folder, {solver: answer(folder / solver.name, TRUTH) for solver in models}, models
    )
    return model_verdict("case", 0, told, builds_of(0, told))


def test_models_alike_agree_whatever_the_order_of_their_states(tmp_path):
    models = {
        HYBRID: model(tmp_path / "a"),
        EXPLICIT: model(tmp_path / "b", (2, 3, 1, 0)),
        CPU: model(tmp_path / "c", (3, 1, 0, 2)),
    }
    assert judged(tmp_path, models).outcome is Outcome.AGREES


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_a_planted_label_is_found_with_its_state(tmp_path, order):
    planted = {**LABELS, "goal": [2, 1]}
    models = {HYBRID: model(tmp_path / "a"), CPU: model(tmp_path / "c", order, planted)}
    verdict = judged(tmp_path, models)
    assert verdict.outcome is Outcome.OURS_WRONG
    assert verdict.findings[1].message == (
        'label "goal": 1 states differ from hybrid, which says that state 1 (x=0, y=1) '
        "does not have it"
    )


def test_a_planted_initial_state_is_found(tmp_path):
    planted = {**LABELS, "init": [3]}
    models = {HYBRID: model(tmp_path / "a"), CPU: model(tmp_path / "c", labels=planted)}
    assert 'label "init": 2 states differ' in judged(tmp_path, models).findings[1].message


def test_a_label_that_is_missing_is_found(tmp_path):
    planted = {name: has for name, has in LABELS.items() if name != "goal"}
    models = {HYBRID: model(tmp_path / "a"), CPU: model(tmp_path / "c", labels=planted)}
    verdict = judged(tmp_path, models)
    assert verdict.findings[1].message == 'labels: "goal" is in one of it and hybrid only'


def test_where_engines_of_prism_differ_nobody_is_called_wrong(tmp_path):
    planted = {**LABELS, "goal": [3]}
    models = {
        HYBRID: model(tmp_path / "a"),
        EXPLICIT: model(tmp_path / "b", labels=planted),
        CPU: model(tmp_path / "c"),
    }
    assert judged(tmp_path, models).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_states": 5}, "states: 5 for 4 of explicit"),
        ({"num_transitions": 7}, "transitions: 7 for 6"),
        ({"type": "CTMC"}, "type: CTMC for DTMC"),
    ],
)
def test_other_sizes_are_found(tmp_path, changed, message):
    models = {EXPLICIT: model(tmp_path / "a"), CPU: model(tmp_path / "c", **changed)}
    verdict = judged(tmp_path, models)
    assert verdict.outcome is Outcome.OURS_WRONG
    assert verdict.findings[1].message == message


def test_a_model_that_only_ours_cannot_build_is_an_error_and_one_that_none_can_is_not(tmp_path):
    broken = ModelFacts(0, "", "no such constant")
    models = {HYBRID: model(tmp_path / "a"), CPU: broken}
    assert judged(tmp_path, models).outcome is Outcome.OURS_WRONG
    assert judged(tmp_path, {HYBRID: broken, CPU: broken}).outcome is Outcome.REFUSED
