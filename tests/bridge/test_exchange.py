"""Export, solve, report, without PRISM: what Java would ask is asked by plain objects."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.check.accuracy import Accuracy
from bridge.check.outcome import Outcome
from bridge.exchange import export as export_module
from bridge.exchange import report as report_module
from bridge.exchange.content import BuiltContent, differences, digests
from bridge.exchange.export import Collector, require_target, write_export
from bridge.exchange.manifest import MANIFEST, load_manifest
from bridge.exchange.report import Answers, matching_results
from bridge.exchange.results import RESULTS, load_results
from bridge.exchange.solve import Solver
from bridge.files.checkable import read_checkable
from bridge.model import NamedRewards
from engines.errors import BridgeError, InvalidModelError, UnsupportedError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from prism_hooks.options import HookOptions

STATES = 9
INDEX = np.arange(STATES)
RUIN = INDEX / (STATES - 1)
"""The probability that a fair gambler wins all, from each fortune."""
DURATION = INDEX * (STATES - 1 - INDEX.astype(float))
"""Expected number of bets until the fair game is over."""


def walk() -> BuiltContent:
    """Return the fair gambler's walk, absorbed at both ends, with a reward of 1 a bet."""
    columns, offsets = [0], [0, 1]
    for state in range(1, STATES - 1):
        columns += [state - 1, state + 1]
        offsets.append(len(columns))
    columns.append(STATES - 1)
    offsets.append(len(columns))
    values = np.full(len(columns), 0.5)
    values[[0, -1]] = 1.0
    matrix = CsrMatrix(np.array(offsets, np.int32), np.array(columns, np.int32), values, STATES)
    earned = np.where((INDEX > 0) & (INDEX < STATES - 1), 1.0, 0.0)
    model = ExplicitModel(
        ModelKind.DTMC,
        matrix,
        initial_states=INDEX == 4,
        labels={"init": INDEX == 4, "deadlock": np.zeros(STATES, bool), "won": INDEX == STATES - 1},
        rewards=(RewardStructure("bets", earned),),
    )
    return BuiltContent(model, (NamedRewards("bets", model.rewards[0], earned),), "N=8")


def words(*states: int) -> np.ndarray:
    """Return a set of states as `BitSet.toLongArray` gives it."""
    bits = np.zeros(64, bool)
    bits[list(states)] = True
    return np.packbits(bits, bitorder="little").view(np.int64)


def operator(text: str, *sets: np.ndarray, key: str = "") -> SimpleNamespace:
    return SimpleNamespace(
        key=key or text, text=text, sets=list(sets), values=None, error=None, fatal=False,
        errorBound=float("nan"), absolute=False, guaranteed=False, remark=None,
    )  # fmt: skip


WIN = ('P=? [ F "?0" ]', words(STATES - 1))
OVER = ('R{"bets"}=? [ F "?0" ]', words(0, STATES - 1))
QUESTIONS = (WIN, OVER, ('P=? [ X "?0" ]', words(3)))


def problem(model_id: int = 1) -> SimpleNamespace:
    return SimpleNamespace(
        modelId=model_id, direction=None, method="Jacobi", epsilon=1e-12, absolute=False,
        maxIterations=10_000, omega=0.9, intervals=None, topological=False,
        detectsSteadyState=False, say=lambda _: None,
        error=None,
    )  # fmt: skip


@pytest.fixture
def built(monkeypatch) -> Callable[[BuiltContent], None]:
    """Return a function that sets what PRISM has built."""

    def set_built(content: BuiltContent) -> None:
        for module in (export_module, report_module):
            monkeypatch.setattr(module, "read_built", lambda _: content)

    set_built(walk())
    return set_built


@pytest.fixture
def exported(tmp_path, built) -> Path:  # noqa: ARG001 - what is built is needed, not asked for
    return write(tmp_path / "exchange")


def write(folder: Path, *, text: bool = False, questions=QUESTIONS, **options) -> Path:
    collector = Collector(HookOptions())
    collector.model(asked := problem(), None)
    assert asked.error is None
    for question in questions:
        collector.operator(taken := operator(*question))
        assert taken.error is None
    write_export(folder, collector, ("m.pm", "p.props"), "4.10", text=text, **options)
    return folder


def silent(folder: Path, **options) -> Solver:
    return Solver(folder, log=lambda _: None, **options)


