"""What results and models show and refuse, and what a user finds in the package."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import threading
import time
import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import prism_gpu as pg
from engines.model.progress import SweepReport
from prism_gpu.progress import ProgressBar

ROOT = Path(__file__).resolve().parents[2]


def ring(states, back):
    """A chain in which Jacobi's method takes long: nearly as likely back as forth."""
    matrix = np.diag(np.full(states - 1, 1.0 - back), 1) + np.diag(np.full(states - 1, back), -1)
    matrix[0, 0] = back
    matrix[-1] = 0.0
    matrix[-1, -1] = 1.0
    return matrix


def test_a_result_is_its_number_or_its_truth():
    model = pg.dtmc([[0.5, 0.5], [0, 1]], epsilon=1e-9)
    number = model.check("P=? [ F<=2 x=1 ]")
    assert float(number) == 0.75
    with pytest.raises(TypeError, match=r"a number, 0\.75"):
        bool(number)
    assert model.check("P>0.7 [ F<=2 x=1 ]")
    assert not model.check("P>0.8 [ F<=2 x=1 ]")


def test_errors_in_words():
    ruin = pg.dtmc([[1, 0, 0], [0.6, 0, 0.4], [0, 0, 1]])
    exact = ruin.check("P=? [ F x=2 ]")
    assert (exact.value, exact.error, exact.proven, exact.accuracy) == (0.0, 0.0, True, "exact")
    model = pg.dtmc(ring(30, 0.4))
    assert model.check("P=? [ F<=3 x=3 ]").accuracy == "exact but for rounding"
    assert model.check("filter(count, x>3)").accuracy == ""
    proven = pg.dtmc(ring(30, 0.4), rewards={"r": np.ones(30)}).check("R=? [ F x=29 ]", bounds=True)
    assert proven.proven
    assert "(proven)" in proven.accuracy
    assert model.check("P=? [ F (x=1)&(x=2) ]").property == "P=? [ F (x=1)&(x=2) ]"
    assert repr(proven) == f"<Result {proven.value} {proven.accuracy} of R=? [ F x=29 ]>"


def test_values_less_accurate_than_asked_for_are_warned_of():
    model = pg.dtmc(ring(30, 0.4), rewards={"r": np.ones(30)})
    with pytest.warns(UserWarning, match="a proven error of .* above epsilon = 1e-18"):
        result = model.check("R=? [ F x=29 ]", bounds=True, epsilon=1e-18)
    assert result.error > 1e-18


def test_a_named_method_that_stops_far_from_the_solution_is_warned_of():
    # From the first of 81 states to the last, one to either side with equal probability.
    steps = np.diag(np.full(80, 0.5), 1) + np.diag(np.full(80, 0.5), -1)
    steps[0, 1], steps[80] = 1.0, np.eye(81)[80]
    model = pg.dtmc(steps, rewards={"r": np.ones(81)})
    with pytest.warns(UserWarning, match="Gauss-Seidel has stopped with an estimated error of"):
        result = model.check("R=? [ F x=80 ]", method="gs", max_iterations=100_000)
    assert 1e-3 * 6400 < abs(result.value - 6400) <= result.error


