"""Two hundred damaged export folders; `exchange_fuzz.py` has a command for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.exchange import export as export_module
from bridge.exchange import report as report_module
from tests.bridge.exchange_fuzz import Fuzzer, Run, fuzz, report, solve
from tests.bridge.test_exchange import QUESTIONS, walk, write


def whole_and_report(folder: Path) -> tuple[Path, Run]:
    """Return an export with results, and what reports on such a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_module, "read_built", lambda _: walk())
        write(folder)
    solve(folder)

    def built(_: Path) -> None:
        report_module.read_built = lambda _: walk()  # type: ignore[assignment]

    return folder, report(list(QUESTIONS), built)


def test_a_damaged_folder_gives_an_answer_or_an_error_with_file_and_field(tmp_path, monkeypatch):
    monkeypatch.setattr(report_module, "read_built", report_module.read_built)
    whole, reporter = whole_and_report(tmp_path / "whole")
    (tmp_path / "damaged").mkdir()
    fuzzer = Fuzzer(whole, tmp_path / "damaged", reporter, seed=1)
    fuzz(fuzzer, 200)
    assert any("refused" in seen for seen in fuzzer.seen)
    assert any("an answer" in seen for seen in fuzzer.seen)
