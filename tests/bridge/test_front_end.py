"""Which models go without PRISM, by the names of their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.arguments import parse
from bridge.files.checkable import read_checkable
from bridge.files.names import COMPRESSIONS, is_model_file
from bridge.files.umb import write_umb
from bridge.files.writer import write_model
from bridge.front_end import embedded_reason
from tests.bridge.check.models import dice


@pytest.mark.parametrize("ending", [".umb", ".tra", ".pexp"])
@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
def test_models_in_files_need_no_prism_however_they_are_compressed(ending, compression):
    name = f"runs/m{ending}{compression}"
    assert is_model_file(Path(name))
    assert "explicit files" in str(embedded_reason(parse([name], {})))


@pytest.mark.parametrize(
    "name", ["m.pm", "m.gz", "m.tra.zip", "tra", "m.tra.txt", "m.lab", "m.gzip"]
)
def test_other_files_are_no_models_in_files(name):
    assert not is_model_file(Path(name))


def test_a_folder_is_a_model_in_files(tmp_path):
    assert is_model_file(tmp_path)
    assert not is_model_file(tmp_path / "nothing")


@pytest.mark.parametrize("kind", ["umb", "tra"])
def test_what_counts_as_a_model_in_files_can_be_read(tmp_path, kind):
    model = dice().model
    if kind == "umb":
        write_umb(model, tmp_path / "m.umb.gzip", "gz")
    else:
        for path in write_model(model, tmp_path / "m", compression=".gz"):
            path.rename(path.with_suffix(".gzip"))
    read = read_checkable(tmp_path / f"m.{kind}.gzip")
    assert read.model.num_states == model.num_states


@pytest.mark.parametrize(
    "modules", ["bridge.front_end, bridge.refusals", "bridge.cli, bridge.arguments"]
)
def test_choosing_the_front_end_does_not_load_numpy(modules):
    code = f"import sys, {modules}\nprint(sorted({{'numpy', 'jpype', 'cupy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
