"""What the engines hold of models that they have built for PRISM, and what it asks of these."""

from __future__ import annotations

import pytest

from prism_hooks import built, held
from tests.endtoend.random_programs import Program
from tests.prism_hooks.bench import OURS, THEIRS, Bench, java
from tests.prism_hooks.test_construct_model import ABSORBED, MIXED, OVERLAPPING, RANDOM

pytestmark = pytest.mark.prism

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


RESTING = """mdp
module m x : [0..4];
  [a] x<4 -> 0.5:(x'=x+1) + 0.5:(x'=0); [b] x=1 -> (x'=2); [b] x=2 -> (x'=1); [] x=4 -> true;
endmodule
rewards "all" true : 1; endrewards
rewards "a" [a] true : 1; endrewards
rewards "a_and_b" [a] true : 1; [b] x=1 : 1; endrewards
"""


@pytest.mark.parametrize(("structure", "rests"), [(0, False), (1, True), (2, False)])
def test_zero_reward_end_components_are_looked_for_by_the_engines(bench, structure, rests):
    generator = bench.load(RESTING)
    model = bench.built(OURS, generator)[0]
    constructor = java("prismgpu.GpuConstructRewards")(bench.prism)
    rewards = constructor.buildRewardStructure(model, generator, structure)
    inner = java("java.util.BitSet")()
    inner.flip(0, 4)
    checker = java("prismgpu.GpuMDPModelChecker")(bench.prism)
    for name in ("prismgpu.ZeroRewardEnds", "explicit.ZeroRewardECQuotient"):
        quotient = java(name).getQuotient(checker, model, inner, rewards)
        assert (quotient is not None) == rests
