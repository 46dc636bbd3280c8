"""Paths of programs by way of a cluster are those of one sampler, path by path."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo import cluster_client
from engines.montecarlo.cluster import run_on_cluster
from engines.montecarlo.cluster_client import OpenCluster, local_workers
from engines.montecarlo.cluster_options import ClusterOptions, ClusterReport
from engines.montecarlo.cluster_paths import Content, GatheredPaths, PathsSpec
from engines.montecarlo.failure import Failure, FailureKind, PathFailure
from engines.montecarlo.questions import ReachabilityReward, Until
from engines.montecarlo.sampler import Sampler
from engines.program import native
from engines.program.expressions import TRUE

from . import programs
from .reader import read_model

# From 3 on a coin decides whether the next step leaves the range.
LEAVING = """dtmc
module m
  x : [0..3];
  [] x<3 -> 0.9 : (x'=x) + 0.1 : (x'=x+1);
  [] x=3 -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
endmodule
rewards "steps" [] true : 1; endrewards
"""


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


def spec_of(text, target, content=Content.ANSWERS, path_limit=20):
    program, e = read_model(text)
    questions = (ReachabilityReward(0, e(target)), Until(TRUE, e(target)))
    return PathsSpec(program, questions, 7, DeviceChoice.CPU, 0, path_limit, True, 1, content)


def sampler_of(spec):
    return Sampler(spec.program, spec.questions, spec.seed, DeviceChoice.CPU, spec.path_limit)


def assert_same(found, expected):
    assert np.array_equal(found.booleans, expected.booleans)
    assert np.array_equal(found.rewards, expected.rewards, equal_nan=True)
    assert np.array_equal(found.lengths, expected.lengths)
    assert found.first_path == expected.first_path


def test_a_failure_comes_through_pickling_whole():
    failure = Failure(FailureKind.OUT_OF_RANGE, 7, 3, (1, 2), (0, 1), variable=1, value=4.0)
    found = pickle.loads(pickle.dumps(PathFailure(failure)))
    assert isinstance(found, PathFailure)
    assert found.failure == failure
    assert str(found) == str(PathFailure(failure))


@pytest.mark.parametrize(("text", "target"), [(programs.DIE, "s=7"), (LEAVING, "false")])
def test_batches_of_any_size_hold_what_each_path_answered(text, target):
    spec = spec_of(text, target)
    expected = sampler_of(spec).sample(50, 900)
    taken = GatheredPaths(50, 900, 1, 1)
    worker = pickle.loads(pickle.dumps(spec))()
    sizes = iter([300, 1, 99, 500])
    for again in (False, True):
        while not taken.finished:
            batch = worker.run(taken.num_paths, next(sizes))
            assert batch.problem(taken.num_questions) is None
            taken.feed(batch)
        assert_same(taken.arrays(), expected)
        if not again:
            taken.start_over()
            sizes = iter([450, 450])
    if text is LEAVING:
        assert expected.first_failed is not None
        assert np.any((expected.booleans == 2) & (expected.lengths >= 0))


def test_counts_and_outcomes_are_those_of_one_sampler():
    counts, outcomes = (spec_of(programs.DIE, "s=7", x) for x in (Content.COUNTS, Content.OUTCOMES))
    expected = sampler_of(counts).run(10, 400)
    assert outcomes().run(10, 400).digest() == expected.digest()
    found = counts().run(10, 400)
    truths, rewards = (found.outcomes[k] for k in (1, 0))
    assert (truths.outcomes, rewards.values) == (None, None)
    assert truths.num_true == expected.outcomes[1].num_true
    assert rewards.moments == expected.outcomes[0].moments
    assert found.lengths == expected.lengths


def test_an_open_cluster_serves_several_runs_of_several_ranges():
    for needed in ("distributed", "cryptography"):
        pytest.importorskip(needed)
    options = ClusterOptions(batch_paths=100, confirmed_share=1.0, patience_s=120.0)
    seen = []
    with OpenCluster("local:2") as cluster:
        assert cluster.num_workers == 2
        for text, target, first in ((programs.DIE, "s=7", 0), (LEAVING, "false", 1234)):
            spec, taken = spec_of(text, target), GatheredPaths(first, 850, 1, 1)
            report = run_on_cluster(
                *(spec, taken, cluster, options),
                progress=lambda paths, report: seen.append((paths, report.workers)),
                first_path=first,
            )
            assert_same(taken.arrays(), sampler_of(spec).sample(first, 850))
            assert (report.batches, report.trouble) == (9, "")
    assert (2084, 2) in seen


def test_trouble_is_told_in_words():
    report = ClusterReport(lost=2, cut_off={"tcp://b:1": "no answer within 20 s"})
    assert report.trouble == "2 died; tcp://b:1 was cut off: no answer within 20 s"


def test_addresses_name_processes_or_a_scheduler():
    assert local_workers("local:12") == 12
    assert local_workers("tls://host:8786") is None
    for address in ("local:", "local:0", "local:-1", "local:x"):
        with pytest.raises(UnsupportedError, match="names no number of processes"):
            local_workers(address)


def test_without_dask_the_error_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(cluster_client.importlib, "import_module", missing)
    with pytest.raises(UnsupportedError, match=r'pip install "prism-gpu\[cluster\]"'):
        OpenCluster("local:1")


def test_without_cryptography_nobody_listens_and_the_error_says_how_to_get_it(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnsupportedError, match=r'over TLS.*pip install "prism-gpu\[cluster\]"'):
        OpenCluster("local:1")


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "10.0.0.1:8786", "ws://10.0.0.1:1"])
def test_a_scheduler_that_anybody_may_speak_to_is_refused(address):
    pytest.importorskip("distributed")
    with pytest.raises(UnsupportedError, match=r"no address over TLS.*use tls://"):
        OpenCluster(address)


def test_a_plain_scheduler_is_asked_where_dask_is_told_so():
    pytest.importorskip("distributed")
    from dask import config

    with (
        config.set({"distributed.comm.require-encryption": False}),
        pytest.raises(UnsupportedError, match=r"no dask scheduler at tcp://127.0.0.1:1 "),
    ):
        OpenCluster("tcp://127.0.0.1:1")


def test_a_certificate_that_is_missing_is_told():
    pytest.importorskip("distributed")
    with pytest.raises(UnsupportedError, match="certificates"):
        OpenCluster("tls://127.0.0.1:1")
