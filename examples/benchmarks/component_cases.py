"""The cases of the component benchmark: PRISM's own models and generated graphs, ten families.

The graphs and the figures of the paper are those of `prism-gpu reproduce`: tables 1 and 2 of Wijs,
Katoen, Bošnački (2014), GPU-based graph decomposition into strongly connected and maximal end
components: an Intel E5-2620, 2.0 GHz, and an NVIDIA K20m. The GPU's columns are F0,7 and GM there.
"""

from __future__ import annotations

from bridge.reproduce.graph_families import (
    GENERATED,
    MODELS,
    PrismModel,
    source_of,
    with_processes,
)
from bridge.reproduce.published import PublishedComponents, components_2014

__all__ = [
    "GENERATED",
    "MODELS",
    "PAPER",
    "PrismModel",
    "PublishedComponents",
    "source_of",
    "with_processes",
]

PAPER = components_2014()
"""By family: what the paper says about it."""