def answers(folder: Path) -> Answers:
    manifest = load_manifest(folder)
    return Answers(folder, manifest, matching_results(folder, manifest))


def reported(folder: Path, *question) -> SimpleNamespace:
    report = answers(folder)
    report.model(asked := problem(), None)
    assert asked.error is None, asked.error
    report.operator(found := operator(*question))
    return found


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("text", [False, True])
def test_the_three_steps_give_the_values_of_the_closed_form(tmp_path, text):
    folder = write(tmp_path / "exchange", text=text)
    assert silent(folder).run() == 0
    won, over = reported(folder, *WIN), reported(folder, *OVER)
    np.testing.assert_allclose(won.values, RUIN, rtol=1e-9)
    np.testing.assert_allclose(over.values, DURATION, rtol=1e-9)
    # Halves are added up without rounding.
    assert won.errorBound == 0.0
    assert "by CPU, elimination without subtraction, residual 0.00e+00" in won.remark


@pytest.mark.usefixtures("built")
def test_an_operator_with_a_bound_is_the_question_without_it_and_asked_once(tmp_path):
    folder = write(tmp_path / "x", questions=[WIN, WIN, OVER])
    assert [q.text for q in load_manifest(folder).questions] == [
        'P=? [ F "won" ]',
        'R{"bets"}=? [ F "ap1" ]',
    ]


def test_a_new_set_of_states_gets_a_name_that_no_label_has(tmp_path, built):
    content = walk()
    labels = {**content.model.labels, "ap1": INDEX == 2}
    built(replace(content, model=replace(content.model, labels=labels)))
    folder = write(tmp_path / "x", questions=[('P=? [ "?0" U "?1" ]', words(1, 2), words(2))])
    assert [q.text for q in load_manifest(folder).questions] == ['P=? [ "ap2" U "ap1" ]']


@pytest.mark.parametrize("text", [False, True])
def test_the_rewards_of_states_and_of_a_ctmc_s_transitions_stay_apart(tmp_path, built, text):
    rng = np.random.default_rng(5)
    content = walk()
    matrix = content.model.matrix
    rates = replace(matrix, values=rng.uniform(0.1, 9.0, matrix.num_entries))
    states, expected = rng.uniform(1, 2, STATES), rng.uniform(3, 4, STATES)
    model = replace(content.model, kind=ModelKind.CTMC, matrix=rates)
    built(BuiltContent(model, (NamedRewards("", RewardStructure("", expected), states),), ""))
    read = read_checkable(write(tmp_path / "x", text=text))
    np.testing.assert_allclose(read.model.matrix.values, rates.values, rtol=1e-15)
    np.testing.assert_allclose(read.rewards[0].instantaneous, states, rtol=1e-15)
    np.testing.assert_allclose(read.rewards[0].expected.state_rewards, expected, rtol=1e-12)


@pytest.mark.usefixtures("built")
def test_properties_about_two_models_are_refused():
    collector = Collector(HookOptions())
    collector.model(problem(1), None)
    collector.model(second := problem(2), None)
    assert "several models" in second.error


@pytest.mark.usefixtures("built")
def test_a_property_without_an_operator_leaves_nothing_to_export(tmp_path):
    with pytest.raises(UnsupportedError, match="no P, R or S operator"):
        write(tmp_path / "x", questions=[])
    assert not list(tmp_path.iterdir())


class CountingChecker:
    """Values from a table, or an exception; counts what it is asked."""

    asked: list[str]

    def __init__(self, fault: BaseException | None = None, at: int = -1) -> None:
        self.asked = []
        self._fault, self._at = fault, at

    def __call__(self, model, environment, **_) -> CountingChecker:
        self.settings, self.size = environment, model.model.num_states
        return self

    def outcome(self, expression) -> Outcome:
        if len(self.asked) == self._at and self._fault is not None:
            raise self._fault
        self.asked.append(str(expression))
        return Outcome(np.full(self.size, 1.0 / len(self.asked)), Accuracy(1e-9, absolute=True))


