"""Models that our explorer builds for PRISM, held against those that PRISM builds itself."""

from __future__ import annotations

import pytest

from tests.endtoend.random_programs import Program
from tests.prism_hooks.bench import OURS, THEIRS, Bench, java

pytestmark = pytest.mark.prism

RANDOM = range(40)
OVERLAPPING = """dtmc
module m
  x : [0..3] init 0;
  [a] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0);
  [b] x<2 -> 0.25:(x'=x+1) + 0.75:(x'=0);
  [] x=3 -> true;
  [] x=3 -> true;
endmodule
"""
MIXED = """mdp
global g : [0..2] init 1;
module m
  x : [0..3] init 0;
  [a] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=0);
  [a] x=3 -> (x'=0);
  [] x=2 -> 0:(x'=1) + 1:(x'=3);
endmodule
module n
  y : [-2..1] init -2;
  b : bool init false;
  [a] y<1 -> 0.25:(y'=y+1) + 0.75:(b'=!b);
  [] y=1 & b -> (g'=mod(g+1,3)) & (y'=-2);
endmodule
label "here" = b & g=2;
"""
ABSORBED = """ctmc
module m
  x : [0..4] init 0;
  [a] x<2 -> 2:(x'=x+1) + 3:(x'=4);
  [] x=0 -> 1:(x'=4) + 0:(x'=3);
endmodule
label "end" = x=4;
"""
UNBOUNDED = """dtmc
module m
  x : int init 0;
  y : bool init true;
  [] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=x-(x>-5?1:0))&(y'=!y);
endmodule
"""
SEVERAL_WORDS = "\n".join(
    [
        "dtmc",
        "module m",
        *(f"  v{i} : [-{2**29}..{2**29}] init {-i};" for i in range(5)),
        "  b : bool;",
        "  [] v4<3 -> 0.5:(v4'=v4+1)&(v0'=min(v0+1,2)) + 0.5:(b'=!b)&(v2'=max(v2-1,-5));",
        "endmodule",
        'label "l" = b & v2+3<0;',
    ]
)
THIRDS = """dtmc
module m
  b : bool init false;
  [] !b -> 1/3:(b'=true) + 2/3:true;
endmodule
"""
PROGRAMS = {
    "overlapping": OVERLAPPING,
    "mixed": MIXED,
    "absorbed": ABSORBED,
    "unbounded": UNBOUNDED,
    "several words": SEVERAL_WORDS,
    "initial states": MIXED.replace(" init 0", "").replace(" init 1", "").replace(" init -2", "")
    .replace(" init false", "")
    + "init g=1 & x<2 & y<0 endinit\n",
}  # fmt: skip
TEXTS = {
    "several initial states": """mdp
        global g : bool;
        module a x : [-2..3]; [go] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=-2); [] g -> (g'=false); endmodule
        module b = a [ x=y ] endmodule
        init x+y<=0 & x>=y endinit
        rewards [go] x=y : 1; [] true : 0.1*(x+2); true : y+2; endrewards
        label "low" = x<0 | g;""",
    "unbounded": """dtmc
        const int N = 40000;
        module a n : int init -N; [] n<N -> 1/3:(n'=n+2*N/5) + 2/3:(n'=min(N, n+N/4)); endmodule
        """.replace("2*N/5", "floor(2*N/5)").replace("N/4", "floor(N/4)"),
    "parallel transitions": """ctmc
        module a x : [0..2]; [] true -> 0.1:(x'=1) + 0.2:(x'=1); [p] x=1 -> 0.7:(x'=1);
        [p] x<2 -> 0.3:(x'=2); [] x=0 -> 0.3:(x'=1); endmodule
        module b [p] true -> 1:true; [q] true -> true; endmodule
        module c y : bool; [p] y -> 0.1:(y'=false) + 0.9:true; [p] !y -> (y'=true); endmodule
        rewards [p] x=1 : 0.1; [] true : 0.7; x=2 : 0.3; endrewards""",
    "the same choice twice": """mdp
        module a x : [0..2]; [] true -> 0.5:(x'=0) + 0.5:(x'=1);
        [] true -> 0.5:(x'=1) + 0.5:(x'=0); [p] true -> (x'=2); [p] x>=0 -> (x'=2); endmodule""",
}
FAULTY = {
    "sum": "dtmc\nmodule m\n x:[0..2];\n [] x=0 -> 0.5:(x'=1)+0.4:(x'=2);\nendmodule\n",
    "not finite": "ctmc\nmodule m\n x:[0..3];\n [] x<3 -> 1/(x-2):(x'=x+1);\nendmodule\n",
    "negative": "ctmc\nmodule m\n x:[0..3];\n [] x<3 -> (1-x):(x'=x+1);\nendmodule\n",
    "label": "dtmc\nmodule m\n x:[0..3];\n [] x<3 -> (x'=x+1);\nendmodule\n"
    'label "bad" = mod(5,2-x)=1;\n',
}
REFUSED = {
    "range": "mdp\nmodule m\n x:[0..3];\n [] x<3 -> 0.5:(x'=x+2)+0.5:(x'=x);\nendmodule\n",
    "no initial states": "dtmc\nmodule m\n x:[0..3];\n [] x<3 -> (x'=x+1);\nendmodule\n"
    "init x>4 endinit\n",
}
REASONS = {"range": "Value of variable x overflows", "no initial states": "No initial states"}


