"""Read, write, read: the same arrays; and PRISM imports what is written."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bridge.files import writer
from bridge.files.reader import FileModel, read_model
from bridge.files.writer import write_model
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.bridge.files.samples import NO_SAMPLES, SAMPLE_FILES, assert_same, sample_id

VARIANTS = {
    "plain": {},
    "without headers": {"headers": False},
    "gzip": {"compression": ".gz"},
    "xz": {"compression": ".xz"},
    "combined": {"combined": True},
    "combined gzip": {"combined": True, "compression": ".gz"},
}

needs_samples = pytest.mark.skipif(not SAMPLE_FILES, reason=NO_SAMPLES)


@needs_samples
@pytest.mark.parametrize("path", SAMPLE_FILES, ids=sample_id)
def test_read_write_read_gives_equal_arrays(path: Path, tmp_path: Path):
    first = read_model(path)
    for name, options in VARIANTS.items():
        folder = tmp_path / name
        folder.mkdir()
        write_model(first, folder, **options)
        again = read_model(folder, kind=first.model.kind)
        assert_same(first, again, headers=options.get("headers", True))


@needs_samples
@pytest.mark.parametrize("path", SAMPLE_FILES, ids=sample_id)
def test_counts_are_those_of_the_header(path: Path):
    lines = path.read_text().splitlines()
    model = read_model(path).model
    counts = [int(word) for word in lines[1].split()]
    assert counts[0] == model.num_states
    assert counts[-1] == model.matrix.num_entries
    assert f"# Transitions ({model.kind})" == lines[0]
    assert model.initial_states is not None
    assert model.initial_states.any()
    lab = path.with_suffix(".lab").read_text().splitlines()
    assert len(model.labels) == lab[1].count("=")


PROPERTIES = {
    ModelKind.DTMC: ["P=? [ F<=7 s=1 ]", "filter(sum, P=? [ X s=0 ])"],
    ModelKind.CTMC: ["P=? [ F<=0.7 s=1 ]", "filter(sum, P=? [ X s=0 ])", "S=? [ s=0 ]"],
    ModelKind.MDP: ["Pmax=? [ F<=7 s=1 ]", "filter(sum, Pmin=? [ F<=3 s=1 ])"],
}
BOUNDED_REWARD = {
    ModelKind.DTMC: 'R{{"{}"}}=? [ C<=5 ]',
    ModelKind.CTMC: 'R{{"{}"}}=? [ C<=0.5 ]',
    ModelKind.MDP: 'R{{"{}"}}max=? [ C<=5 ]',
}


@pytest.mark.sampled(3)
@needs_samples
@pytest.mark.prism
@pytest.mark.parametrize(
    ("engine", "variant"), [("-explicit", "plain"), ("-sparse", "combined gzip")]
)
@pytest.mark.parametrize("name", ["herman3", "cluster_N2", "tandem_c3", "csma2_2", "leader3"])
def test_prism_imports_what_is_written_and_gives_the_same_values(
    name: str, variant: str, engine: str, tmp_path: Path, prism
):
    path = next(file for file in SAMPLE_FILES if file.stem == name)
    whole = read_model(path)
    # Without variables both imports number the states 0, 1, … in a variable of PRISM's own, x.
    plain = dataclasses.replace(whole, variables=None)
    files = write_model(plain, tmp_path, **VARIANTS[variant])
    properties = "; ".join(
        [prop.replace("s=", "x=") for prop in PROPERTIES[plain.model.kind]]
        + [BOUNDED_REWARD[plain.model.kind].format(r.name) for r in whole.model.rewards if r.name]
    )
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for file in path.parent.glob(f"{name}*"):
        if file.suffix in (".tra", ".lab", ".srew", ".trew"):
            shutil.copy(file, theirs)
    mine = files[0] if len(files) == 1 else tmp_path / "model.all"
    switches = [engine, "-pf", properties]
    expected = prism("-importmodel", theirs / f"{name}.all", *switches)
    found = prism("-importmodel", mine, *switches)
    assert found.code == expected.code == 0, found.output
    assert len(found.results()) >= 2
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12, atol=1e-14)


def numbers(run) -> list[float]:
    """Return the results; a range, where there are many initial states, as its two ends."""
    return [float(end) for result in run.results() for end in result.strip("[]").split(",")]


@needs_samples
@pytest.mark.prism
def test_prism_imports_the_variables(tmp_path: Path, prism):
    path = next(file for file in SAMPLE_FILES if file.stem == "cluster_N2")
    write_model(read_model(path), tmp_path)
    run = prism("-importmodel", tmp_path / "model.all", "-pf", "P=? [ F<=1 left_n=0 & !line ]")
    assert run.code == 0, run.output
    assert len(run.numbers()) == 1


def chain(**changes: object) -> ExplicitModel:
    """Return a DTMC of two states."""
    matrix = CsrMatrix(
        np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32), np.array([0.1, 0.9, 1.0]), 2
    )
    return dataclasses.replace(ExplicitModel(ModelKind.DTMC, matrix), **changes)


def test_a_model_made_in_python_is_written_and_read(tmp_path: Path):
    rewards = (
        RewardStructure("a", np.array([0.0, 1 / 3])),
        RewardStructure("", np.array([1e-300, 12345678.9])),
    )
    goal = np.array([False, True])
    write_model(chain(rewards=rewards, labels={"goal": goal}), tmp_path / "two")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "two.lab", "two.tra", "two1.srew", "two1.trew", "two2.srew", "two2.trew",
    ]  # fmt: skip
    again = read_model(tmp_path).model
    assert [structure.name for structure in again.rewards] == ["a", ""]
    np.testing.assert_array_equal(again.rewards[1].state_rewards, rewards[1].state_rewards)
    np.testing.assert_array_equal(again.labels["goal"], goal)
    np.testing.assert_array_equal(again.labels["init"], [True, False])


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "model.tra").write_text("old")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_labels", lambda *_: iter(broken, None))
    with pytest.raises(OSError, match="No space"):
        write_model(chain(), tmp_path)
    assert os.listdir(tmp_path) == ["model.tra"]
    assert (tmp_path / "model.tra").read_text() == "old"


@pytest.mark.parametrize("old", ["model.sta", "model1.srew", "model.trew.gz"])
def test_an_old_file_that_would_join_the_model_is_refused(tmp_path: Path, old: str):
    (tmp_path / old).write_text("0 0")
    with pytest.raises(FileExistsError, match=old):
        write_model(chain(), tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {'go"al': np.array([False, True])}},
        {"labels": {"goal": np.array([True])}},
        {"labels": {"init": np.array([False, False])}},
        {"rewards": (RewardStructure("line\nfeed", np.zeros(2)),)},
        {"rewards": (RewardStructure("r", np.zeros(3)),)},
    ],
)
def test_what_the_format_cannot_hold_is_refused(tmp_path: Path, changes: dict[str, object]):
    with pytest.raises(InvalidModelError):
        write_model(chain(**changes), tmp_path)
    assert not os.listdir(tmp_path)


def test_compressed_files_are_compressed(tmp_path: Path):
    files = write_model(FileModel(chain()), tmp_path, compression=".gz")
    assert gzip.decompress(files[0].read_bytes()).startswith(b"# Transitions (DTMC)\n2 3\n0 0 0.1")
