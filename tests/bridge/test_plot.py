"""`-gpuplot`: what is drawn, from what was kept, and what is refused before the run."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from bridge.arguments import parse
from bridge.own_switches import UsageError
from bridge.plot import constants_named, draw_run, lines, plot_record, require_plot
from engines.errors import BridgeError
from engines.model.environment import SolverEnvironment
from engines.model.progress import Measure, SweepReport
from engines.model.result import Status
from prism_hooks.record import RunRecord

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib (the extra plots)"
)


def run_of(*measures: Measure, status: Status = Status.CONVERGED, by: str = "") -> RunRecord:
    """Return a run that solved a question by each measure, with 40 sweeps that halve it."""
    record = RunRecord(("N",))
    for number, measure in enumerate(measures):
        record.begin(f'P=? [ F "goal{number}" ]', [("N", "3")])
        record.sweeps(SweepReport(40, 0.5 ** np.arange(1, 41), 0.1, measure))
        found = SimpleNamespace(method="Jacobi", iterations=40, status=status, finished_by=by)
        record.solved(found, SolverEnvironment(epsilon=1e-6))  # type: ignore[arg-type]
    return record


def test_the_constants_of_the_command_line_are_known_by_name():
    words = ("m.sm", "-const", "N=2:4,T=0.5", "--const", "K=1", "-pctl", "P=? [ F x=3 ]")
    assert constants_named(words) == ("N", "T", "K")


def test_an_experiment_is_drawn_over_the_constant_with_most_values():
    rows = [({"N": str(n), "T": str(t), "k": "7"}, 10.0 * n + t) for n in (2, 1) for t in (3, 1, 2)]
    constant, series = lines(rows)
    assert constant == "T"
    assert [label for label, _, _ in series] == ["N=2", "N=1"]
    assert series[0][1:] == ([1.0, 2.0, 3.0], [21.0, 22.0, 23.0])


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [({}, 1.0)],
        [({"N": "1"}, 1.0)],
        [({"a": "true"}, 1.0), ({"a": "false"}, 2.0)],
        [({"N": "1"}, float("nan")), ({"N": "2"}, float("nan"))],
    ],
)
def test_what_makes_no_curve_is_no_experiment(rows):
    assert lines(rows) is None


def test_a_choice_of_truth_values_makes_lines():
    rows = [({"N": n, "fair": f}, 1.0) for n in ("1", "2") for f in ("true", "false")]
    constant, series = lines(rows)
    assert constant == "N"
    assert [label for label, _, _ in series] == ["fair=true", "fair=false"]


@needs_matplotlib
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_each_kind_of_picture_is_written(tmp_path, ending):
    path = tmp_path / f"run.{ending}"
    said = draw_run(run_of(*Measure), path, "model.sm")
    assert said == f"{path} shows the sweeps of 4 solves"
    begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(begin)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@needs_matplotlib
def test_a_picture_says_what_it_shows(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    path = tmp_path / "run.svg"
    record = run_of(Measure.CHANGE, status=Status.CONVERGED, by="LU")
    for n in (1, 2, 3):
        record.begin('R=? [ F "done" ]', [("N", str(n))])
        record.ended(0.5 * n)
    assert draw_run(record, path, "model.sm") == (
        f"{path} shows the sweeps of 1 solve and 1 experiment"
    )
    text = path.read_text(encoding="utf-8")
    for expected in (
        "model.sm", "N=3:", "Jacobi, 40", "LU", "epsilon 1e-06", "sweeps made", ">N<",
        "largest change of a sweep (relative)", 'R=? [ F "done" ]', ">result<",
    ):  # fmt: skip
        assert expected in text, expected
    # Ticks are numbers, not the source of formulas.
    assert "mathdefault" not in text
    assert ">1e-06<" in text or ">1e-05<" in text


@needs_matplotlib
def test_only_the_longest_of_many_solves_are_drawn_and_it_is_said(tmp_path):
    record = run_of(*[Measure.CHANGE] * 20)
    said = draw_run(record, tmp_path / "run.png", "")
    assert said.endswith("shows the sweeps of 8 solves, the 8 of 20 solves with the most sweeps")


@needs_matplotlib
def test_where_nothing_can_be_drawn_nothing_is_written(tmp_path):
    path = tmp_path / "run.png"
    record = RunRecord(("N",))
    record.begin("filter(forall, true)", [("N", "1")])
    record.ended("true")
    assert "was not written: no solve made sweeps" in draw_run(record, path, "model.sm")
    assert not path.exists()


@needs_matplotlib
def test_a_dollar_sign_begins_no_formula(tmp_path):
    record = run_of(Measure.CHANGE)
    record.begin("P=? [ F $\\x$ ]", [])
    record.sweeps(SweepReport(3, np.array([0.5, 0.25, 0.1]), 0.1))
    record.finish()
    assert "2 solves" in draw_run(record, tmp_path / "run.png", "model$\\y$.sm")


@needs_matplotlib
def test_a_picture_that_cannot_be_written_in_the_end_costs_no_results(tmp_path, capsys):
    record = plot_record(parse(["m.sm", "-gpuplot", str(tmp_path / "sub.png")], {}))
    (tmp_path / "sub.png").mkdir()
    record.begin("P=? [ F a ]", [])
    record.sweeps(SweepReport(3, np.array([0.5, 0.25, 0.1]), 0.1))
    record.finish()
    assert "sub.png was not written: Is a directory" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["plot", "plot.jpg", "plot.png.txt", ".png"])
def test_another_ending_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match=r"ends in \.png, \.svg, \.pdf"):
        require_plot(tmp_path / name)


@needs_matplotlib
def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    with pytest.raises(BridgeError, match=r"cannot write .*: No such file or directory"):
        plot_record(parse(["m.sm", "-gpuplot", str(tmp_path / "no" / "plot.png")], {}))
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BridgeError, match=r"cannot write .*: Is a directory"):
        require_plot(tmp_path / "folder.png")
    require_plot(tmp_path / "fine.png")
    old = tmp_path / "old.png"
    old.write_bytes(b"kept")
    require_plot(old)
    assert old.read_bytes() == b"kept"
    assert not (tmp_path / "fine.png").exists()


def test_a_missing_matplotlib_is_named_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BridgeError, match=r"pip install \"prism-gpu\[plots\]\""):
        require_plot(tmp_path / "plot.png")


@pytest.mark.parametrize("more", [["-gui"], ["-gpuengine", "off"]])
def test_a_run_that_is_not_ours_has_no_plot(more):
    with pytest.raises(UsageError, match="-gpuplot draws what"):
        parse(["m.sm", "-gpuplot", "plot.png", *more], {})


def test_progress_is_off_for_the_window_and_on_demand():
    assert parse(["m.sm"], {}).hooks.show_progress
    assert not parse(["-gui"], {}).hooks.show_progress
    assert not parse(["m.sm", "-gpuprogress", "off"], {}).hooks.show_progress
    with pytest.raises(UsageError, match="-gpuprogress switch: on or off"):
        parse(["m.sm", "-gpuprogress", "maybe"], {})
