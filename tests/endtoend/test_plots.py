"""`-gpuplot` with PRISM inside: what reaches the plot, and what is refused before PRISM starts."""

from __future__ import annotations

import importlib.util
from html import unescape
from pathlib import Path

import pytest

from bridge.plot import lines
from tests.endtoend.comparing import remarks

pytestmark = [
    pytest.mark.prism,
    pytest.mark.skipif(
        importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib (the extra plots)"
    ),
]
CLUSTER = Path(__file__).parents[2] / "examples" / "models" / "cluster.sm"


def said(run) -> str:
    """Return what a run said of its plot."""
    (line,) = [line for line in remarks(run.output) if ".svg" in line]
    return line.partition("prism-gpu: ")[2]


def text_of(path: Path) -> str:
    """Return a picture's source, whose comments hold its texts."""
    return unescape(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("engine", ["-hybrid", "-explicit"])
def test_solves_of_all_kinds_are_drawn(prism_gpu, tmp_path, engine):
    path = tmp_path / "run.svg"
    properties = 'S=? [ "premium" ]; P=? [ F<=5 !"minimum" ]; R{"num_repairs"}=? [ F !"minimum" ]'
    run = prism_gpu(
        CLUSTER, "-pf", properties, "-const", "N=16", "-tr", "1", engine, "-gpuplot", path
    )
    assert run.code == 0, run.output
    assert len(run.results()) == 3
    assert said(run) == f"{path} shows the sweeps of 4 solves"
    text = text_of(path)
    for expected in (
        "S=? [ \"premium\" ], N=16", "P=? [ F<=5 !\"minimum\" ]", "transient distribution",
        "Uniformisation", "epsilon 1e-06", "share of the sum still to come",
    ):  # fmt: skip
        assert expected in text, expected


def test_an_experiment_is_drawn_with_the_results_that_prism_has(prism_gpu, tmp_path):
    path, results = tmp_path / "run.svg", tmp_path / "results.csv"
    words = ("-pf", 'const double T; P=? [ F<=T !"minimum" ]', "-const", "N=2:3,T=0:5:10")
    words = (*words, "-exportresults", f"{results}:csv")
    run = prism_gpu(CLUSTER, *words, "-gpuplot", path)
    assert run.code == 0, run.output
    assert said(run).endswith("solves and 1 experiment")
    rows = [line.split(",") for line in results.read_text().splitlines() if line[:1].isdigit()]
    assert len(rows) == 6
    constant, series = lines([({"N": n, "T": t}, float(value)) for n, t, value in rows])
    assert constant == "T"
    assert [label for label, _, _ in series] == ["N=2", "N=3"]
    assert "N=2" in text_of(path)


def test_a_simulated_experiment_is_drawn(prism_gpu, tmp_path):
    path = tmp_path / "run.svg"
    words = ("-pf", 'const double T; P=? [ F<=T !"premium" ]', "-const", "N=2,T=100:100:300")
    run = prism_gpu(CLUSTER, *words, "-sim", "-simsamples", 100, "-gpuplot", path)
    assert run.code == 0, run.output
    assert said(run) == f"{path} shows 1 experiment"


def test_a_run_without_sweeps_says_so(prism_gpu, tmp_path):
    path = tmp_path / "run.svg"
    run = prism_gpu(CLUSTER, "-pf", "P>=1 [ F true ]", "-const", "N=2", "-gpuplot", path)
    assert "no solve made sweeps" in said(run)
    assert not path.exists()


def test_what_cannot_be_written_is_refused_before_prism_starts(prism_gpu, tmp_path):
    path = tmp_path / "absent" / "run.svg"
    run = prism_gpu(CLUSTER, "-pf", "P>=1 [ F true ]", "-const", "N=2", "-gpuplot", path)
    assert run.code == 1
    assert run.output.strip() == f"Error: -gpuplot cannot write {path}: No such file or directory."
