"""The example models: what the Herman generator writes, and what PRISM makes of the models.

Expected numbers. States and transitions: herman has 2^N and 3^N + 1; those of cluster and
tandem are what PRISM 4.10.2 builds from its own examples of the same names. Values: herman's
are the closed form for three tokens (McIver and Morgan 2005); cluster's and tandem's come from
a sparse LU solve (Storm 2.0), except cluster 122: PRISM 4.10.2, Gauss-Seidel, epsilon 1e-10.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

MODELS = Path(__file__).parents[2] / "examples" / "models"


def _load_generator() -> Any:
    # examples/ is not a package: the file is run by its path, and loaded by it here.
    spec = importlib.util.spec_from_file_location("herman", MODELS / "herman.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


herman = _load_generator()
slow = pytest.mark.slow


class Report(NamedTuple):
    """What PRISM printed."""

    states: int
    initial: int
    transitions: int
    result: float


@pytest.fixture
def prism(prism_install):
    """Run the installed PRISM on one property of a model and read its report."""

    def check(model: Path, properties: Path, constants: str, method: str, prop: int = 1) -> Report:
        command = [
            str(prism_install.root / "bin" / "prism"),
            *(str(model), str(properties), "-prop", str(prop), "-const", constants),
            *("-sparse", method, "-epsilon", "1e-10", "-maxiters", "100000"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        size = re.search(r"States: +(\d+) \((\d+) initial\)\s+Transitions: (\d+)", run.stdout)
        result = re.search(r"^Result: (\S+)", run.stdout, re.MULTILINE)
        assert size is not None, run.stdout
        assert result is not None, run.stdout
        return Report(*map(int, size.groups()), float(result[1]))

    return check


@pytest.mark.parametrize("n", [3, 5, 15])
def test_herman_has_one_process_for_each_place_in_the_ring(n):
    text = herman.herman_model(n)
    processes = re.findall(r"^module Process(\d+)\n  b(\d+) : \[0\.\.1\];", text, re.MULTILINE)
    assert processes == [(str(i), str(i)) for i in range(1, n + 1)]
    assert text.count("endmodule") == n


@pytest.mark.parametrize("n", [3, 5, 15])
def test_herman_processes_copy_their_left_neighbour_and_close_the_ring(n):
    text = herman.herman_model(n)
    copies = re.findall(r"\[tick\] b(\d+)!=b(\d+) -> \(b\1'=b\2\);", text)
    draws = re.findall(r"\[tick\] b(\d+)=b(\d+) -> 1/2 : \(b\1'=0\) \+ 1/2 : \(b\1'=1\);", text)
    ring = [("1", str(n))] + [(str(i), str(i - 1)) for i in range(2, n + 1)]
    assert copies == draws == ring
    assert re.findall(r"\(b(\d+)=b(\d+) \? 1 : 0\)", text) == ring


def test_herman_model_declares_what_its_properties_use():
    text = herman.herman_model(5)
    assert text.count("\ndtmc\n") == 1
    assert "const int N = 5;" in text
    assert 'label "stable" = num_tokens=1;' in text
    assert "init\n  true\nendinit" in text
    assert 'rewards "steps"\n  true : 1;\nendrewards' in text


def test_herman_properties_ask_about_every_possible_number_of_tokens():
    text = herman.herman_properties(7)
    for kind in ("slowest", "quickest"):
        assert re.findall(rf'"{kind}_of_(\d+)": .* num_tokens=\1\)', text) == ["1", "3", "5", "7"]
    assert "const" not in text


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 4, 16])
@pytest.mark.parametrize("write", [herman.herman_model, herman.herman_properties])
def test_herman_refuses_a_ring_that_is_even_or_too_small(write, n):
    with pytest.raises(ValueError, match=f"odd number of processes, at least 3; got {n}$"):
        write(n)


def test_command_prints_the_model():
    command = [sys.executable, str(MODELS / "herman.py"), "3"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == herman.herman_model(3)
    assert run.stderr == ""


def test_command_writes_model_and_properties_to_files(tmp_path):
    model, properties = tmp_path / "ring.pm", tmp_path / "ring.props"
    model.write_text("an older and longer file\n" * 1000)
    for arguments in (["5", "-o", str(model)], ["5", "--properties", "-o", str(properties)]):
        outcome = CliRunner().invoke(herman.main, arguments)
        assert (outcome.exit_code, outcome.output) == (0, "")
    assert model.read_text() == herman.herman_model(5)
    assert properties.read_text() == herman.herman_properties(5)
    assert sorted(tmp_path.iterdir()) == [model, properties]


def test_command_leaves_the_old_file_when_writing_fails(tmp_path, monkeypatch):
    target = tmp_path / "ring.pm"
    target.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    outcome = CliRunner().invoke(herman.main, ["5", "-o", str(target)])
    assert outcome.exit_code == 1
    assert "No space left on device" in outcome.output
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("ring.pm", "old")]


def test_command_names_the_folder_that_is_missing(tmp_path):
    target = tmp_path / "missing" / "ring.pm"
    outcome = CliRunner().invoke(herman.main, ["5", "-o", str(target)])
    assert outcome.exit_code == 1
    assert str(target) in outcome.output
    assert "No such file or directory" in outcome.output


@pytest.mark.parametrize("n", ["4", "1", "three"])
def test_command_refuses_a_bad_size_and_writes_nothing(tmp_path, n):
    outcome = CliRunner().invoke(herman.main, [n, "-o", str(tmp_path / "ring.pm")])
    assert outcome.exit_code == 2
    assert n in outcome.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(3)
@pytest.mark.prism
@pytest.mark.parametrize(
    "n", [3, 5, 7, 9, 11, pytest.param(13, marks=slow), pytest.param(15, marks=slow)]
)
def test_herman_in_prism(prism, tmp_path, n):
    model = tmp_path / "ring.pm"
    model.write_text(herman.herman_model(n))
    report = prism(model, MODELS / "herman.props", "k=3", "-gs", prop=3)
    assert report[:3] == (2**n, 2**n, 3**n + 1)
    # Three tokens with a, b, c places between them merge after 4abc/N steps on average.
    a, b, c = (n + 2) // 3, (n + 1) // 3, n // 3
    assert report.result == pytest.approx(4 * a * b * c / n, rel=1e-6)


@pytest.mark.prism
def test_herman_properties_in_prism(prism, tmp_path):
    model, properties = tmp_path / "ring.pm", tmp_path / "ring.props"
    model.write_text(herman.herman_model(5))
    properties.write_text(herman.herman_properties(5))
    quickest_of_3 = prism(model, properties, "", "-gs", prop=6).result
    assert quickest_of_3 == pytest.approx(12 / 5, rel=1e-6)  # gaps 1, 1, 3: 4abc/N


@pytest.mark.sampled(3)
@pytest.mark.prism
@pytest.mark.parametrize(
    ("n", "states", "transitions", "premium"),
    [
        (2, 276, 1_120, 0.9999615335623622),
        (4, 820, 3_616, 0.9999212408513785),
        (8, 2_772, 12_832, 0.9998330692674087),
        (16, 10_132, 48_160, 0.9996450888603184),
        (32, 38_676, 186_400, 0.999283368429726),
        (64, 151_060, 733_216, 0.9987027807085669),
        pytest.param(122, 542_676, 2_643_040, 0.997995760087154, marks=slow),
    ],
)
def test_cluster_in_prism(prism, n, states, transitions, premium):
    report = prism(MODELS / "cluster.sm", MODELS / "cluster.csl", f"N={n}", "-gs")
    assert report[:3] == (states, 1, transitions)
    # The complement is the small number: compare that, too.
    assert report.result == pytest.approx(premium, rel=1e-6)
    assert 1 - report.result == pytest.approx(1 - premium, rel=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.prism
@pytest.mark.parametrize(
    ("c", "states", "transitions", "customers"),
    [
        (3, 28, 71, 3.4890773983118835),
        (7, 120, 363, 7.7465621853360425),
        (15, 496, 1_619, 15.798592927169759),
        (31, 2_016, 6_819, 31.815003885151288),
        (63, 8_128, 27_971, 63.82261574454208),
        (127, 32_640, 113_283, 127.82629083732209),
        pytest.param(255, 130_816, 455_939, 255.82809698041956, marks=slow),
    ],
)
def test_tandem_in_prism(prism, c, states, transitions, customers):
    # Forward Gauss-Seidel never converges on this model; backward Gauss-Seidel does.
    report = prism(MODELS / "tandem.sm", MODELS / "tandem.csl", f"c={c}", "-bgs")
    assert report[:3] == (states, 1, transitions)
    assert report.result == pytest.approx(customers, rel=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.prism
@pytest.mark.parametrize(("base", "first"), [(2, 2), (4, 4), (3, 5), (5, 2)])
def test_tandem_in_digits_is_the_same_chain(prism_install, tmp_path, base, first):
    written = []
    for model, constants in (
        ("tandem.sm", f"c={base * first - 1}"),
        ("tandem_digits.sm", f"b={base},h={first}"),
    ):
        file = tmp_path / model
        command = [str(prism_install.root / "bin" / "prism"), str(MODELS / model)]
        command += ["-const", constants, "-exporttrans", str(file)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        written.append(file.read_text(encoding="utf-8"))
    assert written[0] == written[1]
