"""What is wrong with a file is said in one error, with the file and the line."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from bridge.files.reader import read_model
from engines.errors import InvalidModelError
from engines.model.explicit import ModelKind

DTMC = "# Transitions (DTMC)\n2 3\n0 0 0.5 go\n0 1 0.5 go\n1 1 1\n"
CTMC = "# Transitions (CTMC)\n2 2\n0 1 3.5\n1 0 0.25\n"
MDP = "# Transitions (MDP)\n2 3 4\n0 0 0 0.5 a\n0 0 1 0.5 a\n0 1 1 1 b\n1 0 1 1\n"


def read(folder: Path, **texts: str | bytes):
    """Write files called m.… and read the model."""
    for ending, text in texts.items():
        name = f"m.{ending}" if "_" not in ending else f"m{ending.replace('_', '.')}"
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_model(folder / "m.tra")


BAD_TRANSITIONS = {
    "fewer than declared": (DTMC.replace("2 3", "2 4"), "m.tra, line 2: 4 transitions"),
    "more than declared": (DTMC.replace("2 3", "2 2"), "m.tra, line 5: more than the 2"),
    "target": (DTMC.replace("1 1 1", "1 2 1"), "line 5: target 2, but the states are 0 to 1"),
    "source": (DTMC.replace("1 1 1", "2 1 1"), "line 5: state 2, but the states are 0 to 1"),
    "duplicate": (DTMC.replace("0 1 0.5", "0 0 0.5"), "line 4: state 0: a duplicate"),
    "sum": (DTMC.replace("1 1 1", "1 1 0.9"), "line 5: state 1: the probabilities .* 0.9"),
    "nan": (DTMC.replace("1 1 1", "1 1 NaN"), "line 5: the probability is nan"),
    "infinite": (CTMC.replace("3.5", "Infinity"), "line 3: the rate is inf"),
    "overflow": (CTMC.replace("3.5", "1e999"), "line 3: the rate is inf"),
    "negative": (CTMC.replace("0.25", "-0.25"), "line 4: the rate is -0.25"),
    "word": (CTMC.replace("0.25", "fast"), "line 4: b'fast' is not a number"),
    "interval": (CTMC.replace("0.25", "[0.2,0.3]"), "line 4: .* is an interval"),
    "too few": (CTMC.replace(" 0.25", ""), "line 4: too few fields"),
    "too many": (CTMC.replace("0.25", "0.25 a b"), "line 4: too many fields"),
    "negative index": (CTMC.replace("1 0 0.25", "1 -1 0.25"), "line 4: an index"),
    "huge index": (CTMC.replace("1 0 0.25", "1 99999999999999999999 2"), "line 4: an index"),
    "rows": ("2 2\n0 0.5:0 0.5:1\n", "line 2: one row a line"),
    "no states": ("0 0\n", "line 1: a model needs at least one state"),
    "empty": ("", "m.tra: is empty"),
    "only comments": ("# Transitions (DTMC)\n", "m.tra: is empty"),
    "counts": ("two three\n", "line 1: expected `states transitions`"),
    "10^12 states": (f"{10**12} 1\n0 0 1\n", "line 1: 1000000000000 states"),
    "10^12 transitions": (f"1 {10**12}\n0 0 1\n", "line 1: 1000000000000 transitions"),
    "10^12 choices": (f"1 {10**12} 1\n0 0 0 1\n", "line 1: 1000000000000 choices"),
    "10^30": (f"{10**30} 1\n0 0 1\n", "line 1: expected"),
    "LTS": ("# Transitions (LTS)\n1 1 1\n0 0 0\n", "model of type LTS; only DTMC, CTMC, MDP"),
    "POMDP": ("1 1 1 1\n- - 0 - 0\n0 0 0 1 0\n", "line 1: four counts: a POMDP"),
    "initial states": ("1 1\n- 0 -\n0 0 1\n", "line 2: initial states belong in the .lab"),
    "header of another kind": (DTMC.replace("DTMC", "MDP"), "line 2: 2 counts, but a MDP"),
    "another file": ("# State rewards\n2 1\n0 1\n", "is no transitions file"),
    "binary": (bytes(range(256)), "m.tra"),
    "zeros": (bytes(4096), "m.tra, line 1"),
    "action not UTF-8": (DTMC.replace("go", "g\xff").encode("latin-1"), "line 3: .* not UTF-8"),
    "choices declared": (MDP.replace("2 3 4", "2 2 4"), "line 6: more than the 2 choices"),
    "fewer choices": (MDP.replace("0 1 1 1 b", "0 0 0 0 a"), "line 2: 3 choices are declared, but"),
    "gap in choices": (MDP.replace("0 1 1 1", "0 2 1 1"), "line 2: 3 choices are declared, but 4"),
    "gap, counted": (MDP.replace("0 1 1 1", "0 2 1 1").replace("2 3 4", "2 4 4"),
                     "choice 1 of state 0 has no transition"),
    "choice out of range": (MDP.replace("0 1 1", "0 9 1"), "line 5: choice 9 of state 0"),
    "two actions": (MDP.replace("0 0 1 0.5 a", "0 0 1 0.5 b"), "line 4: choice 0 .* two actions"),
    "MDP sum": (MDP.replace("0 1 1 1 b", "0 1 1 0.7 b"), "line 5: state 0, choice 1: .* 0.7"),
    "MDP duplicate": (MDP.replace("0 0 1 0.5 a", "0 0 0 0.5 a"), "line 4: state 0, choice 0: a"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TRANSITIONS)
def test_bad_transitions_are_refused(name: str, tmp_path: Path):
    text, message = BAD_TRANSITIONS[name]
    with pytest.raises(InvalidModelError, match=message):
        read(tmp_path, tra=text)


LAB = '# Labels\n0="init" 1="deadlock" 2="goal"\n0: 0\n1: 2\n'
BAD_LABELS = {
    "unknown": (LAB.replace("1: 2", "1: 3"), "m.lab, line 4: the labels are 0 to 2"),
    "state": (LAB.replace("1: 2", "2: 2"), "m.lab, line 4: the states are 0 to 1"),
    "shape": (LAB.replace("1: 2", "1 2"), "m.lab, line 4: expected `state: label"),
    "negative": (LAB.replace("1: 2", "1: -2"), "m.lab, line 4"),
    "not UTF-8": (LAB.replace("goal", "g\xff").encode("latin-1"), "line 2: .* is not UTF-8"),
    "numbering": (LAB.replace("2=", "3="), "line 2: label 3 is declared where label 2"),
    "twice": (LAB.replace("goal", "init"), 'line 2: label "init" is declared twice'),
    "no initial state": (LAB.replace("0: 0\n", ""), 'no state has the label "init"'),
    "no init": ('0="goal"\n0: 0\n', 'no state has the label "init"'),
    "empty": ("", "m.lab: is empty"),
    "another file": ("# States\n(x)\n", "line 1: is no labels file"),
    "declaration": ("0=init\n", "line 1: expected label names"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_are_refused(name: str, tmp_path: Path):
    text, message = BAD_LABELS[name]
    with pytest.raises(InvalidModelError, match=message):
        read(tmp_path, tra=DTMC, lab=text)


STA = "# States\n(x,b)\n0:(-3,true)\n1:(4,false)\n"
BAD_STATES = {
    "few": (STA.replace("4,false", "4"), "m.sta, line 4: fewer than 2 values"),
    "many": (STA.replace("4,", "4,5,"), "m.sta, line 4: a variable is|m.sta, line 4: more"),
    "missing": (STA.replace("1:(4,false)\n", ""), "m.sta: state 1 of 2 has no line"),
    "twice": (STA.replace("1:", "0:"), "line 4: this state has had a line"),
    "outside": (STA.replace("1:", "7:"), "line 4: the states are 0 to 1"),
    "type": (STA.replace("4,", "true,"), "line 4: a variable is an integer in one"),
    "value": (STA.replace("4,", "2147483648,"), "line 4: a value is no 32-bit"),
    "word": (STA.replace("4,", "four,"), "line 4: a value is no 32-bit"),
    "names": (STA.replace("(x,b)", "x,b"), "line 2: expected the variables' names"),
    "names twice": (STA.replace("(x,b)", "(x,x)"), "line 2: a variable is named twice"),
    "many variables": (STA.replace("(x,b)", f"({','.join(f'v{k}' for k in range(9999))})"),
                       "line 3: fewer than 9999 values"),
    "empty": ("", "m.sta: is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_STATES)
def test_bad_states_are_refused(name: str, tmp_path: Path):
    text, message = BAD_STATES[name]
    with pytest.raises(InvalidModelError, match=message):
        read(tmp_path, tra=DTMC, sta=text)


SREW = '# Reward structure "r"\n# State rewards\n2 2\n0 1.5\n1 2\n'
TREW = '# Reward structure "r"\n# Transition rewards\n2 1\n0 1 4\n'
BAD_REWARDS = {
    "states": ("srew", SREW.replace("2 2\n", "3 2\n"), "m.srew, line 3: rewards of a model of 3"),
    "count": ("srew", SREW.replace("2 2\n", "2 3\n"), "m.srew, line 3: 3 rewards are declared"),
    "infinite": ("srew", SREW.replace("1.5", "Infinity"), "line 4: the reward is inf"),
    "twice": ("srew", SREW.replace("1 2", "0 2"), "line 5: state 0 has had a reward"),
    "outside": ("srew", SREW.replace("1 2", "2 2"), "line 5: state 2, but"),
    "kind": ("srew", TREW, "m.srew: expected '# State rewards'"),
    "no transition": ("trew", TREW.replace("0 1 4", "1 0 4"), "line 4: .* no such transition"),
    "trew twice": ("trew", TREW.replace("2 1\n0 1 4", "2 2\n0 1 4\n0 1 4"), "line 5: .* already"),
    "trew source": ("trew", TREW.replace("0 1 4", "5 1 4"), "line 4: .* the states are 0 to 1"),
    "trew of an MDP": ("trew", TREW.replace("2 1", "2 3 1"), "line 3: expected `states rewards`"),
    "text": ("trew", "hello\n", "m.trew, line 1: expected"),
}


@pytest.mark.parametrize("name", BAD_REWARDS)
def test_bad_rewards_are_refused(name: str, tmp_path: Path):
    ending, text, message = BAD_REWARDS[name]
    with pytest.raises(InvalidModelError, match=message):
        read(tmp_path, tra=DTMC, **{ending: text})


def test_rewards_under_two_names_are_refused(tmp_path: Path):
    with pytest.raises(InvalidModelError, match='rewards "q", but "r"'):
        read(tmp_path, tra=DTMC, srew=SREW, trew=TREW.replace('"r"', '"q"'))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_truncated_compressed_files_are_refused(compress, tmp_path: Path):
    text = "100 100\n" + "".join(f"{k} {k * 7 % 100} 1\n" for k in range(100))
    whole = compress(text.encode())
    for cut in (len(whole) - 1, len(whole) - 9, len(whole) // 2, 20):
        with pytest.raises(InvalidModelError, match=r"m\.tra"):
            read(tmp_path, tra=whole[:cut])
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0x55
    with pytest.raises(InvalidModelError, match=r"m\.tra"):
        read(tmp_path, tra=bytes(damaged))
    with pytest.raises(InvalidModelError, match="10000000000 transitions"):
        read(tmp_path, tra=compress(b"10000000000 10000000000\n" + b"0 0 1\n" * 9))


def test_a_name_that_promises_compression_is_checked(tmp_path: Path):
    (tmp_path / "m.tra.gz").write_text(DTMC)
    with pytest.raises(InvalidModelError, match="not compressed"):
        read_model(tmp_path)


def test_folders_without_exactly_one_model_are_refused(tmp_path: Path):
    with pytest.raises(InvalidModelError, match="found: none"):
        read_model(tmp_path)
    (tmp_path / "a.tra").write_text(DTMC)
    (tmp_path / "b.pexp").write_text(DTMC)
    with pytest.raises(InvalidModelError, match=r"found: a\.tra, b\.pexp"):
        read_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "c.tra")


BAD_COMBINED = {
    "second section": (DTMC + "\n" + LAB + "\n" + LAB, r"line 12: a second section '# Labels'"),
    "no kind": (DTMC + '\n# Reward structure "r"\n2 0\n', "line 7: not followed by"),
    "no title": (DTMC + "\n# State rewards\n2 0\n", "line 7: .* without `# Reward structure`"),
    "error in a section": (DTMC + "\n" + LAB.replace("1: 2", "1: 9"), "line 10: the labels are"),
}


@pytest.mark.parametrize("name", BAD_COMBINED)
def test_bad_combined_files_are_refused(name: str, tmp_path: Path):
    text, message = BAD_COMBINED[name]
    (tmp_path / "m.pexp").write_text(text)
    with pytest.raises(InvalidModelError, match=message):
        read_model(tmp_path)


def test_what_the_valid_parts_say(tmp_path: Path):
    """The texts that the tests above damage are right."""
    whole = read(tmp_path, tra=DTMC, lab=LAB, sta=STA, srew=SREW, trew=TREW)
    assert whole.model.kind is ModelKind.DTMC
    assert whole.action_names == ("", "go")
    assert whole.actions.tolist() == [1, 1, 0]
    assert whole.variables.booleans == (False, True)
    assert whole.variables.values.tolist() == [[-3, 1], [4, 0]]
    # PRISM adds the expected reward of the transitions: 0.5 times 4.
    np.testing.assert_array_equal(whole.model.rewards[0].state_rewards, [3.5, 2.0])
    assert read_model(tmp_path).model.labels["goal"].tolist() == [False, True]
