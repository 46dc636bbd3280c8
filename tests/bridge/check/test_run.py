"""`prism-gpu` on explicit files, in a process of its own, with neither PRISM nor Java."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.files.checkable import as_file_model, as_umb, read_checkable
from bridge.files.umb import write_umb
from bridge.files.writer import write_model
from tests.bridge.check.models import dice, gamble, queue
from tests.conftest import Run, run_command
from tests.warm import run_warm

BARE = {"PRISM_DIR": "", "JAVA_HOME": "", "PATH": "/nowhere"}


def prism_gpu(*words: object, folder: Path | None = None) -> Run:
    return run_warm([*map(str, words), "-nogpu"], timeout=60, folder=folder, **BARE)


def started(*words: object, **environment: str) -> Run:
    """Run the command from nothing, where that is what is asked about."""
    command = [sys.executable, "-m", "bridge", *map(str, words), "-nogpu"]
    return run_command(command, timeout=60, **{**BARE, **environment})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with the models as files of both kinds."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in {"dice": dice(), "gamble": gamble(), "queue": queue()}.items():
        write_model(as_file_model(model), folder / name)
        write_umb(as_umb(model), folder / f"{name}.umb", "none")
    return folder


@pytest.mark.parametrize("ending", [".umb", ".tra"])
def test_models_in_files_are_checked(folder, ending):
    run = started(folder / f"dice{ending}", "-pctl", 'P=? [ F "six" ]; P=? [ F d=2 ]')
    assert run.code == 0, run.output + run.errors
    assert run.numbers() == pytest.approx([1 / 6, 1 / 6], rel=1e-6)
    for line in (
        "prism-gpu: the model is in explicit files; no PRISM takes part",
        "Type:        DTMC",
        "States:      13 (1 initial)",
        "Transitions: 20",
        '(1) P=? [ F "six" ]',
        'Model checking: P=? [ F "six" ]',
        "Value in the initial state: 0.16666",
    ):
        assert line in run.output
    assert run.errors == ""


def test_a_folder_of_files_is_a_model(tmp_path):
    write_model(as_file_model(queue()), tmp_path / "queue")
    run = prism_gpu(tmp_path, "-csl", 'S=? [ "full" ]')
    assert run.numbers() == pytest.approx([1 / 15], rel=1e-6)


def test_files_read_back_keep_states_variables_and_rewards(folder):
    for ending in (".umb", ".tra"):
        model = read_checkable(folder / f"queue{ending}")
        assert list(model.variables) == ["n"]
        assert model.variables["n"].tolist() == [0, 1, 2, 3]
        assert model.rewards[0].name == "customers"
        assert model.rewards[0].instantaneous.tolist() == [0.0, 1.0, 2.0, 3.0]


NO_VARIABLES = {
    "dtmc": ("3 4\n0 1 0.5\n0 2 0.5\n1 1 1\n2 2 1\n", "P=? [ F x=1 ]", 0.5),
    "ctmc": ("3 3\n0 1 1\n0 2 3\n1 1 1\n", "P=? [ F x=1 ]", 0.25),
    "mdp": ("3 4 5\n0 0 1 .5\n0 0 2 .5\n0 1 2 1\n1 0 1 1\n2 0 2 1\n", "Pmax=? [ F x=1 ]", 0.5),
}


@pytest.mark.parametrize("kind", NO_VARIABLES)
def test_a_model_without_variables_has_prism_s_x(kind, tmp_path):
    text, asked, value = NO_VARIABLES[kind]
    (tmp_path / "m.tra").write_text(text)
    words = ("-pf", f"{asked}; filter(print, x>0)", "-exportstates", "stdout")
    run = prism_gpu(tmp_path / "m.tra", f"-{kind}", *words, "-exportmodel", tmp_path / "m.umb")
    assert float(run.results()[0]) == pytest.approx(value, rel=1e-9)
    assert "\nVariables:   x\n" in run.output
    assert "\n(x)\n0:(0)\n1:(1)\n2:(2)\n" in run.output
    assert "\nSatisfying states:\n1:(1)\n2:(2)\n" in run.output
    assert prism_gpu(tmp_path / "m.umb", *words).results() == run.results()


def test_named_methods_count_their_sweeps(folder):
    run = prism_gpu(folder / "dice.umb", "-pctl", 'P=? [ F "six" ]', "-jacobi", "-gpuinfo")
    assert "Jacobi: 22 iterations in " in run.output
    assert "one-sided" in run.output


def test_intervals_hold_the_value_and_say_so(folder):
    words = ("-pctl", 'P=? [ F "six" ]; R=? [ F "done" ]', "-ii:noselectmidpoint")
    run = prism_gpu(folder / "dice.umb", *words)
    assert "Interval iteration (Jacobi): " in run.output
    bounds = [line for line in run.output.splitlines() if line.startswith("Result: ")]
    assert len(bounds) == 2
    assert all("; rel err" in line and "estimated" not in line for line in bounds)
    # Without the midpoint the result is the lower end.
    assert all(x <= y for x, y in zip(run.numbers(), (1 / 6, 11 / 3), strict=True))
    assert run.numbers() == pytest.approx([1 / 6, 11 / 3], rel=2e-6)


def test_policy_iteration_is_for_mdps_and_jacobi_for_chains(folder):
    words = ("-politer", "-jacobi", "-pctl")
    assert (
        "Policy iteration: "
        in prism_gpu(folder / "gamble.umb", "-pctl", 'Pmax=? [ F "won" ]', "-politer").output
    )
    chain = prism_gpu(folder / "dice.umb", *words, 'P=? [ F "six" ]')
    assert "Jacobi: 22 iterations in " in chain.output


def test_an_experiment_gives_a_table(folder, tmp_path):
    words = (folder / "dice.umb", "-pctl", "const int k; P=? [ F d=k ]", "-const", "k=1:2:5")
    run = prism_gpu(*words, "-exportresults", tmp_path / "table.csv:csv")
    assert run.code == 0
    assert "Property constants: k=3" in run.output
    table = (tmp_path / "table.csv").read_text()
    assert table.splitlines()[0] == "k,Result"
    assert [line.split(",")[0] for line in table.splitlines()[1:]] == ["1", "3", "5"]
    listed = prism_gpu(*words, "-exportresults", "stdout").output
    assert "k\tResult\n1\t0.1666" in listed


@pytest.mark.parametrize("ending", [".umb", ".tra"])
def test_a_constant_with_a_value_is_not_overridden(folder, ending):
    words = (folder / f"dice{ending}", "-pctl", "const int k = 1; P=? [ F d=k ]")
    run = prism_gpu(*words, "-const", "k=1:2:5")
    assert run.code == 1
    assert '\nError: Constant "k" has already been defined.\n' in run.output
    assert "Result" not in run.output


def test_vectors_and_models_are_exported(folder, tmp_path):
    words = (folder / "gamble.umb", "-pctl", 'Pmax=? [ F "won" ]')
    run = prism_gpu(*words, "-exportvector", tmp_path / "v", "-exportmodel", tmp_path / "m.all")
    assert [float(x) for x in (tmp_path / "v").read_text().split()] == pytest.approx(
        [0.6, 0.6, 1.0, 0.0], rel=1e-6
    )
    assert (tmp_path / "m.tra").read_text().startswith("# Transitions (MDP)")
    again = prism_gpu(tmp_path / "m.tra", "-pctl", 'Pmax=? [ F "won" ]')
    assert again.numbers() == run.numbers()


def test_distributions_are_computed(folder, tmp_path):
    run = prism_gpu(folder / "queue.umb", "-ss", "-tr", "0:1:2", "-exportss", tmp_path / "ss")
    found = [float(x) for x in (tmp_path / "ss").read_text().split()]
    assert found == pytest.approx([8 / 15, 4 / 15, 2 / 15, 1 / 15], rel=1e-6)
    assert "Computing transient probabilities (time = 2.0)" in run.output
    assert "0:(0)=1.0" in run.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.umb", "-pctl", "P=? [ F d=1 ]"], 'File "missing.umb" not found'),
        (["dice.umb", "-nonsense"], "Unknown switch -nonsense"),
        (["dice.umb", "-ii:nonsense", "-pctl", "P=? [ F d=1 ]"], 'Unknown option "nonsense"'),
        (["dice.umb", "-sim", "-pctl", "P=? [ F d=1 ]"], "not of explicit files"),
        (["dice.umb", "-pctl", "P=? [ F d= ]"], "Syntax error"),
        (["dice.umb", "-pctl", "P=? [ F d=k ]"], 'Undeclared identifier ("k"'),
        (["dice.umb", "-epsilon", "x"], 'Invalid value "x" for -epsilon'),
        (["dice.umb", "-pctl", "P=? [ F d=1 ]", "-prop", "2"], "There is not a property 2"),
        (["dice.umb", "-frontend", "none"], "-frontend switch: prism or builtin"),
        (["cut.umb", "-pctl", "P=? [ F d=1 ]"], "cut.umb"),
        (["dice.umb", "-pctl", "P=? [ F d=1 ]", "-gpu", "-gpudevice", "99"], "GPU"),
        (["dice.umb", "one.props", "two.props"], "Invalid argument syntax."),
        (["dice.umb", "-"], "Invalid empty switch."),
        (["dice.umb", "-epsilon", "-1"], "Invalid value for -epsilon switch."),
        (
            ["dice.umb", "-pctl", "P=? [ F d=1 ]", "-exportresults", "/nowhere/x"],
            "Could not export results: /nowhere/x (No such file or directory).",
        ),
        (["dice.umb", "-exportmodel", "a.xyz"], '-exportmodel: unknown file ending in "a.xyz"'),
        (["dice.umb", "-exportmodel", "a.tra,xyz"], 'unknown file ending in "a.tra,xyz"'),
        (["dice.umb", "-exportmodel", "tra"], 'unknown file ending in "tra"'),
        (["dice.umb", "one.props"], 'File "one.props" not found'),
    ],
)
def test_bad_input_ends_with_prism_s_form_of_error(folder, words, message):
    data = (folder / "dice.umb").read_bytes()
    (folder / "cut.umb").write_bytes(data[: len(data) // 2])
    run = run_warm(words, timeout=60, folder=folder, **BARE)
    assert run.code == 1
    assert "\nError: " in run.output
    assert message in run.output
    assert "Traceback" not in run.output + run.errors


def test_a_fault_in_one_property_leaves_the_others(folder):
    run = prism_gpu(folder / "dice.umb", "-pctl", 'P>2 [ F "six" ]; P=? [ F "six" ]')
    assert run.code == 0
    assert "Error: Invalid probability bound 2.0" in run.output
    assert run.numbers() == pytest.approx([1 / 6], rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('P=? [ F "none" ]', 'Undeclared label (""none"", line 1, column 9).'),
        ("P=? [ F t=1 ]", 'Undeclared identifier ("t", line 1, column 9).'),
        ('P=? [ F "none" & t=1 ]', 'Undeclared identifier ("t", line 1, column 18).'),
        ('label "l" = t=1; P=? [ F "six" ]', 'Undeclared identifier ("t", line 1, column 13).'),
        (
            "P=? [ F s ]",
            'Type error: Argument of F operator is not Boolean ("s", line 1, column 9).',
        ),
        ('R{"x"}=? [ C ]', 'reward struct index "x" does not exist ("R{"x"}=? [ C ]", line 1, '),
    ],
)
def test_properties_that_mean_nothing_end_the_run(folder, text, message):
    run = prism_gpu(folder / "dice.umb", "-pctl", f"P=? [ F s=7 ]; {text}")
    shift = len("P=? [ F s=7 ]; ")
    for column in (9, 13, 18):
        message = message.replace(f"column {column})", f"column {column + shift})")
    assert run.code == 1
    assert message in run.output
    assert "Result" not in run.output


def test_no_convergence_is_prism_s_error(folder):
    run = prism_gpu(folder / "dice.umb", "-pctl", 'P=? [ F "six" ]', "-jacobi", "-maxiters", "3")
    assert "Error: Iterative method did not converge within 3 iterations." in run.output
    assert "Result" not in run.output


def test_importing_the_package_touches_neither_scipy_nor_java():
    code = "import sys, bridge.check.run; print({'scipy', 'jpype'} & set(sys.modules))"
    run = run_command([sys.executable, "-c", code], timeout=60)
    assert run.output.strip() == "set()"


@pytest.mark.parametrize(
    "switches", [("-gpuformat", "panels"), ("-gpudevices", "2"), ("-gpumaxmem", "4g")], ids=str
)
def test_switches_for_a_gpu_are_not_ignored_in_silence(folder, switches):
    run = prism_gpu(folder / "dice.umb", "-pctl", 'P=? [ F "six" ]', *switches)
    remark = next(line for line in run.output.splitlines() if "without effect" in line)
    assert switches[0] in remark
    assert "-nogpu was given" in remark


def test_a_format_that_the_cpu_has_too_is_not_remarked_on(folder):
    plain = prism_gpu(folder / "dice.umb", "-pctl", 'P=? [ F "six" ]', "-gpuformat", "values")
    assert plain.code == 0
    assert "without effect" not in plain.output


def test_a_label_that_is_no_text_is_shown_escaped(tmp_path):
    model, path = dice(), tmp_path / "m.umb"
    labels = {**model.model.labels, "XXXXXX": model.model.labels["six"]}
    write_umb(as_umb(replace(model, model=replace(model.model, labels=labels))), path, "none")
    path.write_bytes(path.read_bytes().replace(b'"XXXXXX"', rb'"\ud800"'))
    run = started(path, "-pctl", 'P=? [ F "six" ]', PYTHONIOENCODING="utf-8")
    assert run.code == 0, run.output + run.errors
    assert r'"\ud800"' in run.output
    assert run.errors == ""


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("P=? [ F<=d d=6 ]", 'Upper bound in F operator is not constant ("d", line 1, column 10)'),
        ("P=? [ F>=d d=6 ]", 'Lower bound in F operator is not constant ("d", line 1, column 10)'),
        ("P>d [ F d=6 ]", 'P operator probability bound is not constant ("d", line 1, column 3)'),
        ("R=? [ C<=d ]", 'Upper bound in C operator is not constant ("d", line 1, column 10)'),
        ("R=? [ I=d ]", 'Upper bound in I operator is not constant ("d", line 1, column 9)'),
        (
            "R{d}=? [ F d=6 ]",
            'R operator reward struct index is not constant ("d", line 1, column 3)',
        ),
        (
            "const int k=d; true",
            'Definition of constant "k" is not constant ("d", line 1, column 13)',
        ),
        (
            "const int k=2.5; true",
            'Type mismatch in definition of constant "k" ("2.5", line 1, column 13)',
        ),
        ('label "a"=d; true', 'Type error: Label "a" is not Boolean ("d", line 1, column 11)'),
        ("S>d [ d=6 ]", 'S operator probability bound is not constant ("d", line 1, column 3)'),
    ],
)
def test_numbers_and_definitions_that_mean_nothing_end_the_run(folder, question, message):
    run = prism_gpu(folder / "dice.umb", "-pctl", question)
    assert run.code == 1
    assert f"\nError: {message}.\n" in run.output


TWO_STRUCTURES = """dtmc
module m
  x : [0..2] init 0;
  [go] x<2 -> 0.75 : (x'=x+1) + 0.25 : (x'=0);
  [] x=2 -> true;
