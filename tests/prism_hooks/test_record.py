"""What a run keeps for a plot: curves that are thinned, solves and results of experiments."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engines.model.environment import SolverEnvironment
from engines.model.progress import Measure, SweepReport
from engines.model.result import SolveResult, Status
from prism_hooks.record import RunRecord, SweepCurve


def report(done: int, numbers, measure: Measure = Measure.CHANGE) -> SweepReport:
    return SweepReport(done, np.asarray(numbers, dtype=float), 0.5, measure)


def result(status: Status = Status.CONVERGED) -> SolveResult:
    return SolveResult(
        np.zeros(1),
        status,
        "Jacobi",
        7,
        1e-7,
        0.0,
        1e-7,
        1.0,
        0.1,
        0.9,
        None,  # type: ignore[arg-type]
    )


def test_few_sweeps_are_kept_as_they_are():
    curve = SweepCurve(Measure.CHANGE, absolute=False)
    curve.add(report(3, [0.5, 0.25, 0.125]))
    curve.add(report(5, [0.1, 0.05]))
    sweeps, numbers = curve.points()
    assert sweeps.tolist() == [1, 2, 3, 4, 5]
    assert numbers.tolist() == [0.5, 0.25, 0.125, 0.1, 0.05]


def test_of_reports_with_one_number_the_sweep_is_right():
    curve = SweepCurve(Measure.CHANGE, absolute=False)
    for done in (10, 30, 31):
        curve.add(report(done, [1.0 / done]))
    sweeps, numbers = curve.points()
    assert sweeps.tolist() == [10, 30, 31]
    np.testing.assert_allclose(numbers, 1.0 / sweeps)


@pytest.mark.parametrize("batch", [1, 7, 1000, 5000])
@pytest.mark.parametrize("total", [4096, 4097, 40_963])
def test_many_sweeps_are_thinned_evenly_and_both_ends_kept(batch, total):
    most = 4096
    curve = SweepCurve(Measure.CHANGE, absolute=False, most_points=most)
    numbers = 0.9999 ** np.arange(1, total + 1)
    for begin in range(0, total, batch):
        part = numbers[begin : begin + batch]
        curve.add(report(begin + len(part), part))
    sweeps, kept = curve.points()
    assert len(sweeps) <= most + 1
    assert len(sweeps) >= min(total, most // 2)
    assert sweeps[0] == 1
    assert sweeps[-1] == total
    assert len(set(np.diff(sweeps)[:-1])) == 1
    np.testing.assert_array_equal(kept, numbers[sweeps.astype(int) - 1])


def test_a_solve_has_a_curve_for_each_of_its_parts():
    record = RunRecord(("N",))
    record.begin("P=? [ F a ]", [("N", "3"), ("k", "1")])
    record.sweeps(report(2, [1.0, 0.5]))
    record.sweeps(report(4, [0.2, 0.1]))
    record.sweeps(report(1, [0.9]))
    record.sweeps(report(2, [0.3], Measure.WIDTH))
    record.solved(result(Status.CHANGE_ONLY), SolverEnvironment(epsilon=1e-9))
    (solve,) = record.solves
    assert [curve.iterations for curve in solve.curves] == [4, 1, 2]
    assert [curve.measure for curve in solve.curves] == [Measure.CHANGE] * 2 + [Measure.WIDTH]
    assert solve.question == "P=? [ F a ], N=3"
    assert (solve.epsilon, solve.status) == (1e-9, Status.CHANGE_ONLY)


def test_a_solve_without_sweeps_leaves_nothing_and_takes_no_others():
    record = RunRecord()
    record.begin("first", [])
    record.sweeps(report(2, [1.0, 0.5]))
    record.begin("second", [])
    record.solved(result(), SolverEnvironment())
    assert record.solves == []


def test_results_are_kept_by_property_and_constants():
    record = RunRecord(("N", "T"))
    for n, value in (("1", 0.25), ("2", "true"), ("1", 0.5)):
        record.begin("P=? [ F a ]", [("N", n), ("other", "4")])
        record.ended(value)
    ((first, nothing), (second, number)) = record.values["P=? [ F a ]"]
    assert (first, second) == ({"N": "2"}, {"N": "1"})
    assert math.isnan(nothing)
    assert number == 0.5


def test_what_was_interrupted_is_kept_and_drawn_once():
    drawn = []
    record = RunRecord(draw=drawn.append)
    record.begin("S=? [ a ]", [])
    record.sweeps(report(2, [1.0, 0.5]))
    record.finish()
    record.finish()
    assert drawn == [record]
    assert record.solves[0].status is Status.NOT_CONVERGED
    assert record.solves[0].method == "unfinished"


def test_of_many_solves_the_longest_are_kept_in_their_order():
    record = RunRecord(solves_kept=32)
    record.begin("S=? [ a ]", [])
    sweeps = [(17 * number) % 500 + 1 for number in range(500)]
    for count in sweeps:
        record.sweeps(report(count, [0.5]))
        record.solved(replace(result(), iterations=count), SolverEnvironment())
    kept = [solve.iterations for solve in record.solves]
    assert record.num_solves == 500
    assert 32 <= len(kept) <= 64
    assert set(sorted(sweeps)[-32:]) <= set(kept)
    assert kept == [count for count in sweeps if count in kept]
