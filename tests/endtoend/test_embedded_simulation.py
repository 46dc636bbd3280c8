"""`-sim` without PRISM: the program, the paths and the report are those of a run with PRISM."""

from __future__ import annotations

import json
import re
import sys

import pytest

from bridge import jvm
from bridge.built import prism_call
from bridge.check.model_text import SimulatedModel
from engines.errors import InvalidModelError, UnsupportedError
from prism_hooks.options import HookOptions
from prism_hooks.program import read_program
from tests.conftest import Run, run_command
from tests.endtoend.test_simulation import CLUSTER, CLUSTER_TEXTS, COIN, DICE, SEED, intervals

DICE_TEXTS = """
P=? [ F s=7 & d=1 ];
P=? [ G<=3 s<7 ];
P=? [ X s=1 ];
P=? [ !(s=2 W s=7) ];
P=? [ !(d=0 R (s<7)) ];
P=? [ F "one" ];
P>=0.1 [ F[2,9] !"init" & d=6 ];
P=? [ F<=3 (s=1 & (X s=3)) ];
R=? [ F s=7 ];
R=? [ C<=3 ];
R{"coin_flips"}=? [ I=2 ];
filter(max, P=? [ F s=7 ]);
S=? [ s=7 ];
R=? [ C ];
P=? [ F P>0.1 [ F d=3 ] ];
label "one" = d=1;
"""
HERMAN = "dtmcs/herman/herman3.pm"
SEVERAL = """
P=? [ F<=1 "stable" ]; P>=0.5 [ F<=9 "stable" ]; R=? [ F "stable" ];
const int k; P=? [ F<=k "stable" ]; P<0.1 [ F<=9 "stable" ];
"""
RENAMED = """dtmc
const int N = 3;
formula ahead = x + 1;
formula free = y != x & x < N + 1;
global g : [0..N*2] init N;
module one
  x : [0..N] init min(1, N-1);
  b : bool;
  [go] ahead <= N & free -> (N > 2 ? 1/4 : x/4) : (x'=ahead) + 3/4 : (b'=!b) & (x'=max(0, x-1));
  [] !(ahead <= N & free) -> (g'=mod(g+1, N*2));
endmodule
module two = one [ x=y, y=x, b=c, go=stop ] endmodule
rewards "r" [go] x>0 : x/2; [] true : pow(2, g); g=N : 1; endrewards
"""
MODELS = [
    (DICE, ""),
    (CLUSTER, "N=4"),
    (COIN, "K=2"),
    ("dtmcs/brp/brp.pm", "N=16,MAX=2"),
    ("dtmcs/leader_sync/leader4_3.pm", ""),
    ("ctmcs/polling/poll4.sm", ""),
    ("ctmcs/embedded/embedded.sm", "MAX_COUNT=2"),
    ("ctmcs/kanban/kanban.sm", "t=2"),
    ("ctmcs/fms/fms.sm", "n=2"),
    ("mdps/csma/csma2_2.nm", ""),
    ("renamed", ""),
]


@pytest.fixture(scope="module")
def embedded():
    """Return a function that runs `prism-gpu` without PRISM."""

    def run(*words: object, timeout: float = 300) -> Run:
        command = [sys.executable, "-m", "bridge", *map(str, words), "-frontend", "builtin"]
        return run_command(command, timeout=timeout)

    return run


def program_of_prism(file, constants):
    """What PRISM's trees become; needs a running JVM."""
    prism = jvm.java_class("prismgpu.GpuPrism")(jvm.java_class("prism.PrismDevNullLog")())
    prism_call(prism.initialise)
    modules = prism_call(prism.parseModelFile, jvm.java_class("java.io.File")(str(file)))
    prism_call(prism.loadPRISMModel, modules)
    values = jvm.java_class("prism.UndefinedConstants")(modules, None)
    prism_call(values.defineUsingConstSwitch, constants)
    prism_call(prism.setPRISMModelConstants, values.getMFConstantValues())
    prism_call(prism.loadModelIntoSimulator)
    text = jvm.java_class("prismgpu.ProgramText")
    return read_program(str(text.of(prism.getModelGenerator(), None, True)))