endmodule
rewards "first" x=1 : 3; endrewards
rewards true : 5; endrewards
"""


def exported(folder: Path, *words: str) -> Run:
    (folder / "m.pm").write_text(TWO_STRUCTURES)
    return prism_gpu("m.pm", "-frontend", "builtin", *words, folder=folder)


def test_the_working_directory_has_to_be_one_and_names_of_files_do_not_change(tmp_path):
    (tmp_path / "below").mkdir()
    run = exported(tmp_path, "-dir", "below", "-exporttrans", "out.tra")
    assert run.code == 0, run.output
    assert (tmp_path / "out.tra").exists()
    refused = exported(tmp_path, "-dir", "nowhere")
    assert refused.code == 1
    assert 'Error: Working directory "nowhere" is not a directory.' in refused.output


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("-exporttrans", "/nowhere/out.tra"), "out.tra"),
        (("-exporttrans", "taken"), "taken"),
        (("-exportmodel", "/nowhere/out.tra,sta"), "out.tra"),
        (("-pf", "P=? [ F x=2 ]", "-exportvector", "/nowhere/out"), "/nowhere/out"),
        (("-tr", "2", "-exporttr", "taken"), "taken"),
    ],
)
def test_files_that_cannot_be_opened_are_named_in_prisms_words(tmp_path, words, name):
    (tmp_path / "taken").mkdir()
    run = exported(tmp_path, *words)
    assert f'Error: Could not open file "{name}" for output.' in run.output


def test_a_file_of_properties_comes_before_those_of_the_command_line(tmp_path):
    (tmp_path / "p.props").write_text("P=? [ X x=1 ]")
    run = exported(tmp_path, "p.props", "-pf", "P=? [ X x=0 ]")
    assert run.numbers() == [0.75]


def test_each_reward_structure_is_exported(tmp_path):
    run = exported(tmp_path, "-exportmodel", "out.tra,srew,lab")
    assert "Rewards were exported to multiple files: out1.srew,out2.srew\n" in run.output
    assert 'Rewards:     "first" 2\n' in run.output
    assert (tmp_path / "out1.srew").read_text().splitlines()[2:] == ["3 1", "1 3"]
    assert (tmp_path / "out2.srew").read_text().splitlines()[2:] == ["3 3", "0 5", "1 5", "2 5"]
    again = prism_gpu(tmp_path / "out.tra", "-pf", 'R{"first"}=? [ C<=2 ]; R{2}=? [ C<=2 ]')
    assert again.numbers() == [2.25, 10.0]


def test_transitions_are_exported_in_prisms_order(tmp_path):
    exported(tmp_path, "-exporttrans", "out.tra")
    lines = ["# Transitions (DTMC)", "3 5", "0 0 0.25 go", "0 1 0.75 go", "1 0 0.25 go"]
    assert (tmp_path / "out.tra").read_text().splitlines()[:5] == lines


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("-noexportheaders",), "3 5"),
        ((":headers=false",), "3 5"),
        ((":headers=true", "-noexportheaders"), "# Transitions (DTMC)"),
    ],
)
def test_headers_of_exports_are_left_out(words, first, tmp_path):
    options = words[0] if words[0].startswith(":") else ""
    exported(tmp_path, "-exporttrans", f"out.tra{options}", *words[bool(options) :])
    assert (tmp_path / "out.tra").read_text().splitlines()[0] == first


@pytest.mark.parametrize(
    ("switch", "option", "message"),
    [
        ("-exportmodel", "foo=1", 'Unknown option "foo" for -exportmodel switch.'),
        ("-exportlabels", "format=explicit", 'Unknown option "format" for -exportlabels switch.'),
        ("-exportmodel", "headers=1", 'Unknown value "1" for "headers" option of -exportmodel'),
        ("-exportmodel", "precision=3", '-exportmodel: the option "precision=3" needs PRISM'),
        ("-exportmodel", "format=matlab", '-exportmodel: the option "format=matlab" needs PRISM'),
        ("-exportresults", "foo", 'Unknown option "foo" for -exportresults switch.'),
        ("-exportresults", "matrix", '-exportresults: "matrix" needs PRISM'),
        ("-exporttrans", "precision=3", '-exporttrans: the option "precision=3" needs PRISM'),
    ],
)
def test_options_of_exports_are_not_passed_over(switch, option, message, tmp_path):
    run = exported(tmp_path, switch, f"out.tra:{option}")
    assert run.code == 1
    assert f"\nError: {message}" in run.output
    assert not (tmp_path / "out.tra").exists()


@pytest.mark.parametrize("sampled", [(), ("-sim",)])
def test_a_model_without_rewards_has_none_to_be_asked_for(sampled, tmp_path):
    (tmp_path / "m.pm").write_text(TWO_STRUCTURES.partition("rewards")[0])
    run = prism_gpu(tmp_path / "m.pm", "-frontend", "builtin", "-pf", "R=? [ F x=2 ]", *sampled)
    assert "\nError: Model has no rewards specified.\n" in run.output


def test_a_model_goes_beside_its_source_under_its_name(tmp_path):
    exported(tmp_path, "-exportmodel", ".tra")
    assert (tmp_path / "m.tra").exists()


def test_constants_of_properties_are_shown_with_their_values(tmp_path):
    text = "const int k=2; const int open; const double s=k/3; const int more=open+1; P=? [ F x=k ]"
    run = exported(tmp_path, "-pf", f"{text}; P=? [ F x=more ]", "-const", "open=0:1")
    lines = [line for line in run.output.splitlines() if line.startswith("Property constants")]
    assert lines == [
        "Property constants: k=2,s=0.666666666667",
        "Property constants: k=2,open=0,s=0.666666666667,more=1",
        "Property constants: k=2,open=1,s=0.666666666667,more=2",
    ]


def test_comments_of_results_tell_first_what_does_not_vary(tmp_path):
    text = "const int k; const int open; P=? [ F<=k x=open ]"
    words = ("-const", "k=0:2:2,open=1", "-exportresults", "r.txt:comment")
    exported(tmp_path, "-pf", text, *words)
    lines = ["// RESULT (open=1,k=0): 0", "// RESULT (open=1,k=2): 0.9375"]
    assert (tmp_path / "r.txt").read_text().splitlines() == lines


def test_a_model_of_the_language_is_not_taken_for_another_kind(tmp_path):
    run = exported(tmp_path, "-mdp", "-pf", "Pmax=? [ F x=2 ]")
    assert run.code == 1
    assert "Error: -mdp: " in run.output
    assert "m.pm is of type DTMC, and only PRISM takes it as another" in run.output
    assert exported(tmp_path, "-dtmc", "-pf", "P=? [ F x=2 ]").numbers() == [1.0]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("1.5", '"1.5" is not a valid time for a DTMC.'),
        ("", '"" is not a valid time for a DTMC.'),
        ("2:x", '"2:x" is not a valid time range for a DTMC.'),
        ("-1", "Cannot compute transient probabilities for negative time value."),
    ],
)
def test_what_is_no_time_is_refused_in_prisms_words(folder, times, message):
    assert f"\nError: {message}\n" in prism_gpu(folder / "dice.umb", "-tr", times).output
