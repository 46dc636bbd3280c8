"""What a command line of `regress` asks for."""

import pytest

from bridge.own_switches import UsageError
from bridge.regress.plan import cases_of, with_absolute_files
from bridge.regress.solvers import BOUNDS, OUR_ENGINES, PRISM_ENGINES, named
from engines.errors import UnsupportedError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "auto").write_text(
        "prism a.pm a.pctl -const N=1 -s\n"
        "prism a.pm a.pctl -const N=2 -epsilon 1e-8\n"
        "prism a.pm a.pctl -prop 2\n"
        "prism a.pm a.pctl -sim\n"
    )
    (tmp_path / "b.prism").write_text("dtmc")
    (tmp_path / "b.prism.props").write_text("P=?[F true]")
    (tmp_path / "c.prism").write_text("dtmc")
    return tmp_path


def test_engines_and_exports_of_a_command_line_are_left_out_and_other_switches_kept(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pm").write_text("dtmc")
    words = [
        "a.pm",
        "a.pctl",
        "-sparse",
        "-const",
        "N=1",
        "-exportresults",
        "x",
        "-epsilon",
        "1e-9",
    ]
    (case,) = cases_of([*words, "-gpuformat", "csr", "-gpu", "-exact", "-m", "-timeout", "3"])
    assert case.words == ("a.pm", "a.pctl", "-const", "N=1", "-epsilon", "1e-9")
    assert case.own == ("-gpuformat", "csr")
    assert case.words_for(PRISM_ENGINES["sparse"]) == (*case.words, "-sparse")
    assert case.words_for(OUR_ENGINES["cpu:explicit"])[-4:] == (
        *("-gpuformat", "csr"),
        *("-nogpu", "-explicit"),
    )
    # What decides has a threshold of its own.
    assert "1e-9" not in case.words_for(BOUNDS)
    assert "N=1" in case.words_for(BOUNDS)


def test_a_folder_holds_its_lists_and_the_models_beside_their_properties(folder):
    cases = cases_of([str(folder), "-javamaxmem", "2g"])
    assert [case.name for case in cases] == [
        ".: b.prism b.prism.props",
        "sub: a.pm a.pctl -const N=1 -s",
        "sub: a.pm a.pctl -const N=2 -epsilon 1e-8",
        "sub: a.pm a.pctl -prop 2",
        "sub: a.pm a.pctl -sim",
    ]
    assert all(case.words[-2:] == ("-javamaxmem", "2g") for case in cases)
    assert cases[1].folder == folder / "sub"
    assert [bool(case.left_out) for case in cases] == [False, False, False, False, True]


def test_only_the_first_run_of_the_same_properties_is_taken_where_that_is_asked_for(folder):
    names = [case.name for case in cases_of([str(folder / "sub" / "auto")], first=True)]
    assert names == [
        "auto: a.pm a.pctl -const N=1 -s",
        "auto: a.pm a.pctl -prop 2",
        "auto: a.pm a.pctl -sim",
    ]


def test_cases_are_chosen_by_name(folder):
    assert [case.name for case in cases_of([str(folder)], "N=2")] == [
        "sub: a.pm a.pctl -const N=2 -epsilon 1e-8"
    ]


@pytest.mark.parametrize(
    ("words", "only", "message"),
    [
        (["-const", "N=1"], "", "Name a model"),
        (["nowhere.pm", "p"], "", '"nowhere.pm" not found'),
        (["{}"], "nothing", "nothing to compare called nothing"),
        (["{}"], "(", "no regular expression"),
        (["{}", "more"], "", "stands alone"),
    ],
)
def test_what_cannot_be_found_is_told(folder, words, only, message):
    with pytest.raises(UsageError, match=message):
        cases_of([word.format(folder) for word in words], only)


def test_one_run_that_cannot_be_compared_is_refused(folder):
    with pytest.raises(UnsupportedError, match="simulation, whose results are random"):
        cases_of([str(folder / "b.prism"), "p", "-sim"])


def test_a_run_without_properties_is_none(folder):
    model = str(folder / "b.prism")
    with pytest.raises(UnsupportedError, match="names no properties"):
        cases_of([model, "-const", "N=1"])
    assert cases_of([model, "-pf", "P=? [ F true ]"])
    assert cases_of([model, "b.prism.props"])


def test_files_are_found_from_any_folder(tmp_path):
    words = ("a.pm", "-const", "N=1", "/b.pctl", "-importlabels", "a.lab", "-importpepa")
    assert with_absolute_files(words, tmp_path) == (
        *(str(tmp_path / "a.pm"), "-const", "N=1", "/b.pctl"),
        *("-importlabels", str(tmp_path / "a.lab"), "-importpepa"),
    )


def test_engines_are_named_once_and_by_their_names():
    assert [item.name for item in named("exact, sparse", PRISM_ENGINES, "--engines")] == [
        "exact",
        "sparse",
    ]
    for text, message in (
        ("fast", '"fast" is no engine'),
        (",", "none|no"),
        ("sparse,sparse", "twice"),
    ):
        with pytest.raises(UsageError, match=message):
            named(text, PRISM_ENGINES, "--engines")
