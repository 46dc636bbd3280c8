"""Models of PRISM's suites are the same, built by the engines and by PRISM's explicit engine."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.conformance.construction_cases import SUITES, Case, cases
from tests.conformance.construction_worker import DIFFERENT, ROUNDED, SAME, TOO_SLOW, Outcome
from tests.conformance.constructions import Worker, compared, table
from tests.conformance.random_texts import RandomText

pytestmark = pytest.mark.prism

MOST_STATES, SECONDS = 30_000, 60.0
"""The command `python -m tests.conformance.constructions` takes larger ones, for hours."""

DIE = """dtmc
const int N;
module die
  s : [0..N] init 0;
  [roll] s<N -> 1/3 : (s'=s+1) + 2/3 : (s'=0);
  [] s=N -> true;
endmodule
label "done" = s=N;
rewards "rolls" [roll] true : 1; s=1 : 0.5; endrewards
"""


@pytest.fixture
def worker(prism_install):
    assert prism_install
    made = Worker(SECONDS)
    yield made
    made.close()


def test_a_model_is_built_for_all_values_of_its_constants(worker, tmp_path):
    file = tmp_path / "die.pm"
    file.write_text(DIE)
    found = worker.answers(str(file), ["N=0:4,T=7", "N=3", "N=90"], 50)
    assert {x.constants: (x.outcome, x.states) for x in found} == {
        "N=0": ("fault in both", 0),
        "N=1": (SAME, 2),
        "N=2": (SAME, 3),
        "N=3": (SAME, 4),
        "N=4": (SAME, 5),
        "N=90": ("too large", 0),
    }


def test_constants_that_nobody_names_get_small_values(worker, tmp_path):
    file = tmp_path / "die.pm"
    file.write_text(DIE)
    found = worker.answers(str(file), ["", "N=3"], 50)
    assert {x.constants: x.outcome for x in found} == {"N=1": SAME, "N=2": SAME, "N=3": SAME}


def test_outcomes_are_counted_by_suite():
    found = [
        Outcome("/opt/prism-tests/a/die.pm", "N=2", SAME, states=1200),
        Outcome("/opt/prism-tests/die.pm", "", SAME, states=30),
        Outcome("/opt/prism-examples/a/die.pm", "", TOO_SLOW),
    ]
    assert table(found).splitlines()[2:] == [
        f"| prism-examples | {TOO_SLOW} | 1 | 0 | 0 |",
        f"| prism-tests | {SAME} | 2 | 1,200 | 1,230 |",
    ]


@pytest.mark.usefixtures("prism_install")
def test_a_worker_that_does_not_answer_is_given_up(tmp_path):
    file = tmp_path / "die.pm"
    file.write_text(DIE)
    hasty = Worker(0.0)
    found = hasty.answers(str(file), ["N=2"], 50)
    assert [outcome.outcome for outcome in found] == ["failed"]
    hasty.close()


def random_outcomes(worker, folder, seeds):
    """Return what came of random models, those without initial states left out."""
    outcomes = []
    for seed in seeds:
        file = folder / f"m{seed}.prism"
        file.write_text(RandomText(seed).text())
        outcomes += worker.answers(str(file), [""], MOST_STATES)
    return outcomes


def require_agreement(outcomes):
    """Require models to be the same, or to have a fault for both."""
    agreed = (SAME, ROUNDED, "fault in both", "too large")
    assert [x for x in outcomes if x.outcome not in agreed] == []
    counts = Counter(outcome.outcome for outcome in outcomes)
    assert counts[SAME] > len(outcomes) / 2, counts


def test_a_few_random_models_are_prisms(worker, tmp_path):
    require_agreement(random_outcomes(worker, tmp_path, range(20)))


@pytest.mark.slow
def test_many_random_models_are_prisms(worker, tmp_path):
    require_agreement(random_outcomes(worker, tmp_path, range(20, 500)))


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_models_of_a_suite_are_prisms(prism_install, suite):
    chosen = [case for case in cases(prism_install) if case.suite == suite]
    if not chosen:
        pytest.skip(f"there is no {suite} beside {prism_install.root}")
    outcomes = list(compared(prism_install, chosen, MOST_STATES, SECONDS))
    counts = Counter(outcome.outcome for outcome in outcomes)
    print(json.dumps(counts))
    assert [x for x in outcomes if x.outcome in (DIFFERENT, "failed")] == []
    assert counts[SAME] + counts[ROUNDED] > 3 * counts[TOO_SLOW] + 20


def test_constants_are_those_named_beside_a_model(prism_install):
    found = cases(prism_install)
    if not any(case.suite == "prism-examples" for case in found):
        pytest.skip("PRISM's examples are not there")
    assert Case("prism-examples", "ctmcs/cluster/cluster.sm", "N=8,T=10") in found
