"""The embedded front end: Storm's parser and builder as the source of a model.

`build_model` builds a model of the PRISM language without PRISM and Java; `unavailable` says what
is missing for it. Storm itself (the package stormpy) runs in a process of its own.
"""

from __future__ import annotations

from bridge.storm.build import build_model
from bridge.storm.process import import_failure, unavailable

__all__ = ["build_model", "import_failure", "unavailable"]
