"""What the readers accept, and what they make of it."""

from __future__ import annotations

import lzma
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.files.reader import read_model
from engines.errors import InvalidModelError
from engines.model.explicit import ModelKind

ROOT = Path(__file__).parents[3]


def read(folder: Path, kind: ModelKind | None = None, **texts: str):
    """Write files called m.… and read the model."""
    for ending, text in texts.items():
        number, _, rest = ending.rpartition("_")
        (folder / f"m{number.strip('_')}.{rest}").write_text(text)
    return read_model(folder / "m.tra", kind)


def dense(whole) -> list[list[float]]:
    """Return the matrix as lists."""
    matrix = whole.model.matrix
    table = np.zeros((matrix.num_rows, matrix.num_columns))
    table[matrix.row_of_entry(), matrix.columns] = matrix.values
    return table.tolist()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# Transitions (CTMC)\n1 1\n0 0 0.5\n", ModelKind.CTMC),
        ("# Transitions (DTMC)\n1 1\n0 0 1\n", ModelKind.DTMC),
        ("1 1\n0 0 1\n", ModelKind.DTMC),
        ("1 1\n0 0 1.5\n", ModelKind.CTMC),
        ("1 1 1\n0 0 0 1\n", ModelKind.MDP),
        ("# some remark\n\n1 1 1\n\n# another\n0 0 0 1 go\n", ModelKind.MDP),
    ],
)
def test_the_kind_is_deduced_as_prism_does(text: str, kind: ModelKind, tmp_path: Path):
    assert read(tmp_path, tra=text).model.kind is kind


def test_the_kind_may_be_given(tmp_path: Path):
    text = "# Transitions (DTMC)\n1 1\n0 0 0.5\n"
    assert read(tmp_path, ModelKind.CTMC, tra=text).model.kind is ModelKind.CTMC
    with pytest.raises(InvalidModelError, match=r"sum to 0\.5"):
        read(tmp_path, tra=text)


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\t\n", "\n\n"])
def test_line_ends_and_blanks(end: str, tmp_path: Path):
    (tmp_path / "m.tra").write_bytes("2 2\n 0  1\t1 a\n1 0 1".replace("\n", end).encode())
    assert dense(read_model(tmp_path)) == [[0, 1], [1, 0]]


def test_transitions_in_any_order(tmp_path: Path):
    assert dense(read(tmp_path, tra="2 3\n1 0 1\n0 1 0.25\n0 0 0.75\n")) == [[0.75, 0.25], [1, 0]]
    whole = read(tmp_path, tra="2 3 4\n1 0 0 1 c\n0 1 1 1 b\n0 0 1 0.5 a\n0 0 0 0.5 a\n")
    assert dense(whole) == [[0.5, 0.5], [0, 1], [1, 0]]
    assert whole.model.row_group_offsets.tolist() == [0, 2, 3]
    assert [whole.action_names[code] for code in whole.actions] == ["a", "b", "c"]


def test_long_rows_are_sorted(tmp_path: Path):
    targets = list(range(100))
    random.Random(1).shuffle(targets)
    lines = [f"0 {target} {(target + 1) / 5050!r} a{target % 3}" for target in targets]
    lines += [f"{state} {state} 1" for state in range(1, 100)]
    whole = read(tmp_path, tra="100 199\n" + "\n".join(lines))
    matrix = whole.model.matrix
    assert matrix.columns[:100].tolist() == list(range(100))
    np.testing.assert_array_equal(matrix.values[:100], np.arange(1, 101) / 5050)
    assert all(
        whole.action_names[code] == f"a{target % 3}"
        for target, code in enumerate(whole.actions[:100])
    )


