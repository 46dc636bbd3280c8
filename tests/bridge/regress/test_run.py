"""The order of a run: who is asked what, who decides, and what is left after a stop."""

from pathlib import Path

import numpy as np
import pytest

from bridge.regress.answers import Claim, Record
from bridge.regress.plan import Case
from bridge.regress.run import Regression, Settings
from bridge.regress.runner import Interrupted
from bridge.regress.verdicts import Outcome
from tests.bridge.regress.records import (
    CELL,
    CPU,
    EXACT,
    EXACTLY,
    EXPLICIT,
    HYBRID,
    TRUTH,
    answer,
    model,
)

CASE = Case("case", Path(), ())
WRONG = TRUTH * (1 + 1e-4)
OTHER = TRUTH * (1 - 1e-4)


class Engines:
    """Answers as told, in the place of the workers; an engine without values stops the run."""

    def __init__(self, folder, values, num_states=4):
        self.folder, self.values, self.num_states = folder, values, num_states
        self.asked = []
        self.forgotten = []

    def ask(self, _case, _number, solver, *, left_out=frozenset(), done=frozenset(), told=None):
        self.asked.append((solver.name, set(left_out), set(done)))
        name = "exact" if solver.name == "exact-arbiter" else solver.name
        values = self.values.get(name)
        if values is None:
            raise Interrupted(Record())
        folder = self.folder / solver.name
        claim = {"exact": EXACTLY, "bounds": Claim("BOUNDED", 1e-8, absolute=False)}.get(name)
        found = answer(folder, values, claim=claim)
        if told is not None:
            told(found)
        facts = model(folder, num_transitions=6)
        # The size only decides who is asked.
        sized = type(facts)(**{**vars(facts), "num_states": self.num_states})
        return Record({0: sized}, {CELL: found})

    def forget(self, number):
        self.forgotten.append(number)

    def stop(self):
        pass


def run(engines, solvers=(EXPLICIT, EXACT, CPU), cases=(CASE,), **changed):
    results = []
    whole = Regression(engines, Settings(solvers, **changed)).run(list(cases), 1, results.append)
    return whole, results


def outcome(result):
    return next(item for item in result.verdicts if item.question == CELL.text).outcome


def names(engines):
    return [name for name, _, _ in engines.asked]


def test_engines_that_agree_are_asked_once_each(tmp_path):
    engines = Engines(tmp_path, {"explicit": TRUTH, "exact": TRUTH, "cpu": TRUTH})
    whole, (result,) = run(engines)
    assert whole
    assert names(engines) == ["explicit", "exact", "cpu"]
    assert outcome(result) is Outcome.AGREES
    assert set(result.seconds) == {"explicit", "exact", "cpu"}
    assert engines.forgotten == [0]


def test_the_exact_engine_is_spared_large_models_until_there_is_something_to_decide(tmp_path):
    engines = Engines(tmp_path, {"explicit": TRUTH, "exact": TRUTH, "cpu": TRUTH})
    run(engines, exact_states=3)
    assert names(engines) == ["explicit", "cpu"]
    engines = Engines(tmp_path, {"explicit": WRONG, "exact": TRUTH, "cpu": TRUTH})
    _, (result,) = run(engines, exact_states=3)
    assert names(engines) == ["explicit", "cpu", "exact-arbiter"]
    assert outcome(result) is Outcome.PRISM_WRONG


def test_bounds_and_a_tight_threshold_decide_where_the_model_is_too_large_for_fractions(tmp_path):
    told = {"explicit": TRUTH, "cpu": WRONG, "bounds": TRUTH, "tight": TRUTH}
    engines = Engines(tmp_path, told, num_states=30_000)
    told |= {"bounds:sparse": TRUTH, "tight:sparse": TRUTH}
    _, (result,) = run(engines)
    # Ours are not called wrong by what one engine of PRISM's has built.
    asked = ["explicit", "cpu", "bounds", "tight", "bounds:sparse", "tight:sparse"]
    assert names(engines) == asked
    assert outcome(result) is Outcome.OURS_WRONG
    told |= {"explicit": WRONG, "cpu": TRUTH}
    engines = Engines(tmp_path, told, num_states=30_000)
    _, (result,) = run(engines)
    assert names(engines) == asked[:4]
    assert outcome(result) is Outcome.PRISM_WRONG


@pytest.mark.parametrize(
    ("errs", "expected"),
    [
        (["tight"], Outcome.PRISM_WRONG),
        (["tight:sparse"], Outcome.PRISM_WRONG),
        (["tight", "tight:sparse"], Outcome.UNDECIDED),
        (["bounds"], Outcome.UNDECIDED),
        (["bounds", "tight"], Outcome.UNDECIDED),
        (["bounds:sparse", "tight:sparse"], Outcome.PRISM_WRONG),
    ],
)
def test_where_judges_differ_our_bounds_need_each_other_and_an_engine_of_prisms(
    tmp_path, errs, expected
):
    judges = ("bounds", "tight", "bounds:sparse", "tight:sparse")
    told = {"explicit": WRONG, "cpu": TRUTH}
    told |= {name: OTHER if name in errs else TRUTH for name in judges}
    _, (result,) = run(Engines(tmp_path, told, num_states=30_000))
    assert outcome(result) is expected


def test_nobody_is_asked_to_decide_where_that_is_not_wanted(tmp_path):
    engines = Engines(tmp_path, {"explicit": TRUTH, "cpu": WRONG})
    _, (result,) = run(engines, solvers=(EXPLICIT, CPU), arbitrate=False)
    assert names(engines) == ["explicit", "cpu"]
    assert outcome(result) is Outcome.UNDECIDED


def test_a_case_that_cannot_be_compared_is_left_out(tmp_path):
    engines = Engines(tmp_path, {})
    whole, (result,) = run(engines, cases=(Case("x", Path(), (), left_out="simulation"),))
    assert whole
    assert (engines.asked, result.verdicts) == ([], [])


def test_a_stopped_case_is_judged_by_what_was_answered(tmp_path):
    engines = Engines(tmp_path, {"explicit": TRUTH, "hybrid": np.ones(4)})
    _, (result,) = run(engines, solvers=(EXPLICIT, HYBRID, CPU))
    assert result.interrupted
    (verdict,) = (item for item in result.verdicts if item.question == CELL.text)
    assert verdict.outcome is Outcome.UNDECIDED
    assert [item.engine for item in verdict.findings] == ["explicit", "hybrid", "cpu"]


def test_ctrl_c_ends_the_run_and_keeps_what_was_done(tmp_path):
    engines = Engines(tmp_path, {"explicit": TRUTH, "cpu": TRUTH})
    results = []

    def done(result):
        results.append(result)
        if len(results) == 1:
            raise KeyboardInterrupt

    cases = [Case(str(number), Path(), ()) for number in range(20)]
    whole = Regression(engines, Settings((EXPLICIT, CPU))).run(cases, 1, done)
    assert not whole
    assert 1 <= len(results) < 20
    assert [result.case.name for result in results] == sorted(
        (result.case.name for result in results), key=int
    )
    assert len({result.case.name for result in results}) == len(results)
