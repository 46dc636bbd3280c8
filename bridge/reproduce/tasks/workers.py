"""Sampling by several workers, which are processes or hosts: the APMC paper's Figure 3.

The time of the paper is that of the whole run: workers are deployed, each compiles the program, and
all sample. The same paths once more, warm, tell what the sampling alone takes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bridge.reproduce.tasks.hosts import LOOK_S, START_S, hosts
from bridge.reproduce.tasks.paths import SEED, philosophers
from bridge.reproduce.worker import Partial, Record
from engines.model.environment import DeviceChoice
from engines.montecarlo.cluster import run_on_cluster
from engines.montecarlo.cluster_client import LOW, OpenCluster
from engines.montecarlo.cluster_options import ClusterError, ClusterOptions
from engines.montecarlo.cluster_paths import Content, PathsSpec
from engines.montecarlo.methods import Judgement, SeveralMethods
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT

BATCHES = 128
"""How many the paths are cut into, at least four for each of up to 32 workers."""
CONFIDENCE = 0.01


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return the seconds of a run, part by part.

    Parameters
    ----------
    parameters
        "philosophers", "paths", "steps", "workers"; "where": "processes", those at the lowest
        priority as "low", or "hosts".
    partial
        Unused.

    Raises
    ------
    ValueError
        If the workers' judgement is not that of one process, digit for digit.
    """
    del partial
    n, paths, steps = (int(parameters[name]) for name in ("philosophers", "paths", "steps"))
    workers, where = int(parameters["workers"]), str(parameters["where"])
    program, question = philosophers(n, steps)
    cpu = DeviceChoice.CPU
    spec = PathsSpec(
        *(program, (question,), SEED, cpu, 0, DEFAULT_PATH_LIMIT, True, 1), content=Content.COUNTS
    )
    options = ClusterOptions(batch_paths=-(-paths // BATCHES))
    begun = time.perf_counter()
    with deployed(where, workers) as cluster:
        deploy = time.perf_counter()
        first = _judged(spec, paths, cluster, options)
        compiled = time.perf_counter()
        second = _judged(spec, paths, cluster, options)
        end = time.perf_counter()
    alone = SeveralMethods([ExactInterval(CONFIDENCE, samples=paths)])
    alone.feed(spec().run(0, paths))
    if not first == second == alone.methods[0].result():
        raise ValueError(f"{workers} {where} do not find what one process finds")
    return {
        "deploy_seconds": deploy - begun,
        "first_seconds": compiled - deploy,
        "total_seconds": compiled - begun,
        "warm_seconds": end - compiled,
        "estimate": first.estimate,
    }


@contextlib.contextmanager
def deployed(where: str, workers: int) -> Iterator[OpenCluster]:
    """Have workers, each with one thread, all of which are there.

    Parameters
    ----------
    where
        "processes", "low" or "hosts".
    workers
        How many.

    Raises
    ------
    ClusterError
        If some do not start in time.
    """
    with contextlib.ExitStack() as stack:
        if where == "hosts":
            address = stack.enter_context(hosts(workers))
        else:
            address = f"local:{workers}{LOW if where == 'low' else ''}"
        cluster = stack.enter_context(OpenCluster(address))
        last = time.monotonic() + START_S
        while cluster.num_workers < workers:
            if time.monotonic() > last:
                raise ClusterError(f"{cluster.num_workers} of {workers} {where} started in time")
            time.sleep(LOOK_S)
        yield cluster


def _judged(
    spec: PathsSpec, paths: int, cluster: OpenCluster, options: ClusterOptions
) -> Judgement:
    method = SeveralMethods([ExactInterval(CONFIDENCE, samples=paths)])
    run_on_cluster(spec, method, cluster, options)
    return method.methods[0].result()