@pytest.mark.prism
def test_programs_are_those_of_prism_s_trees(prism_install, prism_examples, tmp_path):
    jpype = pytest.importorskip("jpype")
    if not jpype.isJVMStarted():
        jvm.start(jvm.find_runtime(str(prism_install.root)), jvm.default_options())
    jvm.install_engines(HookOptions())
    (tmp_path / "renamed").write_text(RENAMED, encoding="utf-8")
    for name, constants in MODELS:
        file = (tmp_path if name == "renamed" else prism_examples) / name
        model = SimulatedModel(file.read_text(encoding="utf-8"), name)
        given = {
            key: int(value)
            for key, value in (part.split("=") for part in constants.split(",") if part)
        }
        found = model.program(model.constants(given), checked=True)
        assert read_program(json.dumps(found)) == program_of_prism(file, constants), name


def report(run):
    """What a report says from the first property on, without times and empty lines.

    Half-widths are compared to twelve digits: quantiles of Student's distribution are computed in
    another way than by PRISM's library. Estimates have fewer digits.
    """
    text = run.output[run.output.index("\nSimulating: ") :]
    lines = [re.sub(r"in \S+ seconds \(.*", "", line) for line in text.splitlines() if line]
    kept = [x for x in lines if not x.startswith(("Note: There", "-----"))]
    return [re.sub(r"\d+\.\d+(E-?\d+)?", lambda x: f"{float(x[0]):.12g}", line) for line in kept]


@pytest.mark.sampled(3)
@pytest.mark.prism
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DICE, ("-pf", DICE_TEXTS, "-sim", "-simsamples", "1500")),
        (CLUSTER, ("-const", "N=4", "-pf", CLUSTER_TEXTS, "-sim", "-simsamples", "200")),
        (COIN, ("-const", "K=2", "-pf", 'Pmax=? [ F "finished" ]', "-sim", "-simsamples", "99")),
        (DICE, ("-pf", "const int k; P<0.9 [ F<=k s=7 ]", "-const", "k=2:2:6", "-sim")),
        (DICE, ("-pf", "P=? [ F d=1 ]; P>=0.1 [ F d=2 ]", "-sim", "-simmethod", "apmc")),
        (DICE, ("-pf", "P=? [ F d=1 ]", "-sim", "-simmethod", "clopper-pearson")),
        (DICE, ("-pf", "P>=0.9 [ F s=7 ]", "-sim", "-simmethod", "growing")),
        (HERMAN, ("-pf", SEVERAL, "-const", "k=0:1", "-sim", "-simsamples", "999")),
    ],
    ids=["dice", "cluster", "mdp", "experiment", "apmc", "clopper-pearson", "growing", "several"],
)
def test_paths_results_and_reports_are_those_of_a_run_with_prism(
    prism_gpu, embedded, prism_examples, model, words
):
    words = (prism_examples / model, *words, "-nogpu", *SEED)
    assert report(embedded(*words)) == report(prism_gpu(*words))


def test_it_needs_no_prism(embedded, tmp_path):
    file = tmp_path / "renamed.pm"
    file.write_text(RENAMED, encoding="utf-8")
    words = (file, "-sim", "-simsamples", "5000", "-nogpu", *SEED)
    run = embedded(*words, "-pf", "P=? [ F<=1 x=2 ]; P=? [ F<=1 y=0 ]")
    # Of four commands x and y have one each that is possible: x=y, so that nobody is free to go.
    assert [value for value, _ in intervals(run.output)] == [0.0, 0.0]
    assert "prism-gpu: paths of seed 1, sampled on the CPU" in run.output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dtmc module m x:[0..1]; endmodule system m endsystem", "a system definition"),
        ("pta module m x:clock; endmodule", "type PTA"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(text, reason):
    with pytest.raises(UnsupportedError, match=reason):
        SimulatedModel(text, "model")


def test_a_text_with_a_fault_is_not_simulated():
    with pytest.raises(InvalidModelError, match="Clock variables are not allowed in DTMC models"):
        SimulatedModel("dtmc module m x:clock; endmodule", "model")