def test_a_named_method_is_used_and_stops_at_its_limit():
    model = pg.dtmc(ring(30, 0.4), rewards={"r": np.ones(30)})
    with pytest.warns(UserWarning, match="above epsilon = 1e-10"):
        result = model.check("R=? [ F x=29 ]", method="gs", epsilon=1e-10)
    assert result.method == "Gauss-Seidel"
    assert result.iterations > 10
    with pytest.raises(pg.ConvergenceError, match="within 3 iterations"):
        model.check("R=? [ F x=29 ]", method="gs", max_iterations=3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stay", [0.0, 0.9])
@pytest.mark.parametrize("settings", [{}, {"method": "jacobi"}, {"bounds": True}], ids=str)
@pytest.mark.parametrize("asked", ["R=? [ F x=2 ]", "R=? [ C<=5 ]"])
def test_what_overflows_is_no_result(stay, settings, asked):
    steps = [[stay, 1 - stay, 0], [0, stay, 1 - stay], [0, 0, 1]]
    model = pg.dtmc(steps, rewards={"r": np.array([1e308, 1e308, 0.0])})
    with pytest.raises(pg.ConvergenceError, match=r"diverged after|no finite upper bound"):
        model.check(asked, **settings)


@pytest.mark.filterwarnings("error")
def test_what_visits_do_not_bound_a_solution_does():
    # A bound of the visits is 1 over the probability that none follows, which is 0 here.
    end, up, start = 2000, 0.51, 1000
    steps = scipy.sparse.diags([np.full(end, 1 - up), np.full(end, up)], [-1, 1]).tolil()
    steps[0], steps[end] = np.eye(1, end + 1), np.eye(1, end + 1, end)
    model = pg.dtmc(
        steps, labels={"over": [0, end]}, rewards={"bets": np.ones(end + 1)}, initial=start
    )
    result = model.check('R=? [ F "over" ]', bounds=True)
    # The gambler's ruin.
    odds = Fraction(49, 51)
    exact = (end * (1 - odds**start) / (1 - odds**end) - start) / Fraction(2, 100)
    assert result.proven
    assert abs(Fraction(result.value) - exact) <= Fraction(result.error) < exact / 100_000


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [1.0, 1e-9, 1e9])
def test_bounds_of_the_long_run_do_not_depend_on_the_unit_of_time(rate):
    places = 3000
    both = [np.full(places, rate)] * 2
    model = pg.ctmc(scipy.sparse.diags(both, [-1, 1]), labels={"empty": [0]})
    result = model.check('S=? [ "empty" ]', bounds=True)
    assert result.proven
    assert abs(result.value - 1 / (places + 1)) <= result.error < 1e-5 * result.value


def test_tables_for_notebooks_are_escaped(tmp_path):
    model = pg.dtmc([[0.5, 0.5], [0, 1]], labels={"goal": 1})
    assert "goal" in model._repr_html_()
    # What no property can use is told of by those that do.
    indebted = tmp_path / "debt.pm"
    indebted.write_text('dtmc module m x : [0..1]; endmodule rewards "debt" true : -1; endrewards')
    assert "debt" in pg.open(indebted)._repr_html_()
    html = model.check("P=? [ F<=T x=1 ]", {"T": 2})._repr_html_()
    assert "P=? [ F&lt;=T x=1 ]" in html
    assert "<th style" in html
    table = pg.sweep(model, "P=? [ F<=k x=1 ]", {"k": range(2)})._repr_html_()
    assert table.count("<tr>") == 3


def test_data_frames_need_pandas(monkeypatch):
    model = pg.dtmc([[0.5, 0.5], [0, 1]])
    results = pg.sweep(model, "P=? [ F<=k x=1 ]", {"k": range(2)})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        results.frame()
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=lambda rows: rows))
    assert [row["value"] for row in results.frame()] == [0.0, 0.5]
    assert results.frame()[0]["k"] == 0
    assert model.states_frame()["x"].tolist() == [0, 1]


def test_progress_is_shown_where_it_is_wanted(capsys):
    model = pg.dtmc(ring(400, 0.499))
    model.check("P=? [ F<=50000 x=399 ]", progress=False)
    assert capsys.readouterr().err == ""
    bar = ProgressBar(seconds_before=1.0)
    bar(SweepReport(0, np.array([1.0]), 0.0))
    bar(SweepReport(5, np.array([0.5]), 0.9))
    assert capsys.readouterr().err == ""
    bar(SweepReport(10, np.array([0.5]), 2.0))
    time.sleep(0.2)  # As often as tqdm shows it.
    bar(SweepReport(30, np.array([0.1]), 4.0, sweeps_to_go=30.0))
    bar.close()
    assert "30/60" in capsys.readouterr().err


