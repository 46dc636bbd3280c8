"""Which engine is used where none is named, and how the building of too large models ends."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.test_failures import assert_clean, error_line

pytestmark = pytest.mark.prism

DICE = "simple/dice/dice.pm"
CLUSTER = "ctmcs/cluster/cluster.sm"
TANDEM = "ctmcs/tandem/tandem.sm"
FLIPS = 'R{"coin_flips"}=? [ F s=7 ]'
EXPLORED, DIAGRAMS = "Building model (engine:explicit)...", "Building model (engine:symbolic)..."
USED, ANEW = "PRISM's default engine is used: ", "PRISM's default engine starts anew: "
FLIPPED = "[go] true -> 0.25:(x{0}'=true) + 0.75:(x{0}'=false);"
CHOICES = """mdp
module m
  x : [0..3] init 0;
  [a] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0);
  [b] x=0 -> 0.25:(x'=3) + 0.75:(x'=1);
  [end] x=3 -> true;
endmodule
rewards "steps"
  [a] true : 1;
  [b] true : 2;
endrewards
"""
HIDDEN = """dtmc
module m
  x : [0..2] init 0;
  [go] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
endmodule
system m / {go} endsystem
"""
ENDS = "dtmc\nmodule m\n x:[0..3];\n [] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0);\nendmodule\n"
FAULTY = "dtmc\nmodule m\n x:[0..3];\n [] x<3 -> 0.5:(x'=x+1) + 0.4:(x'=0);\nendmodule\n"
ENDLESS = "dtmc\nmodule m\n x:int;\n [] true -> 0.5:(x'=x+1) + 0.5:(x'=max(x-1,0));\nendmodule\n"
OVERFLOWS = "dtmc\nmodule m\n x:[0..10];\n [] x<11 -> 0.5:(x'=x+1) + 0.5:(x'=0);\nendmodule\n"
SPARSE = """dtmc
module m
  x : [0..1000000000] init 3;
  n : [0..300] init 0;
  [] n<300 -> 0.5:(x'=mod(x+1000003,1000000001))&(n'=n+1) + 0.5:(x'=mod(x+7,1000000001))&(n'=n+1);
endmodule
"""
BITS = 250
MANY_BITS = "\n".join(
    [
        "dtmc",
        "module m",
        *(f"  b{i} : bool init false;" for i in range(BITS)),
        "  [] !b0 -> (b0'=true);",
        *(f"  [] b{i - 1} & !b{i} -> 0.5:(b{i}'=true) + 0.5:true;" for i in range(1, BITS)),
        "endmodule",
    ]
)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a model into a file, and returns the file."""

    def written(text: str):
        path = tmp_path / "model.prism"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def built(run) -> list[str]:
    """Return the lines of a report that say by which engine models are built."""
    return [line for line in run.output.splitlines() if line in (EXPLORED, DIAGRAMS)]


def reasons(run) -> list[str]:
    """Return the lines of a report that say why diagrams are used."""
    lines = [line.removeprefix("prism-gpu: ") for line in run.output.splitlines()]
    return [line for line in lines if line.startswith((USED, ANEW))]


def test_models_are_explored_where_no_engine_is_named(prism_gpu, prism_examples):
    words = [prism_examples / DICE, "-pf", f"P=? [ F d=6 ]; {FLIPS}"]
    run = prism_gpu(*words)
    assert built(run) == [EXPLORED]
    assert reasons(run) == []
    assert run.numbers() == pytest.approx([1 / 6, 11 / 3], rel=1e-12)
    # Where there are constants to go through, each of its models is.
    run = prism_gpu(prism_examples / CLUSTER, "-const", "N=1:2", "-pf", 'S=? [ "minimum" ]')
    assert built(run) == [EXPLORED] * 2


@pytest.mark.parametrize("engine", ["-hybrid", "-sparse", "-mtbdd"])
def test_named_engines_stay(prism_gpu, prism_examples, engine):
    run = prism_gpu(prism_examples / DICE, "-pf", FLIPS, engine)
    assert built(run) == [DIAGRAMS]
    assert reasons(run) == []


