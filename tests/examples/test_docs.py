"""Every example in the documentation is run; see `tests.examples.doc_blocks` for their marks."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.help import HELP
from engines.cuda.driver import gpu_refusal
from tests.examples.doc_blocks import (
    PAGES,
    ROOT,
    SHELL,
    Block,
    blocks_of,
    commands_of,
    missing_line,
)

MOST_NOT_RUN = 11
"""Blocks that may be left out, each for the reason that its mark gives."""
LIMIT_SECONDS = 280
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
EXAMPLES = [block for block in BLOCKS if block.language in (*SHELL, "python")]
COMMANDS = {
    "prism-gpu": f'exec "{sys.executable}" -m bridge "$@"',
    "python": f'exec "{sys.executable}" "$@"',
}


def parameters():
    for block in EXAMPLES:
        if not block.not_run:
            marks = [pytest.mark.slow] if "slow" in block.needs else []
            marks += [pytest.mark.gpu] if "gpu" in block.needs else []
            marks += [pytest.mark.prism] if "prism" in block.needs else []
            yield pytest.param(block, id=block.name, marks=marks)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Return a function that gives each page a folder of its own, in which its blocks follow."""
    made: dict[Path, Path] = {}

    def folder(page: Path) -> Path:
        if page not in made:
            made[page] = tmp_path_factory.mktemp(page.stem)
            furnish(made[page])
        return made[page]

    return folder


def furnish(folder: Path) -> None:
    """Put into a folder what a reader has: the example models, the sources and the commands."""
    for model in (ROOT / "examples" / "models").iterdir():
        if model.is_file() and model.suffix != ".py":
            shutil.copy(model, folder)
    for name in ("examples", "docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    for name, line in COMMANDS.items():
        script = folder / "bin" / name
        script.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        script.chmod(0o755)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    paths = (str(folder / "bin"), os.environ.get("PATH", ""))
    modules = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
        env={
            **os.environ,
            "PATH": os.pathsep.join(filter(None, paths)),
            "PYTHONPATH": os.pathsep.join(filter(None, modules)),
            # A server of an example is its own.
            "XDG_RUNTIME_DIR": str(folder),
            "PRISM_GPU_SERVER": "on",
        },
    )


@pytest.mark.parametrize("block", list(parameters()))
def test_an_example_runs(block: Block, folders, request):
    if "prism" in block.needs:
        request.getfixturevalue("prism_install")
    if "gpu" in block.needs and (reason := gpu_refusal(0)) is not None:
        pytest.skip(f"needs a GPU: {reason}")
    if "plots" in block.needs and importlib.util.find_spec("matplotlib") is None:
        pytest.skip("needs matplotlib")
    folder = folders(block.page)
    if block.language == "console":
        for command, expected in commands_of(block.runnable):
            output = run(["sh", "-c", command], folder).stdout
            lacking = missing_line(expected, output)
            assert lacking is None, f"{command}\nprints no line {lacking!r}, but\n{output}"
        return
    words = ["sh", "-e", "-c"] if block.language in SHELL else [sys.executable, "-c"]
    done = run([*words, block.runnable], folder)
    assert done.returncode == 0, done.stdout
    assert not re.search(r"^Error:|Traceback", done.stdout, re.MULTILINE), done.stdout


def test_few_examples_are_left_out_and_each_says_why():
    left_out = [block for block in EXAMPLES if block.not_run]
    assert len(left_out) <= MOST_NOT_RUN, [block.name for block in left_out]
    assert all(len(block.not_run) > 10 for block in left_out)
    assert len(left_out) < len(EXAMPLES) / 3


def test_what_is_shrunk_is_there():
    for block in EXAMPLES:
        assert block.runnable


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not target.startswith(("http:", "https:")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("folder", [ROOT / "docs", ROOT / "docs" / "measurements"])
def test_the_index_of_a_folder_names_every_page(folder):
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in PAGES if page.parent == folder and page.name != "README.md"]
    assert len(pages) > 5
    for name in pages:
        assert f"({name})" in index, name


def test_every_switch_of_ours_is_explained():
    ours = set(re.findall(r"^--?([a-z-]+)", HELP, re.MULTILINE))
    page = (ROOT / "docs" / "switches.md").read_text(encoding="utf-8")
    table = page.partition("## PRISM's")[0]
    cells = " ".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    explained = set(re.findall(r"(?<![\w-])--?([a-z-]+)", cells))
    assert explained == ours


def test_every_switch_of_prisms_is_explained():
    from bridge.check.switches import (
        ENGINES,
        METHODS,
        PRISM_ONLY,
        WITHOUT_EFFECT,
        WITHOUT_EFFECT_WITH_VALUE,
        known_switches,
    )

    page = (ROOT / "docs" / "switches.md").read_text(encoding="utf-8")
    table = page.partition("## PRISM's")[2]
    explained = set(re.findall(r"(?<![\w-])-([a-z0-9]+)", table))
    everything = {
        *ENGINES, *METHODS, *PRISM_ONLY, *WITHOUT_EFFECT, *WITHOUT_EFFECT_WITH_VALUE,
        *known_switches(),
    }  # fmt: skip
    assert everything - explained == set()


@pytest.mark.prism
def test_no_switch_of_the_installed_prism_is_forgotten(prism):
    listed = re.findall(r"^-(\w+)(?:.*?\(or ([^)]*)\))?", prism("-help").output, re.MULTILINE)
    names = {name for first, others in listed for name in (first, *re.findall(r"-(\w+)", others))}
    page = (ROOT / "docs" / "switches.md").read_text(encoding="utf-8")
    assert len(names) > 150
    assert {name for name in names if f"-{name}" not in page} == set()
