"""Readers given damaged files and noise: an answer or an `InvalidModelError`, never anything else.

`FUZZ_EXAMPLES` sets how many inputs the slow tests try.
"""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bridge.files.reader import read_model
from engines.errors import InvalidModelError
from engines.model.explicit import ROW_SUM_TOLERANCE, ModelKind

MANY = int(os.environ.get("FUZZ_EXAMPLES", "20000"))
QUIET = {"suppress_health_check": list(HealthCheck)}

CHAIN = {
    ".tra": b"# Transitions (DTMC)\n3 5\n0 1 0.5 a\n0 2 0.5 b\n1 1 1\n2 0 0.1\n2 2 9e-1\n",
    ".lab": b'# Labels\n0="init" 1="deadlock" 2="goal"\n0: 0\n1: 1 2\n',
    ".sta": b"# States\n(x,b)\n0:(0,true)\n1:(-1,false)\n2:(2,true)\n",
    ".srew": b'# Reward structure "r"\n# State rewards\n3 2\n0 1.5\n2 1\n',
    ".trew": b'# Reward structure "r"\n# Transition rewards\n3 1\n0 1 2.5\n',
}
RATES = {**CHAIN, ".tra": b"3 5\n0 1 5.5 a\n0 2 0.5 b\n1 1 1\n2 0 100\n2 1 9e-1\n"}
DECISIONS = {
    **CHAIN,
    ".tra": b"3 4 5\n0 0 1 0.5 a\n0 0 2 0.5 a\n0 1 1 1 b\n1 0 1 1\n2 0 2 1\n",
    ".trew": b'# Reward structure "r"\n# Transition rewards\n3 4 1\n0 1 1 2.5\n',
}
MODELS = [CHAIN, RATES, DECISIONS]
COMBINED = b"\n".join(CHAIN.values())

NUMBERS = [b"-1", b"0", b"1", b"2", b"3", b"4", b"1000000000000", b"2147483648", b"NaN", b"1e400",
           b"-0.5", b"1/3", b"9" * 25, b"0.333", b"Infinity", b"\xff", b"\x00"]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, text: bytes) -> bytes:
    """Change words, lines and bytes of a text."""
    for _ in range(draw(st.integers(1, 3))):
        lines = text.split(b"\n")
        place = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 7)):
            case 0:
                words = lines[place].split(b" ")
                words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(NUMBERS))
                lines[place] = b" ".join(words)
            case 1:
                del lines[place]
            case 2:
                lines.insert(place, lines[draw(st.integers(0, len(lines) - 1))])
            case 3:
                lines[place] = draw(st.binary(max_size=12))
            case 4:
                other = draw(st.integers(0, len(lines) - 1))
                lines[place], lines[other] = lines[other], lines[place]
            case 5:
                at = draw(st.integers(0, len(lines[place])))
                lines[place] = lines[place][:at] + draw(st.binary(max_size=3)) + lines[place][at:]
            case 6:
                lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
            case 7:
                lines = [b"\n".join(lines)[: draw(st.integers(0, len(text)))]]
        text = b"\n".join(lines)
    return text


@st.composite
def folders(draw: st.DrawFn) -> dict[str, bytes]:
    """Return the files of a model, one or two of them damaged."""
    files = dict(draw(st.sampled_from(MODELS)))
    for _ in range(draw(st.integers(1, 2))):
        ending = draw(st.sampled_from(sorted(files)))
        files[ending] = draw(mutations(files[ending]))
    return files


def read_and_judge(files: dict[str, bytes]) -> None:
    """Read files; whatever is accepted must be a model."""
    with tempfile.TemporaryDirectory() as folder:
        for ending, text in files.items():
            Path(folder, "m" + ending).write_bytes(text)
        judge(Path(folder))


def judge(path: Path) -> bool:
    """Read a model; return whether it was one. What is accepted must keep every rule."""
    try:
        whole = read_model(path)
    except InvalidModelError as error:
        if "m." not in str(error):
            raise AssertionError("the message does not name the file") from error
        return False
    model = whole.model.check()
    matrix = model.matrix
    assert model.initial_states is not None
    assert model.initial_states.any()
    assert all(len(mask) == model.num_states for mask in model.labels.values())
    assert np.isfinite(matrix.values).all()
    assert (matrix.values > 0).all()
    if model.kind is not ModelKind.CTMC:
        np.testing.assert_allclose(matrix.row_sums(), 1, atol=ROW_SUM_TOLERANCE)
    for row in range(matrix.num_rows):
        targets = matrix.columns[matrix.row_offsets[row] : matrix.row_offsets[row + 1]]
        assert (np.diff(targets) > 0).all()
    for structure, fault in zip(model.rewards, whole.reward_faults, strict=True):
        assert np.isfinite(structure.state_rewards).all()
        assert fault is not None or (structure.state_rewards >= 0).all()
    if whole.actions is not None:
        assert whole.actions.max() < len(whole.action_names)
    return True


def squeezed(text: bytes, packing: int) -> dict[str, bytes]:
    """Return a `.tra` as it is, or compressed."""
    return [{".tra": text}, {".tra.gz": gzip.compress(text, 1)},
            {".tra.xz": lzma.compress(text, preset=0)}][packing]  # fmt: skip


@settings(max_examples=300, **QUIET)
@given(folders())
def test_damaged_files(files: dict[str, bytes]):
    read_and_judge(files)


@settings(max_examples=100, **QUIET)
@given(st.sampled_from([".tra", ".tra.gz", ".pexp", ".pexp.xz"]), st.binary(max_size=300))
@example(".tra", b"\n" * 5000)
@example(".tra", b"1 1\n" + b"#" * 5000)
def test_noise(ending: str, noise: bytes):
    read_and_judge({ending: noise})


@settings(max_examples=100, **QUIET)
@given(mutations(COMBINED))
def test_damaged_combined_files(text: bytes):
    read_and_judge({".pexp": text})


@settings(max_examples=100, **QUIET)
@given(st.integers(1, 2), st.data())
def test_damaged_compressed_files(packing: int, data: st.DataObject):
    ((ending, packed),) = squeezed(CHAIN[".tra"], packing).items()
    at = data.draw(st.integers(0, len(packed) - 1))
    change = data.draw(st.binary(max_size=4))
    keep = data.draw(st.booleans())
    read_and_judge({ending: packed[:at] + change + (packed[at + len(change) :] if keep else b"")})


@pytest.mark.slow
@settings(max_examples=MANY, **QUIET)
@given(st.one_of(folders(), mutations(COMBINED).map(lambda text: {".pexp": text})))
def test_many_damaged_files(files: dict[str, bytes]):
    read_and_judge(files)


@pytest.mark.slow
@settings(max_examples=MANY // 4, **QUIET)
@given(mutations(CHAIN[".tra"]), st.integers(0, 2))
def test_many_damaged_transitions(text: bytes, packing: int):
    read_and_judge(squeezed(text, packing))
