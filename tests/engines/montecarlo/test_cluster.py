"""Whatever happens to the workers, the result is that of one machine."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from engines.errors import UnsupportedError
from engines.montecarlo.cluster import run_on_cluster
from engines.montecarlo.cluster_client import OpenCluster
from engines.montecarlo.cluster_options import ClusterOptions
from engines.montecarlo.methods import Bound, SeveralMethods
from engines.montecarlo.methods_confidence import FixedSampleInterval, Quantile
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.methods_sprt import SequentialTest
from tests.engines.montecarlo.fake_samplers import Spec

distributed = pytest.importorskip("distributed")
pytest.importorskip("cryptography")

QUICK = ClusterOptions(batch_paths=500, patience_s=120.0)


def methods(samples=20_000, ordered=False):
    second = FixedSampleInterval(Quantile.STUDENT, samples, confidence=0.01)
    if ordered:
        bound = Bound(True, 0.31)
        first = SequentialTest(bound, type_one=1e-3, type_two=1e-3, indifference=0.01)
        return SeveralMethods([first, second])
    return SeveralMethods([ExactInterval(0.01, samples=samples), second])


def on_one_machine(spec, wanted):
    sampler, first = spec(), 0
    while not wanted.finished:
        paths = wanted.paths_wanted_next(700)
        wanted.feed(sampler.run(first, paths))
        first += paths
    return [method.result() for method in wanted.methods]


def on_cluster(spec, wanted, options=QUICK, workers=3):
    report = run_on_cluster(spec, wanted, f"local:{workers}", options)
    return [method.result() for method in wanted.methods], report


def test_two_workers_give_the_result_of_one_machine(tmp_path):
    spec = Spec(str(tmp_path), seconds=0.0, ordered=True)
    results, report = on_cluster(spec, methods(ordered=True), workers=2)
    assert results == on_one_machine(spec, methods(ordered=True))
    assert (report.lost, report.cut_off) == (0, {})
    assert len(list(tmp_path.iterdir())) == 3


def test_killed_workers_change_nothing(tmp_path):
    spec = Spec(str(tmp_path), mischief="dies")
    results, report = on_cluster(spec, methods())
    assert results == on_one_machine(spec, methods())
    assert report.lost >= 1
    assert not report.cut_off


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mischief", "reason", "share"),
    [
        ("lies", "differ from this machine's", 0.0),
        ("lies later", "differ from this machine's", 1.0),
        ("contradicts itself", "501 true", 0.0),
        ("other paths", "about other paths", 0.0),
        ("raises", "an error that this machine does not make", 0.0),
        ("hangs", "no answer within", 0.0),
    ],
)
def test_a_worker_that_is_of_no_use_is_cut_off(tmp_path, mischief, reason, share):
    hangs = mischief == "hangs"
    # The others must take longer than the deadline, or nobody ever asks for the one that hangs.
    spec = Spec(str(tmp_path), mischief=mischief, seconds=0.3 if hangs else 0.05)
    deadline_s = 3.0 if hangs else None
    options = ClusterOptions(batch_paths=500, confirmed_share=share, deadline_s=deadline_s)
    results, report = on_cluster(spec, methods(), options)
    assert results == on_one_machine(spec, methods())
    assert len(report.cut_off) == 1
    assert reason in next(iter(report.cut_off.values()))


@pytest.mark.slow
def test_a_slow_worker_is_not_waited_for(tmp_path):
    spec = Spec(str(tmp_path), mischief="is slow", seconds=0.01)
    results, report = on_cluster(spec, methods())
    assert results == on_one_machine(spec, methods())
    assert report.repeated >= 1
    assert not report.cut_off


def is_ours(pid):
    """Whether the process lives and is a child of this one, not another that got its number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z" and int(fields[1]) == os.getpid()


