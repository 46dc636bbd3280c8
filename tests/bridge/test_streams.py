"""Standard streams that are closed, that nobody reads, or that cannot be written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run, run_command

RESULT = "Result: 0.25"
MODEL = """dtmc
module m
  s : [0..2] init 0;
  [] s=0 -> 0.25:(s'=1) + 0.75:(s'=2);
  [] s>0 -> true;
endmodule
label "t" = s=1;
"""


@pytest.fixture(params=["files", pytest.param("prism", marks=pytest.mark.prism)])
def checked(request, tmp_path) -> str:
    """Return a model of files, or one for PRISM, as an argument."""
    if request.param == "prism":
        install = request.getfixturevalue("prism_install")
        (tmp_path / "m.pm").write_text(MODEL)
        return f"--prism-dir {shlex.quote(str(install.root))} {tmp_path}/m.pm"
    (tmp_path / "m.tra").write_text("3 4\n0 1 0.25\n0 2 0.75\n1 1 1\n2 2 1\n")
    (tmp_path / "m.lab").write_text('0="init" 1="deadlock" 2="t"\n0: 0\n1: 2\n')
    return f"{tmp_path}/m.tra"


def shell(checked: str, rest: str) -> Run:
    """Run the command with its streams redirected, and return its own exit code."""
    return command(f"{checked} -pf 'P=? [ F \"t\" ]' {rest}")


def command(words: str) -> Run:
    """Run the command by a shell."""
    line = f"{shlex.quote(sys.executable)} -m bridge {words}"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2> /dev/full"])
def test_the_result_is_printed_without_the_other_streams(checked, closed):
    run = shell(checked, closed)
    assert run.code == 0
    assert RESULT in run.output


@pytest.mark.sampled(3)
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-", "| head -2"])
def test_a_run_that_nobody_reads_ends_well(checked, closed):
    run = shell(checked, closed)
    assert run.code == 0
    assert run.errors == ""
    assert len(run.output.splitlines()) == (2 if "head" in closed else 0)


def test_a_closed_output_is_not_written_into_the_next_file(checked, tmp_path):
    run = shell(checked, f"-exportvector {tmp_path}/values.txt >&-")
    assert run.code == 0
    assert [float(x) for x in (tmp_path / "values.txt").read_text().split()] == [0.25, 1.0, 0.0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_an_error_in_one_line(tmp_path):
    (tmp_path / "m.tra").write_text("1 1\n0 0 1\n")
    for words in (f"{tmp_path}/m.tra", f"{tmp_path}/absent.tra", "doctor"):
        run = command(f"{words} > /dev/full")
        assert run.code == 1
        assert run.errors.strip() == "Error: No space left on device: standard output."


def test_too_little_address_space_is_told_before_libraries_are_loaded():
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v 400000; {shlex.quote(sys.executable)} -m bridge x.tra"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 1
    assert "limited to 390 MiB (ulimit -v): 512 MiB are needed" in done.stdout


def test_a_text_without_an_end_is_refused():
    words = ["/dev/zero", "-frontend", "builtin"]
    done = run_command([sys.executable, "-m", "bridge", *words], timeout=60.0)
    assert done.code == 1
    assert "Error: /dev/zero has more than 64 million characters." in done.output
    assert not done.errors


@pytest.mark.prism
def test_few_open_files_are_told_before_java_misses_them(tmp_path):
    model = tmp_path / "m.pm"
    model.write_text(MODEL)
    command = shlex.join([sys.executable, "-m", "bridge", str(model), "-pf", 'P=? [ F "t" ]'])
    few = run_command(["bash", "-c", f"ulimit -n 30; {command}"], timeout=60.0)
    assert few.code == 1
    assert few.output.strip().endswith(
        "Error: the number of open files is limited to 30 (ulimit -n): 64 are needed with PRISM."
    )
    assert not few.errors
    raised = run_command(["bash", "-c", f"ulimit -S -n 20; {command}"], timeout=60.0)
    assert RESULT in raised.output
