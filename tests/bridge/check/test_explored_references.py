"""Models built from their text, beside what PRISM exported and the sizes that it reports."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bridge.check.explored import explored_model
from bridge.files.umb import UmbFile, read_umb
from bridge.model import CheckableModel
from engines.model.csr import CsrMatrix
from engines.model.explicit import ModelKind

SHARED = Path(__file__).parents[3].parent / "shared" / "reference"
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
# What tools see differently: several commands enabled at once in a DTMC and in a CTMC, rewards of
# actions and of deadlocks, structures without names, constants, the kind and global variables late,
# formulas in constants, modules by renaming, several initial states.
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


def constants(text: str) -> dict[str, bool | int | float]:
    """Return constants written as after PRISM's -const."""
    pairs = (item.split("=") for item in text.split(",") if item)
    return {name: json.loads(value) for name, value in pairs}


def built(path: Path, given: str = "") -> CheckableModel:
    """The model of a file."""
    text = path.read_text(encoding="utf-8")
    return explored_model(text, str(path), constants(given), log=lambda _: None)


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


def summed(matrix: CsrMatrix) -> csr_matrix:
    """Return a matrix with one entry for each pair of states."""
    content = (matrix.values, matrix.columns, matrix.row_offsets)
    found = csr_matrix(content, shape=(matrix.num_rows, matrix.num_columns), copy=True)
    found.sum_duplicates()
    return found


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
    # The export has sums of the transitions under different actions.
    ours, expected = summed(model.matrix), summed(other.matrix)
    np.testing.assert_array_equal(ours.indptr, expected.indptr)
    np.testing.assert_array_equal(ours.indices, expected.indices)
    close(ours.data, expected.data)


def choices(mine: CheckableModel) -> list[list[object]]:
    """Return each state's choices, sorted."""
    codes = [0] * mine.model.matrix.num_rows if mine.actions is None else mine.actions
    names = [mine.action_names[code] for code in codes]
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
    model = built(locate(entry["model"]), entry["constants"]).model.check()
    assert model.kind == entry["model_type"]
    assert model.num_states == entry["states"]
    if model.kind is not ModelKind.MDP:
        # PRISM's engines count choices that are equal differently.
        assert summed(model.matrix).nnz == entry["transitions"]


@pytest.mark.parametrize("name", SAMPLES)
def test_models_equal_what_prism_exported(name, locate):
    sample = SHARED / "models" / f"{name}.umb"
    if not sample.is_file():
        pytest.skip(f"needs PRISM's exported model {sample}")
    model, given = SAMPLES[name]
    assert_equals_prism(built(locate(model), given), read_umb(sample))


@pytest.mark.prism
@pytest.mark.parametrize("name", ODD)
def test_odd_models_equal_what_prism_exports(name, prism, tmp_path):
    file, exported = tmp_path / name, tmp_path / "prism.umb"
    file.write_text(ODD[name], encoding="utf-8")
    # What the symbolic engines export as rewards of transitions is not what they compute with.
    run = prism(file, "-ex", "-exportmodel", exported)
    assert run.code == 0, run.output
    mine = built(file)
    assert_equals_prism(mine, read_umb(exported))
    assert mine.model.labels["deadlock"].any()
    assert all(note in run.output for note in mine.notes)
