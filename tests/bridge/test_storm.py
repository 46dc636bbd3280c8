"""Models that Storm builds, beside those that PRISM builds."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bridge import storm
from bridge.files.umb import UmbFile, read_umb
from bridge.language.model_outline import outline
from bridge.model import CheckableModel, RewardFault
from bridge.storm.model_text import for_storm, storm_reward_names
from engines.errors import (
    InvalidModelError,
    UnsupportedError,
)
from engines.model.explicit import ModelKind

pytest.importorskip("stormpy", reason="needs stormpy")

SHARED = Path(__file__).parents[2].parent / "shared" / "reference"
LARGEST = 20_000
QUICK = 3_000
# PRISM's exports of its own examples, and of those of its benchmark suite.
SAMPLES = {
    "herman3": ("prism-examples/dtmcs/herman/herman3.pm", ""),
    "herman7": ("prism-examples/dtmcs/herman/herman7.pm", ""),
    "dice": ("prism-examples/simple/dice/dice.pm", ""),
    "brp_N8_MAX2": ("prism-benchmarks/models/dtmcs/brp/brp.pm", "N=8,MAX=2"),
    "nand_N5_K1": ("prism-benchmarks/models/dtmcs/nand/nand.pm", "N=5,K=1"),
    "egl_N2_L2": ("prism-benchmarks/models/dtmcs/egl/egl.pm", "N=2,L=2"),
    "cluster_N2": ("prism-examples/ctmcs/cluster/cluster.sm", "N=2"),
    "tandem_c3": ("prism-examples/ctmcs/tandem/tandem.sm", "c=3"),
    "kanban_t1": ("prism-examples/ctmcs/kanban/kanban.sm", "t=1"),
    "fms_n1": ("prism-examples/ctmcs/fms/fms.sm", "n=1"),
    "poll3": ("prism-examples/ctmcs/polling/poll3.sm", ""),
    "coin2_K2": ("prism-examples/mdps/consensus/coin2.nm", "K=2"),
    "wlan0_COL0": ("prism-benchmarks/models/mdps/wlan/wlan0.nm", "COL=0"),
    "zeroconf_N20_K2": (
        "prism-benchmarks/models/mdps/zeroconf/zeroconf.nm",
        "N=20,K=2,reset=true",
    ),
    "csma2_2": ("prism-examples/mdps/csma/csma2_2.nm", ""),
    "phil3": ("prism-examples/mdps/phil/original/phil3.nm", ""),
    "firewire_abst_d3": (
        "prism-benchmarks/models/mdps/firewire_abst/firewire_abst.nm",
        "delay=3",
    ),
    "leader3": ("prism-examples/mdps/leader_async/leader3.nm", ""),
    "mutual3": ("prism-examples/mdps/mutual/mutual3.nm", ""),
}
# What Storm and PRISM could see differently: several commands enabled at once in a DTMC and in a
# CTMC, rewards of actions and of deadlocks, structures without names, constants, the kind and
# global variables late, formulas in constants, modules by renaming, several initial states.
ODD = {
    "odd.pm": """const double q = p*2; // uses p before
