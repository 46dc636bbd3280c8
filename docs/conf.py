"""The documentation's site: `python -m sphinx -W -b html docs build/site`.

The Markdown pages are read as they are on a code host; what only the site has is in .rst. The
gallery (`examples/gallery`) and the notebooks (`examples/notebooks`) are executed as it is built.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent
# Of this checkout, whatever is installed; the notebooks' kernels are processes of their own.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
)

from bridge.versions import OWN_VERSION  # noqa: E402 - from the checkout

project = "prism-gpu"
author = "the prism-gpu authors"
version = release = OWN_VERSION
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/README.md", "README.md", "copied/*", "gallery/*.ipynb", "gallery/*.py"]
suppress_warnings = ["config.cache"]
default_role = "py:obj"
highlight_language = "none"
templates_path = ["_templates"]

myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# On a busy machine progress bars are shown, which say nothing afterwards.
nb_output_stderr = "remove"

autosummary_generate = True
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "FloatArray", "IndexArray", "MaskArray")
}
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "reference_url": {"prism_gpu": None},
    "copyfile_regex": r"README\.rst",
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "prism-gpu"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "api": ["sidebar-nav-bs"]}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "logo": {"text": "prism-gpu"},
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
}
copyright = f"{author}; GPL-2.0-or-later"


COPIED = {
    HERE / "README.md": "README.md",
    HERE / "measurements" / "README.md": "MEASUREMENTS.md",
    ROOT / "CONTRIBUTING.md": "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md": "CHANGELOG.md",
}
"""Pages that a code host shows for a folder, and what the site includes them as."""


def as_on_the_site(text: str) -> str:
    """Return Markdown with its links to files beside the documentation led elsewhere.

    Parameters
    ----------
    text
        A page; links in it are relative to `docs/`, or, in CONTRIBUTING.md and CHANGELOG.md, to
        the folder above.
    """
    for name in ("contributing", "changelog"):
        text = re.sub(rf"\]\((\.\./)*{name.upper()}\.md", f"]({name}.rst", text)
    # Folders of sources are no part of the site.
    text = re.sub(r"\[([^\]]+)\]\((?:\.\./)*(?:examples|tests)[^)]*\)", r"\1", text)
    text = text.replace("measurements/README.md", "measurements/index.rst")
    return text.replace("](docs/", "](")


def on_source_read(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Lead the links of a page elsewhere, in place."""
    source[0] = as_on_the_site(source[0])


def on_signature(*event: Any) -> tuple[str, str | None]:
    """Return a signature with the bare names of aliases, which Sphinx wraps inside of unions."""
    return tuple(
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in event[-2:]
    )


def setup(app: Sphinx) -> None:
    """Bring what lies beside the documentation, and languages that Pygments has not.

    Parameters
    ----------
    app
        Sphinx.
    """
    (HERE / "copied").mkdir(exist_ok=True)
    for page, name in COPIED.items():
        text = as_on_the_site(page.read_text(encoding="utf-8"))
        (HERE / "copied" / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "notebooks", HERE / "notebooks", dirs_exist_ok=True)
    app.add_lexer("prism", TextLexer)
    app.connect("source-read", on_source_read)
    app.connect("autodoc-process-signature", on_signature)
