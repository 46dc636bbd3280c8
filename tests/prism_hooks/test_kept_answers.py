"""Answers that are kept: found again for the same question alone."""

from __future__ import annotations

import gc
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest

from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction
from prism_hooks.kept_answers import KeptAnswers
from prism_hooks.questions import TASKS, Question

MATRIX = CsrMatrix(np.array([0, 2, 3, 4]), np.array([0, 1, 1, 2]), np.array([0.5, 0.5, 1, 1]), 3)
ENVIRONMENT = SolverEnvironment(method=Method.JACOBI)
ANSWER = TASKS["reachability"].answer
CHANGES = {
    "states": np.array([True, False, True]),
    "remain": np.array([True, True, False]),
    "start": np.array([0.0, 1.0, 1e-300]),
    "rewards": np.array([1.0, 0.0, 2.0000000000000004]),
    "direction": Direction.MINIMISE,
    "lower": 1.0,
    "upper": 6.0,
    "wants_strategy": True,
}


@pytest.fixture
def model():
    return ExplicitModel(ModelKind.DTMC, MATRIX)


@pytest.fixture
def asked():
    return Question(
        states=np.array([True, False, False]),
        remain=np.ones(3, dtype=bool),
        start=np.array([0.0, 1.0, 0.0]),
        rewards=np.array([1.0, 0.0, 2.0]),
        upper=5.0,
    )


@pytest.fixture
def result(model, asked):
    return solve_reachability(model, asked.states, asked.start, ENVIRONMENT)


@pytest.fixture
def kept(model, asked, result):
    answers = KeptAnswers()
    answers.keep(model, ANSWER, asked, ENVIRONMENT, result)
    return answers


def copied(asked, **changes):
    arrays = {field.name: getattr(asked, field.name) for field in fields(asked)}
    twins = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in arrays.items()
    }
    return replace(asked, **{**twins, **changes})


def test_the_same_question_finds_its_answer_in_no_time(kept, model, asked, result):
    found = kept.find(model, ANSWER, copied(asked), SolverEnvironment(method=Method.JACOBI))
    assert found.values is result.values
    assert found.iterations == result.iterations > 0
    assert found.residual == result.residual
    assert found.seconds == found.setup_seconds == found.sweep_seconds == 0.0


def test_each_part_of_a_question_counts(kept, model, asked):
    assert set(CHANGES) == {field.name for field in fields(Question)}
    for name, value in CHANGES.items():
        changed = copied(asked, **{name: value})
        assert kept.find(model, ANSWER, changed, ENVIRONMENT) is None, name
    assert kept.find(model, ANSWER, copied(asked, rewards=None), ENVIRONMENT) is None


def test_model_task_and_settings_count(kept, model, asked):
    twin = ExplicitModel(ModelKind.DTMC, MATRIX)
    assert kept.find(twin, ANSWER, asked, ENVIRONMENT) is None
    assert kept.find(model, TASKS["until"].answer, asked, ENVIRONMENT) is None
    assert kept.find(model, ANSWER, asked, replace(ENVIRONMENT, epsilon=1e-7)) is None
    assert kept.find(model, ANSWER, asked, ENVIRONMENT) is not None


def test_the_latest_answers_are_kept_and_no_large_ones(kept, model, asked, result):
    others = [copied(asked, upper=6.0 + i) for i in range(2)]
    for other in others:
        kept.keep(model, ANSWER, other, ENVIRONMENT, result)
    assert kept.find(model, ANSWER, asked, ENVIRONMENT) is None
    for other in others:
        assert kept.find(model, ANSWER, other, ENVIRONMENT) is not None
    small = KeptAnswers(answer_bytes=77)
    small.keep(model, ANSWER, asked, ENVIRONMENT, result)
    assert small.find(model, ANSWER, asked, ENVIRONMENT) is None


def test_a_model_is_not_held_by_its_answers(asked, result):
    answers = KeptAnswers()
    model = ExplicitModel(ModelKind.DTMC, MATRIX)
    answers.keep(model, ANSWER, asked, ENVIRONMENT, result)
    held = weakref.ref(model)
    del model
    gc.collect()
    assert held() is None
