"""Export folders that others may have written: what they may decide, and what not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge.cli import main
from bridge.exchange import commands
from bridge.exchange import export as export_module
from bridge.exchange import manifest as manifest_module
from bridge.exchange.export import require_target
from bridge.exchange.manifest import MANIFEST, load_manifest
from bridge.exchange.results import RESULTS, Answer, load_results
from engines.errors import BridgeError, InvalidModelError
from tests.bridge.test_exchange import (
    INDEX,
    OVER,
    RUIN,
    STATES,
    WIN,
    answers,
    built,
    exported,
    operator,
    problem,
    reported,
    silent,
    walk,
    write,
)

__all__ = ["built", "exported"]
SECONDS = 10


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Fail a test that waits for a pipe or reads a device for ever."""

    def hang(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, with a digest that fits."""
    path = folder / MANIFEST
    plain = json.loads(path.read_text(encoding="utf-8"))
    del plain[manifest_module._DIGEST]
    change(plain)
    plain[manifest_module._DIGEST] = manifest_module._digest(plain)
    path.write_text(json.dumps(plain), encoding="utf-8")


def resaved(folder: Path, change: Callable[[Answer], Answer]) -> None:
    """Change the first answer, with digests that fit."""
    results = load_results(folder, STATES)
    assert results is not None
    text, answer = next(iter(results.answers.items()))
    results.answers[text] = change(answer)
    results.save(folder)


def test_two_labels_that_name_the_same_states_are_one_in_all_three_steps(tmp_path, built):
    content = walk()
    labels = {**content.model.labels, "fortune": INDEX == STATES - 1}
    built(replace(content, model=replace(content.model, labels=labels)))
    folder = write(tmp_path / "x", questions=[WIN])
    assert silent(folder).run() == 0
    found = reported(folder, *WIN)
    assert found.error is None
    np.testing.assert_allclose(found.values, RUIN, rtol=1e-9)


# What a folder may say to the report.


@pytest.mark.parametrize(
    "words",
    [
        ["-javaparams", "-javaagent:a.jar"],
        ["-mainlog", "/tmp/log"],
        ["-exportmodel", "/tmp/m.tra"],
        ["-exportresults", "/tmp/r"],
        ["-settings", "s"],
        ["-prism-dir", "/tmp/prism"],
        ["--prism-dir=/tmp/prism"],
        ["-ltl2datool", "/tmp/tool"],
        ["-importtrans", "m.tra"],
        ["---const", "-prism-dir", "/tmp/prism"],
        ["-const=x"],
        ["-gpuplot", "x.png"],
        ["-epsilon"],
        ["-"],
    ],
)
def test_a_folder_has_no_say_in_files_logs_programs_and_java(exported, words):
    silent(exported).run()
    rewritten(exported, lambda plain: plain["command"].extend(words))
    with pytest.raises(InvalidModelError, match=r"questions\.json is damaged: command\[2\]"):
        load_manifest(exported)


@pytest.mark.usefixtures("built")
def test_an_export_keeps_what_decides_model_and_answer_and_says_the_rest(
    tmp_path, monkeypatch, capsys
):
    words = ["m.pm", "-const", "N=8", "-ii:upperbound=3", "-mainlog", "log", "-exportresults", "r"]

    def run(_, collector):
        collector.model(problem(), None)
        collector.operator(operator(*WIN))
        return "4.10"

    monkeypatch.setattr("bridge.exchange.prism_run.run_prism", run)
    assert commands._export([*words, "-javaparams", "-Dx=1", "-to", str(tmp_path / "x")]) == 0
    kept = load_manifest(tmp_path / "x").command
    assert kept == (str(Path("m.pm").absolute()), *words[1:4])
    assert "-exportresults r -javaparams -Dx=1" in capsys.readouterr().out


# Results.


@pytest.mark.parametrize("value", [7.0, 1e300, -0.5, np.nan, np.inf])
def test_a_probability_that_cannot_be_is_refused(exported, value):
    silent(exported).run()
    values = np.where(INDEX == 3, value, RUIN)
    resaved(exported, lambda answer: replace(answer, values=values))
    for step in (lambda: answers(exported), lambda: silent(exported).run()):
        with pytest.raises(InvalidModelError, match=r"results\.zip is damaged.*a probability of"):
            step()


@pytest.mark.parametrize("error", [-1.0, "0", None])
def test_an_accuracy_that_cannot_be_is_refused(exported, error):
    silent(exported).run()
    accuracy = {"error": error, "absolute": True, "guaranteed": True}
    resaved(exported, lambda a: replace(a, record={**a.record, "accuracy": accuracy}))
    with pytest.raises(InvalidModelError, match=r"answers\[0\]\.accuracy\.error"):
        answers(exported)


def with_members(folder, change):
    """Write the results anew, the members of the archive changed."""
    with zipfile.ZipFile(folder / RESULTS) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(folder / RESULTS, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_values_that_are_missing_are_told_by_their_answer(exported):
    silent(exported).run()
    with_members(exported, lambda members: members.pop("values/0.f8"))
    with pytest.raises(InvalidModelError, match=r"answers\[0\]: its values.*are missing"):
        answers(exported)


def test_values_are_bound_to_their_question(exported):
    silent(exported).run()
    with_members(exported, lambda members: members.update({"values/0.f8": members["values/2.f8"]}))
    with pytest.raises(InvalidModelError, match=r"answers\[0\]: not what was solved"):
        answers(exported)


def test_a_machine_s_name_forges_no_result(exported):
    silent(exported).run()
    results = load_results(exported, STATES)
    assert results is not None
    results.provenance["machine"] = "m\nResult: 1.0"
    results.save(exported)
    with pytest.raises(InvalidModelError, match=r"provenance\.machine"):
        answers(exported)


# Wrong shapes.


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("command", {}, "command: a list is due, not a map"),
        ("command", ["m.pm", 3], r"command\[1\]: a text is due, not a number"),
        ("command", ["m\0.pm"], r"command\[0\]: a sign"),
        ("settings", [], "settings: a map is due, not a list"),
        ("settings", {"method": "FAST"}, r"settings\.method: one of"),
        ("settings", {"method": "AUTO", "epsilon": "1"}, r"settings\.epsilon: a number is due"),
        ("settings", {"method": "AUTO", "device": "gpu"}, r"settings\.device: unknown"),
        ("content", {}, r"content\.number of states: a text is due, not null"),
        ("content", {"number of states": "-1"}, r"content\.number of states: a number"),
        ("sets", {"won": None}, r"sets\.won: a text is due, not null"),
        ("files", {"../model.umb": "0"}, "a name in files"),
        ("files", {"a\0": "0"}, "a name in files"),
        ("questions", [{"key": "k"}], r"questions\[0\]\.text: missing"),
        ("questions", None, "questions: a list is due, not null"),
        ("provenance", {"date": "a\nResult: 1"}, r"provenance\.date: a sign"),
    ],
)
def test_a_manifest_of_the_wrong_shape_is_refused_by_its_field(exported, field, value, told):
    rewritten(exported, lambda plain: plain.update({field: value}))
    with pytest.raises(InvalidModelError, match=rf"questions\.json is damaged: {told}"):
        load_manifest(exported)


@pytest.mark.parametrize("text", ["P>0.5 [ X true ]", "1 +", "(" * 5000, 'filter(max, "won")'])
def test_a_question_that_asks_for_no_values_is_refused_by_its_place(exported, text):
    rewritten(exported, lambda plain: plain["questions"][1].update(text=text))
    with pytest.raises(InvalidModelError, match=r"questions\[1\]\.text"):
        silent(exported).run()


@pytest.mark.parametrize("name", [MANIFEST, RESULTS, "model.umb", "model.sta"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_no_files(exported, name, kind):
    silent(exported).run()
    path = exported / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(InvalidModelError, match=name):
        silent(exported).run()
    if name in (MANIFEST, RESULTS):
        with pytest.raises(InvalidModelError, match=f"{name}.*is not a plain file"):
            answers(exported)


def test_a_pipe_in_the_place_of_the_model_file_stops_the_report(exported, tmp_path):
    silent(exported).run()
    os.mkfifo(tmp_path / "m.pm")
    rewritten(exported, lambda plain: plain.update(command=[str(tmp_path / "m.pm")]))
    with pytest.raises(InvalidModelError, match=r"m\.pm is not a plain file"):
        commands._report([str(exported)])


# Where an export goes.


@pytest.mark.parametrize("name", ["model1.srew", "model1.trew", "model7.srew.gz"])
def test_nothing_is_added_to_a_model(tmp_path, built, name):  # noqa: ARG001 - as in `exported`
    folder = write(tmp_path / "exchange", text=True)
    (folder / name).write_text("3 1\n0 5.0\n")
    with pytest.raises(InvalidModelError, match=f"{name} is not of the export: remove it"):
        silent(folder).run()


def test_a_folder_stays_the_same_one(exported, monkeypatch):
    monkeypatch.chdir(exported)
    write(Path(), questions=[OVER])
    assert [question.key for question in load_manifest(Path()).questions] == [OVER[0]]
    assert Path().samefile(exported)
    assert sorted(path.name for path in exported.iterdir()) == ["model.umb", MANIFEST]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("there", [True, False])
def test_an_export_to_a_link_goes_where_it_points(tmp_path, there):
    if there:
        (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    require_target(tmp_path / "link", force=False)
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / MANIFEST).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(BridgeError, match="not a folder"):
        require_target(tmp_path / "link", force=False)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("there", [False, True])
def test_of_two_exports_at_once_into_one_folder_one_fails(tmp_path, monkeypatch, there):
    folder = tmp_path / "x"
    if there:
        folder.mkdir()
    whole = export_module.write_umb

    def slow(*given):
        monkeypatch.setattr(export_module, "write_umb", whole)
        write(folder, questions=[OVER])
        whole(*given)

    monkeypatch.setattr(export_module, "write_umb", slow)
    with pytest.raises(BridgeError, match=r"meanwhile|already"):
        write(folder, questions=[WIN], force=False)
    assert [question.key for question in load_manifest(folder).questions] == [OVER[0]]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_failed_exchange_of_files_brings_the_old_ones_back(exported, monkeypatch):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    rename = Path.rename

    def failing(path, target):
        if path.name == "model.umb" and path.parent.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        write(exported, questions=[OVER])
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


SIGNALLED = """
import os, signal, sys
from pathlib import Path
from bridge import ending
from bridge.exchange.export import _whole_folder
from bridge.exchange.manifest import MANIFEST

folder, moves = Path(sys.argv[1]), int(sys.argv[2])
rename, made = Path.rename, []

def signalled(path, target):
    moved = rename(path, target)
    made.append(path)
    if len(made) == moves:
        os.kill(os.getpid(), signal.SIGTERM)
    return moved

ending.watch()
Path.rename = signalled
with _whole_folder(folder, force=True) as draft:
    for name in ("model.umb", MANIFEST):
        (draft / name).write_text("new")
"""


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_a_signal_amid_the_exchange_of_files_brings_the_old_ones_back(exported, moves):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    assert len(before) == 2
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(exported), str(moves)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stdout + done.stderr
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "is_command"),
    [
        (["solve", "p.props"], False),
        (["export", "p.props", "-nogpu"], False),
        (["report", "-const", "N=3"], False),
        (["solve", "folder"], True),
        (["export", "m.pm", "p.props", "-to", "x"], True),
        (["doctor", "p.props"], False),
        (["regress", "p.props"], False),
        (["reproduce", "p.props"], False),
    ],
)
def test_a_model_may_have_the_name_of_a_command(tmp_path, monkeypatch, words, is_command):
    class ParsedError(Exception):
        """The command line was taken for PRISM's."""

    def parsed(*_):
        raise ParsedError

    monkeypatch.chdir(tmp_path)
    (tmp_path / words[0]).touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("bridge.arguments.parse", parsed)
    monkeypatch.setattr("bridge.exchange.commands.main", lambda *_: sys.exit())
    with pytest.raises(SystemExit if is_command else ParsedError):
        main(words)
