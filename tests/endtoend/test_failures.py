"""Bad input and failed runs: a clear message, PRISM's exit code, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.prism

QUERY = ("-pctl", "P=? [ F d=1 ]")


@pytest.fixture
def dice(prism_examples) -> Path:
    return prism_examples / "simple" / "dice" / "dice.pm"


@pytest.mark.parametrize("engine", [(), ("-explicit",), ("-sparse",)], ids=str)
@pytest.mark.parametrize(
    ("switch", "rows"),
    [
        ("-dtmc", "3 4\n0 1 NaN\n0 2 0.5\n1 1 1\n2 2 1\n"),
        ("-ctmc", "3 4\n0 1 -0.5\n0 2 1.5\n1 0 1\n2 1 1\n"),
        ("-mdp", "3 4 5\n0 0 1 NaN\n0 0 2 0.5\n0 1 0 1\n1 0 1 1\n2 0 2 1\n"),
    ],
)
def test_what_is_no_probability_or_rate_is_refused(prism_gpu, tmp_path, engine, switch, rows):
    model = tmp_path / "model.tra"
    model.write_text(rows, encoding="utf-8")
    asked = {"-dtmc": "P=? [ F x=2 ]", "-ctmc": "S=? [ x=2 ]", "-mdp": "Pmax=? [ F x=2 ]"}[switch]
    run = prism_gpu("-importtrans", model, switch, "-pf", asked, *engine)
    assert_clean(run)
    assert "values must be finite and not negative" in error_line(run.output)


@pytest.fixture
def tandem(prism_examples) -> Path:
    return prism_examples / "ctmcs" / "tandem" / "tandem.sm"


def error_line(output: str) -> str:
    """Return the text behind `Error: `."""
    return output.partition("\nError: ")[2].partition("\n")[0]


def assert_clean(run) -> None:
    """No trace of a crash: neither Python's, nor Java's, nor the JVM's."""
    text = run.output + run.errors
    for trace in ("Traceback", "Exception in thread", "fatal error", "SIGSEGV", "hs_err"):
        assert trace not in text, text


