"""The paper's forward-backward searches on a GPU find the textbook's components."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.reproduce.forward_backward import VARIANTS, ForwardBackward
from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.graphs import generate
from bridge.reproduce.textbook import Textbook, numbered


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("family", ["wlan", "phil", "coin", "leader", "firewire_dl"])
def test_every_variant_finds_tarjan_s_components(name, family):
    model = generate(GENERATED[family](0.002))
    labels, count = ForwardBackward(model, VARIANTS[name]).strong_components()
    wanted, found = Textbook(model).strong_components()
    assert count == found
    np.testing.assert_array_equal(labels, numbered(wanted, found))
