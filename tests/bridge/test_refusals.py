"""Errors read as PRISM's do."""

from __future__ import annotations

import pytest

from bridge.refusals import error_line, fault_text, require_gpu
from engines.cuda import driver
from engines.errors import DeviceMemoryError, InvalidModelError, UnsupportedError

OUT = "prism-gpu ran out of memory"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InvalidModelError("m.tra, line 3: too few fields."), "m.tra, line 3: too few fields"),
        (FileNotFoundError(2, "No such file or directory", "m"), "No such file or directory: m"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("the disk is away"), "the disk is away"),
        (RuntimeError(), "RuntimeError"),
        (MemoryError(), OUT),
        (MemoryError("Unable to allocate 9 GiB."), f"{OUT}: Unable to allocate 9 GiB"),
        (DeviceMemoryError("GPU 0: 9 GiB needed"), "GPU 0: 9 GiB needed"),
    ],
)
def test_an_error_says_what_and_where_and_ends_in_one_full_stop(error, text):
    assert fault_text(error).rstrip(".") == text
    assert error_line(error) == f"\nError: {text}."


def test_what_points_at_a_place_in_the_last_of_several_lines_stays_the_last():
    assert error_line(InvalidModelError("m.pm, here:\n\tfase\n\t^")).endswith("fase\n\t^")


def test_a_gpu_that_was_asked_for_and_cannot_be_used_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(driver, "gpu_refusal", lambda number: f"there is no device {number}")
    with pytest.raises(UnsupportedError, match=r"-gpu was given, .* no device 7"):
        require_gpu(7)
    monkeypatch.setattr(driver, "gpu_refusal", lambda _: None)
    require_gpu(0)
