"""Where a transition matrix has entries: what Figure 5.3 of the thesis draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridge.reproduce.tasks.models import built
from bridge.reproduce.worker import Partial, Record


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return how many entries lie in each field of a grid that is laid over the matrix.

    Parameters
    ----------
    parameters
        "family", "size", "bins" (fields along a side), "front_end".
    partial
        Unused.
    """
    del partial
    model = built(parameters["family"], parameters["size"], parameters["front_end"])
    matrix, bins = model.matrix, min(int(parameters["bins"]), model.num_states)
    # In whole numbers: a field of row r is ⌊r · bins / states⌋.
    rows = matrix.row_of_entry().astype(np.int64) * bins // matrix.num_rows
    columns = matrix.columns.astype(np.int64) * bins // matrix.num_columns
    fields = np.bincount(rows * bins + columns, minlength=bins * bins)
    return {
        "states": model.num_states,
        "transitions": matrix.num_entries,
        "bins": bins,
        "fields": fields.tolist(),
    }