def test_a_name_that_is_no_text_is_named(prism_gpu, dice, tmp_path):
    model = os.fsdecode(os.fsencode(tmp_path) + b"/di\xffce.pm")
    Path(model).write_bytes(dice.read_bytes())
    run = prism_gpu(model, "-pf", "P=? [ F d=1 ]")
    assert_clean(run)
    assert run.code == 1
    assert "no text in UTF-8" in error_line(run.output)
    assert prism_gpu(model, "-pf", "P=? [ F d=1 ]", "-frontend", "builtin").code == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words",
    [
        ("MODEL", "-foo"),
        pytest.param(("MODEL", "-maxiters"), marks=pytest.mark.slow),
        pytest.param(("MODEL", "-epsilon", "small"), marks=pytest.mark.slow),
        ("MODEL", "-pctl", "P=? [ F d="),
        pytest.param(("MODEL", "-pctl", 'P=? [ F "nowhere" ]'), marks=pytest.mark.slow),
        ("MODEL", "-pctl", "P=? [ F d=k ]", "-const", "j=1"),
        pytest.param(("MODEL", "-pctl", "P=? [ F d=1 ]", "-const", "k"), marks=pytest.mark.slow),
        ("missing.pm",),
        ("",),
        pytest.param(("MODEL", "missing.props"), marks=pytest.mark.slow),
        ("BROKEN",),
        ("MODEL", "-pctl", "P=? [ F d=1 ]", "-exportresults", "nofolder/results.txt"),
        pytest.param(("MODEL", "-pctl", "R=? [ I=0.5 ]"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_bad_input_ends_as_prism_ends(prism_gpu, prism, dice, tmp_path, words):
    broken = tmp_path / "broken.pm"
    broken.write_text("dtmc module m x : [0..1] endmodule", encoding="utf-8")
    names = {"MODEL": dice, "BROKEN": broken, "missing.pm": tmp_path / "missing.pm"}
    names["nofolder/results.txt"] = tmp_path / "nofolder" / "results.txt"
    command = [names.get(word, word) for word in words]
    exports = [] if "-maxiters" in words else ["-exportvector", tmp_path / "values"]
    ours = prism_gpu(*command, *exports)
    written = (tmp_path / "values").exists()
    (tmp_path / "values").unlink(missing_ok=True)
    theirs = prism(*command, *exports)
    assert written == (tmp_path / "values").exists()
    assert error_line(theirs.output)
    assert error_line(ours.output) == error_line(theirs.output)
    assert ours.code == theirs.code
    assert_clean(ours)


def test_an_error_exit_leaves_no_trace_of_the_jvm_s_end(prism_gpu, dice):
    for _ in range(3):
        run = prism_gpu(dice, "-pctl", "P=? [ F d=")
        assert run.code == 1
        assert run.errors == ""


def test_an_epsilon_that_is_no_number_is_an_error_in_one_line(prism_gpu, dice):
    run = prism_gpu(dice, *QUERY, "-epsilon", "NaN")
    assert_clean(run)
    assert error_line(run.output) == "epsilon must be a number of at least 0, not nan."


@pytest.mark.parametrize("words", [("-version",), pytest.param(("-help",), marks=pytest.mark.slow)])
def test_information_ends_as_prism_ends(prism_gpu, prism, words):
    ours, theirs = prism_gpu(*words), prism(*words)
    assert ours.code == theirs.code == 0
    assert ours.errors == theirs.errors
    assert theirs.output.strip() in ours.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-gpudevice", "first"), 'Invalid value "first" for -gpudevice switch'),
        (("-gpudevice",), "No value specified for -gpudevice switch"),
        (("-gpuengine", "maybe"), 'Invalid value "maybe" for -gpuengine switch'),
        (("-javamaxmem", "much"), "Invalid value for -javamaxmem switch"),
    ],
    ids=" ".join,
)
def test_a_switch_of_ours_that_is_misused_is_named(prism_gpu, dice, words, text):
    run = prism_gpu(dice, *QUERY, *words)
    assert run.code == 1
    assert text in error_line(run.output)
    assert_clean(run)


LONG = ("-power", "-jor")
METHODS = {
    "none named": (),
    "-jacobi": ("-jacobi",),
    "-power": ("-power",),
    "-jor": ("-jor", "-omega", "0.9"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "method", ["none named", "-jacobi", *(pytest.param(m, marks=pytest.mark.slow) for m in LONG)]
)
def test_no_convergence_is_prism_s_error(prism_gpu, prism, tandem, tmp_path, method):
    words = (tandem, "-const", "c=31", "-pctl", "R=? [ S ]", "-maxiters", "10", *METHODS[method])
    text = "Iterative method did not converge within 10 iterations."
    ours = prism_gpu(*words, "-exportresults", tmp_path / "ours")
    theirs = prism(*words, "-sparse", "-exportresults", tmp_path / "prism's")
    assert error_line(ours.output) == error_line(theirs.output) == text
    assert ours.code == theirs.code
    assert_clean(ours)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "prism's").read_bytes()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", [(), ("-valiter",)], ids=["none named", "-valiter"])
def test_no_convergence_on_an_mdp_is_prism_s_error(prism_gpu, prism, prism_examples, method):
    model = prism_examples / "mdps" / "consensus" / "coin2.nm"
    words = (model, "-const", "K=16", "-pctl", 'R{"steps"}max=? [ F "finished" ]')
    words += ("-maxiters", "10", *method)
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert error_line(ours.output).startswith("Iterative method did not converge within 10")
    assert error_line(ours.output) == error_line(theirs.output)
    assert ours.code == theirs.code
    assert_clean(ours)


@pytest.mark.sampled(1)
def test_no_convergence_of_bounds_is_prism_s_error(prism_gpu, prism, tandem):
    """By interval iteration; PRISM's long run is not found by it, and takes one solve."""
    asked = 'R{"customers"}=? [ F sc=c & sm=c ]; R{"customers"}=? [ S ]'
    words = (tandem, "-const", "c=7", "-pctl", asked, "-ii", "-maxiters", "2", "-explicit")
    ours, theirs = (run(*words).output.splitlines() for run in (prism_gpu, prism))
    errors, right = ([line for line in lines if "Error:" in line] for lines in (ours, theirs))
    assert len(errors) == 2
    assert errors == right


def test_a_property_without_convergence_leaves_the_others_their_results(prism_gpu, prism, tandem):
    words = (tandem, "-const", "c=31", "-pctl", "R=? [ S ]; P=? [ X sc=1 ]", "-maxiters", "10")
    ours, theirs = prism_gpu(*words), prism(*words, "-sparse")
    assert ours.results() == theirs.results() == ["1.0"]


def test_a_gpu_asked_for_where_none_can_be_used_is_refused(prism_gpu, dice):
    run = prism_gpu(dice, *QUERY, "-gpu", CUDA_VISIBLE_DEVICES="")
    assert run.code == 1
    assert error_line(run.output).startswith("-gpu was given, but no GPU can be used: ")
    assert "Result" not in run.output
    assert_clean(run)


def test_a_gpu_asked_for_without_cupy_is_refused(prism_gpu, dice, tmp_path):
    stand_in = tmp_path / "cupy"
    stand_in.mkdir()
    (stand_in / "__init__.py").write_text("raise ModuleNotFoundError('No module named cupy')\n")
    run = prism_gpu(dice, *QUERY, "-gpu", PYTHONPATH=str(tmp_path))
    assert run.code == 1
    assert error_line(run.output).startswith("-gpu was given, but no GPU can be used: ")
    assert_clean(run)


class Interrupted:
    """A command sent SIGINT once its log shows a text."""

    def __init__(self, command: list[str], sign: str, environment: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Whoever runs the tests in the background may have them ignore the signal.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**os.environ, **environment},
        )
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(sign):
                break
        time.sleep(1.0)
        sent = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        rest, self.errors = process.communicate()
        self.seconds = time.monotonic() - sent
        watchdog.cancel()
        self.code = process.returncode
        self.output = "".join(lines) + rest


def test_ctrl_c_during_a_solve_ends_the_run_at_once(prism_install, tandem, tmp_path):
    endless = ["-maxiters", "2000000000", "-epsilon", "1e-300", "-power", "-absolute"]
    words = [str(tandem), "-const", "c=511", "-pctl", "R=? [ S ]", *endless]
    environment = {"PRISM_DIR": str(prism_install.root)}
    vector = tmp_path / "values"
    ours = Interrupted(
        [sys.executable, "-m", "bridge", *words, "-exportvector", str(vector)],
        "Iteration ",
        environment,
    )
    script = str(prism_install.root / "bin" / "prism")
    theirs = Interrupted([script, *words, "-sparse"], "Starting iterations", environment)
    assert ours.code == theirs.code == 130
    assert ours.seconds < 5.0
    assert "interrupted" in ours.errors
    assert "Result" not in ours.output
    assert not vector.exists()
    assert "Traceback" not in ours.errors
