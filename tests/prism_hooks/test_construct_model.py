"""Models that our explorer builds for PRISM, held against those that PRISM builds itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from prism_hooks import built, held
from prism_hooks.options import HookOptions
from tests.endtoend.random_programs import Program

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
REASONS = {"range": "Value of variable x overflows", "no initial states": "no initial states"}


def java(name):
    """Return a class of the running JVM."""
    import jpype

    return jpype.JClass(name)


@dataclass
class Bench:
    """PRISM in this process, with a log in a file."""

    folder: Path

    def __post_init__(self) -> None:
        self.log = self.folder / "log"
        self.prism = java("prismgpu.GpuPrism")(java("prism.PrismFileLog")(str(self.log)))
        self.prism.initialise()

    def load(self, text: str):
        """Read a program, and return the generator of its model."""
        modules = self.prism.parseModelString(text)
        self.prism.loadPRISMModel(modules)
        values = java("prism.UndefinedConstants")(modules, None)
        self.prism.setPRISMModelConstants(values.getMFConstantValues())
        return self.prism.getModelGenerator()

    def built(self, name: str, generator, *, fix_deadlocks: bool = True):
        """Return the model that a class constructs, its states, and the lines of the log."""
        self.prism.getMainLog().flush()
        before = len(self.log.read_text())
        constructor = java(name)(self.prism)
        constructor.setFixDeadlocks(fix_deadlocks)
        model = constructor.constructModel(generator)
        self.prism.getMainLog().flush()
        text = re.sub(r"[\d.E-]+ secs", "# secs", self.log.read_text()[before:])
        return model, constructor.getStatesList(), text.splitlines()

    def described(self, model, states) -> dict[str, object]:
        """Return what PRISM can tell of a model."""
        path = self.folder / "model.tra"
        model.exportToPrismExplicitTra(str(path))
        found = {
            "transitions": path.read_text(),
            "states": str(java("java.util.ArrayList")(states)),
            "of the model": states == model.getStatesList(),
            "initial": str(model.getInitialStates()),
            "deadlocks": str(model.getDeadlockStates()),
            "labels": str(model.getLabelToStatesMap()),
            "actions": str(model.getActions()),
            "actions used": sorted(map(str, model.findActionsUsed())),
            "unnamed": bool(model.onlyNullActionUsed()),
            "info": str(model.infoStringTable()),
            "constants": str(model.getConstantValues()),
            "variables": str(model.getVarList().getNumVars()),
        }
        if str(model.getModelType()) == "CTMC":
            for chain, derived in (
                ("embedded", model.getImplicitEmbeddedDTMC()),
                ("uniformised", model.buildUniformisedDTMC(model.getDefaultUniformisationRate())),
            ):
                derived.exportToPrismExplicitTra(str(path))
                found[chain] = Transitions(path.read_text())
            found["exit rates"] = [float(model.getExitRate(s)) for s in range(states.size())]
        return found


class Transitions:
    """Transitions of a file, equal to others whose last digits differ.

    PRISM sums the rates of a state up in the order of a hash table.
    """

    def __init__(self, text: str) -> None:
        lines = [line.split() for line in text.splitlines()[2:]]
        self.ends = [(source, target) for source, target, *_ in lines]
        self.values = [float(value) for _, _, value, *_ in lines]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions) or self.ends != other.ends:
            return False
        return np.allclose(self.values, other.values, rtol=1e-15, atol=0.0)


OURS, THEIRS = "prismgpu.GpuConstructModel", "explicit.ConstructModel"


@pytest.fixture
def bench(prism_install, tmp_path):
    jpype = pytest.importorskip("jpype")
    from bridge import jvm

    if not jpype.isJVMStarted():
        jvm.start(jvm.find_runtime(str(prism_install.root)), jvm.default_options())
    jvm.install_engines(HookOptions())
    made = Bench(tmp_path)
    yield made
    made.prism.closeDown()


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


EARNING = """rewards "states"
  true : x;
  x>1 : 0.1;