def kill_at_random(folder, chosen, stop, killed):
    """Kill -9 five processes that sample, at random moments."""
    while len(killed) < 5 and not stop.wait(chosen.uniform(0.2, 2.0)):
        numbers = [int(x.name) for x in Path(folder).iterdir() if x.name.isdigit()]
        running = [pid for pid in numbers if is_ours(pid)]
        if running:
            killed.append(chosen.choice(running))
            os.kill(killed[-1], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_workers_killed_at_random_change_nothing(tmp_path, seed):
    spec = Spec(str(tmp_path), seconds=0.05)
    stop = threading.Event()
    killed = []
    chosen = random.Random(seed)
    killer = threading.Thread(target=kill_at_random, args=(tmp_path, chosen, stop, killed))
    killer.start()
    try:
        results, report = on_cluster(spec, methods(samples=40_000))
    finally:
        stop.set()
        killer.join()
    assert results == on_one_machine(spec, methods(samples=40_000))
    assert killed
    assert report.lost >= 1
    assert not report.cut_off


class Raising:
    def __init__(self, path):
        self.path = path

    def __call__(self):
        return self

    def run(self, first_path, num_paths):
        if first_path <= self.path < first_path + num_paths:
            raise ArithmeticError(f"path {self.path} leaves the range of x")
        return Spec("", ordered=True)().run(first_path, num_paths)


@pytest.mark.slow
def test_an_error_of_the_model_is_raised_if_its_path_is_needed():
    with pytest.raises(ArithmeticError, match="path 7300 leaves"):
        run_on_cluster(Raising(7300), methods(), "local:2", QUICK)
    wanted = methods(samples=5000)
    run_on_cluster(Raising(7300), wanted, "local:2", QUICK)
    assert wanted.finished


@pytest.mark.parametrize("address", ["local:0", "local:many", "tls://127.0.0.1:1"])
def test_addresses_without_workers_are_refused(address):
    started = time.monotonic()
    with pytest.raises(UnsupportedError, match="use local"):
        run_on_cluster(Raising(0), methods(), address, QUICK)
    assert time.monotonic() - started < 60


def stop_the_first(stop, killed):
    """Kill -9 the first worker while it starts."""
    while not killed and not stop.wait(0.01):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if b"spawn_main" in path.read_bytes() and is_ours(path.parent.name):
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    killed.append(path.parent.name)
                    break
            except OSError:
                continue


def test_a_worker_killed_while_it_starts_is_started_anew():
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=stop_the_first, args=(stop, killed))
    killer.start()
    try:
        with OpenCluster("local:2") as cluster:
            assert cluster.num_workers == 2
    finally:
        stop.set()
        killer.join()
    assert len(killed) == 1


def test_processes_run_at_the_lowest_priority_on_request():
    for address, lower in (("local:1", 0), ("local:1:low", 19)):
        with OpenCluster(address) as cluster:
            (found,) = cluster.client.run(os.getpriority, os.PRIO_PROCESS, 0).values()
        assert found == min(19, os.getpriority(os.PRIO_PROCESS, 0) + lower)


def test_nobody_without_the_key_speaks_to_processes_of_this_machine():
    with OpenCluster("local:1") as cluster:
        address = cluster.client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        others = distributed.Security.temporary()
        for where, security in ((address, others), (address.replace("tls", "tcp"), None)):
            with pytest.raises(OSError, match=r"TLS|TCP|[Tt]imed out"):
                distributed.Client(where, timeout=2, security=security)
        served = [cluster.client.cluster.scheduler.http_server.port]
        served += cluster.client.run(lambda dask_worker: dask_worker.http_server.port).values()
        for port in served:
            for page in ("json/counts.json", "info/main/workers.html", "proxy/22/127.0.0.1/"):
                with pytest.raises(HTTPError, match="404"):
                    urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5)


def test_a_scheduler_elsewhere_is_reached_by_certificates(tmp_path):
    from dask import config

    security = distributed.Security.temporary()
    files = {"ca-file": security.tls_ca_file}
    files |= {"client.cert": security.tls_client_cert, "client.key": security.tls_client_key}
    settings = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        settings[f"distributed.comm.tls.{name}"] = str(tmp_path / name)
    with (
        distributed.LocalCluster(
            n_workers=1,
            processes=False,
            security=security,
            protocol="tls://",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as elsewhere,
        config.set(settings),
        OpenCluster(elsewhere.scheduler_address) as cluster,
    ):
        assert cluster.num_workers == 1
        assert cluster.threads is None
