"""Lower bounds by path prefixes, with fakes of Java's objects."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scipy.stats import binom

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.monitor import monitor_of
from engines.program import native
from prism_hooks.options import HookOptions
from prism_hooks.simulation import Simulation
from prism_hooks.simulation_device import PlaceTuning
from tests.prism_hooks.test_simulation import Sampling, program, sooner_gpu  # noqa: F401

FORWARDS = [[[0.05], [0, ["v0", 1, "+"]]], [[0.95]]]
"""From 4 on, a step up by chance, up to 8."""
REACHED = {
    "kind": "until", "negated": False, "left": [True], "right": ["v0", 8, "="], "bounded": False,
    "lower": 0, "upper": None,
}  # fmt: skip
NESTED = {
    "kind": "ltl",
    "atoms": [["v0", 6, "="], ["v0", 8, "="]],
    "formula": ["a0", "a1", "F::", "&", "F::"],
}
SAMPLES = 4000


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


def asked(bound: float, *, at_least: bool = True, bounded: bool = True) -> SimpleNamespace:
    return SimpleNamespace(bounded=bounded, atLeast=at_least, bound=bound, ofRewards=False)


def checked(
    question: dict,
    method: SimpleNamespace,
    limit: int = 999,
    device: DeviceChoice = DeviceChoice.CPU,
    places: PlaceTuning = PlaceTuning(),
    **more: object,
) -> Sampling:
    """Have a question judged by a new backend, made ready first as Java does it."""
    options = HookOptions(
        device=device, simulation_seed=3, simulation_method="growing",
        simulation=(("simsamples", str(SAMPLES)), ("simconf", "1e-4")), **more,
    )  # fmt: skip
    text = program(["v0", 8, "<"], FORWARDS)
    sampling = Sampling(text, [question], methods=[method], pathLimit=limit)
    backend = Simulation(options, places)
    backend.sample(sampling)
    if sampling.error is None and sampling.refusal is None:
        sampling.numPaths = 1
        backend.sample(sampling)
    return sampling


@pytest.mark.parametrize("question", [REACHED, NESTED], ids=["until", "ltl"])
@pytest.mark.parametrize(("bound", "length"), [(0.2, 64), (0.5, 128), (0.99, 256)])
def test_the_first_length_that_shows_the_bound_ends_it(question, bound, length):
    # Four steps up among those between the states, the first state taking none.
    exact = {k: float(binom.sf(3, k - 1, 0.05)) for k in (16, 32, 64, 128, 256)}
    assert exact[length // 2] < bound < exact[length]
    found = checked(question, asked(bound))
    assert (found.error, found.refusal, found.failure) == (None, None, None)
    (method,) = found.methods
    assert method.decision == 1
    assert method.estimate == pytest.approx(exact[length], abs=5 * 0.5 / SAMPLES**0.5)
    assert f"of paths of {length} states" in method.remark
    assert found.numGood == SAMPLES * [16, 32, 64, 128, 256].index(length) + SAMPLES
    assert found.lengths[2] <= length - 1


def test_of_each_length_is_told_where_a_gpu_took_over(sooner_gpu):  # noqa: F811
    moved, alone = (
        checked(REACHED, asked(0.2), device=device, places=sooner_gpu)
        for device in (DeviceChoice.AUTO, DeviceChoice.CPU)
    )
    there = "paths from number 128 on were sampled on the GPU"
    lengths = (16, 32, 64)
    assert moved.remark == "; ".join(f"of {length} states, {there}" for length in lengths)
    assert alone.remark == ""
    assert (moved.numGood, moved.lengths) == (alone.numGood, alone.lengths)
    assert moved.methods[0].estimate == alone.methods[0].estimate


def test_what_the_longest_prefixes_do_not_reach_is_false():
    found = checked(REACHED, asked(0.5), limit=39)
    (method,) = found.methods
    assert method.decision == 0
    assert "of paths of 40 states" in method.remark
    assert "longer paths, by -simpathlen, may give more" in method.remark
    assert method.estimate == pytest.approx(float(binom.sf(3, 39, 0.05)), abs=0.04)


def test_paths_that_all_end_decide_whatever_the_longest_length_is():
    # The steps from 4 on lead to 0 or 8, half of them each, where a deadlock or a loop holds them.
    text = program(["v0", 0, ">", "v0", 8, "<", "&"], [[[0.5], [0, [8]]], [[0.5], [0, [0]]]])
    options = HookOptions(
        device=DeviceChoice.CPU, simulation_seed=3, simulation_method="growing",
        simulation=(("simapprox", "0.02"),),
    )  # fmt: skip
    found = Sampling(text, [REACHED], methods=[asked(0.6)], pathLimit=10**9)
    backend = Simulation(options)
    backend.sample(found)
    found.numPaths = 1
    backend.sample(found)
    (method,) = found.methods
    assert (found.error, found.refusal, found.failure) == (None, None, None)
    assert method.decision == 0
    assert "each path ended" in method.remark
    assert method.estimate == pytest.approx(0.5, abs=0.02)
    assert found.lengths[2] == 1


@pytest.mark.parametrize(
    ("question", "method", "reason"),
    [
        (REACHED, asked(0.5, at_least=False), "show lower bounds above 0"),
        (REACHED, asked(0.5, bounded=False), "show lower bounds above 0"),
        (REACHED, asked(0.001), "not above the approximation"),
        (REACHED | {"negated": True}, asked(0.5), "a longer path may violate"),
        (REACHED | {"bounded": True, "upper": 9}, asked(0.5), "formulas without bounds"),
        (NESTED | {"formula": ["a0", "a1", "R::"]}, asked(0.5), "a longer path may violate"),
        (NESTED | {"formula": ["a0", "X", "!", "F::"]}, asked(0.5), "a longer path may violate"),
    ],
    ids=["upper bound", "no bound", "small bound", "always", "steps", "release", "no next"],
)
def test_what_prefixes_cannot_show_is_refused(question, method, reason):
    assert reason in checked(question, method).refusal


def test_a_cluster_is_refused():
    assert (
        "by this process alone"
        in checked(REACHED, asked(0.5), simulation_cluster="local:2").refusal
    )


def test_a_formula_may_be_monotone_on_finite_words_and_false_on_infinite_ones():
    ends = ltl.eventually(ltl.negation(ltl.next_(ltl.true())))
    assert monitor_of(ends, ()).is_monotone
    assert not ltl.is_positive(ends)
    p = ltl.atom("p")
    assert ltl.is_positive(ltl.until(ltl.negation(p), ltl.next_(p), (0, 3)))
    assert not ltl.is_positive(ltl.always(p))