def test_what_is_solved_is_kept_and_only_other_settings_solve_it_again(exported):
    first, again, finer = CountingChecker(), CountingChecker(), CountingChecker()
    silent(exported, make_checker=first).run()
    silent(exported, make_checker=again).run()
    silent(exported, changed=lambda s: replace(s, epsilon=1e-14), make_checker=finer).run()
    assert [len(c.asked) for c in (first, again, finer)] == [3, 0, 3]
    assert finer.settings.epsilon == 1e-14
    assert first.settings.epsilon == 1e-12


def test_an_interrupted_solve_keeps_what_it_has_and_leaves_no_half_file(exported):
    with pytest.raises(KeyboardInterrupt):
        silent(exported, make_checker=CountingChecker(KeyboardInterrupt(), at=2)).run()
    assert sorted(path.name for path in exported.iterdir()) == ["model.umb", MANIFEST, RESULTS]
    rest = CountingChecker()
    assert silent(exported, make_checker=rest).run() == 0
    assert len(rest.asked) == 1


def test_a_question_that_fails_is_an_error_of_its_own_by_name(exported):
    checker = CountingChecker(UnsupportedError("no such thing here"), at=0)
    assert silent(exported, make_checker=checker).run() == 1
    found = reported(exported, *WIN)
    assert found.values is None
    assert not found.fatal
    assert WIN[0] in found.error
    assert "no such thing here" in found.error


def test_an_answer_that_is_missing_makes_the_report_incomplete(exported):
    with pytest.raises(KeyboardInterrupt):
        silent(exported, make_checker=CountingChecker(KeyboardInterrupt(), at=1)).run()
    report = answers(exported)
    report.operator(there := operator(*WIN))
    assert there.values is not None
    assert not report.incomplete
    report.operator(missing := operator(*OVER))
    assert "not solved yet" in missing.error
    assert report.incomplete


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(('P=? [ G "?0" ]', words(STATES - 1)), id="another operator"),
        pytest.param((WIN[0], words(STATES - 2)), id="other states under the same name"),
    ],
)
def test_what_was_not_exported_stops_the_report(exported, question):
    silent(exported).run()
    found = reported(exported, *question)
    assert found.fatal
    assert "not among the operators exported" in found.error


def changed_content(part: str) -> BuiltContent:
    content = walk()
    model, rewards = content.model, content.rewards
    if part == "constants":
        return replace(content, constants="N=9")
    if part == "transitions":
        values = model.matrix.values.copy()
        values[1] = np.nextafter(0.5, 1)
        model = replace(model, matrix=replace(model.matrix, values=values))
    elif part == "initial states":
        model = replace(model, initial_states=INDEX == 5)
    elif part == 'label "won"':
        model = replace(model, labels={**model.labels, "won": INDEX == 0})
    elif part == "reward structure 1":
        rewards = (replace(rewards[0], instantaneous=rewards[0].instantaneous + 1),)
    elif part == 'no label "lost"':
        model = replace(model, labels={**model.labels, "lost": INDEX == 0})
    return replace(content, model=model, rewards=rewards)


@pytest.mark.parametrize(
    "part",
    ["constants", "transitions", "initial states", 'label "won"', "reward structure 1",
     'no label "lost"'],
)  # fmt: skip
def test_another_model_is_refused_and_the_part_that_differs_is_named(exported, built, part):
    silent(exported).run()
    built(changed_content(part))
    answers(exported).model(asked := problem(), None)
    assert "not the one that was exported" in asked.error
    assert asked.error.count(";") == 0
    assert part in asked.error


def test_the_same_model_differs_in_nothing_whatever_the_width_of_its_indices():
    content = walk()
    matrix = content.model.matrix
    wide = replace(
        matrix,
        row_offsets=matrix.row_offsets.astype(np.int64),
        columns=matrix.columns.astype(np.int64),
    )
    other = replace(content, model=replace(content.model, matrix=wide))
    assert not list(differences(digests(content), digests(other)))


# Damage.


@pytest.mark.parametrize("name", ["command", "settings", "content", "sets", "files", "questions"])
def test_an_edited_manifest_is_refused_by_both_machines(exported, name):
    silent(exported).run()
    path = exported / MANIFEST
    plain = json.loads(path.read_text())
    plain[name] = type(plain[name])()
    path.write_text(json.dumps(plain))
    for step in (lambda: silent(exported).run(), lambda: answers(exported)):
        with pytest.raises(InvalidModelError, match="changed after the export"):
            step()


