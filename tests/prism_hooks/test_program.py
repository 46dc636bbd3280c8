"""Programs read from PRISM's models do in each state what PRISM's own model generator does."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engines.errors import UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.questions import (
    NO_BOUND,
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    ReachabilityReward,
    Until,
)
from engines.program.expressions import Type, variables_of
from engines.program.program import Program
from prism_hooks.path_questions import (
    deadlock,
    initial,
    property_reader,
    read_formula,
    read_questions,
)
from prism_hooks.program import ExpressionReader, read_program
from tests.prism_hooks.program_states import choices, state_reward, transitions, value

READER = ExpressionReader([Type.INT, Type.BOOL])
INT, BOOL = ("int", 0, 3, 1), ("bool", 0, 1, True)
STAYS = [[[1.0]]]
FORMS = """
dtmc
const double zero = 0.0; const int one = 1; const double unit = 1;
formula f = x>1 ? x/4 : 0.25;
module m
x:[0..3] init 1;
y:int init 5;
b:bool init true;
[] x<3 -> ((x+zero)*unit)/4 : (x'=x+one) & (y'=y-2) & (b'=!b) + 1-(x+0.0)*1.0/4 : true;
[a] x=3 & (b<=>true) -> pow(x-1,2)/9 : (x'=max(0,min(x,2,1)))
                     + 5/9*1 : (x'=floor(x/2)) & (b'=(b => false));
[a] (x=3 & !b) | mod(y,3)=1 -> f : (x'=ceil(log(4,2))) + 1-f : (x'=round(0.5*x));
[] y< -20 -> (y'=5);
endmodule
module n = m [x=xx,y=yy,b=bb] endmodule
rewards "r" x+zero>1 : x*unit; [a] true : pow(x,0.5); [] b : 2; endrewards
"""

ORACLE = Path(__file__).with_name("program_oracle.py")
QUICK = (
    "simple/*/*",
    "dtmcs/brp/*",
    "dtmcs/leader_sync/leader3*",
    "ctmcs/cluster/*",
    "ctmcs/polling/poll[2-5].sm",
    "mdps/consensus/coin2*",
)
LEAST_READ = {"examples": 140, "tests": 200}
"""Models of PRISM's folders that are read and compared; a loss of some would go unseen else."""


def asked(files: list[Path], install) -> list[dict]:
    """Return the oracle's answers, one a file."""
    done = subprocess.run(
        [sys.executable, str(ORACLE)],
        input="".join(f"{file}\n" for file in files),
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
        env={**os.environ, "PRISM_DIR": str(install.root), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(files), done.stderr[-2000:]
    return answers


def rounded(found) -> Counter:
    """Return transitions as a multiset, without the last digits of their numbers."""
    return Counter(
        (f"{weight:.10g}", tuple(target), tuple(f"{x:.10g}" for x in earned))
        for weight, target, earned in found
    )


def compare(answer: dict) -> Program:
    """Assert that a program agrees with PRISM in all states that the oracle visited."""
    program = read_program(answer["program"])
    blocked = deadlock(program)
    for record in answer["states"]:
        state = tuple(record["state"])
        theirs = record["transitions"]
        total = math.fsum(weight for weight, _, _ in theirs)
        if answer["kind"] != "CTMC":
            theirs = [(weight / total, target, earned) for weight, target, earned in theirs]
        assert rounded(transitions(program, state)) == rounded(theirs), state
        earned = [state_reward(structure, state) for structure in program.reward_structures]
        assert earned == pytest.approx(record["rewards"]), state
        assert value(blocked, state) is (not theirs) is (not choices(program, state))
        assert value(initial(program), state) is (state == program.default_state)
    return program


def models(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Return the model files below a folder, in order."""
    endings = {".pm", ".sm", ".nm", ".prism"}
    found = {file for pattern in patterns for file in folder.glob(pattern)}
    return sorted(file for file in found if file.suffix in endings)


@pytest.mark.prism
def test_programs_of_some_examples_agree_with_prism_in_each_state(prism_install, prism_examples):
    files = models(prism_examples, QUICK)
    answers = asked(files, prism_install)
    read = [compare(answer) for answer in answers if "program" in answer]
    assert len(read) >= len(files) // 2
    assert {program.kind for program in read} == {"dtmc", "ctmc"}


@pytest.mark.prism
def test_every_form_of_expression_means_what_it_means_to_prism(prism_install, tmp_path):
    model = tmp_path / "forms.pm"
    model.write_text(FORMS, encoding="utf-8")
    (answer,) = asked([model], prism_install)
    compare(answer)
    assert len(answer["states"]) > 50
    # PRISM drops the zero and the one, and takes x for a double from then on.
    assert '"double"' in answer["program"]


@pytest.mark.prism
@pytest.mark.slow
@pytest.mark.parametrize("where", ["examples", "tests"])
def test_programs_of_all_models_agree_with_prism_in_each_state(
    prism_install, prism_examples, where
):
    folder = prism_examples if where == "examples" else prism_examples.parent / "prism-tests"
    if not folder.is_dir():
        pytest.skip(f"needs PRISM's own suite: there is no {folder}")
    read = 0
    for file, answer in zip(
        files := models(folder, ("**/*",)), asked(files, prism_install), strict=True
    ):
        if "program" in answer:
            compare(answer)
            read += 1
        else:
            assert answer["skipped"], file
    assert read >= LEAST_READ[where]


def variable(name: str, kind: str, low: int | None, high: int | None, start: object) -> dict:
    return {
        "name": name, "type": kind, "low": low, "high": high, "initial": start, "module": 0,
    }  # fmt: skip


def text_of(*modules: dict, **other: object) -> str:
    """Return the text of a program over x in 0..3, at first 1, and b, at first true."""
    whole = {
        "kind": "dtmc",
        "checked": True,
        "variables": [variable("x", *INT), variable("b", *BOOL)],
        "actions": ["go", "stop"],
        "modules": modules,
        "rewards": [],
    }
    return json.dumps(whole | other)


def module(*commands: tuple[int, list], alphabet: tuple[int, ...] = ()) -> dict:
    own = sorted({action for action, _ in commands if action} | set(alphabet))
    written = [{"action": a, "guard": guard, "updates": STAYS} for a, guard in commands]
    return {"name": "m", "alphabet": own, "commands": written}


@pytest.mark.parametrize(
    ("words", "kind", "expected"),
    [
        ([3, 4, "-"], Type.INT, -1),
        ([3, 4, "/"], Type.DOUBLE, 0.75),
        (["v0", 2, "+"], Type.INT, 4),
        (["v0", "neg"], Type.INT, -2),
        (["v0", "double"], Type.DOUBLE, 2.0),
        ([2.5, "double"], Type.DOUBLE, 2.5),
        (["v1", "!"], Type.BOOL, False),
        (["v1", "v0", 7, "?"], Type.INT, 2),
        (["v0", 5, 3, "min:3"], Type.INT, 2),
        ([-7, 3, "mod:2"], Type.INT, 2),
        ([2, "v0", "pow:2"], Type.INT, 4),
        ([8.0, 2, "log:2"], Type.DOUBLE, 3.0),
        ([False, "v1", "=>"], Type.BOOL, True),
        ([True, "v1", "<=>"], Type.BOOL, True),
    ],
    ids=str,
)
def test_words_in_postfix_order_are_an_expression(words, kind, expected):
    expression = READER.read(words)
    assert expression.type is kind
    assert value(expression, (2, 1)) == pytest.approx(expected)


def test_an_expression_may_be_nested_ten_thousand_deep():
    words: list = ["v0"]
    for _ in range(10_000):
        words += [1, "+"]
    assert variables_of(READER.read(words)) == {0}


@pytest.mark.parametrize(
    "word", ["v2", "v", "v-1", "system", "import os", "__class__", "min", "multi:2", "init", '"']
)
def test_a_word_that_is_not_known_is_refused(word):
    with pytest.raises(UnsupportedError, match="is not known"):
        READER.read([True, True, word])


def test_names_of_a_model_stay_text():
    hostile = 'x"; } int main(){ /*'
    text = text_of(module((0, [True])), variables=[variable(hostile, *INT)])
    assert read_program(text).variables[0].name == hostile


def test_an_unbounded_integer_has_the_range_of_32_bits():
    text = text_of(module((0, [True])), variables=[variable("n", "int", None, None, 5)])
    declared = read_program(text).variables[0]
    assert (declared.low, declared.high, declared.initial) == (-(2**31), 2**31 - 1, 5)


def test_what_has_no_form_is_refused_so_that_prism_does_it():
    text = text_of(module((0, ["v0"])))
    with pytest.raises(UnsupportedError, match="no form here: the guard of command 1"):
        read_program(text)


@pytest.mark.parametrize(
    ("modules", "free"),
    [
        ([module((0, ["v1"]))], {(0, 1), (1, 1)}),
        ([module((1, ["v1"])), module((1, ["v0", 0, ">"]))], {(1, 1)}),
        ([module((1, ["v1"]), (1, ["v0", 0, ">"]))], {(0, 1), (1, 0), (1, 1)}),
        ([module((1, ["v1"])), module(alphabet=(1,))], set()),
        ([module((1, ["v1"])), module((2, ["v1", "!"]), alphabet=(1,))], {(0, 0), (1, 0)}),
        ([module()], set()),
        ([module((0, [True]))], {(0, 0), (0, 1), (1, 0), (1, 1)}),
    ],
    ids=["alone", "both", "either", "blocked", "other action", "no command", "always"],
)
def test_a_deadlock_is_where_no_command_can_be_taken(modules, free):
    program = read_program(text_of(*modules))
    stuck = property_reader(program).read(["deadlock"])
    for state in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        assert value(stuck, state) is (state not in free)
        assert value(stuck, state) is (not choices(program, state))


def test_the_label_init_holds_in_the_initial_state_alone():
    program = read_program(text_of(module((0, [True]))))
    expression = property_reader(program).read(["init"])
    holding = [(x, b) for x in range(4) for b in (0, 1) if value(expression, (x, b))]
    assert holding == [(1, 1)] == [program.default_state]


def test_questions_are_read_with_their_bounds():
    rewards = [{"name": "r", "states": [[[True], [1]]], "transitions": [[1, ["v1"], [2.5]]]}]
    program = read_program(text_of(module((1, [True])), rewards=rewards))
    (transition,) = program.reward_structures[0].transitions
    assert transition.action == 0
    until = {"kind": "until", "negated": True, "left": [True], "right": ["v1"]}
    questions = [
        until | {"bounded": False, "lower": 0, "upper": None},
        until | {"bounded": True, "lower": 2, "upper": None},
        until | {"bounded": True, "lower": 0, "upper": 7},
        {"kind": "next", "negated": False, "target": ["v1"]},
        {"kind": "cumulative", "rewards": 0, "bound": 4},
        {"kind": "instantaneous", "rewards": 0, "bound": 5},
        {"kind": "reach", "rewards": 0, "target": ["deadlock"]},
    ]
    true, b = READER.read([True]), READER.read(["v1"])
    assert read_questions(json.dumps(questions), program) == (
        Until(true, b, None, negated=True),
        Until(true, b, Bounds(2, NO_BOUND), negated=True),
        Until(true, b, Bounds(0, 7), negated=True),
        Next(b),
        CumulativeReward(0, 4),
        InstantaneousReward(0, 5),
        ReachabilityReward(0, deadlock(program)),
    )


def test_a_question_without_a_form_is_refused():
    program = read_program(text_of(module((0, [True]))))
    with pytest.raises(UnsupportedError, match="reward structure 0 is not there"):
        read_questions('[{"kind": "cumulative", "rewards": 0, "bound": 1}]', program)
    with pytest.raises(UnsupportedError, match="'steady' is not known"):
        read_questions('[{"kind": "steady"}]', program)


def test_words_in_postfix_order_are_a_formula():
    a, b = ltl.atom("a0"), ltl.atom("a1")
    assert read_formula(["a0", "a1", "U:2:7"]) is ltl.until(a, b, (2, 7))
    assert read_formula(["a0", "a1", "W::"]) is ltl.weak_until(a, b)
    assert read_formula(["a1", "a0", "R::3"]) is ltl.release(b, a, (0, 3))
    assert read_formula(["a0", "X", "F:1:", "!"]) is ltl.negation(
        ltl.eventually(ltl.next_(a), (1, None))
    )
    assert read_formula(["a0", "a1", "&", "a0", "a1", "=>", "<=>", "G::4"]) is ltl.always(
        ltl.iff(ltl.conjunction(a, b), ltl.implies(a, b)), (0, 4)
    )
    with pytest.raises(UnsupportedError, match="'Y' of a formula is not known"):
        read_formula(["a0", "Y"])


def test_a_formula_becomes_a_monitor_of_as_many_states_as_decide_it():
    program = read_program(text_of(module((0, [True]))))
    formula = {"kind": "ltl", "atoms": [["v1"]], "formula": ["a0", "X", "F::2"]}
    (monitor,) = read_questions(json.dumps([formula]), program)
    assert isinstance(monitor, Monitor)
    assert monitor.length == 4
    for letters in itertools.product((0, 1), repeat=4):
        state = monitor.initial
        for letter in letters:
            state = monitor.transitions[state][letter]
        assert monitor.verdicts[state] == any(letters[1:])
    endless = formula | {"formula": ["a0", "X", "F::"]}
    with pytest.raises(UnsupportedError, match="no number of steps decides"):
        read_questions(json.dumps([endless]), program)
