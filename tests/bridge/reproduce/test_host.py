"""What the machine has: named parts that are missing are errors, and nothing stands in unsaid."""

from __future__ import annotations

import pytest

from bridge.reproduce import host
from bridge.versions import NoPrismError, RequirementError
from engines.errors import BridgeError


def nothing(*_):
    raise NoPrismError("no PRISM was found", "set PRISM_DIR")


@pytest.fixture
def _without_prism(monkeypatch):
    monkeypatch.setattr(host, "find_prism", nothing)


@pytest.mark.usefixtures("_without_prism")
def test_our_front_end_stands_in_where_there_is_no_prism():
    found = host.examine("cpu")
    assert (found.front_end, found.prism, found.examples) == ("builtin", None, None)
    assert found.device == "cpu"
    assert found.cores >= 1
    assert 0 < found.room <= found.memory


@pytest.mark.usefixtures("_without_prism")
def test_nothing_stands_in_for_a_prism_that_was_named():
    with pytest.raises(BridgeError, match=r"(?s)no PRISM was found.*--frontend prism was given"):
        host.examine("cpu", "prism")


def test_a_prism_without_java_is_an_error(monkeypatch):
    def no_java():
        raise RequirementError("no Java", "install one")

    monkeypatch.setattr(host, "find_prism", lambda: object())
    monkeypatch.setattr(host, "find_java", no_java)
    with pytest.raises(BridgeError, match="no Java"):
        host.examine("cpu")


@pytest.mark.usefixtures("_without_prism")
def test_a_gpu_that_was_named_must_be_there(monkeypatch):
    monkeypatch.setattr(host, "_gpu", lambda: (None, "none is there"))
    with pytest.raises(BridgeError, match="--device gpu: no GPU can be used: none is there"):
        host.examine("gpu")
    assert host.examine("auto").device == "cpu"


@pytest.mark.usefixtures("_without_prism")
def test_a_gpu_of_another_host_is_not_looked_for_here(monkeypatch):
    monkeypatch.setattr(host, "_gpu", nothing)
    found = host.examine(host.ELSEWHERE)
    assert (found.device, found.computes) == ("gpu", False)
    assert found.identity()["device"] == "gpu"


@pytest.mark.usefixtures("_without_prism")
def test_results_depend_on_the_device_and_not_on_what_draws(monkeypatch):
    monkeypatch.setattr(host, "_gpu", lambda: (("Made-up GPU", 8 << 30, 2), ""))
    gpu, cpu = host.examine("auto"), host.examine("cpu")
    assert (gpu.device_name, gpu.room <= 8 << 30) == ("Made-up GPU", True)
    assert gpu.identity() != cpu.identity()
    gpu.versions["matplotlib"] = "another"
    assert "matplotlib" not in gpu.identity()["versions"]
    assert gpu.described()["versions"]["matplotlib"] == "another"