def test_states_without_a_line_are_deadlocks(tmp_path: Path):
    chain = read(tmp_path, tra="4 2\n1 0 0.5\n1 3 0.5\n")
    assert dense(chain)[0] == [1, 0, 0, 0]
    assert dense(chain)[1:] == [[0.5, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert chain.model.labels["deadlock"].tolist() == [True, False, True, True]
    mdp = read(tmp_path, tra="3 2 2\n1 0 0 1 a\n1 1 2 1 b\n")
    assert dense(mdp) == [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert mdp.model.row_group_offsets.tolist() == [0, 1, 3, 4]
    assert [mdp.action_names[code] for code in mdp.actions] == ["", "a", "b", ""]
    between = read(tmp_path, tra="3 3 3\n0 0 0 1 a\n0 1 2 1 b\n2 0 0 1 c\n")
    assert [between.action_names[code] for code in between.actions] == ["a", "b", "", "c"]


def test_parallel_transitions_of_different_actions_are_added_up(tmp_path: Path):
    text = "2 5\n0 0 0.25 a\n0 1 0.25 a\n0 1 0.375 b\n0 0 0.125 b\n1 1 1\n"
    whole = read(tmp_path, tra=text)
    assert dense(whole) == [[0.375, 0.625], [0, 1]]
    # The file does not say which of the two transitions earns the reward.
    for reward in (3, 0.5):
        with pytest.raises(InvalidModelError, match="several transitions"):
            read(tmp_path, tra=text, trew=f"2 1\n0 1 {reward}\n")
    assert read(tmp_path, tra=text, trew="2 1\n1 1 3\n").model.rewards[0].state_rewards[1] == 3


@pytest.mark.parametrize(("large", "kind"), [(1, "CTMC"), (6, "CTMC"), (7, "DTMC")])
def test_a_rate_among_the_first_six_makes_a_ctmc(large: int, kind: str, tmp_path: Path):
    lines = [f"{state} 0 {2 if state + 1 == large else 1}\n" for state in range(8)]
    text = "8 8\n" + "".join(lines)
    if kind == "CTMC":
        assert read(tmp_path, tra=text).model.kind is ModelKind.CTMC
    else:
        with pytest.raises(InvalidModelError, match=r"sum to 2\.0, not 1"):
            read(tmp_path, tra=text)


def test_zeros_are_no_transitions(tmp_path: Path):
    whole = read(tmp_path, tra="2 4\n0 0 0 a\n0 1 1 b\n1 0 0.0\n1 1 1\n")
    assert whole.model.matrix.num_entries == 2
    assert whole.actions.tolist() == [2, 0]


def test_expected_rewards(tmp_path: Path):
    ctmc = "# Transitions (CTMC)\n2 3\n0 0 2\n0 1 4\n1 0 3\n"
    whole = read(tmp_path, tra=ctmc, srew="2 1\n1 5\n", trew="2 2\n0 1 10\n1 0 1\n")
    assert whole.model.rewards[0].state_rewards.tolist() == [40, 8]
    mdp = "1 2 3\n0 0 0 1\n0 1 0 1\n".replace("1 2 3", "1 2 2")
    whole = read(tmp_path, tra=mdp, srew="1 1\n0 5\n", trew="1 2 1\n0 1 0 7\n")
    assert whole.model.rewards[0].choice_rewards.tolist() == [0, 7]
    mixed = "2 2 3\n0 0 0 0.25\n0 0 1 0.75\n1 0 1 1\n"
    whole = read(tmp_path, tra=mixed, srew="2 0\n", trew="2 2 2\n0 0 0 8\n0 0 1 4\n")
    assert whole.model.rewards[0].choice_rewards.tolist() == [5, 0]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("", ""),
        ("# Reward structure\n", ""),
        ('# Reward structure "r"\n', "r"),
        ('# Reward structure: "r"\n', "r"),
        ('# Reward structure "r"\n# State rewards\n', "r"),
        ("# Reward structure\n# State rewards\n", ""),
        ("# State rewards\n", ""),
    ],
)
def test_every_reward_header(header: str, name: str, tmp_path: Path):
    whole = read(tmp_path, tra="1 1\n0 0 1\n", srew=header + "1 1\n0 2.5\n")
    assert whole.model.rewards[0].name == name
    assert whole.model.rewards[0].state_rewards.tolist() == [2.5]


def test_numbered_rewards(tmp_path: Path):
    texts = {"_1_srew": "1 1\n0 1\n", "_1_trew": "1 1\n0 0 10\n", "_2_trew": "1 1\n0 0 2\n",
             "_4_srew": "1 1\n0 4\n"}  # fmt: skip
    whole = read(tmp_path, tra="1 1\n0 0 1\n", **texts)
    assert [structure.state_rewards.tolist() for structure in whole.model.rewards] == [[11], [2]]


def test_companions_compressed_in_another_way_are_found(tmp_path: Path):
    (tmp_path / "m.lab.xz").write_bytes(lzma.compress(b'0="init" 1="x"\n0: 0 1\n'))
    assert read(tmp_path, tra="1 1\n0 0 1\n").model.labels["x"].tolist() == [True]


def decimals() -> list[str]:
    """Return texts of numbers: ties, extremes, and random doubles in several precisions."""
    chance = random.Random(3)
    texts = ["0", "0.0", "1", ".5", "5.", "+1e2", "1E-5", "1e+22", "1e23", "9007199254740993",
             "9007199254740992.5", "4.9e-324", "2.2250738585072011e-308", "1.7976931348623157e308",
             "179769313486231580793728971405301199e-10", "0.1000000000000000055511151231257827",
             "8.5e-64", "123456789012345678e46", "1/3", "2/7"]  # fmt: skip
    for _ in range(3000):
        value = struct.unpack("<d", struct.pack("<Q", chance.getrandbits(63) % (2047 << 52)))[0]
        texts += [repr(value), f"{value:.17g}", f"{value:.16g}"]
        value = chance.random() * 10.0 ** chance.randrange(-8, 8)
        texts += [repr(value), f"{value:.18g}", f"{value:.17g}", f"{value:.6f}"]
        middle = chance.getrandbits(53) | 1 << 52
        texts.append(f"{2 * middle + 1}e{chance.randrange(-3, 3)}")
    return texts


def test_every_decimal_is_rounded_as_python_does(tmp_path: Path):
    texts = decimals()
    count = len(texts)
    rows = "".join(f"{state} {text}\n" for state, text in enumerate(texts))
    whole = read(
        tmp_path,
        tra=f"{count} {count}\n" + "".join(f"{s} {s} 1\n" for s in range(count)),
        srew=f"{count} {count}\n{rows}",
    )
    expected = [eval(text) if "/" in text else float(text) for text in texts]
    np.testing.assert_array_equal(whole.model.rewards[0].state_rewards, expected)


def test_many_blocks_and_many_actions(tmp_path: Path):
    count = 150_000
    lines = [f"{k} {(k * 7 + 1) % count} 1 act{k % 40_000}\n" for k in range(count)]
    whole = read(tmp_path, tra=f"{count} {count}\n{''.join(lines)}")
    assert (whole.model.matrix.columns == (np.arange(count) * 7 + 1) % count).all()
    assert len(whole.action_names) == 40_001
    assert all(whole.action_names[code] == f"act{k % 40_000}" for k, code in
               enumerate(whole.actions.tolist()))  # fmt: skip
    lines[123_456] = "123456 1 NaN\n"
    with pytest.raises(InvalidModelError, match="line 123458: the probability is nan"):
        read(tmp_path, tra=f"{count} {count}\n{''.join(lines)}")


MEASURE = """
import sys, tracemalloc
from bridge.files.reader import read_model
read_model(sys.argv[2])
tracemalloc.start()
matrix = read_model(sys.argv[1]).model.matrix
made = sum(array.nbytes for array in (matrix.row_offsets, matrix.columns, matrix.values))
print(tracemalloc.get_traced_memory()[1] / made)
"""


@pytest.mark.slow
def test_peak_memory_is_at_most_three_times_the_arrays(tmp_path: Path):
    states = 1_000_000
    with (tmp_path / "large.tra").open("w") as out:
        out.write(f"{states} {5 * states}\n")
        for state in range(states):
            near = sorted((state * 31 + step) % states for step in range(5))
            out.writelines(f"{state} {target} 0.2 go\n" for target in near)
    (tmp_path / "small.tra").write_text("1 1\n0 0 1\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "large.tra", tmp_path / "small.tra"],
        check=True, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert float(done.stdout) <= 3.0
