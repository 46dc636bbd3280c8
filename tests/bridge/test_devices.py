"""What the log says of devices, of the command line and of who solved."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bridge import devices
from bridge.devices import devices_text, header
from bridge.help import help_on, is_explained
from bridge.versions import OWN_VERSION
from engines.model.environment import DeviceChoice
from engines.model.events import Kind
from engines.model.result import NOTHING_SWEPT, SweepCost
from prism_hooks.work_done import WorkDone

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """Return a function that puts devices of such names into the machine."""
    monkeypatch.setattr(devices, "driver_present", lambda: True)

    def put(*names):
        for number, name in enumerate(names):
            (tmp_path / f"0000:0{number}:00.0").mkdir()
            text = f"Model: \t\t {name}\nIRQ:   \t\t 57\nDevice Minor: \t {number}\n"
            (tmp_path / f"0000:0{number}:00.0" / "information").write_text(text)
        return tmp_path

    return put


def test_devices_are_named_as_the_driver_names_them(gpus):
    folder = gpus("NVIDIA H100", "NVIDIA H100", "NVIDIA A2")
    assert devices_text(DeviceChoice.AUTO, folder) == "the CPU and 2 × NVIDIA H100, NVIDIA A2"
    assert devices_text(DeviceChoice.GPU, folder) == "2 × NVIDIA H100, NVIDIA A2"
    assert devices_text(DeviceChoice.CPU, folder) == "the CPU"


def test_devices_without_names_are_told(gpus):
    assert devices_text(DeviceChoice.AUTO, gpus()) == "the CPU and GPU of NVIDIA"


def test_a_machine_without_a_driver_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "driver_present", lambda: False)
    assert devices_text(DeviceChoice.AUTO, tmp_path) == "the CPU (no GPU was found)"


def test_the_header_has_the_command_line_as_it_was_typed():
    line = header(("a b.pm", "-pf", 'P=? [ F "x" ]', "-nogpu"), DeviceChoice.CPU)
    assert line.startswith(f"prism-gpu: version {OWN_VERSION} on the CPU; ")
    assert line.endswith("""command line: prism-gpu 'a b.pm' -pf 'P=? [ F "x" ]' -nogpu""")


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == OWN_VERSION


def test_solves_are_counted_by_their_devices():
    work = WorkDone()
    assert work.line == ""
    work.solved(NOTHING_SWEPT)
    assert work.line == "prism-gpu: 1 solve on the CPU"
    for _ in range(2):
        work.solved(SweepCost((0,), "kernel", "csr", 1))
    work.solved(SweepCost((0, 1), "kernel", "csr", 1, cpu_as_well=True))
    expected = "prism-gpu: 1 solve on the CPU, 2 on GPU 0, 1 on the CPU and GPU 0+1"
    assert work.line == expected


@pytest.mark.parametrize("first", range(8))
def test_of_solves_that_ended_as_far_off_the_first_one_is_told(first):
    methods = [f"Method {(first + place) % 8}" for place in range(8)]
    work = WorkDone()
    for method in methods:
        details = {"method": method, "epsilon": 1e-6, "error_kind": "relative", "error": 0.5}
        for _ in range(2):
            work.misled(Kind.CHANGE_MISLEADS(**details))
    assert work.lines.startswith(f"prism-gpu: {methods[0]} stopped because")
    assert work.lines.endswith("error is 5.0e-01 (the worst of 8 such solves)")


def test_each_switch_of_ours_is_explained_alone():
    assert help_on("gpuinfo").startswith("-gpuinfo ....")
    assert "patterns" in help_on("gpuformat")
    assert "gpudevices" not in help_on("gpuformat")
    assert help_on("prism-dir").startswith("--prism-dir <dir>")
    assert not is_explained("const")
