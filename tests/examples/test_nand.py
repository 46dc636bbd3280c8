"""The model of NAND multiplexing: against its stages followed one by one, and its known sizes."""

from __future__ import annotations

import re
from math import comb
from pathlib import Path

import numpy as np
import pytest

from bridge.reproduce.families import FAMILIES
from tests.warm import run_warm

MODEL = Path(__file__).parents[2] / "examples" / "models" / "nand.pm"
FAULT, STIMULATED = 0.02, 0.9


def binomial(count, probability):
    """The distribution of so many wires that carry a 1 each with a probability."""
    ones = np.arange(count + 1)
    ways = np.array([comb(count, one) for one in ones], dtype=float)
    return ways * probability**ones * (1.0 - probability) ** (count - ones)


def gates(count, both):
    """How many outputs are 1 if so many of the gates have two ones as inputs."""
    return np.convolve(binomial(count - both, 1.0 - FAULT), binomial(both, FAULT))


def outputs(count, stages):
    """The distribution of the ones that leave the last stage, shape (count + 1,)."""
    found = sum(
        weight * gates(count, both) for both, weight in enumerate(binomial(count, STIMULATED**2))
    )
    for _ in range(2 * stages):
        after = np.zeros(count + 1)
        for ones, weight in enumerate(found):
            # Two bundles of so many ones, paired at random.
            for both in range(max(0, 2 * ones - count), ones + 1):
                pairs = comb(ones, both) * comb(count - ones, ones - both) / comb(count, ones)
                after += weight * pairs * gates(count, both)
        found = after
    return found


@pytest.mark.parametrize("front_end", [pytest.param("prism", marks=pytest.mark.prism), "builtin"])
@pytest.mark.parametrize(
    ("count", "stages", "states", "transitions"),
    [(5, 1, 930, 1371), (8, 2, 7018, 10446), (20, 1, 78_332, 121_512)],
)
def test_probabilities_are_those_of_the_stages(
    front_end, count, stages, states, transitions, request
):
    where = {}
    if front_end == "prism":
        where["PRISM_DIR"] = str(request.getfixturevalue("prism_install").root)
    words = ["-const", f"N={count},K={stages}", "-frontend", front_end, "-nogpu"]
    asked = ["-pf", 'P=? [ F "reliable" ]', "-epsilon", "1e-10"]
    run = run_warm([str(MODEL), *asked, *words], timeout=200, **where)
    assert run.code == 0, run.output + run.errors
    assert f"States:      {states} " in run.output
    assert re.search(rf"^Transitions: {transitions}$", run.output, re.M)
    result = float(re.search(r"^Result: (\S+)", run.output, re.M)[1])
    left = outputs(count, stages)
    assert left.sum() == pytest.approx(1.0)
    assert result == pytest.approx(left[np.arange(count + 1) / count < 0.1].sum(), rel=1e-9)


def test_the_papers_sizes_are_known():
    family = FAMILIES["nand"]
    assert family.label(2) == "nand N=40, K=2"
    assert family.model(3, Path())[1] == {"N": 40, "K": 3}
    # What the thesis prints, and PRISM builds of its own model.
    assert [family.counts(k)[0] for k in (1, 2, 3, 4)] == [1004862, 2003082, 3001302, 3999522]
    assert [family.counts(k)[1] for k in (1, 2, 3)] == [1581422, 3150462, 4719502]
