"""The command: its words, its end after an interruption, and that it goes on from there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from bridge.reproduce import command
from bridge.reproduce.instances import plan
from bridge.reproduce.jobs import Kind, Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.store import Store
from engines.errors import BridgeError
from tests.bridge.reproduce.made_up import host, record_of


def test_words_become_a_request(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(command, "reproduce", lambda request: asked.append(request) or 0)
    words = ["tandem", "herman", "--scale", "paper", "--into", str(tmp_path), "--budget", "2"]
    done = CliRunner().invoke(command.command, [*words, "--fresh", "--device", "cpu"])
    assert done.exit_code == 0, done.output
    (request,) = asked
    assert request.subjects == (Subject.HERMAN, Subject.TANDEM)
    assert (request.scale, request.device, request.fresh) == (Scale.PAPER, "cpu", True)
    assert (request.limit, request.budget) == (120, 120)


@pytest.mark.parametrize("words", [[], ["all"], ["scc", "all"]])
def test_everything_is_the_default(monkeypatch, words):
    asked = []
    monkeypatch.setattr(command, "reproduce", lambda request: asked.append(request) or 0)
    assert CliRunner().invoke(command.command, words).exit_code == 0
    assert asked[0].subjects == tuple(Subject)
    assert (asked[0].scale, asked[0].budget) == (Scale.SMALL, None)


def test_what_is_missing_is_an_error_without_a_trace(monkeypatch, tmp_path):
    def refuse(*_):
        raise BridgeError("--device gpu: no GPU can be used: none is there")

    monkeypatch.setattr(command, "examine", refuse)
    done = CliRunner().invoke(command.command, ["--device", "gpu", "--into", str(tmp_path)])
    assert done.exit_code == 1
    assert "Error: --device gpu: no GPU can be used" in done.output


def test_an_unknown_subject_is_a_mistake():
    done = CliRunner().invoke(command.command, ["nand"])
    assert done.exit_code == 2
    assert "gauss-seidel" in done.output


def test_only_the_jobs_so_named_are_done(monkeypatch, tmp_path):
    machine = host()
    monkeypatch.setattr(command, "examine", lambda *_: machine)
    done_jobs = []

    def measured(_host, jobs, store, _limits):
        done_jobs.extend(jobs)
        return Results({job.name: store.get(job) for job in jobs})

    monkeypatch.setattr(command, "_measured", measured)
    store = Store(tmp_path, machine.identity())
    for job in plan((Subject.SCC, Subject.APMC), Scale.SMALL, machine):
        store.put(job, record_of(job))
    words = ["scc", "apmc", "--into", str(tmp_path), "--only"]
    done = CliRunner().invoke(command.command, [*words, "leader|phil"])
    assert done.exit_code == 0, done.output
    every = plan((Subject.SCC, Subject.APMC), Scale.SMALL, machine)
    wanted = [job.name for job in every if "leader" in job.name or "phil" in job.name]
    assert [job.name for job in done_jobs] == wanted
    assert 0 < len(wanted) < len(every)
    # The report is of what was there before as well.
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {table["name"] for table in found["tables"]} == {"scc", "mec", "apmc", "apmc_workers"}
    none = CliRunner().invoke(command.command, [*words, "nobody"])
    assert none.exit_code == 1
    assert 'no job has a name with "nobody" in it; some are: ' in none.output
    wrong = CliRunner().invoke(command.command, [*words, "("])
    assert wrong.exit_code == 2
    assert "no regular expression" in wrong.output


def test_prism_s_runs_may_be_left_to_another_run(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(command, "examine", lambda *_: host())

    def measured(_host, jobs, *_):
        asked.extend(jobs)
        return Results()

    monkeypatch.setattr(command, "_measured", measured)
    words = ["tandem", "--no-peers", "--into", str(tmp_path)]
    done = CliRunner().invoke(command.command, words)
    assert done.exit_code == 0, done.output
    assert asked
    assert Kind.PEER not in {job.kind for job in asked}


def test_ours_come_before_prism_and_nothing_twice():
    jobs = plan(tuple(Subject), Scale.PAPER, host())
    assert len({job.name for job in jobs}) == len(jobs)
    peers = [position for position, job in enumerate(jobs) if job.kind is Kind.PEER]
    assert peers == list(range(peers[0], len(jobs)))
    both = plan((Subject.SCC, Subject.MEC), Scale.SMALL, host())
    assert len(both) == len(plan((Subject.SCC,), Scale.SMALL, host())) == 11


def test_the_largest_scale_goes_on_until_the_machine_is_full():
    paper, largest = (
        {job.size for job in plan((Subject.TANDEM,), scale, host()) if job.kind is Kind.OURS}
        for scale in (Scale.PAPER, Scale.MAX)
    )
    assert paper < largest
    room = host().room
    jobs = [job for job in plan((Subject.TANDEM,), Scale.MAX, host()) if job.kind is Kind.OURS]
    assert all(job.bytes_needed <= room for job in jobs)
    assert max(job.bytes_needed for job in jobs) > room / 3


def test_the_report_is_of_all_that_the_folder_holds(monkeypatch, tmp_path):
    machine = host()
    monkeypatch.setattr(command, "examine", lambda *_: machine)
    store = Store(tmp_path, machine.identity())
    for job in plan((Subject.SCC, Subject.APMC), Scale.SMALL, machine):
        store.put(job, record_of(job))
    done = CliRunner().invoke(command.command, ["apmc", "--into", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Sampled paths" in done.output
    assert "Strongly connected" not in done.output
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    # Graphs are decomposed for both tables at once.
    assert {table["name"] for table in found["tables"]} == {"scc", "mec", "apmc", "apmc_workers"}
    for name in ("scc", "apmc"):
        assert (tmp_path / f"{name}.csv").is_file()


def test_a_report_alone_measures_nothing_and_keeps_what_machines_lacked(monkeypatch, tmp_path):
    machine = host()
    monkeypatch.setattr(command, "examine", lambda *_: machine)
    store = Store(tmp_path, machine.identity())
    lacking = "needs 2 GPUs, and there is 1"
    for job in plan((Subject.HERMAN,), Scale.SMALL, machine):
        refused = job.parameters.get("gpus", 0) > 1
        store.put(job, {"status": "refused", "message": lacking} if refused else record_of(job))
    words = ["herman", "--report", "--into", str(tmp_path)]
    done = CliRunner().invoke(command.command, words)
    assert done.exit_code == 0, done.output
    assert "0 jobs" in done.output
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert lacking in report
    assert "not measured" not in report


@pytest.mark.prism
@pytest.mark.slow
def test_an_interrupted_run_reports_and_goes_on(prism_install, tmp_path):
    words = [sys.executable, "-m", "bridge", "reproduce", "scc", "--device", "cpu"]
    words += ["--into", str(tmp_path)]
    environment = {**os.environ, "PRISM_DIR": str(prism_install.root)}
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    rows = tmp_path / "rows"
    with subprocess.Popen(words, env=environment, **quiet) as process:
        while len(list(rows.glob("*.json"))) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 130, output
    assert "goes on from here" in output
    kept = {file: file.stat().st_mtime_ns for file in rows.glob("*.json")}
    assert 2 <= len(kept) < 10
    assert (tmp_path / "report.html").is_file()
    done = subprocess.run(words, env=environment, check=False, timeout=300, **quiet)
    assert done.returncode == 0, done.stdout
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items())
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(found["results"]) == 11
    assert found["provenance"]["versions"]["PRISM"]