def test_an_interrupt_ends_a_check_and_the_model_lives_on():
    program = """
import _thread, threading
import numpy as np
import prism_gpu as pg
n = 200_000
from scipy import sparse
P = sparse.diags([np.full(n - 1, 0.5), np.full(n - 1, 0.5)], [1, -1], format="lil")
P[0, 0] = 0.5
P[n - 1, n - 1] = 0.5
model = pg.dtmc(P)
threading.Timer(1.5, _thread.interrupt_main).start()
try:
    model.check(f"P=? [ F<=10000000 x={n - 1} ]")
except KeyboardInterrupt:
    print("interrupted", model.check("P=? [ F<=2 x=0 ]").value)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=100,
        check=False,
    )  # fmt: skip
    assert done.stdout == "interrupted 1.0\n", done.stderr


def test_models_and_results_travel_to_other_processes():
    model = pg.dtmc(ring(9, 0.4), labels={"end": 8}, rewards={"r": np.ones(9)})
    result = model.check('R=? [ F "end" ]')
    other, copied = pickle.loads(pickle.dumps((model, result)))
    assert copied.value == result.value
    assert other.check('R=? [ F "end" ]').value == result.value


def test_threads_may_share_a_model():
    model = pg.dtmc(ring(50, 0.4), rewards={"r": np.ones(50)})
    expected = model.check("R=? [ F x=49 ]").vector
    found: list[np.ndarray] = []

    def ask():
        found.extend(model.check("R=? [ F x=49 ]").vector for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(np.array_equal(vector, expected) for vector in found)


def test_every_public_name_is_there_and_documented():
    assert sorted(pg.__all__) == pg.__all__
    assert set(dir(pg)) == set(pg.__all__)
    assert pg.__version__
    for name in set(pg.__all__) - {"__version__"}:
        thing = getattr(pg, name)
        documented = inspect.getdoc(thing)
        assert len(documented or "") > 40, name
        public = inspect.isfunction(thing) or thing is pg.Model
        methods = [] if inspect.isfunction(thing) else inspect.getmembers(thing, inspect.isfunction)
        for part, function in [(name, thing)] * inspect.isfunction(thing) + methods:
            if not public or part.startswith("_") or function.__doc__ is None:
                continue
            asked = set(inspect.signature(function).parameters) - {"self"}
            missing = {item for item in asked if item not in function.__doc__}
            assert not missing, f"{name}.{part}: {missing}"
            if asked:
                assert "Raises" in function.__doc__, f"{name}.{part}"
    with pytest.raises(AttributeError, match="no attribute 'dtcm'"):
        pg.dtcm  # noqa: B018


def test_no_public_name_is_a_module_that_its_import_would_put_in_its_place():
    modules = {module.name for module in pkgutil.iter_modules(pg.__path__)}
    assert "sweeps" in modules
    assert not modules & set(pg.__all__)


@pytest.mark.parametrize("module", ["matrices", "sweeps"])
def test_the_examples_of_the_docstrings(module):
    outcome = doctest.testmod(importlib.import_module(f"prism_gpu.{module}"))
    assert outcome.attempted > 2
    assert outcome.failed == 0


@pytest.mark.slow
def test_a_users_script_passes_strict_types(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport prism_gpu as pg\n\n"
        "model: pg.Model = pg.dtmc(np.eye(2), labels={'a': [0]}, epsilon=1e-8)\n"
        "result = model.check('P=? [ F \"a\" ]', {'T': 1}, bounds=True)\n"
        "number: float = float(result)\nerror: float | None = result.error\n"
        "frame = pg.sweep(model, 'P=? [ F<=k x=1 ]', {'k': range(3)}).frame()\n"
        "opened = pg.open('m.pm', {'N': 3}, front_end='builtin', device='cpu')\n"
    )
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import prism_gpu as pg\npg.dtmc([[1]]).check('true', epsilom=1)\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
    ]
    outputs = [
        subprocess.run([*command, str(path)], capture_output=True, text=True, cwd=ROOT, check=False)
        for path in (script, wrong)
    ]
    assert outputs[0].returncode == 0, outputs[0].stdout
    assert "epsilom" in outputs[1].stdout
