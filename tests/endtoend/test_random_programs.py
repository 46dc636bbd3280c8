"""Random programs: every state's value by our engines, held against all of PRISM's."""

from __future__ import annotations

import json

import pytest

from tests.endtoend.random_programs import Program

pytestmark = pytest.mark.prism

FEW, MANY = 5, 60
PROPERTIES = 8
SWITCHES = {"default": (), "ii": ("-ii",), "topological": ("-topological",), "nopre": ("-nopre",)}


def outcomes(run, folder, seeds, *switches) -> dict[str, list[str]]:
    """Return the questions by what became of them."""
    for seed in seeds:
        program = Program(seed)
        (folder / f"m{seed}.prism").write_text(program.text())
        (folder / f"m{seed}.props").write_text(program.properties(PROPERTIES))
    report = folder / "report.json"
    words = ("--reuse", "--timeout", 20, "--json", report, "-javamaxmem", "1g", *switches)
    done = run("regress", folder, *words, timeout=1500)
    assert report.exists(), done.output + done.errors
    found: dict[str, list[str]] = {}
    for case in json.loads(report.read_text())["cases"]:
        for verdict in case["verdicts"]:
            name = f"{case['name']}: {verdict['question']}"
            found.setdefault(verdict["outcome"], []).append(name)
    return found


def test_a_few_programs_have_the_values_that_prism_has(prism_gpu, tmp_path):
    found = outcomes(prism_gpu, tmp_path, range(FEW))
    assert found.get("ours wrong", []) == []
    assert len(found["agree"]) > FEW * PROPERTIES / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SWITCHES)
def test_many_programs_have_the_values_that_prism_has(prism_gpu, tmp_path, name):
    found = outcomes(prism_gpu, tmp_path, range(MANY), *SWITCHES[name])
    assert found.get("ours wrong", []) == []
    assert len(found["agree"]) > MANY * PROPERTIES / 2