endrewards
rewards "both"
  [a] x<3 : 1/3+x;
  [] true : 2;
  [a] true : 0.25;
  x=2 : 5;
endrewards
"""
RENAMED = ABSORBED.replace('label "end" = x=4;\n', EARNING)
REWARDED = {
    "dtmc": OVERLAPPING + EARNING,
    "mdp": MIXED.replace("endmodule\nlabel", f"endmodule\n{EARNING}label"),
    "ctmc": RENAMED,
}


def earned(model, rewards) -> dict[str, object]:
    """Return all that a reward structure of PRISM's holds."""
    states = range(model.getNumStates())
    found: dict[str, object] = {
        "states": [float(rewards.getStateReward(s)) for s in states],
        "of transitions": bool(rewards.hasTransitionRewards()),
    }
    if str(model.getModelType()) == "MDP":
        found["choices"] = [
            [float(rewards.getTransitionReward(s, i)) for i in range(model.getNumChoices(s))]
            for s in states
        ]
    return found


def assert_same_rewards(bench: Bench, generator) -> None:
    model, _, _ = bench.built(OURS, generator)
    for number in range(int(generator.getNumRewardStructs())):
        found = []
        for name in ("prismgpu.GpuConstructRewards", "explicit.rewards.ConstructRewards"):
            constructor = java(name)(bench.prism)
            constructor.setExpectedRewards(True)
            built = constructor.buildRewardStructure(model, generator, number)
            found.append(earned(model, built))
        assert found[0] == found[1]


@pytest.fixture
def answers(monkeypatch):
    """Collect the reward structures that the engines find, None where they leave it to PRISM."""
    found = []
    earn = built.earn_for_java

    def counted(earning, explored):
        earn(earning, explored)
        found.append(earning.held)

    monkeypatch.setattr(built, "earn_for_java", counted)
    return found


@pytest.mark.parametrize("name", REWARDED)
def test_rewards_are_prisms_to_the_last_digit(bench, answers, name):
    assert_same_rewards(bench, bench.load(REWARDED[name]))
    assert len(answers) == 2
    assert None not in answers


def test_rewards_of_choices_count_those_of_their_states(bench, answers):
    generator = bench.load(REWARDED["mdp"])
    model, _, _ = bench.built(OURS, generator)
    for number in range(2):
        constructor = java("explicit.rewards.ConstructRewards")(bench.prism)
        prisms = earned(model, constructor.buildRewardStructure(model, generator, number))
        java("prismgpu.GpuConstructRewards")(bench.prism).buildRewardStructure(
            model, generator, number
        )
        sums = [
            state + choice
            for state, choices in zip(prisms["states"], prisms["choices"], strict=True)
            for choice in choices
        ]
        assert answers[number].by_choices.tolist() == sums
        assert answers[number].of_states.tolist() == prisms["states"]


def test_rewards_of_random_models_are_prisms(bench, answers):
    for seed in RANDOM:
        generator = bench.load(Program(seed).text())
        if not generator.getInitialStates().isEmpty():
            assert_same_rewards(bench, generator)
    assert len(answers) > len(RANDOM) / 2
    assert None not in answers


def test_what_prism_has_not_read_it_gets_when_the_engines_let_go_of_it(bench, monkeypatch):
    gone = []
    let_go = held.HeldModel.let_go
    monkeypatch.setattr(held.HeldModel, "let_go", lambda model: gone.append(let_go(model)))
    generator = bench.load(REWARDED["ctmc"])
    model, states, _ = bench.built(OURS, generator)
    constructor = java("prismgpu.GpuConstructRewards")(bench.prism)
    constructor.setExpectedRewards(True)
    of_engines = constructor.buildRewardStructure(model, generator, 1)
    while not gone:
        bench.built(OURS, generator)
    constructor = java("explicit.rewards.ConstructRewards")(bench.prism)
    constructor.setExpectedRewards(True)
    of_prism = constructor.buildRewardStructure(model, generator, 1)
    assert earned(model, of_engines) == earned(model, of_prism)
    prisms, theirs, _ = bench.built(THEIRS, generator)
    assert bench.described(model, states) == bench.described(prisms, theirs)


