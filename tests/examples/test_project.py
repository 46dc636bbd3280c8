"""What a project is expected to have: its versions agree, and its files are what they are named."""

from __future__ import annotations

import importlib
import re
import tomllib

import yaml

import prism_gpu
from bridge.versions import OWN_VERSION
from tests.examples.doc_blocks import ROOT


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_one():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    cited = re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)
    newest = re.search(r"^## (\d+\.\d+\.\d+)", text("CHANGELOG.md"), re.MULTILINE)
    assert project["version"] == OWN_VERSION == prism_gpu.__version__
    assert cited[1] == newest[1] == OWN_VERSION


def test_the_citation_is_one():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "authors", "message", "license"} <= set(citation)
    assert all(reference["title"] for reference in citation["references"])


def test_issue_templates_begin_with_their_name():
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) >= 3
    for template in templates:
        head = template.read_text(encoding="utf-8").split("---\n")[1]
        assert re.search(r"^name: \S", head, re.MULTILINE), template
        assert re.search(r"^about: \S", head, re.MULTILINE), template


def test_the_set_up_asks_modules_that_are_there():
    asked = re.findall(r"from (\S+) import (\w+)", text("setup.sh"))
    assert len(asked) >= 2
    for module, name in asked:
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^   (\w+)$", text("docs/api.rst"), re.MULTILINE)
    assert sorted([*listed, "__version__"]) == sorted(prism_gpu.__all__)


def test_every_public_name_says_what_it_is():
    for name in prism_gpu.__all__:
        if name != "__version__":
            assert getattr(prism_gpu, name).__doc__.strip(), name