def assert_same_model(bench: Bench, generator) -> None:
    model, states, lines = bench.built(OURS, generator)
    other, expected, other_lines = bench.built(THEIRS, generator)
    assert states.getClass().getSimpleName() == "PackedStates"
    assert bench.described(model, states) == bench.described(other, expected)
    assert lines == other_lines
    assert [states.indexOf(state) for state in expected] == list(range(states.size()))


@pytest.mark.parametrize("name", [*PROGRAMS, *TEXTS])
def test_a_model_is_prisms_to_the_last_digit(bench, name):
    assert_same_model(bench, bench.load({**PROGRAMS, **TEXTS}[name]))


def test_random_models_are_prisms(bench):
    same = 0
    for seed in RANDOM:
        generator = bench.load(Program(seed).text())
        if not generator.getInitialStates().isEmpty():
            assert_same_model(bench, generator)
            same += 1
    assert same > len(RANDOM) / 2


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_has_prisms_words(bench, name):
    import jpype

    generator = bench.load(FAULTY[name])
    errors = []
    for constructor in (OURS, THEIRS):
        with pytest.raises(jpype.JException) as caught:
            bench.built(constructor, generator)
        errors.append((type(caught.value).__name__, str(caught.value.getMessage())))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_built_by_prism_and_one_line_says_so(bench, name):
    generator = bench.load(REFUSED[name])
    _, states, lines = bench.built(OURS, generator)
    _, expected, _ = bench.built(THEIRS, generator)
    assert str(states) == str(expected)
    (told,) = [line for line in lines if line.startswith("prism-gpu: ")]
    assert told.startswith("prism-gpu: built by PRISM: ")
    assert REASONS[name] in told


def test_deadlocks_that_are_not_to_be_fixed_are_left_to_prism(bench):
    generator = bench.load(ABSORBED)
    model, _, lines = bench.built(OURS, generator, fix_deadlocks=False)
    assert str(model.getDeadlockStates()) == "[2, 3]"
    assert model.getNumTransitions(3) == 0
    assert "prism-gpu: built by PRISM: deadlocks that are not to be fixed" in lines


def test_other_generators_are_prisms_own_work_in_silence(bench):
    generator = bench.load(THIRDS)
    exact = java("simulator.ModulesFileModelGenerator").createForRationals(
        bench.prism.getPRISMModel(), bench.prism
    )
    of_model = java("explicit.ModelModelGenerator")(
        bench.built(THEIRS, generator)[0], bench.prism.getModelInfo()
    )
    for foreign in (exact, of_model):
        model, states, lines = bench.built(OURS, foreign)
        assert states.getClass().getSimpleName() == "ArrayList"
        assert model.getNumStates() == states.size()
        assert not [line for line in lines if line.startswith("prism-gpu: ")]


def test_reachable_states_alone_are_prisms_own_work(bench):
    generator = bench.load(MIXED)
    constructor = java(OURS)(bench.prism)
    states = constructor.computeReachableStates(generator)
    assert str(states) == str(java("java.util.ArrayList")(bench.built(OURS, generator)[1]))
    assert states.getClass().getSimpleName() == "ArrayList"
