"""The benchmark of several GPUs: its sums of powers are those of its chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.linalg import expm

from engines.host.power_sums import sum_powers
from engines.model.choice import Format
from engines.model.events import Kind


@pytest.fixture(scope="module")
def beyond(load):
    return load("beyond_one_gpu")


@pytest.mark.parametrize(("name", "size"), [("tandem", 3), ("cluster", 1)])
def test_a_sum_is_the_chain_s_at_the_time_of_so_many_jumps(beyond, name, size):
    system = getattr(beyond, name)(size)
    problem = beyond.powers_of(system, 30.0)
    rates = dense(system.matrix)
    generator = rates - np.diag(rates.sum(axis=1))
    expected = expm(generator * 30.0 / problem.rate) @ problem.system.start
    found = sum_powers(problem, None)
    assert found.sweeps == problem.last
    np.testing.assert_allclose(found.values, expected, rtol=1e-10)


def dense(matrix):
    full = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(full, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return full


@pytest.fixture
def four_gpus(beyond, monkeypatch):
    """Sums of as many GPUs as are asked for, made by the CPU in a time that they share."""

    def shared(problem, count, _matrix_format):
        done = sum_powers(problem, None)
        cost = replace(done.cost, gpus=tuple(range(count)))
        return replace(
            done, setup_seconds=0.0, sweeping_seconds=done.sweeps * 8e-6 / count, cost=cost
        )

    class Pool:
        def free_all_blocks(self):
            pass

    class Package:
        get_default_memory_pool = Pool

    powers_of = beyond.powers_of
    # So small a chain comes to rest before long.
    monkeypatch.setattr(beyond, "powers_of", lambda system: powers_of(system, 30.0))
    monkeypatch.setattr(beyond, "cupy", Package)
    monkeypatch.setattr(beyond, "counts", lambda: iter((2, 4)))
    monkeypatch.setattr(beyond, "summed", shared)
    monkeypatch.setattr(beyond, "link_bandwidth", lambda: 5e10)
    monkeypatch.setattr(beyond, "device_summary", lambda: ["four GPUs"])


@pytest.mark.usefixtures("four_gpus")
def test_a_line_for_each_number_of_gpus(beyond):
    rows = list(beyond.sums_of("tandem 7", beyond.tandem(7), Format.CSR))
    assert [row.way for row in rows] == ["one GPU", "2 GPUs", "4 GPUs"]
    assert [row.microseconds for row in rows] == pytest.approx([8.0, 4.0, 2.0])
    assert [row.speed_up for row in rows] == pytest.approx([1.0, 2.0, 4.0])
    done = CliRunner().invoke(beyond.main, ["--uniformise", "--tandem", "7"])
    assert done.exit_code == 0, done.output
    assert "| tandem 7, sum | 120 | " in done.output
    assert "| 4 GPUs | csr | 2.0 | 4.00 |" in done.output


@pytest.mark.usefixtures("four_gpus")
def test_a_sum_that_is_not_shared_out_is_not_timed(beyond, monkeypatch):
    alone = beyond.summed
    refused = (Kind.NOT_SHARED_OUT(gpus=2, reason="no room"),)

    def kept(problem, _count, matrix_format):
        done = alone(problem, 1, matrix_format)
        return replace(done, cost=replace(done.cost, events=refused))

    monkeypatch.setattr(beyond, "summed", kept)
    with pytest.raises(SystemExit, match="2 GPUs: not shared among 2 GPUs: no room"):
        list(beyond.sums_of("tandem 7", beyond.tandem(7), Format.CSR))


@pytest.mark.usefixtures("four_gpus")
def test_a_sum_that_differs_is_not_timed(beyond, monkeypatch):
    right = beyond.summed

    def wrong(problem, count, matrix_format):
        done = right(problem, count, matrix_format)
        return replace(done, values=done.values * (1.0 + 1e-9 * (count > 1)))

    monkeypatch.setattr(beyond, "summed", wrong)
    with pytest.raises(SystemExit, match="off one GPU's"):
        list(beyond.sums_of("tandem 7", beyond.tandem(7), Format.CSR))
