"""The line that shows the progress of a solve: on a terminal, after a second, gone in the end."""

from __future__ import annotations

import io
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest

from engines.model.progress import Measure, SweepReport
from prism_hooks.sweep_bar import SweepBar, number_text, sweep_bar, terminal_size


class Terminal(io.StringIO):
    """Keeps what is written, and says that somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr("prism_hooks.sweep_bar.sys", SimpleNamespace(stderr=found))
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)
    return found


def report(done: int, seconds: float, left: float = float("inf")) -> SweepReport:
    return SweepReport(done, np.array([0.25]), seconds, sweeps_to_go=left)


def test_a_short_solve_shows_nothing(terminal):
    bar = SweepBar()
    bar(report(10, 0.2))
    bar(report(20, 0.9))
    bar.close()
    assert terminal.getvalue() == ""


def test_a_long_solve_shows_its_sweeps_and_when_they_end(terminal):
    told = []
    bar = SweepBar(told.append)
    bar(report(1000, 2.0))
    assert re.search(r"1000 sweeps \[00:02, (499|500)\.\d+ sweeps/s", terminal.getvalue())
    assert "relative change 2.50e-01" in terminal.getvalue()
    bar._bar.last_print_t -= 1.0
    bar(report(1500, 3.0, left=499.5))
    # 1,500 of 2,000; what was observed is 500 sweeps a second.
    assert " 75%|" in terminal.getvalue()
    assert "1500 sweeps [00:" in terminal.getvalue()
    bar.close()
    assert told == [True, False]
    assert terminal.getvalue().endswith("\r")
    assert terminal.getvalue().rpartition("\r")[0].rpartition("\r")[2].strip() == ""


def test_a_terminal_that_does_not_know_its_width_shows_them_too(terminal, monkeypatch):
    monkeypatch.setattr(terminal, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((0, 0)))
    assert terminal_size() == {"ncols": 80, "nrows": 24}
    SweepBar()(report(1000, 2.0))
    assert "1000 sweeps" in terminal.getvalue()


def test_another_solve_begins_another_line(terminal):
    told = []
    bar = SweepBar(told.append)
    bar(report(1000, 2.0))
    bar(report(64, 0.1))
    assert told == [True, False]
    bar(report(500, 1.5))
    assert told == [True, False, True]
    bar.close()
    assert "500 sweeps" in terminal.getvalue()


def test_a_line_of_the_log_finds_an_empty_line(terminal):
    bar = SweepBar()
    bar(report(1000, 2.0))
    with bar.aside():
        assert terminal.getvalue().rpartition("\r")[2] == ""
        terminal.write("Iteration 1000\n")
    after = terminal.getvalue().rpartition("Iteration 1000\n")[2]
    assert after.strip("\r").startswith("1000 sweeps")
    bar.close()
    with bar.aside():
        pass


def test_nothing_is_shown_where_nobody_watches_or_it_is_switched_off(terminal, monkeypatch):
    assert terminal.isatty()
    assert sweep_bar() is not None
    assert sweep_bar(wanted=False) is None
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    assert sweep_bar() is None


@pytest.mark.parametrize(
    ("measure", "absolute", "text"),
    [
        (Measure.CHANGE, False, "relative change 2.50e-01"),
        (Measure.CHANGE, True, "change 2.50e-01"),
        (Measure.WIDTH, False, "relative width 2.50e-01"),
        (Measure.STEP, True, "change 2.50e-01"),
        (Measure.REMAINDER, False, "75.0 % of the sum"),
    ],
)
def test_the_number_is_called_what_it_is(measure, absolute, text):
    assert number_text(SweepReport(3, np.array([0.5, 0.25]), 1.0, measure, absolute)) == text
