"""Sums of powers on several GPUs: the digits of one; one device may stand for several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda import several_sums
from engines.cuda import uniformise as on_gpu
from engines.cuda.meeting import MeetingTuning
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.events import told
from engines.model.explicit import ModelKind, RewardStructure
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    time_bounded_until,
)
from engines.systems.one_sided import SweepSystem
from engines.systems.power_sums import PowerSum
from tests.gpu import big
from tests.gpu.test_formats import MATRICES
from tests.gpu.test_uniformise import counting

SIZE = 40_000


def without_diagonal(matrix):
    row = matrix.row_of_entry()
    keep = matrix.columns != row
    lengths = np.bincount(row[keep], minlength=matrix.num_rows)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    return CsrMatrix(offsets, matrix.columns[keep], matrix.values[keep], matrix.num_columns)


def of_matrix(matrix, sweeps=300, left=100, states=None):
    """A sum over the rates of a matrix, of some of its states."""
    matrix = without_diagonal(matrix)
    exits = matrix.row_sums()
    start = np.random.default_rng(3).uniform(0.0, 1.0, matrix.num_rows)
    if states is not None:
        matrix, exits = matrix.select_rows(states), exits[states]
    rate = max(float(exits.max()), 0.5)
    weights = np.arange(1.0, sweeps - left + 2.0)
    system = SweepSystem(matrix, start, states=states)
    return PowerSum(system, 1.0 - exits / rate, rate, left, weights, 0.25)


def sparse():
    return big.random_rates(1, SIZE).matrix


def with_lengths(lengths):
    """Rows of these lengths, with entries anywhere."""
    size, rng = len(lengths), np.random.default_rng(11)
    row = np.repeat(np.arange(size), lengths)
    column = rng.permuted(np.arange(len(row)) % size)
    values = rng.uniform(0.1, 3.0, len(row))
    return big.from_triples(ModelKind.CTMC, size, row, column, values).matrix


CASES = {
    "all states": lambda: of_matrix(sparse()),
    "a run": lambda: of_matrix(sparse(), states=np.arange(100, SIZE - 7, dtype=np.int32)),
    "here and there": lambda: of_matrix(
        sparse(), states=np.flatnonzero(np.arange(SIZE) % 5).astype(np.int32)
    ),
    "a line": lambda: counting(6000, 4500, 100),
    "long rows": lambda: of_matrix(with_lengths(np.full(5000, 40))),
    # Alone, the later block's rows would be added up by warps.
    "long rows in one block": lambda: of_matrix(with_lengths(np.repeat([3, 36], 4000))),
    "a very long row": lambda: of_matrix(with_lengths(np.append(np.full(6000, 40), 20_000))),
}


KERNELS = {"long rows": "rows_by_warp", "a very long row": "rows_by_block"}


def summed(problem, devices, matrix_format=Format.CSR, **how):
    """The sum of one device and that of several, of which no digit may differ."""
    reports_alone, reports = [], []
    alone = on_gpu.sum_powers(problem, reports_alone.append, devices[0], matrix_format)
    shared = several_sums.sum_powers(problem, reports.append, devices, matrix_format, **how)
    assert shared.cost.engine == "GPU " + "+".join(map(str, devices))
    assert f"shared among {len(devices)} GPUs" in told(shared.cost.events)
    np.testing.assert_array_equal(shared.values, alone.values)
    assert shared.sweeps == alone.sweeps
    assert [r.iterations for r in reports] == [r.iterations for r in reports_alone]
    assert shared.sweeping_seconds > 0.0
    return alone, shared


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("poison")
def test_the_digits_are_those_of_one(name, devices):
    problem = CASES[name]()
    alone, shared = summed(problem, devices)
    assert shared.cost.kernel == alone.cost.kernel == KERNELS.get(name, "rows_by_thread")


@pytest.mark.parametrize("sweeps", [1, 2, 63, 64, 65, 127, 128, 129, 4096, 4160, 5000])
def test_each_sweep_is_added_once_with_its_own_weight(sweeps, devices):
    problem = counting(6000, sweeps, min(sweeps, 65))
    _, shared = summed(problem, devices)
    expected = np.cumsum(problem.coefficients(0, sweeps + 1)[::-1])[::-1]
    np.testing.assert_allclose(shared.values[: sweeps + 1], expected, rtol=1e-13)
    assert not shared.values[sweeps + 1 :].any()


@pytest.mark.parametrize("rest", [40, 63, 64, 65, 127, 128, 130, 1000, 4500])
def test_all_stop_at_the_first_sweep_that_changes_nothing_anywhere(rest, devices):
    # The first devices come to rest long before the last one.
    problem = counting(rest, 9000, 100)
    _, shared = summed(problem, devices)
    assert shared.sweeps == rest
    expected = np.cumsum(problem.coefficients(0, 9001)[::-1])[::-1][:rest]
    np.testing.assert_allclose(shared.values, expected, rtol=1e-12)


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_the_first_steady_sweep_is_that_of_all(share, devices):
    problem = replace(of_matrix(sparse()), steady_share=share)
    alone, shared = summed(problem, devices)
    assert shared.steady == alone.steady > 1


@pytest.mark.parametrize("matrix_format", [f for f in Format if f is not Format.HYBRID])
@pytest.mark.parametrize("name", ["tandem-like", "uneven"])
def test_every_format(name, matrix_format, devices):
    summed(of_matrix(MATRICES[name]()), devices, matrix_format)


def test_wide_offsets(devices, monkeypatch):
    monkeypatch.setattr("engines.cuda.uniformise.needs_wide_offsets", lambda _system: True)
    summed(CASES["here and there"](), devices)


def test_two_sums_in_a_row_give_the_same_bits(devices):
    problem = CASES["all states"]()
    first, second = (several_sums.sum_powers(problem, None, devices) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


def test_many_sums_take_no_more_memory_than_one(gpu, devices):
    problem = CASES["all states"]()
    taken = []
    for _ in range(4):
        several_sums.sum_powers(problem, None, devices)
        total = 0
        for device in dict.fromkeys(devices):
            with gpu.cuda.Device(device):
                total += gpu.get_default_memory_pool().total_bytes()
        taken.append(total)
    assert taken[3] == taken[1]


def test_devices_meet_by_flags_unless_they_send_much(all_devices):
    problem = CASES["a line"]()
    _, by_flags = summed(problem, all_devices)
    assert told(by_flags.cost.events).endswith("synchronised by flags")
    _, by_events = summed(problem, all_devices, meeting=MeetingTuning(most_stored_bytes=0))
    assert told(by_events.cost.events).endswith("synchronised by events")


@pytest.mark.parametrize("count", [2, 4])
def test_questions_are_shared_out_as_the_settings_say(gpu, count):
    if gpu.cuda.runtime.getDeviceCount() < count:
        pytest.skip(f"there are fewer than {count} GPUs")
    size = 30_000
    model = big.random_rates(size, size)
    rng = np.random.default_rng(size)
    remain, target = rng.random(size) < 0.9, rng.random(size) < 0.05
    rewards = RewardStructure("", rng.uniform(0.0, 3.0, size))
    questions = [
        (time_bounded_until, (model, remain, target, 0.0, 20.0)),
        (time_bounded_until, (model, remain, target, 7.0, 20.0)),
        (cumulative_rewards_until, (model, rewards, 20.0)),
        (distribution_at, (model, rng.dirichlet(np.ones(size)), 20.0)),
    ]
    one = SolverEnvironment(device=DeviceChoice.GPU, matrix_format=Format.CSR)
    several = replace(one, num_devices=count)
    for function, arguments in questions:
        alone, shared = (function(*arguments, settings) for settings in (one, several))
        assert shared.cost.engine == "GPU " + "+".join(map(str, range(count)))
        assert f"shared among {count} GPUs" in shared.note
        assert shared.iterations == alone.iterations
        np.testing.assert_array_equal(shared.values, alone.values)


def test_rows_out_of_order_are_summed_on_one_device_with_a_remark():
    problem = CASES["all states"]()
    backwards = np.arange(SIZE - 1, -1, -1, dtype=np.int32)
    problem = replace(problem, system=replace(problem.system, states=backwards))
    alone = on_gpu.sum_powers(problem, None, 0)
    shared = several_sums.sum_powers(problem, None, (0, 0))
    assert shared.cost.engine == "GPU 0"
    assert "not shared among 2 GPUs: the rows are not in the order" in told(shared.cost.events)
    np.testing.assert_array_equal(shared.values, alone.values)


def test_the_memory_that_a_solve_may_take_is_kept_to():
    model, start = big.random_rates(1, SIZE), np.full(SIZE, 1.0 / SIZE)
    settings = SolverEnvironment(device=DeviceChoice.GPU)
    fits = distribution_at(model, start, 2.0, settings)
    left = distribution_at(model, start, 2.0, replace(settings, device_memory=1 << 20))
    assert (fits.cost.engine, left.cost.engine) == ("GPU 0", "CPU")
    assert "needed for rows and sums, 1.0 MiB available" in left.note
    assert "solving on the CPU" in left.note
    np.testing.assert_allclose(left.values, fits.values, rtol=1e-10)
    problem = CASES["all states"]()
    alone = several_sums.sum_powers(problem, None, (0, 0), most_memory=on_gpu.bytes_needed(problem))
    assert alone.cost.engine == "GPU 0"
    assert "not shared among 2 GPUs: GPU 0: " in told(alone.cost.events)
