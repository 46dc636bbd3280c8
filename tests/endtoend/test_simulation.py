"""`-sim` samples with our engines and reports as PRISM does."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.endtoend.comparing import remarks
from tests.endtoend.test_failures import Interrupted

pytestmark = pytest.mark.prism

DICE = "simple/dice/dice.pm"
CLUSTER = "ctmcs/cluster/cluster.sm"
COIN = "mdps/consensus/coin2.nm"
SEED = ("-gpusimseed", "1")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?")
_ERROR = re.compile(r"^(?:Error|Warning): .*|^Deadlock found.*", re.MULTILINE)

DICE_TEXTS = """
P=? [ F s=7 & d=1 ];
P=? [ G<=3 s<7 ];
P=? [ X s=1 ];
P=? [ !(s=2 W s=7) ];
R=? [ F s=7 ];
R=? [ C<=3 ];
R=? [ I=2 ];
P=? [ G F s=7 ];
filter(max, P=? [ F s=7 ]);
S=? [ s=7 ];
R=? [ C ];
"""
CLUSTER_TEXTS = """
P=? [ F<=10 !"premium" ];
P=? [ "minimum" U[2,8] !"premium" ];
R{"percent_op"}=? [ I=5 ];
R{"time_not_min"}=? [ C<=20 ];
R{"num_repairs"}=? [ C<=20 ];
"""
needs_distributed = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("distributed", "cryptography")),
    reason="needs dask.distributed and cryptography",
)


def shape(output: str) -> list[str]:
    """Return a log from the first property on, without our lines and without its numbers."""
    begun = output[output.index("\nSimulating: ") :]
    lines = [line for line in begun.splitlines() if not line.startswith("prism-gpu:")]
    return [_NUMBER.sub("#", line) for line in lines]


def intervals(output: str) -> list[tuple[float, float]]:
    """Return the results and their error bounds."""
    found = re.findall(r"^(?:Result|k=\d+ ): (\S+) \(\+/- (\S+) with", output, re.MULTILINE)
    return [(float(value), float(width)) for value, width in found]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "constants", "texts", "switches"),
    [
        (DICE, (), DICE_TEXTS, ("-simsamples", "200")),
        (DICE, (), DICE_TEXTS, ("-simmethod", "aci", "-simsamples", "200")),
        (DICE, (), DICE_TEXTS, ("-simmethod", "apmc", "-simapprox", "0.1", "-simconf", "0.1")),
        (CLUSTER, ("-const", "N=4"), CLUSTER_TEXTS, ("-simsamples", "100", "-simwidth", "0.2")),
        (DICE, (), DICE_TEXTS, ("-simsamples", "1234")),
    ],
    ids=["ci", "aci", "apmc", "ctmc", "whole batches"],
)
def test_a_simulation_is_reported_line_by_line_as_prism_reports_it(
    prism_gpu, prism, prism_examples, model, constants, texts, switches
):
    words = (prism_examples / model, *constants, "-pf", texts, "-sim", *switches)
    ours, theirs = prism_gpu(*words, *SEED), prism(*words)
    assert shape(ours.output) == shape(theirs.output)
    assert _ERROR.findall(ours.output) == _ERROR.findall(theirs.output)
    assert ours.code == theirs.code
    sampled = [line for line in remarks(ours.output) if "paths of seed 1, " in line]
    assert len(sampled) == len(intervals(ours.output)) >= 2


def test_results_are_within_their_intervals_of_the_exact_values(prism_gpu, prism_examples):
    texts = "P=? [ F s=7 & d=1 ]; R=? [ F s=7 ]; P=? [ F<=4 s=7 ]; R=? [ C<=4 ]"
    words = ("-sim", "-simsamples", "200000", "-simconf", "1e-6", *SEED)
    found = intervals(prism_gpu(prism_examples / DICE, "-pf", texts, *words).output)
    # After 3 flips three quarters of all are done, after 4 no more: a loop takes 2 flips.
    exact = [1 / 6, 11 / 3, 0.75, 3 + 0.25]
    assert len(found) == len(exact)
    for (value, width), expected in zip(found, exact, strict=True):
        assert 0 < width < 0.02
        assert abs(value - expected) <= width


def test_formulas_that_so_many_steps_decide_are_sampled_too(prism_gpu, prism_examples):
    texts = """
    P=? [ X (X s=3) ];
    P=? [ F<=3 (s=1 & (X s=3)) ];
    P=? [ (F<=2 s=3) & (G<=4 d=0) ];
    P=? [ !((F<=2 s=3) & (G<=4 d=0)) ];
    P=? [ G<=5 (s=1 => (X (s=3 | s=4))) ];
    P>=0.7 [ (X s=1) | (F<=2 s=5) ];
    P=? [ G (F s=7) ];
    """
    words = ("-sim", "-simmethod", "ci", "-simsamples", "100000", "-simconf", "1e-6", *SEED)
    run = prism_gpu(prism_examples / DICE, "-pf", texts, *words)
    # A fair coin takes two steps from 0 to 3; then it goes back to 1, or d gets a value.
    exact = [0.25, 0.25, 0.125, 0.875, 1.0]
    found = intervals(run.output)
    assert len(found) == len(exact)
    for (value, width), expected in zip(found, exact, strict=True):
        assert abs(value - expected) <= width <= 0.01
    # One half for the step to 1, and half of the others go on to 5.
    assert run.results()[5] == "true"
    assert "no number of steps decides" in remarks(run.output)[-1]
    assert "Error: LTL-style path formulas are not supported" in run.output


def test_an_experiment_answers_all_its_values_from_the_same_paths(prism_gpu, prism_examples):
    text = "const int k; P=? [ F<=k s=7 ]"
    words = ("-const", "k=2:6", "-sim", "-simsamples", "50000", *SEED)
    run = prism_gpu(prism_examples / DICE, "-pf", text, *words)
    values = [value for value, _ in intervals(run.output)]
    assert values[0] == 0.0
    # No die takes an even number of flips.
    assert values[1] == values[2]
    assert values[3] == values[4]
    assert values[1:5:2] == pytest.approx([0.75, 0.9375], abs=0.01)
    assert len(remarks(run.output)) == 1


def test_a_seed_names_its_paths_and_without_one_they_are_new(prism_gpu, prism_examples):
    words = (prism_examples / DICE, "-pf", "R=? [ F s=7 ]", "-sim", "-simsamples", "5000")
    first, again, other, new = (
        intervals(prism_gpu(*words, *more).output)
        for more in (SEED, SEED, ("-gpusimseed", "2"), ())
    )
    assert first == again
    assert len({*first, *other, *new}) == 3


def test_sequential_tests_and_intervals_stop_at_the_path_where_prism_would(
    prism_gpu, prism_examples
):
    texts = "P>=0.6 [ F<=3 s=7 ]; P<=0.6 [ F<=3 s=7 ]; P>=0.9 [ F<=3 s=7 ]"
    run = prism_gpu(prism_examples / DICE, "-pf", texts, "-sim", *SEED)
    assert run.results() == ["true", "false", "false"]
    iterations = [int(x) for x in re.findall(r"complete: (\d+) iter", run.output)]
    # The first two are one test with its sides exchanged.
    assert iterations[0] == iterations[1] < 1000
    words = ("-sim", "-simwidth", "0.01", "-simconf", "0.05", *SEED)
    run = prism_gpu(prism_examples / DICE, "-pf", "P=? [ F<=3 s=7 ]", *words)
    (count,) = (int(x) for x in re.findall(r"complete: (\d+) iter", run.output))
    ((value, width),) = intervals(run.output)
    # Student's quantile, which is the normal one but for its fourth digit.
    assert width == 0.01
    assert count == pytest.approx(1.96**2 * value * (1 - value) / width**2, rel=2e-3)


@pytest.mark.parametrize("text", ["P=? [ F<=3 s=7 ]", "R=? [ F s=7 ]"])
def test_whole_batches_give_the_digits_of_single_paths(prism_gpu, prism_examples, text):
    # A method that is to find the number of paths judges one by one; the other is shown batches.
    words = (prism_examples / DICE, "-pf", text, "-sim", "-simmethod", "ci", "-simconf", "0.05")
    single = prism_gpu(*words, "-simwidth", "0.02", *SEED).output
    (count,) = re.findall(r"complete: (\d+) iter", single)
    assert int(count) > 1000
    whole = prism_gpu(*words, "-simsamples", count, *SEED).output
    ((value, width),) = intervals(single)
    ((same, narrower),) = intervals(whole)
    assert same == value
    assert 0.999 * width < narrower <= width
    lengths = [re.findall(r"^Path length statistics: .*", x, re.MULTILINE) for x in (single, whole)]
    assert lengths[0] == lengths[1] != []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("body", "text", "switches"),
    [
        ("[] x<3 -> 0.5:(x'=x+1)+0.5:true; [] x=3 -> 0.6:true+0.5:(x'=0);", "F x=9", ()),
        ("[] true -> 0.5-0.2*x:(x'=min(3,x+1))+0.5+0.2*x:true;", "F x=9", ()),
        ("[] x<3 -> (x'=x+1);", "F x=9", ("-nofixdl",)),
        ("[] true -> 0.5:(x'=1-x)+0.5:true;", "F x=3", ("-simpathlen", "50")),
        ("[] true -> 1/(2-x):(x'=x+1)+1-1/(2-x):true;", "F x=9", ()),
        ("[] mod(5,2-x)=1 -> (x'=x+1); [] mod(5,2-x)!=1 -> (x'=x+1);", "F x=9", ()),
        ("[] true -> 0.5:(x'=mod(x+1,4))+0.5:true;", 'F "none"', ()),
        ("[] x<3 -> (x'=x+1); endmodule rewards x=2: -1; endrewards module n", "F x=9", ()),
    ],
    ids=["sum", "negative", "deadlock", "path limit", "infinite", "modulus", "label", "reward"],
)
def test_what_is_wrong_on_a_path_is_prism_s_own_error(
    prism_gpu, prism, tmp_path, body, text, switches
):
    model = tmp_path / "model.pm"
    model.write_text(f"dtmc\nmodule m\nx:[0..3] init 0;\n{body}\nendmodule\n", encoding="utf-8")
    words = (model, "-pf", f"P=? [ {text} ]", "-sim", "-simsamples", "100", *switches)
    ours, theirs = prism_gpu(*words, *SEED), prism(*words)
    errors = _ERROR.findall(theirs.output)
    assert errors
    assert _ERROR.findall(ours.output) == errors
    assert ours.code == theirs.code


def test_a_value_out_of_range_is_an_error_where_prism_s_simulator_goes_on(
    prism_gpu, prism, tmp_path
):
    model = tmp_path / "model.pm"
    model.write_text("dtmc module m x:[0..3]; [] true -> (x'=x+1); endmodule", encoding="utf-8")
    words = (model, "-pf", "P=? [ F x=9 ]", "-sim")
    assert prism(*words).results() == ["1.0"]
    run = prism_gpu(*words)
    assert not run.results()
    assert "Error: Value 4 out of range 0..3 for variable x, assigned in state (x=3)" in run.output


def test_an_mdp_s_choices_are_resolved_as_prism_resolves_them(prism_gpu, prism, prism_examples):
    text = 'P=? [ F "all_coins_equal_1" ]'
    words = (prism_examples / COIN, "-const", "K=2", "-pf", text, "-sim", "-simsamples", "2000")
    ours, theirs = prism_gpu(*words, *SEED), prism(*words)
    assert shape(ours.output) == shape(theirs.output)
    (mine, width), (other, other_width) = intervals(ours.output) + intervals(theirs.output)
    assert abs(mine - other) <= width + other_width
    assert "was resolved uniformly" in ours.output


def test_what_our_sampler_cannot_do_is_prism_s_and_one_line_says_so(prism_gpu, prism_examples):
    words = ("-const", "k=1:300", "-sim", "-simsamples", "100")
    run = prism_gpu(prism_examples / DICE, "-pf", "const int k; P=? [ F<=k s=7 ]", *words)
    assert len(intervals(run.output)) == 300
    (line,) = remarks(run.output)
    assert "300 questions" in line
    assert "PRISM's own code" in line


def test_the_compiled_source_can_be_seen_and_has_no_name_of_the_model(
    prism_gpu, prism_examples, tmp_path
):
    source = tmp_path / "source.c"
    model = tmp_path / "named.pm"
    text = (prism_examples / DICE).read_text(encoding="utf-8")
    model.write_text(re.sub(r"\b[sd]\b", r"unmistakable_\g<0>", text), encoding="utf-8")
    words = ("-pf", "P=? [ F unmistakable_d=1 ]", "-sim", "-gpusimsource", source)
    run = prism_gpu(model, *words)
    assert len(intervals(run.output)) == 1
    assert "sample_paths" in source.read_text(encoding="utf-8")
    assert "unmistakable" not in source.read_text(encoding="utf-8")


def test_a_source_that_cannot_be_written_is_told_and_prism_simulates(prism_gpu, prism_examples):
    words = ("-pf", "P=? [ F d=1 ]", "-sim", "-gpusimsource", Path("/nowhere/at/all.c"))
    run = prism_gpu(prism_examples / DICE, *words)
    assert "cannot be written" in remarks(run.output)[0]
    assert len(intervals(run.output)) == 1


@pytest.mark.parametrize("method", ["clopper-pearson", "adaptive"])
def test_sound_methods_of_ours_judge_and_prism_reports(prism_gpu, prism_examples, method):
    texts = "P=? [ F s=7 & d=1 ]; P>=0.1 [ F s=7 & d=1 ]; P>=0.2 [ F s=7 & d=1 ]"
    words = ("-sim", "-simmethod", method, "-simwidth", "0.02", "-simconf", "0.001", *SEED)
    run = prism_gpu(prism_examples / DICE, "-pf", texts, *words)
    assert run.results()[1:] == ["true", "false"]
    ((value, width),) = intervals(run.output)
    assert abs(value - 1 / 6) <= width <= 0.02
    assert len(re.findall("^prism-gpu: confidence interval is", run.output, re.MULTILINE)) == 3
    names = {"clopper-pearson": "Clopper-Pearson", "adaptive": "Adaptive"}
    assert f"Simulation method: {names[method]} (" in run.output


def test_an_unknown_method_is_prism_s_error(prism_gpu, prism, prism_examples):
    words = (prism_examples / DICE, "-pf", "P=? [ F d=1 ]", "-sim", "-simmethod", "guess")
    ours, theirs = prism_gpu(*words), prism(*words)
    assert _ERROR.findall(ours.output) == _ERROR.findall(theirs.output) != []


def test_paths_that_are_shown_are_prism_s_own(prism_gpu, prism_examples, tmp_path):
    path = tmp_path / "path.txt"
    run = prism_gpu(prism_examples / DICE, "-simpath", "10", path)
    assert run.code == 0
    assert "die" in path.read_text(encoding="utf-8")
    assert not remarks(run.output)


def outcome(output: str) -> list[str]:
    """Return what a simulation found, without times."""
    kept = r"^(?:Result|Path length|Sampling complete: \d+|Error|prism-gpu: confidence).*"
    lines = [match.group() for match in re.finditer(kept, output, re.MULTILINE)]
    return [re.sub(r" in [\d.]+ seconds.*", "", line) for line in lines]


@needs_distributed
@pytest.mark.parametrize(
    ("texts", "switches"),
    [
        ("R=? [ F s=7 ]; P>=0.6 [ F<=3 s=7 ]; P=? [ X s=1 ]", ("-simwidth", "0.02")),
        pytest.param(
            "P>=0.17 [ F s=7 & d=1 ]",
            ("-simmethod", "adaptive", "-simwidth", "0.005"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "P=? [ F s=7 & d=1 ]",
            ("-simmethod", "clopper-pearson", "-simsamples", "30001"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["prism's methods", "adaptive", "clopper-pearson"],
)
def test_two_processes_find_what_one_machine_finds(prism_gpu, prism_examples, texts, switches):
    words = (prism_examples / DICE, "-pf", texts, "-sim", *switches, *SEED)
    one, two = prism_gpu(*words), prism_gpu(*words, "-simcluster", "local:2")
    assert len(outcome(one.output)) >= 3
    assert outcome(two.output) == outcome(one.output)
    assert "sampled by the workers of local:2" in remarks(two.output)[0]
    assert two.errors == ""


@needs_distributed
@pytest.mark.slow
@pytest.mark.parametrize("method", ["ci", "clopper-pearson"])
def test_an_error_on_a_path_is_the_same_from_two_processes(prism_gpu, tmp_path, method):
    model = tmp_path / "model.pm"
    body = "[] x<3 -> 0.9:(x'=0)+0.1:(x'=x+1); [] x=3 -> 0.6:true+0.5:(x'=0);"
    model.write_text(f"dtmc module m x:[0..3] init 0; {body} endmodule", encoding="utf-8")
    text = "P=? [ F<=20 x=3 & false ]"
    words = (model, "-pf", text, "-sim", "-simmethod", method, "-simsamples", "4000", *SEED)
    one, two = prism_gpu(*words), prism_gpu(*words, "-simcluster", "local:2")
    assert "Probabilities sum to 1.1" in one.output
    assert outcome(two.output) == outcome(one.output)


@needs_distributed
@pytest.mark.slow
def test_workers_killed_during_a_simulation_change_nothing(
    prism_gpu, prism_install, prism_examples
):
    words = (prism_examples / CLUSTER, "-const", "N=4", "-pf", 'R{"percent_op"}=? [ C<=2000 ]')
    words = (*words, "-sim", "-simsamples", "20000", *SEED)
    one = prism_gpu(*words)
    command = [sys.executable, "-m", "bridge", *map(str, words), "-simcluster", "local:3"]
    environment = {**os.environ, "PRISM_DIR": str(prism_install.root)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    chosen, killed, sampling = random.Random(4), [], threading.Event()

    def kill_some() -> None:
        sampling.wait()
        while process.poll() is None and len(killed) < 4:
            threading.Event().wait(chosen.uniform(0.2, 0.8))
            workers = workers_of(process.pid)
            if workers:
                killed.append(chosen.choice(workers))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_some)
    killer.start()
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Simulation parameters"):
            sampling.set()
    sampling.set()
    process.communicate()
    killer.join()
    assert killed
    assert process.returncode == 0
    assert outcome("".join(lines)) == outcome(one.output)
    assert re.search(r"^prism-gpu: of the workers, \d+ died", "".join(lines), re.MULTILINE)


def workers_of(parent: int) -> list[int]:
    """Return the processes that were started by a process to run tasks."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_text().split("\0")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and "--multiprocessing-fork" in words:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-simcluster", "local:2"), "it needs -sim"),
        (("-sim", "-simcluster", "local:none"), "names no number of processes"),
        (("-sim", "-simcluster", "local:2", "-gpuengine", "off"), "is not PRISM's"),
    ],
    ids=["no simulation", "no number", "no engines"],
)
def test_a_cluster_that_makes_no_sense_is_an_error(prism_gpu, prism_examples, words, text):
    run = prism_gpu(prism_examples / DICE, "-pf", "P=? [ F d=1 ]", *words)
    assert run.code == 1
    assert text in _ERROR.findall(run.output)[0]
    assert not run.results()


