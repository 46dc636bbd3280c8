"""Sums of powers on several GPUs: emulated ones, and what needs none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cuda import meeting, several_sums
from engines.cuda import uniformise as on_gpu
from engines.cuda.engine import CudaEngine
from engines.cuda.several import SeveralEngine, SeveralSweeper
from engines.cuda.several_sums import sum_blocks
from engines.devices import powers
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host import power_sums as on_cpu
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.events import Kind, told
from engines.questions.time_bounded import distribution_at
from engines.systems.one_sided import SweepSystem
from engines.systems.power_sums import PowerSum
from tests.engines import emulated_gpus, models


@pytest.fixture
def gpus(monkeypatch):
    """What makes so many emulated GPUs."""
    emulated_gpus.forget()
    yield lambda count, **how: emulated_gpus.emulate(monkeypatch, count, **how)
    emulated_gpus.forget()


def drawn(seed, size=40, sweeps=150, left=5, share=1.0):
    """A sum over a random chain, of a share of its states."""
    rng = np.random.default_rng(seed)
    states = np.flatnonzero(rng.random(size) < share).astype(np.int32)
    lengths = rng.integers(0, 5, len(states))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    near = np.repeat(states, lengths) + rng.integers(-6, 7, offsets[-1])
    columns = np.clip(near, 0, size - 1).astype(np.int32)
    rates = rng.random(offsets[-1])
    matrix = CsrMatrix(offsets, columns, rates, size)
    exits = matrix.row_sums()
    system = SweepSystem(matrix, rng.random(size), states=None if len(states) == size else states)
    weights = rng.random(sweeps + 1 - left)
    return PowerSum(system, 1.0 - exits / exits.max(), exits.max(), left, weights, 0.25)


def counting(length, sweeps):
    """x_i ← x_{i−1}, with weights that tell each sweep from the others."""
    matrix = models.csr([{}] + [{i - 1: 1.0} for i in range(1, length)])
    start = np.eye(length)[0]
    weights = np.arange(1.0, sweeps + 2.0)
    return PowerSum(SweepSystem(matrix, start), np.eye(length)[0], 1.0, 0, weights, 0.5)


def expect_the_sum_of_one(problem, devices, **how):
    told_alone, told = [], []
    alone = on_gpu.sum_powers(problem, told_alone.append, 0)
    shared = several_sums.sum_powers(problem, told.append, devices, **how)
    np.testing.assert_array_equal(shared.values, alone.values)
    assert (shared.sweeps, shared.steady) == (alone.sweeps, alone.steady)
    assert [r.iterations for r in told] == [r.iterations for r in told_alone]
    return shared


@pytest.mark.parametrize(("share", "seed"), [(1.0, 0), (0.7, 0), (0.7, 1), (0.7, 2)])
@pytest.mark.parametrize("devices", [(0, 0), (0, 1), (1, 0), (0, 1, 0), (2, 0, 3, 1)])
def test_the_sum_of_one_device_whatever_comes_first(gpus, devices, share, seed):
    gpu = gpus(4, seed=seed)
    problem = drawn(seed, share=share)
    shared = expect_the_sum_of_one(problem, devices)
    assert shared.sweeps == problem.last == 150
    expected = on_cpu.sum_powers(problem, None)
    np.testing.assert_allclose(shared.values, expected.values, rtol=1e-12)
    by_flags = len(set(devices)) == len(devices)
    assert ("send_and_meet" in gpu.launched) is by_flags
    assert shared.cost.engine == "GPU " + "+".join(map(str, devices))
    assert f"shared among {len(devices)} GPUs" in told(shared.cost.events)
    assert told(shared.cost.events).endswith(f"synchronised by {'flags' if by_flags else 'events'}")


@pytest.mark.parametrize("devices", [(0, 0), (0, 1, 2)])
@pytest.mark.parametrize("rest", [1, 2, 63, 64, 65, 100])
def test_all_stop_at_the_first_sweep_that_changes_nothing_anywhere(gpus, rest, devices):
    gpus(3)
    # All but the last device come to rest long before the last state is reached.
    problem = counting(rest, 300)
    shared = expect_the_sum_of_one(problem, devices[: min(rest, len(devices))])
    assert shared.sweeps == rest
    expected = np.cumsum(problem.coefficients(0, 301)[::-1])[::-1][:rest]
    np.testing.assert_allclose(shared.values, expected, rtol=1e-12)


@pytest.mark.parametrize(("change", "within"), [(0.1, 64), (1e-4, 128), (1e-6, 300)])
def test_the_first_steady_sweep_is_that_of_all(gpus, change, within):
    gpus(2)
    problem = replace(drawn(4, sweeps=300), steady_change=change)
    shared = expect_the_sum_of_one(problem, (0, 1))
    assert 0 < shared.steady < within
    assert shared.steady == on_cpu.sum_powers(problem, None).steady


@pytest.mark.parametrize("sweeps", [1, 2, 63, 64, 65, 129])
def test_sums_of_any_length(gpus, sweeps):
    gpus(2)
    for problem in (counting(200, sweeps), drawn(4, sweeps=sweeps, left=0)):
        assert expect_the_sum_of_one(problem, (0, 1)).sweeps == sweeps


def test_progress_and_the_number_of_sweeps_between_looks(gpus, monkeypatch):
    gpus(2)
    monkeypatch.setattr(on_gpu, "LOOK_EVERY", 64)
    assert expect_the_sum_of_one(drawn(5), (0, 1)).sweeps == 150
    assert expect_the_sum_of_one(counting(70, 300), (0, 1)).sweeps == 70


def test_more_devices_than_rows(gpus):
    gpus(4)
    problem = counting(3, 10)
    assert "among 3 GPUs" in told(expect_the_sum_of_one(problem, (0, 1, 2, 3)).cost.events)


@pytest.mark.parametrize("devices", [(0, 0), (0, 1, 2)])
@pytest.mark.parametrize("stop_below", [-1.0, 1e-3])
def test_one_sided_sweeps_are_those_of_one_device(gpus, devices, stop_below):
    gpus(3, seed=7)
    system = replace(drawn(3).system, omega=0.5)
    matrix = system.matrix
    scale = 0.9 / matrix.row_sums().max()
    system = replace(system, matrix=replace(matrix, values=matrix.values * scale))
    alone, shared = (
        engine.sweeper(system, stop_below, True)
        for engine in (CudaEngine(0), SeveralEngine(devices))
    )
    assert isinstance(shared, SeveralSweeper)
    for sweeps in (150, 3, 64):
        np.testing.assert_array_equal(shared.run(sweeps), alone.run(sweeps))
        np.testing.assert_array_equal(shared.values(), alone.values())
    assert shared.residual() == alone.residual()
    assert told(shared.cost.events).startswith(f"shared among {len(devices)} GPUs")


def test_a_device_that_did_not_come_is_an_error_and_no_sum(gpus, monkeypatch):
    gpus(2)

    def missed(_self):
        raise UnsupportedError("GPU 0 has waited")

    monkeypatch.setattr(meeting.ByFlags, "require_all", missed)
    with pytest.raises(UnsupportedError, match="GPU 0 has waited"):
        several_sums.sum_powers(drawn(1), None, (0, 1))


def test_rows_out_of_order_are_summed_on_the_first_device_with_a_remark(gpus):
    gpus(2)
    problem = drawn(1)
    size = problem.system.num_states
    backwards = np.arange(size - 1, -1, -1, dtype=np.int32)
    problem = replace(problem, system=replace(problem.system, states=backwards))
    shared = expect_the_sum_of_one(problem, (1, 0))
    assert shared.cost.engine == "GPU 1"
    why = "not shared among 2 GPUs: the rows are not in the order of their states"
    assert told(shared.cost.events) == why


def test_devices_that_cannot_reach_each_other_leave_the_sum_to_the_first(gpus):
    gpu = gpus(2)
    gpu.cupy.cuda.runtime.deviceCanAccessPeer = lambda _device, _other: False
    shared = expect_the_sum_of_one(drawn(1), (0, 1))
    assert shared.cost.engine == "GPU 0"
    assert "GPU 0 cannot reach the memory of GPU 1" in told(shared.cost.events)


def test_a_device_that_runs_out_of_memory_leaves_the_sum_to_the_first(gpus, monkeypatch):
    gpu = gpus(2)
    plain = several_sums.SumRows.of

    def full(*arguments):
        if gpu.device == 1:
            raise gpu.cupy.cuda.memory.OutOfMemoryError("no more")
        return plain(*arguments)

    monkeypatch.setattr(several_sums.SumRows, "of", full)
    shared = expect_the_sum_of_one(drawn(1), (0, 1))
    assert told(shared.cost.events) == "not shared among 2 GPUs: no more"
    assert gpu.freed == [0, 1]


def test_without_room_it_is_said_who_has_none(gpus):
    gpus(2, free=1 << 20)
    problem = drawn(1)
    shared, beside = several_sums.bytes_needed(problem)
    alone = on_gpu.bytes_needed(problem)
    assert shared + beside + 4096 == alone
    found = several_sums.sum_powers(problem, None, (0, 0), most_memory=alone)
    assert found.cost.engine == "GPU 0"
    assert "not shared among 2 GPUs: GPU 0: " in told(found.cost.events)
    with pytest.raises(DeviceMemoryError, match=r"GPU 1: .* needed for rows and sums"):
        several_sums.sum_powers(problem, None, (1, 0), most_memory=beside)


def test_the_memory_that_a_sum_may_take_is_kept_to(gpus):
    gpus(1, free=1 << 20)
    problem = drawn(1)
    need = on_gpu.bytes_needed(problem)
    on_gpu.sum_powers(problem, None, 0, Format.CSR, need)
    with pytest.raises(
        DeviceMemoryError, match=rf"needed for rows and sums, {(need - 1) / 1024:.1f} KiB available"
    ):
        on_gpu.sum_powers(problem, None, 0, Format.CSR, need - 1)
    gpus(1, free=need - 1)
    emulated_gpus.forget()
    with pytest.raises(
        DeviceMemoryError, match=rf"GPU 0: .* sums, {(need - 1) / 1024:.1f} KiB available"
    ):
        on_gpu.sum_powers(problem, None, 0, Format.CSR, 1 << 20)


def test_a_question_is_shared_out_as_the_settings_say(gpus):
    gpus(3)
    model, start = models.birth_death(30), np.eye(30)[0]
    csr = {"device": DeviceChoice.GPU, "matrix_format": Format.CSR}
    one = distribution_at(model, start, 20.0, SolverEnvironment(**csr))
    two = distribution_at(
        model, start, 20.0, SolverEnvironment(**csr, device_number=1, num_devices=2)
    )
    assert (one.cost.engine, two.cost.engine) == ("GPU 0", "GPU 1+2")
    np.testing.assert_array_equal(one.values, two.values)
    assert one.iterations == two.iterations
    assert "shared among 2 GPUs" in two.note
    for count in (1, 2):
        little = SolverEnvironment(**csr, device_memory=1000, num_devices=count)
        left = distribution_at(model, start, 20.0, little)
        assert left.cost.engine == "CPU"
        assert "needed for rows and sums" in left.note
        assert "solving on the CPU" in left.note
        np.testing.assert_allclose(left.values, one.values, rtol=1e-12)


def test_the_rows_of_a_block_are_added_up_as_those_of_the_whole(gpus, monkeypatch):
    gpus(2)
    asked = []

    def sharers(system, _matrix_format):
        asked.append(system)
        return "thread"

    monkeypatch.setattr(on_gpu, "sharers", sharers)
    problem = drawn(2)
    several_sums.sum_powers(problem, None, (0, 1))
    assert [system is problem.system for system in asked] == [True, True]


@given(st.integers(0, 1000), st.integers(1, 9), st.sampled_from([1.0, 0.6]))
def test_the_blocks_of_a_sum_are_its_rows(seed, pieces, share):
    problem = drawn(seed, share=share)
    blocks = sum_blocks(problem, pieces)
    assert len(blocks) <= pieces
    np.testing.assert_array_equal(np.concatenate([b.stay for b in blocks]), problem.stay)
    first = on_gpu.first_term(problem)
    np.testing.assert_array_equal(np.concatenate([on_gpu.first_term(b) for b in blocks]), first)
    states = problem.system.states
    states = np.arange(problem.system.num_states) if states is None else states
    np.testing.assert_array_equal(np.concatenate([b.system.states for b in blocks]), states)
    for block in blocks:
        assert len(block.stay) == block.system.num_updates
        assert block.weights is problem.weights
        assert (block.last, block.rate, block.before) == (problem.last, problem.rate, 0.25)


CHOSEN = (Kind.GPU_REFUSED(reason="of another one"),)


def test_the_engine_says_on_how_many_devices(monkeypatch):
    asked = []

    def kept(_problem, _progress, *how):
        asked.append(how)
        raise DeviceMemoryError("no room")

    monkeypatch.setattr("engines.cuda.several_sums.sum_powers", kept)
    monkeypatch.setattr("engines.cuda.uniformise.sum_powers", kept)
    problem = drawn(1)
    settings = SolverEnvironment(device_number=2, matrix_format=Format.VALUES, device_memory=99)
    for engine in (CudaEngine(2), SeveralEngine((2, 3))):
        monkeypatch.setattr(powers, "choose_engine", lambda *_: (engine, CHOSEN))  # noqa: B023
        done, events = powers.sum_powers(problem, settings, None)
        assert done.cost.engine == "CPU"
        assert events == (Kind.MOVED_TO_CPU(reason="no room"),)
    assert asked == [(2, Format.VALUES, 99), ((2, 3), Format.VALUES, 99)]
