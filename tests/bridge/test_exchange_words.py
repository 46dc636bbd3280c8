"""The words of export, solve and report: what is taken, what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.exchange.commands import main
from bridge.exchange.words import (
    groups,
    joined,
    require_exportable,
    require_output_only,
    with_absolute_files,
)
from bridge.own_switches import UsageError
from engines.errors import UnsupportedError


@given(
    st.lists(st.sampled_from(["m.pm", "-const", "N=2", "-to", "d", "-exportrewards", "--v", "-"]))
)
def test_a_command_line_taken_apart_is_put_together_again(line):
    assert list(joined(list(groups(line, {"to"})))) == line


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (["-const", "N=1:2:5"], "experiment"),
        (["-ss"], "steady states"),
        (["--transient", "3"], "transient"),
        (["-exportstrat", "x"], "strategies"),
        (["-bisim"], "quotients"),
        (["-politer"], "policies"),
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(line, named):
    with pytest.raises(UnsupportedError, match=named):
        require_exportable(list(groups(["m.pm", *line], set())))


@pytest.mark.parametrize("line", [["-const", "N=3"], ["-epsilon", "1e-3"], ["-ss"], ["other.pm"]])
def test_a_report_takes_no_switch_that_changes_what_is_computed(line):
    with pytest.raises(UsageError, match=line[0]):
        require_output_only(list(groups(line, set())))


def test_a_report_takes_switches_that_write_something_out():
    line = ["-exportresults", "r.csv:csv", "-exportvector", "v", "-v", "-exportlabels", "l"]
    require_output_only(list(groups(line, set())))


def test_files_get_absolute_paths_and_values_of_switches_stay():
    parts = with_absolute_files(list(groups(["m.pm", "-pctl", "m.pm", "p.props"], set())))
    assert joined(parts) == (
        str(Path("m.pm").absolute()),
        "-pctl",
        "m.pm",
        str(Path("p.props").absolute()),
    )


@pytest.mark.parametrize(
    ("command", "line", "text"),
    [
        ("solve", ["nowhere"], "holds no export"),
        ("solve", ["nowhere", "-maxiters", "many"], "Invalid value for -maxiters"),
        ("solve", ["nowhere", "-epsilon", "-1"], "Invalid value for -epsilon"),
        ("solve", ["nowhere", "-ex"], "Unknown switch -ex"),
        ("solve", ["a", "b"], "Name one folder"),
        ("report", ["nowhere"], "holds no export"),
        ("export", ["m.pm", "p.props"], "-to"),
        ("export", ["m.pm", "-to", "d", "-sparse"], "sparse engine"),
        ("export", ["m.pm", "-to", "d", "-frontend", "builtin"], "exports and reports"),
    ],
)
def test_errors_are_printed_as_prism_prints_them(capsys, monkeypatch, command, line, text):
    # Another test's JVM would end the process.
    monkeypatch.setattr("jpype.isJVMStarted", lambda: False)
    with pytest.raises(SystemExit) as ended:
        main(command, line)
    assert ended.value.code == 1
    output = capsys.readouterr().out
    assert output.startswith("\nError: ")
    assert text in output
