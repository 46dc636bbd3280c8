"""The models and choices of the Monte Carlo benchmarks, without running them at length."""

from __future__ import annotations

import json

import pytest

RECORD = {
    "alone_seconds": 5.0,
    "rows": [
        {
            "workers": workers,
            "paths": 100_000,
            "deploy_seconds": 1.0 + 0.5 * workers,
            "first_seconds": 7.0,
            "warm_seconds": 6.5,
            "task_seconds": 0.01,
            "batch_seconds": 0.005,
        }
        for workers in (1, 2, 4)
    ],
}


def test_the_model_takes_its_constants_from_the_measurements(load):
    plot = load("plot_workers")
    found = plot.constants_of(RECORD)
    assert found.path == pytest.approx(5e-5)
    assert (found.task, found.batch) == (0.01, 0.005)
    assert (found.compiling, found.deploy, found.deploy_each) == pytest.approx((0.5, 1.0, 0.5))
    # One worker: the work, a twentieth of it twice, a first batch twice and one under way.
    alone = plot.sampling_seconds(found, 1_000_000, 1)
    assert alone == pytest.approx(50 * 1.05 + 2 * 0.5 + 0.01)
    few = [plot.sampling_seconds(found, 1_000_000, w) for w in (1, 2, 4, 8, 16)]
    assert few == sorted(few, reverse=True)
    # Four batches for each of 4,096 workers, and this process at every one of them.
    assert plot.sampling_seconds(found, 1_000_000, 4096) == pytest.approx(4 * 4096 * 0.005 * 1.05)


def test_the_paper_s_curve_goes_through_the_times_that_it_states(load):
    plot = load("plot_workers")
    assert plot.paper_seconds(940_000, 500) == pytest.approx(99)
    assert plot.paper_seconds(9_400_000, 500) == pytest.approx(446)
    slowdown = [
        plot.paper_seconds(940_000, 1) / (w * plot.paper_seconds(940_000, w)) for w in (32, 64)
    ]
    assert slowdown[0] > 0.9 > slowdown[1]


def test_pairs_are_chosen_by_what_can_be_asked_and_smallest_first(load, tmp_path):
    coverage = load("interval_coverage")

    def entry(model, states, text, kind="bounded until", value=0.5, model_type="DTMC"):
        return {
            "model": model, "constants": f"N={states}", "property": text, "kind": kind,
            "model_type": model_type, "value": value, "states": states,
        }  # fmt: skip

    entries = [
        *(entry(f"family{n}.pm", n, "P=? [ F<=9 x=1 ]") for n in (50, 20, 40, 30)),
        entry("other.pm", 99, 'R{"r"}=? [ C<=9 ]', "cumulative reward"),
        entry("other.pm", 9, "R=? [ F x=1 ]", "reachability reward", 5000.0),
        entry("other.pm", 9, "filter(max, P=? [ F<=9 x=1 ])"),
        entry("other.pm", 9, "P=? [ G F x=1 ]", "LTL"),
        entry("other.pm", 9, "P>=1 [ F x=1 ]", value=True),
        entry("other.nm", 9, "P=? [ F<=9 x=1 ]", model_type="MDP"),
    ]
    file = tmp_path / "values.json"
    file.write_text(json.dumps(entries), encoding="utf-8")
    found = [(pair.model, pair.text[:1]) for pair in coverage.chosen(file)]
    expected = ["family20.pm", "other.pm", "family30.pm", "family40.pm"]
    assert [model for model, _ in found] == expected
    assert coverage.chosen(file)[0].methods == ("apmc", "clopper-pearson", "ci")
    assert coverage.chosen(file)[1].methods == ("ci",)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "m.pm").touch()
    assert coverage.file_of("a/b/m.pm", (tmp_path,)) == tmp_path / "b" / "m.pm"


def test_a_run_that_differs_in_a_digit_ends_the_benchmark(load):
    workers = load("workers")
    expected, _ = workers.in_one_process(workers.spec_of(20, 1), 2000)
    same, other = workers.method(2000), workers.method(2000)
    same.feed(workers.spec_of(20, 1)().run(0, 2000))
    workers.same_or_exit(same, expected)
    other.feed(workers.spec_of(20, 2)().run(0, 2000))
    with pytest.raises(SystemExit, match="not that of one process"):
        workers.same_or_exit(other, expected)