def test_a_file_of_settings_may_name_the_engine(prism_gpu, prism_examples, tmp_path):
    settings = tmp_path / "settings"
    words = [prism_examples / DICE, "-pf", FLIPS, "-settings", settings]
    for text, engine in (("prism.engine=Hybrid\n", DIAGRAMS), ("prism.maxIters=9\n", EXPLORED)):
        settings.write_text(f"# PRISM settings file\n# (created by version 4.10)\n{text}")
        run = prism_gpu(*words)
        assert built(run) == [engine]
        assert reasons(run) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("switches", "reason"),
    [
        (("-fair",), "model checking under fairness (-fair)"),
        (("-psor",), "a block-wise method of the hybrid engine (-pgs, -psor, ...)"),
        (("-noreach",), "-noreach"),
        (("-cuddmaxmem", "512m"), "-cuddmaxmem"),
        (("-sbmax", "2048"), "-sbmax"),
        (("-sccmethod", "xiebeerel"), "-sccmethod"),
        (("-gpuformat", "hybrid"), "-gpuformat hybrid"),
    ],
)
def test_switches_of_diagrams_name_their_engine(prism_gpu, prism_examples, switches, reason):
    run = prism_gpu(prism_examples / DICE, "-pf", FLIPS, *switches)
    assert built(run) == [DIAGRAMS]
    assert reasons(run) == [f"{USED}{reason} needs decision diagrams"]
    assert run.numbers() == pytest.approx([11 / 3], rel=1e-5)


def test_a_property_that_needs_diagrams_changes_the_engine_from_there_on(prism_gpu, write):
    pareto = 'multi(R{"steps"}min=? [ C ], P>=1 [ F x=3 ])'
    words = [write(CHOICES), "-pf", f"Pmax=? [ F<=2 x=3 ]; {pareto}; Pmin=? [ F<=2 x=3 ]"]
    run = prism_gpu(*words)
    assert built(run) == [EXPLORED, DIAGRAMS]
    assert reasons(run) == [f"{USED}multi-objective model checking needs decision diagrams"]
    assert run.results() == prism_gpu(*words, "-sparse").results()


def test_constants_are_named_as_often_as_prism_names_them(prism_gpu, prism, write):
    file = write(CHOICES + "const int N;\n")
    words = [file, "-pf", 'multi(R{"steps"}min=? [ C ], P>=1 [ F x=3 ])', "-const", "N=1:2"]
    named = [
        [line for line in run.output.splitlines() if line.startswith("Model constants: ")]
        for run in (prism_gpu(*words), prism(*words))
    ]
    assert named[0] == named[1]
    assert set(named[0]) == {"Model constants: N=1", "Model constants: N=2"}


def test_constructs_that_need_diagrams(prism_gpu, write):
    run = prism_gpu(write(HIDDEN), "-pf", "P=? [ F x=1 ]")
    assert built(run) == [DIAGRAMS]
    assert reasons(run) == [f"{USED}system ... endsystem needs decision diagrams"]
    assert run.numbers() == [0.5]


def test_files_of_transitions_are_those_of_prism_s_default_engine(
    prism_gpu, prism, write, tmp_path
):
    model = write(CHOICES)
    exported = {}
    for program, name in ((prism_gpu, "ours"), (prism, "theirs")):
        path = tmp_path / name
        run = program(model, "-exportmodel", f"{path}.all", "-exportmecs", f"{path}.mecs")
        exported[name] = [file.read_text() for file in sorted(tmp_path.glob(f"{name}*"))]
        assert built(run) == [DIAGRAMS]
    assert exported["ours"] == exported["theirs"]
    assert len(exported["ours"]) > 3
    run = prism_gpu(model, "-exportstates", tmp_path / "states")
    assert built(run) == [EXPLORED]


def test_an_explicit_engine_of_prism_s_own_choice_is_left_to_it(prism_gpu, write):
    run = prism_gpu(write(CHOICES), "-pf", "Pmax=? [ F<=2 x=3 ]; E [ G F x=0 ]", "-politer")
    assert built(run) == [EXPLORED]
    assert "Switching to explicit engine to allow use of chosen MDP solution method" in run.output
    assert run.results() == ["0.25", "true"]