def test_a_faulty_reward_has_prisms_words(bench, answers):
    import jpype

    generator = bench.load(OVERLAPPING + "rewards\n  true : 1-x;\nendrewards\n")
    model, _, _ = bench.built(OURS, generator)
    with pytest.raises(jpype.JException, match="negative"):
        java("prismgpu.GpuConstructRewards")(bench.prism).buildRewardStructure(model, generator, 0)
    assert answers == [None]


def test_rewards_that_are_no_number_a_choice_are_prisms_own_work(bench, answers):
    generator = bench.load(RENAMED)
    of_engines, of_prism = (bench.built(name, generator)[0] for name in (OURS, THEIRS))
    constructor = java("prismgpu.GpuConstructRewards")(bench.prism)
    # Of single transitions, and of a model that the engines have not built.
    assert constructor.buildRewardStructure(of_engines, generator, 1).hasTransitionRewards()
    assert constructor.buildRewardStructure(of_prism, generator, 0).getStateReward(2) == 2.1
    assert answers == []


FORMULAS = (
    *("x=1", "!(x=1)", "x=1&y", "x>1|!y", "x=0=>y", "(x=2)<=>y", "y", "true", "x>0&true"),
    *("x*c>2", "mod(x,2)=1", "min(x,2)=2&y", "(y?x:2-x)>1", "x/2>0.5"),
    *('"init"', '"deadlock"', '!"init"', '"init"&y', 'x=1|"low"', '"low"=>"init"', '!("low"|y)'),
    *("x=0|mod(5,x)>1", "x!=0=>mod(5,x)>1", "x!=0&mod(5,x)>1"),
)
PLAIN = """mdp
module m x : [0..3]; y : bool; [] x<3 -> 0.5:(x'=x+1) + 0.5:(y'=!y); [] x=3 -> (x'=0); endmodule
label "low" = x<2;
"""


def test_state_formulas_hold_where_prism_says(bench, monkeypatch):
    asked = []
    satisfying = built._satisfying
    monkeypatch.setattr(
        built, "_satisfying", lambda *given: asked.append(satisfying(*given)) or asked[-1]
    )
    generator = bench.load(PLAIN)
    properties = bench.prism.parsePropertiesString("const int c=2;" + ";".join(FORMULAS) + ";")
    properties.setSomeUndefinedConstants(java("parser.Values")())
    for number, formula in enumerate(FORMULAS):
        found = []
        for build, check in (
            (OURS, "prismgpu.GpuMDPModelChecker"),
            (THEIRS, "explicit.MDPModelChecker"),
        ):
            checker = java(check)(bench.prism)
            checker.setModelCheckingInfo(bench.prism.getModelInfo(), properties, generator)
            model = bench.built(build, generator)[0]
            expression = properties.getProperty(number)
            found.append(str(checker.checkExpression(model, expression, None).getBitSet()))
        assert found[0] == found[1], formula
    assert sum(words is not None for words in asked) > len(FORMULAS) / 2


def test_a_faulty_state_formula_has_prisms_words(bench):
    import jpype

    generator = bench.load(PLAIN)
    model = bench.built(OURS, generator)[0]
    properties = bench.prism.parsePropertiesString("mod(5,x)>1;")
    checker = java("prismgpu.GpuMDPModelChecker")(bench.prism)
    checker.setModelCheckingInfo(bench.prism.getModelInfo(), properties, generator)
    with pytest.raises(jpype.JException, match="Attempt to compute modulo"):
        checker.checkExpression(model, properties.getProperty(0), None)
