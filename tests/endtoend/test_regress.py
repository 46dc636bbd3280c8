"""`prism-gpu regress` with real PRISM: agreement, planted faults, refusals, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.prism

NAND = Path(__file__).parents[2] / "examples" / "models" / "nand.pm"
RELIABLE = '"reliable"'
CHAIN = """dtmc
const int N;
const double p = 0.4;
module walk
  x : [0..N] init N-1;
  b : bool init false;
  [] x>0 & x<N -> p:(x'=x-1) + 1-p:(x'=x+1)&(b'=!b);
  [] x=0 | x=N -> true;
endmodule
label "top" = x=N;
label "odd" = mod(x,2)=1;
rewards "steps"
  x>0 & x<N : 1;
endrewards
"""
PROPERTIES = """const int k;
P=? [ F "top" ];
P>=0.9 [ F "top" ];
"ends": R{"steps"}=? [ F x=0 | x=N ];
filter(max, P=? [ F<=k "top" ], "odd");
R{"steps"}=? [ F "top" ];
S=? [ "top" ];
"""
# Patches what every worker of ours imports, as a fault in the engines would.
PLANTED_NUMBER = """
import sys
if any("bridge.regress.worker" in word for word in sys.orig_argv):
    from dataclasses import replace
    from prism_hooks.backend import EngineBackend
    right = EngineBackend._answer
    def wrong(self, *given):
        result = right(self, *given)
        values = result.values.copy()
        inner = [i for i, value in enumerate(values) if 0.0 < value < float("inf")]
        if len(values) > 4 and inner and values.dtype == float:
            values[inner[len(inner) // 2]] *= 1 + 1e-5
        return replace(result, values=values)
    EngineBackend._answer = wrong
"""
PLANTED_LABEL = """
import sys
if any("bridge.regress.worker" in word for word in sys.orig_argv):
    from bridge.regress.driving import Driver
    right = Driver.build
    def wrong(self, constants, folder, stem):
        facts = right(self, constants, folder, stem)
        if folder.name == "cpu":
            lines = facts["labels"].read_text().splitlines()
            odd = next(n for n, name in enumerate(lines[1].split()) if "odd" in name)
            labels = {line.split(":")[0]: line.split(":")[1].split() for line in lines[2:]}
            labels["2"] = list(set(labels.get("2", [])) ^ {str(odd)})
            body = [f"{state}: {' '.join(has)}" for state, has in labels.items() if has]
            facts["labels"].write_text("\\n".join([*lines[:2], *body]) + "\\n")
        return facts
    Driver.build = wrong
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "walk.prism").write_text(CHAIN)
    (tmp_path / "walk.props").write_text(PROPERTIES)
    return tmp_path


@pytest.fixture
def regress(prism_gpu, model):
    def run(*words, sitecustomize="", **environment):
        if sitecustomize:
            folder = model / "planted"
            folder.mkdir(exist_ok=True)
            (folder / "sitecustomize.py").write_text(sitecustomize)
            paths = [str(folder), os.environ.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        report, xml = model / "report.json", model / "report.xml"
        files = (model / "walk.prism", model / "walk.props")
        done = prism_gpu(
            *("regress", *files, *words, "--json", report, "--junit", xml), **environment
        )
        if not report.is_file():
            return done, {}, None
        told = json.loads(report.read_text())
        verdicts = {item["question"]: item for case in told["cases"] for item in case["verdicts"]}
        return done, verdicts, ElementTree.parse(xml).getroot()

    return run


def standings(verdict):
    return {item["engine"]: item["standing"] for item in verdict["findings"]}


def test_all_engines_agree_in_every_state_and_for_all_constants(regress):
    words = ("-const", "N=5:6,k=2:3", "-epsilon", "1e-10", "--ours", "cpu,cpu:sparse", "--reuse")
    done, verdicts, xml = regress(*words)
    assert done.code == 0, done.output + done.errors
    assert len(verdicts) == 2 * (1 + 5 + 2)
    assert {item["outcome"] for item in verdicts.values()} == {"agree"}
    reached = verdicts['P=? [ F "top" ] [N=6]']
    assert reached["num_states"] == 14
    assert set(standings(reached)) == {
        *("explicit", "sparse", "hybrid", "exact"),
        *("cpu", "cpu:sparse"),
    }
    # Infinite expectations are compared as well.
    assert "agrees" in standings(verdicts['R{"steps"}=? [ F "top" ] [N=6]']).values()
    assert int(xml.get("failures")) == int(xml.get("errors")) == 0
    assert "16 questions of 1 case: 16 agree" in done.output


def test_processes_serve_the_cases_of_a_folder_wherever_these_lie(prism_gpu, tmp_path):
    for name, size in (("one", 3), ("two", 4)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "walk.prism").write_text(CHAIN.replace("const int N;", f"const int N = {size};"))
        (folder / "walk.props").write_text('P=? [ F "top" ];\n')
        (folder / "auto").write_text("prism walk.prism walk.props -epsilon 1e-9 -s\n")
    engines = ("--engines", "explicit", "--ours", "cpu:explicit", "--reuse", "--keep")
    done = prism_gpu("regress", tmp_path, *engines, tmp_path / "kept")
    assert done.code == 0, done.output + done.errors
    assert "4 questions of 2 cases: 4 agree" in done.output
    for number, states in ((0, 8), (1, 10)):
        kept = tmp_path / "kept" / f"{number:04d}" / "cpu-explicit"
        assert len((kept / "model0.sta").read_text().splitlines()) == states + 2
        assert "Model checking" in (kept / "log0.txt").read_text()


def test_ctrl_c_leaves_the_reports_of_what_was_done(prism_install, model):
    lines = ["walk.prism walk.props -prop 1 -const N=3", *(f"x{n}.prism p" for n in range(99))]
    (model / "runs.list").write_text("\n".join(lines))
    xml = model / "report.xml"
    words = ("--engines", "explicit", "--ours", "cpu:explicit", "--junit", str(xml))
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge", "regress", str(model / "runs.list"), *words],
        env={**os.environ, "PRISM_DIR": str(prism_install.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell has what it runs in the background ignore the signal, and all that comes of it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("runs.list: walk.prism")
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
    assert process.returncode == 130, output
    assert "2 agree" in output
    assert "of 100 cases were begun" in output
    suites = ElementTree.parse(xml).getroot().findall("testsuite")
    assert 1 <= len(suites) < 100
    assert suites[0].get("tests") == "4"


def test_a_planted_number_in_our_engine_is_found(regress):
    words = ("-const", "N=9", "-prop", "1", "-epsilon", "1e-9", "--engines", "explicit,exact")
    words = (*words, "--ours", "cpu:explicit")
    done, verdicts, xml = regress(*words, sitecustomize=PLANTED_NUMBER)
    assert done.code == 1, done.output + done.errors
    found = verdicts['P=? [ F "top" ] [N=9]']
    assert (found["outcome"], found["judge"]) == ("ours wrong", "exact")
    (wrong,) = (item for item in found["findings"] if item["standing"] == "wrong")
    assert wrong["engine"] == "cpu:explicit"
    assert wrong["distance"]["apart"] == 1
    assert wrong["distance"]["relative"] == pytest.approx(1e-5, rel=0.01)
    assert "1 states differ from exact; worst in state" in done.output
    assert "(x=" in done.output
    assert xml.get("failures") == "1"


def test_a_planted_label_is_found(regress):
    words = ("-const", "N=5", "-prop", "1", "--engines", "sparse", "--ours", "cpu")
    words += ("-epsilon", "1e-12")
    done, verdicts, _ = regress(*words, sitecustomize=PLANTED_LABEL)
    assert done.code == 1, done.output + done.errors
    found = verdicts["model [N=5]"]
    assert found["outcome"] == "ours wrong"
    assert 'label "odd": 1 states differ from sparse' in done.output
    assert verdicts['P=? [ F "top" ] [N=5]']["outcome"] == "agree"


def test_a_default_of_prism_that_is_wrong_is_no_failure_and_says_so(regress):
    # Each sweep changes little, long before the end.
    model_words = ("--engines", "explicit", "--ours", "cpu:explicit", "--exact-states", "0")
    words = ("-const", "N=60", "-prop", "ends", "-epsilon", "1e-2", "-maxiters", "100000")
    done, verdicts, xml = regress(*words, *model_words)
    assert done.code == 0, done.output + done.errors
    (found,) = (item for name, item in verdicts.items() if '"ends"' in name)
    assert (found["outcome"], found["judge"]) == ("PRISM wrong", "exact")
    assert standings(found) == {"explicit": "wrong", "cpu:explicit": "agrees"}
    assert "PRISM alone is wrong" in done.output
    assert xml.get("failures") == "0"


def test_truth_values_in_diagrams_are_not_freed_twice(prism_gpu, tmp_path):
    # PRISM frees those that it has stored. CUDD aborts when it next collects what is not in use.
    asked = ["(X !%s) & (F %s)", "(X (X !%s)) & (F %s)"]
    lines = [
        line
        for path in asked
        for line in ('P>=0.5 [ F "reliable" ];', f"P=? [ {path.replace('%s', RELIABLE)} ];")
    ]
    (tmp_path / "twice.props").write_text("\n".join(lines))
    words = ("-const", "N=8,K=2", "--engines", "sparse", "--ours", "cpu:hybrid")
    done = prism_gpu("regress", NAND, tmp_path / "twice.props", *words)
    assert done.code == 0, done.output + done.errors
    assert "SIGABRT" not in done.output
    assert "5 questions of 1 case: 5 agree" in done.output


def test_what_prism_refuses_is_refused_alike(regress, model):
    (model / "walk.props").write_text('filter(state, P=? [ F "top" ], true);\nP=? [ X "top" ];\n')
    words = ("-const", "N=5", "--engines", "explicit,hybrid", "--ours", "cpu,cpu:explicit")
    done, verdicts, _ = regress(*words)
    assert done.code == 0, done.output + done.errors
    assert done.output.count("Filter should be satisfied in exactly 1 state") == 4
    assert sorted(item["outcome"] for item in verdicts.values()) == [
        *("agree", "agree", "refused by all")
    ]


def test_a_wrong_command_line_ends_with_2(regress, prism_gpu, model):
    for words, message in [
        (("--engines", "quick"), '"quick" is no engine'),
        (("--tolerance", "much"), "is not REL or REL,ABS"),
        (("-sim",), "simulation, whose results are random"),
        (("-const", "M=5", "--engines", "explicit"), "M"),
        (("-maxiters", "many", "--engines", "explicit"), "-maxiters"),
    ]:
        done, _, _ = regress("-const", "N=5", "--ours", "cpu", *words)
        assert done.code == 2
        assert message in done.output + done.errors
    assert prism_gpu("regress").code == 2
    assert prism_gpu("regress", model / "nowhere.pm").code == 2