@pytest.mark.parametrize(
    ("text", "switches", "reason"),
    [
        (ENDS, ("-nofixdl",), "deadlocks that are not to be fixed"),
        (FAULTY, (), "probabilities sum to 0.9"),
        (FAULTY.replace("[0..3]", "[3..1]"), (), "the model has a fault"),
    ],
)
def test_what_the_explorer_refuses_gets_the_words_of_prism_s_default_engine(
    prism_gpu, prism, write, text, switches, reason
):
    words = [write(text), "-pf", "P=? [ F x=3 ]", *switches]
    run = prism_gpu(*words)
    assert built(run) == [EXPLORED, DIAGRAMS]
    assert [line.startswith(ANEW) for line in reasons(run)] == [True]
    assert reason in reasons(run)[0].lower()
    assert error_line(run.output) == error_line(prism(*words).output)
    assert_clean(run)


def test_a_fault_that_the_default_engine_does_not_mind_leaves_later_properties_their_results(
    prism_gpu, prism, write
):
    words = (write(f"{ENDS}\nrewards x=1 : pow(10, 400); endrewards"), "-pf")
    words += ("P=? [ F x=3 ]; R=? [ F x>0 ]; P=? [ F x=2 ]",)
    run, right = (program(*words) for program in (prism_gpu, prism))
    assert run.code == right.code == 0
    assert "the model has a fault" in reasons(run)[0]
    assert len(right.results()) == 3
    assert run.results() == right.results()[::2]
    assert error_line(run.output).endswith("state 1 has reward nan; rewards must be finite.")


@pytest.mark.parametrize("filtered", ["min", "argmin", "max"])
def test_a_property_that_prism_s_explicit_engine_fails_at_is_checked_by_the_default_engine(
    prism_gpu, prism, write, filtered
):
    asked = f"filter({filtered}, (x=0 ? 1 : P=? [ F x=3 ]), x<3); P=? [ F x=3 ]"
    run, right = (program(write(ENDS), "-pf", asked) for program in (prism_gpu, prism))
    assert run.code == right.code == 0
    assert "PRISM's explicit engine fails" in reasons(run)[0]
    assert len(run.results()) == len(right.results()) == 2
    assert run.results()[0] == right.results()[0]


def test_a_model_too_large_for_java_s_heap_is_built_as_diagrams(prism_gpu, prism_examples):
    words = [prism_examples / TANDEM, "-const", "c=511", "-pf", "P=? [ F<=0.01 sc=1 ]"]
    run = prism_gpu(*words, "-javamaxmem", "24m")
    assert built(run) == [EXPLORED, DIAGRAMS]
    (line,) = reasons(run)
    assert line.startswith(f"{ANEW}the model's arrays take ")
    assert line.endswith("MB of Java's heap may be taken (-javamaxmem)")
    assert run.numbers() == pytest.approx(prism_gpu(*words, "-explicit").numbers(), rel=1e-9)
    assert_clean(run)


NAMED = """mdp
formula a = x + y;
formula half = x / 2;
formula far = a > 4 & half >= 1;
const int k = 3;
formula beyond = a > k;
module m
  x : [0..4];
  y : [-1..3];
  [] x<4 -> 0.5:(x'=x+1) + 0.5:(x'=0);
  [] y<3 -> (y'=y+1);
endmodule
"""


def test_states_are_told_by_the_formulas_of_a_model(prism_gpu, prism, write):
    sets = [
        "far",
        "!far",
        "a=3",
        "half=1.5",
        "half<a",
        "beyond => far",
        "(far?a:half)>1",
        "mod(a,2)=0",
    ]
    asked = "; ".join([*(f"filter(count, {states})" for states in sets), "Pmin=? [ F far ]"])
    words = [write(NAMED), "-pf", asked]
    run, right = prism_gpu(*words), prism(*words, "-explicit")
    assert run.code == right.code == 0
    assert built(run) == [EXPLORED]
    assert run.numbers() == right.numbers()
    assert len(run.numbers()) == 9


def listed(run) -> list[str]:
    """Return the states under a result, and the line that says how many there are."""
    lines = run.output.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("There are "))
    return [line for line in lines[first:] if line.startswith(("There are ", "The first "))] + [
        line for line in lines[first:] if re.match(r"\d+:\(", line)
    ]