def test_a_manifest_cut_short_anywhere_is_refused(exported):
    path = exported / MANIFEST
    whole = path.read_bytes()
    for size in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidModelError):
            load_manifest(exported)


def test_results_cut_short_anywhere_are_refused(exported):
    silent(exported).run()
    path = exported / RESULTS
    whole = path.read_bytes()
    for size in range(0, len(whole), 11):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidModelError, match="damaged"):
            load_results(exported, STATES)


@settings(max_examples=300)
@given(data=st.data())
def test_a_changed_byte_in_the_results_is_refused_or_changes_no_answer(data, solved_bytes):
    folder, whole, expected = solved_bytes
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    (folder / RESULTS).write_bytes(damaged)
    try:
        found = load_results(folder, STATES)
    except InvalidModelError:
        return
    assert found.export == expected.export
    assert found.answers.keys() == expected.answers.keys()
    for text, answer in expected.answers.items():
        assert found.answers[text].record == answer.record
        np.testing.assert_array_equal(found.answers[text].values, answer.values)


@pytest.fixture(scope="module")
def solved_bytes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_module, "read_built", lambda _: walk())
        folder = write(tmp_path_factory.mktemp("damage") / "exchange")
    silent(folder).run()
    return folder, (folder / RESULTS).read_bytes(), load_results(folder, STATES)


def test_results_of_another_number_of_states_are_refused(exported):
    silent(exported).run()
    with pytest.raises(InvalidModelError, match="bytes"):
        load_results(exported, STATES + 1)


def test_a_changed_or_missing_model_file_is_refused_by_name(exported):
    path = exported / "model.umb"
    whole = path.read_bytes()
    path.write_bytes(whole[:-512])
    with pytest.raises(InvalidModelError, match=r"model\.umb is not the file"):
        silent(exported).run()
    path.unlink()
    with pytest.raises(InvalidModelError, match=r"model\.umb .* cannot be read"):
        silent(exported).run()


def test_results_of_another_export_are_refused_by_the_report_and_replaced_by_a_solve(
    tmp_path, exported, built
):
    silent(exported).run()
    built(changed_content("constants"))
    other = write(tmp_path / "other")
    (other / RESULTS).write_bytes((exported / RESULTS).read_bytes())
    with pytest.raises(InvalidModelError, match="another export"):
        answers(other)
    silent(other).run()
    assert answers(other).incomplete is False


def test_missing_results_say_what_to_run(exported):
    with pytest.raises(InvalidModelError, match="prism-gpu solve"):
        answers(exported)


# Where an export may go.


def test_two_exports_into_one_folder_only_by_force(exported):
    with pytest.raises(BridgeError, match="-force"):
        require_target(exported, force=False)
    require_target(exported, force=True)
    silent(exported).run()
    write(exported, questions=[OVER])
    assert sorted(path.name for path in exported.iterdir()) == ["model.umb", MANIFEST]
    assert [path.name for path in exported.parent.iterdir()] == [exported.name]


def test_what_is_not_an_export_is_never_replaced(tmp_path, exported):
    (exported / "thesis.tex").touch()
    with pytest.raises(BridgeError, match=r"thesis\.tex"):
        require_target(exported, force=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    for place in ("full", "file", "file/below"):
        with pytest.raises(BridgeError, match=place.split("/")[0]):
            require_target(tmp_path / place, force=True)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export_module.os, "access", lambda *_: False)
    with pytest.raises(BridgeError, match="not writable"):
        require_target(tmp_path / "x", force=False)


def test_a_failed_write_leaves_the_old_export_and_no_draft(exported, monkeypatch):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_module, "write_umb", full)
    with pytest.raises(OSError, match="No space"):
        write(exported)
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before
    assert [path.name for path in exported.parent.iterdir()] == [exported.name]


NO_JAVA = """
import sys
class Blocker:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "jpype":
            raise ImportError(f"{name} is not to be needed")
sys.meta_path.insert(0, Blocker())
from bridge.exchange.commands import main
main("solve", sys.argv[1:])
"""


def test_the_solving_machine_needs_neither_java_nor_prism(exported):
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA, str(exported), "-nogpu", "-gpuinfo", "-epsilon", "1e-11"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nonexistent"},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 operators solved" in done.stdout
    assert "residual" in done.stdout
    np.testing.assert_allclose(reported(exported, *WIN).values, RUIN, rtol=1e-8)
