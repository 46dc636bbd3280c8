"""How much later than PRISM's own command ours is done with a small model."""

from __future__ import annotations

import statistics
import time

import pytest

pytestmark = [pytest.mark.prism, pytest.mark.slow]

ALLOWED_SECONDS = 0.7


def median_seconds(run_one, words: list[object]) -> float:
    """Return the median wall time of five runs, after one that warms up."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        assert run_one(*words).code == 0
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("simple/dice/dice.pm", "P=? [ F d=1 ]"),
        ("dtmcs/herman/herman7.pm", 'filter(max, R=? [ F "stable" ])'),
        ("mdps/consensus/coin2.nm", 'Pmin=? [ F "finished" & "all_coins_equal_0" ]'),
    ],
    ids=["dice", "herman7", "coin2"],
)
def test_a_warm_start_is_hardly_slower_than_prism_s(
    prism_gpu, prism, prism_examples, model, text, monkeypatch
):
    # A start is warm once Python has kept what it compiled, as PRISM's classes are.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    words = [prism_examples / model, "-pctl", text]
    words += ["-const", "K=2"] if "coin" in model else []
    ours = median_seconds(prism_gpu, words)
    theirs = median_seconds(prism, words)
    assert ours - theirs <= ALLOWED_SECONDS, (ours, theirs)