probabilistic
rate p = 0.25;
formula ok = x>1 | b;
const int K = kk + 1;
formula kk = 2;
module one
 x : [-2..K] init -1;
 [] x<2 -> q : (x'=x+1) + 1-q : (x'=-2);
 [go] x<1 -> 1/3:(x'=2) + 2/3:(x'=x+1);
 [go] x=0 -> (x'=1);
endmodule
global g : [0..2];
module two
 b : bool;
 y : [0..2];
 [go] true -> 0.5:(b'=!b) + 0.5:(y'=2);
 [] y=2 & !b -> (y'=1) & (g'=2);
endmodule
module three = two [b=c, y=z] endmodule
rewards
 ok : x+2;
 true : 1;
 [go] x<1 : 3;
 [] true : 2;
endrewards
rewards "second"
 b : 0.5;
endrewards
rewards
 [go] b : 7;
endrewards
label "ok" = ok;
label "none" = false;
""",
    "odd.sm": """ctmc
const int N=2;
module m
 x:[0..N+1]; s:bool;
 [] x<N -> 2*(x+1):(x'=x+1);
 [a] x>0 & x<=N -> 1.5:(x'=x-1) + 0.5:(s'=!s);
 [a] x=N -> 3:(x'=x-1);
 [b] x=N & s -> 0.7:(x'=N+1);
endmodule
module n
 k:[0..1];
 [a] k=0 -> 2:(k'=1);
 [a] k=1 -> (k'=0);
endmodule
rewards "e"
 true: x;
 [a] true : 4;
 [a] x=N : 1;
 [] x=0 : 5;
 [b] true : 0.1;
endrewards
init x<=1 & k=0 endinit
""",
    "odd.nm": """module m
 x:[0..3];
 [a] x=0 -> 0.5:(x'=1)+0.5:(x'=2);
 [a] x=0 -> (x'=3);
 [b] x<=1 -> (x'=2);
 [] x=1 -> (x'=0);
 [c] x=0 -> (x'=0);
endmodule
module n
 y:[0..2];
 [c] y=0 -> (y'=1);
 [a] true -> (y'=mod(y+1,3));
 [a] y=0 -> (y'=2);
 [] y=1 -> 0.25:(y'=0)+0.75:(y'=2);
endmodule
mdp
rewards "c"
 x=2 : 10; x=3: y;
 [a] true : 1; [b] x=0: 2; [] y=1 : 3; [] true: 1;
endrewards
""",
}


def quiet(_: str) -> None:
    """Take the lines for the report."""


def constants(text: str) -> dict[str, bool | int | float]:
    """Return constants written as after PRISM's -const."""
    pairs = (item.split("=") for item in text.split(",") if item)
    return {name: json.loads(value) for name, value in pairs}


def build(tmp_path: Path, text: str, given: str = "", **switches: bool) -> CheckableModel:
    """Build a model from its text."""
    file = tmp_path / "model.prism"
    file.write_text(text, encoding="utf-8")
    return storm.build_model(file, constants(given), log=quiet, **switches)


def commands(kind: str, *lines: str, more: str = "") -> str:
    """Return a model with one variable x from 0 to 3."""
    return "\n".join([kind, "module m", " x:[0..3];", *lines, "endmodule", more])


@pytest.fixture(scope="session")
def locate(prism_examples):
    """Return a function that finds a model of PRISM's examples or benchmarks."""

    def find(name: str) -> Path:
        for folder in (prism_examples.parent, prism_examples.parent.parent):
            if (folder / name).is_file():
                return folder / name
        pytest.skip(f"needs {name} beside PRISM's examples")

    return find


def close(mine: np.ndarray, theirs: np.ndarray | None) -> None:
    """Assert equality but for the last bits; absent is 0."""
    np.testing.assert_allclose(mine, 0.0 if theirs is None else theirs, rtol=1e-15, atol=0)


def assert_equals_prism(mine: CheckableModel, theirs: UmbFile) -> None:
    """Assert that two models are the same, whatever the order of a state's choices."""
    model, other = mine.model, theirs.model
    assert model.kind is other.kind
    assert list(mine.variables) == list(theirs.valuations.names)
    for name, values in mine.variables.items():
        np.testing.assert_array_equal(values, theirs.valuations.values(name))
    np.testing.assert_array_equal(mine.initial_states, other.initial_states)
    np.testing.assert_array_equal(model.labels["init"], other.initial_states)
    assert set(model.labels) == {*other.labels, "init", "deadlock"}
    for name, mask in other.labels.items():
        np.testing.assert_array_equal(model.labels[name], mask)
    assert [item.name for item in mine.rewards] == [item.name for item in theirs.rewards]
    for item, raw, folded in zip(mine.rewards, theirs.rewards, other.rewards, strict=True):
        close(item.instantaneous, raw.states)
        close(item.expected.state_rewards, folded.state_rewards)
    if model.kind is ModelKind.MDP:
        # PRISM's export leaves out choices that are equal to others of their state.
        for one, another in zip(choices(mine), choices_of(theirs), strict=True):
            assert [item for item, _ in groupby(one)] == [item for item, _ in groupby(another)]
        return
    expected = csr_matrix(
        (other.matrix.values, other.matrix.columns, other.matrix.row_offsets), copy=True
    )
    expected.sum_duplicates()
    np.testing.assert_array_equal(model.matrix.row_offsets, expected.indptr)
    np.testing.assert_array_equal(model.matrix.columns, expected.indices)
    close(model.matrix.values, expected.data)


def choices(mine: CheckableModel) -> list[list[object]]:
    """Return each state's choices, sorted."""
    names = [mine.action_names[code] for code in mine.actions]
    return _choices(mine.model, [item.expected for item in mine.rewards], names)


def choices_of(theirs: UmbFile) -> list[list[object]]:
    """Return each state's choices, sorted."""
    known = theirs.choice_actions
    rows = theirs.model.matrix.num_rows
    names = [""] * rows if known is None else [known.names[code] for code in known.indices]
    return _choices(theirs.model, theirs.model.rewards, names)


def _choices(model, rewards, names) -> list[list[object]]:
    matrix, groups = model.matrix, model.row_group_offsets
    found = []
    for row, name in enumerate(names):
        entries = slice(matrix.row_offsets[row], matrix.row_offsets[row + 1])
        pairs = zip(
            matrix.columns[entries].tolist(), matrix.values[entries].round(14).tolist(), strict=True
        )
        earned = [
            0.0 if item.choice_rewards is None else round(float(item.choice_rewards[row]), 12)
            for item in rewards
        ]
        found.append((name, sorted(pairs), earned))
    return [sorted(found[groups[s] : groups[s + 1]]) for s in range(model.num_states)]


def instances() -> list[pytest.param]:
    """Return the model instances of the reference values that are small enough."""
    file = SHARED / "values.json"
    entries = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    found = {(entry["model"], entry["constants"]): entry for entry in entries}
    return [
        pytest.param(
            entry,
            marks=[pytest.mark.slow] if entry["states"] > QUICK else [],
            id=f"{Path(entry['model']).stem}-{entry['constants']}",
        )
        for entry in found.values()
        if entry["states"] <= LARGEST
    ]


@pytest.mark.parametrize("entry", instances())
def test_sizes_are_those_of_the_reference(entry, locate):
    file = locate(entry["model"])
    built = storm.build_model(file, constants(entry["constants"]), log=quiet)
    model = built.model.check()
    assert model.kind == entry["model_type"]
    assert model.num_states == entry["states"]
    assert model.matrix.num_rows == entry["choices"]
    assert model.matrix.num_entries == entry["transitions"]


@pytest.mark.parametrize("name", SAMPLES)
def test_models_equal_what_prism_exported(name, locate):
    sample = SHARED / "models" / f"{name}.umb"
    if not sample.is_file():
        pytest.skip(f"needs PRISM's exported model {sample}")
    model, given = SAMPLES[name]
    built = storm.build_model(locate(model), constants(given), log=quiet)
    assert_equals_prism(built, read_umb(sample))


@pytest.mark.prism
@pytest.mark.parametrize("name", ODD)
def test_odd_models_equal_what_prism_builds(name, prism, tmp_path):
    file, exported = tmp_path / name, tmp_path / "prism.umb"
    file.write_text(ODD[name], encoding="utf-8")
    # What the symbolic engines export as rewards of transitions is not what they compute with.
    run = prism(file, "-ex", "-exportmodel", exported)
    assert run.code == 0, run.output
    built = storm.build_model(file, {}, log=quiet)
    assert_equals_prism(built, read_umb(exported))
    assert built.model.labels["deadlock"].any()
    assert all(note in run.output for note in built.notes)


def test_states_are_sorted_by_the_variables(tmp_path):
    text = ODD["odd.nm"].replace("module m", "global z:[-1..1] init 1;\nmodule m", 1)
    built = build(tmp_path, text.replace("[] x=1 -> (x'=0)", "[] x=1 -> (x'=0) & (z'=-1)"))
    rows = list(zip(*built.variables.values(), strict=True))
    assert list(built.variables) == ["z", "x", "y"]
    assert rows == sorted(rows)
    assert len(set(rows)) == len(rows)
    assert built.state_line(0) == f"0:({','.join(map(str, rows[0]))})"


def test_choices_without_an_action_come_first(tmp_path):
    built = build(tmp_path, commands("mdp", "[b] x=0 -> (x'=1);", "[a] true -> (x'=0);",
                                     "[] x<2 -> (x'=2);"))  # fmt: skip
    assert built.action_names == ("", "b", "a")
    np.testing.assert_array_equal(built.actions, [0, 1, 2, 0, 2, 2])
    np.testing.assert_array_equal(built.model.row_group_offsets, [0, 3, 5, 6])
    np.testing.assert_array_equal(built.model.matrix.columns, [2, 1, 0, 2, 0, 0])


def test_a_deadlock_keeps_its_state_reward(tmp_path):
    more = 'rewards "r"\n x>0 : 2*x;\n x=1 : 1;\n [] true : 7;\nendrewards'
    built = build(tmp_path, commands("ctmc", "[] x=0 -> 5:(x'=1);", more=more))
    assert built.notes == ("Deadlocks detected and fixed in 1 states",)
    np.testing.assert_array_equal(built.model.labels["deadlock"], [False, True])
    np.testing.assert_array_equal(built.model.matrix.columns, [1, 1])
    np.testing.assert_array_equal(built.model.matrix.values, [5.0, 1.0])
    (rewards,) = built.rewards
    np.testing.assert_array_equal(rewards.instantaneous, [0.0, 3.0])
    np.testing.assert_array_equal(rewards.expected.state_rewards, [35.0, 3.0])


def test_deadlocks_are_an_error_where_they_are_not_to_be_fixed(tmp_path):
    text = commands("dtmc", "[] x<3 -> 0.5:(x'=x+1) + 0.5:(x'=3);")
    assert build(tmp_path, text).notes == ("Deadlocks detected and fixed in 1 states",)
    with pytest.raises(InvalidModelError, match="Model contains 1 deadlock states"):
        build(tmp_path, text, fix_deadlocks=False)


def test_every_structure_without_a_name_is_there(tmp_path):
    more = "\n".join(f"rewards true : {value}; endrewards" for value in (1, 2, 3))
    built = build(tmp_path, commands("dtmc", "[] true -> (x'=0);", more=more))
    assert [item.name for item in built.rewards] == ["", "", ""]
    assert [item.instantaneous.tolist() for item in built.rewards] == [[1.0], [2.0], [3.0]]
    assert [item.name for item in built.model.rewards] == ["", "", ""]


def test_everything_of_the_text_is_passed_on(tmp_path):
    built = build(tmp_path, ODD["odd.pm"])
    assert built.constants == {"q": 0.5, "p": 0.25, "K": 3}
    assert set(built.formulas) == {"ok", "kk"}
    assert built.labels == {}
    assert built.modules == ("one", "two", "three")
    assert built.source == str(tmp_path / "model.prism")
    assert built.action_names == ("",)
    assert built.actions is None


def test_sums_that_only_rounding_keeps_from_one_are_right(tmp_path):
    line = "[] true -> 1/3*(20/65024):(x'=1) + 1/3*(1-20/65024):(x'=2) + 2/3:(x'=3);"
    built = build(tmp_path, commands("dtmc", line))
    np.testing.assert_allclose(built.model.matrix.row_sums(), 1.0, rtol=1e-15)
    assert built.notes == ()


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (commands("const int N;", "[] true -> (x'=N);"), "", 'Undefined constant "N" must be'),
        (commands("const int N=1;", "[] true -> (x'=N);"), "N=2", "already been defined"),
        (commands("const bool N;", "[] N -> (x'=1);"), "N=2", "not a valid Boolean"),
        (commands("const int N=M; const int M=N;"), "", "Cyclic dependency"),
        (commands("mdp", "[] true -> 0.5:(x'=1) + 0.49:(x'=0);"), "", "sum to less than one"),
        (commands("mdp", "[] true -> 0.5:(x'=1) + 0.4999999:(x'=0);"), "", "do not sum to one"),
        (commands("mdp", "[] true -> (x'=x+1);"), "", "some of the updates give out-of-range"),
        (commands("dtmc", "[] true -> 1.5:(x'=1) + -0.5:(x'=2);"), "", "negative"),
        (commands("dtmc", "[] true -> (x'=1)"), "", "Syntax error"),
        (commands("dtmc", "[] true -> (x'=y);"), "", r"Undeclared identifier \("),
        (commands("dtmc", "[] true -> (x'=0.5);"), "", "Type error in update to variable"),
        (commands("dtmc", "[] true -> (z'=1);"), "", 'Unknown variable "z" in update'),
    ],
)  # fmt: skip
def test_invalid_models_are_refused_with_a_reason(text, given, message, tmp_path):
    with pytest.raises(InvalidModelError, match=message) as caught:
        build(tmp_path, text, given)
    assert "prism-gpu-" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pta", "pomdp", "smg", "ma"])
def test_other_kinds_are_refused_by_name(kind, tmp_path):
    with pytest.raises(UnsupportedError, match=f"a {kind.upper()}; the embedded front end"):
        build(tmp_path, commands(kind, "[] true -> (x'=0);"))


def test_a_negative_reward_is_a_fault_of_its_structure_alone(tmp_path):
    for state, guard in enumerate(("x=0", "x=1")):  # an ordinary state, and a deadlock
        more = f'rewards "steps" true : 1; endrewards rewards {guard} : -1; endrewards'
        steps, other = build(tmp_path, commands("dtmc", "[] x=0 -> (x'=1);", more=more)).rewards
        assert steps.fault is None
        assert other.fault == RewardFault(-1.0, state)


@pytest.mark.parametrize("value", ["1/x", "x/x"])
def test_a_reward_that_is_not_finite_is_a_fault_of_its_structure_alone(value, tmp_path):
    text = commands("dtmc", "[a] x=0 -> (x'=1);", more=f"rewards [a] true : {value}; endrewards")
    (rewards,) = build(tmp_path, text).rewards
    assert rewards.fault is not None
    assert not np.isfinite(rewards.fault.value)
    assert rewards.fault.state == 0


def test_a_text_that_storm_accepts_stays_as_it_is():
    text = commands("// first\nctmc\nconst int a=1; const int b=a;", "[] true -> (x'=a);")
    assert for_storm(text, "") == text


def test_lines_stay_where_they_are():
    changed = for_storm(ODD["odd.pm"], "").splitlines()
    original = ODD["odd.pm"].splitlines()
    assert len(changed) == len(original)
    moved = "dtmc const double p = 0.25; const int K = (2 + 1); "
    assert changed[0] == moved + original[0]
    differing = {number for number, (a, b) in enumerate(zip(changed, original, strict=True))
                 if a.rstrip() != b.rstrip()}  # fmt: skip
    assert [original[number].split()[0] for number in sorted(differing)] == [
        "const", "probabilistic", "rate", "const", "rewards",
    ]  # fmt: skip


def test_constants_are_moved_with_all_that_they_need():
    text = commands("mdp\nconst int a=b+1;\nconst int d;\nconst int b=c*f;\nconst int c=d;\n"
                    "const int\tsame = 4;\nformula f = d + 1;")  # fmt: skip
    first = for_storm(text, "").splitlines()[0]
    places = [first.index(f"const int {name}") for name in "dcb"]
    assert places == sorted(places)
    assert "f" not in first.replace("of", "").split()
    assert "const int\tsame = 4;" in for_storm(text, "")


def test_structures_have_names_of_their_own_for_storm():
    text = commands("mdp", more='rewards endrewards rewards endrewards rewards "unnamed_2" '
                    "endrewards rewards endrewards")  # fmt: skip
    assert storm_reward_names(outline(text, "")) == ("", "unnamed_2_", "unnamed_2", "unnamed_4")


def test_the_log_says_what_storm_took(tmp_path):
    lines: list[str] = []
    file = tmp_path / "m.prism"
    file.write_text(commands("dtmc", "[] true -> (x'=0);"), encoding="utf-8")
    storm.build_model(file, {}, log=lines.append)
    assert len(lines) == 1
    assert re.fullmatch(
        r"Storm \d\S*: \S+ seconds; states in PRISM's order: \S+ seconds.", lines[0]
    )