@pytest.mark.parametrize(
    ("switches", "states"), [([], 10), (["-verbose"], 27), (["-explicit"], 27)]
)
@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_the_states_of_a_result_are_listed_as_by_the_engine(
    prism_gpu, prism, write, kind, switches, states
):
    steps = "[] x<29 -> 0.5:(x'=x+1) + 0.5:(x'=0);\n [] x=29 -> (x'=0);"
    text = f"{kind}\nmodule m\n x : [0..29] init 0;\n {steps}\nendmodule\n"
    asked = f"{'Pmax' if kind == 'mdp' else 'P'}=? [ F x=0 ]"
    words = [write(text), "-pf", f"filter(max, {asked}, x<27)", *switches]
    run = prism_gpu(*words)
    if kind == "mdp":
        # In a chain, PRISM's symbolic engines find no state that has the value.
        assert listed(run) == listed(prism(*words))
    assert len(listed(run)) == states + (2 if states == 10 else 1)


def test_a_model_whose_processes_all_move_at_once_is_a_diagram(prism_gpu, write):
    bits = [f"module m{i}\n x{i} : bool;\n {FLIPPED.format(i)}\nendmodule" for i in range(10)]
    text = "\n".join(["dtmc", *bits])
    run = prism_gpu(write(text), "-pf", "P=? [ F x0&x1 ]; P=? [ X x0&x1 ]")
    assert built(run) == [EXPLORED, DIAGRAMS]
    why = "the model has more than 500000 transitions beyond 64 a state"
    assert reasons(run) == [ANEW + why]
    assert run.numbers() == pytest.approx([1, 1 / 16], rel=1e-9)
    assert built(prism_gpu(write(text), "-pf", "P=? [ X x0 ]", "-explicit")) == [EXPLORED]


@pytest.mark.parametrize(
    ("text", "states"), [(MANY_BITS, BITS + 1), (SPARSE, 301 * 302 // 2)], ids=["bits", "sparse"]
)
def test_few_states_of_many_that_could_be(prism_gpu, write, text, states):
    last = f"b{BITS - 1}" if text == MANY_BITS else "n=300"
    run = prism_gpu(write(text), "-pf", f"P=? [ F {last} ]")
    assert built(run) == [EXPLORED]
    assert f"States:      {states} (1 initial)" in run.output
    assert run.numbers() == [1.0]


ENGINES = [(), ("-explicit",), ("-sparse",), ("-frontend", "builtin")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("switches", ENGINES, ids=lambda words: " ".join(words) or "none")
def test_building_stops_at_the_limit_of_states(prism_gpu, prism_examples, switches):
    words = [prism_examples / CLUSTER, "-const", "N=2", "-pf", 'S=? [ "minimum" ]', *switches]
    run = prism_gpu(*words, "-maxstates", "275")
    text = "The model has more than 275 states, the limit that -maxstates sets."
    assert error_line(run.output) == text
    assert run.results() == []
    assert_clean(run)
    assert len(prism_gpu(*words, "-maxstates", "276").numbers()) == 1


def test_a_model_without_end_stops_at_the_limit_of_states(prism_gpu, write):
    run = prism_gpu(write(ENDLESS), "-pf", "P=? [ F x=9 ]", "-maxstates", "1000")
    assert error_line(run.output).startswith("The model has more than 1000 states")
    assert_clean(run)


def test_prism_s_own_builder_stops_at_the_limit_of_states(prism_gpu, write):
    # The explorer leaves this model to it.
    words = [write(OVERFLOWS), "-pf", "P=? [ F x=11 ]", "-explicit"]
    run = prism_gpu(*words)
    assert "prism-gpu: built by PRISM: Value of variable x overflows" in run.output
    assert "States:      12 (1 initial)" in run.output
    run = prism_gpu(*words, "-maxstates", "5")
    assert error_line(run.output).startswith("The model has more than 5 states")
    assert "States: " not in run.output
    assert_clean(run)


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("P>0.4 [ F d=1 ]", DIAGRAMS),
        ("d", DIAGRAMS),
        ("E [ F d=1 ]", DIAGRAMS),
        ("filter(count, d=1)", DIAGRAMS),
        ("P=? [ X s=1 ]", EXPLORED),
    ],
)
def test_vectors_are_written_as_prisms_default_engine_writes_them(
    prism_gpu, prism, prism_examples, tmp_path, asked, used
):
    words = (prism_examples / DICE, "-pf", asked, "-exportvector")
    runs = [run(*words, tmp_path / name) for run, name in ((prism_gpu, "ours"), (prism, "theirs"))]
    assert used in runs[0].output
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