@needs_distributed
def test_a_scheduler_that_is_not_there_is_an_error_and_nobody_else_samples(
    prism_gpu, prism_examples
):
    words = ("-pf", "P=? [ F d=1 ]", "-sim", "-simcluster", "tls://127.0.0.1:1")
    run = prism_gpu(prism_examples / DICE, *words)
    assert "there is no dask scheduler at tls://127.0.0.1:1" in run.output
    assert not run.results()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["functionality/verify/sim", "bugfixes"])
def test_prism_s_own_suite_of_simulations_passes(prism_gpu, prism_examples, folder):
    where = prism_examples.parent / "prism-tests" / folder
    if not where.is_dir():
        pytest.skip(f"needs PRISM's own suite: there is no {where}")
    lines = [
        (file, line.split())
        for file in sorted(where.glob("*.props.args"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if "-sim" in line.split()
    ]
    assert len(lines) >= 3
    for file, switches in lines:
        properties = file.with_suffix("")
        run = prism_gpu(properties.with_suffix(""), properties, "-test", *switches)
        verdicts = re.findall(r"^Testing result: (\S+)", run.output, re.MULTILINE)
        assert set(verdicts) == {"PASS"}, file
        assert not [line for line in remarks(run.output) if "not done" in line], file


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-simcluster", "local:2"), marks=needs_distributed)], ids=str
)
def test_ctrl_c_during_a_simulation_ends_the_run_at_once(prism_install, prism_examples, workers):
    words = (prism_examples / "ctmcs/polling/poll16.sm", "-sim", "-simsamples", "2000000", *workers)
    command = [sys.executable, "-m", "bridge", *map(str, words)]
    run = Interrupted(
        [*command, "-pf", 'R{"waiting"}=? [ C<=1000 ]'],
        "Simulation parameters",
        {"PRISM_DIR": str(prism_install.root)},
    )
    assert run.code == 130
    assert run.seconds < 5.0
    assert "interrupted during simulation" in run.errors
    assert "Traceback" not in run.errors
