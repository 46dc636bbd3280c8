"""Some hundred damaged model files, checked by the command; see `fuzz_checked`."""

from __future__ import annotations

import pytest

from tests.bridge.files.fuzz_checked import fuzz


@pytest.mark.parametrize(("umb", "inputs"), [(True, 200), (False, 100)], ids=["umb", "text"])
def test_a_damaged_model_file_has_results_or_an_error_that_names_it(umb, inputs, tmp_path):
    seen = fuzz(inputs, 7, umb, tmp_path)
    assert sum(seen.values()) == inputs
    assert any("results" in outcome for outcome in seen)
    assert any("refused" in outcome for outcome in seen)
