"""Several GPUs: the iterates of one, whoever computes them; one device may stand for several."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.driver import cupy
from engines.cuda.engine import CudaEngine
from engines.cuda.meeting import ByFlags, MeetingTuning
from engines.cuda.queued import STRETCH
from engines.cuda.several import SeveralEngine, SeveralSweeper
from engines.devices.choice import choose_engine
from engines.devices.colours import GaussSeidelScheme
from engines.errors import UnsupportedError
from engines.host.colours import Order
from engines.host.scaling import scaled
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.events import told
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.gpu import big
from tests.gpu.test_formats import MATRICES
from tests.gpu.test_split import SIZE, SYSTEMS, chain

SWEEPS = 150
"""Two whole stretches and a piece of one."""


def uneven(size):
    """Rows of one to eight entries, the longer the later, all within 3000 states and one beyond."""
    rng = np.random.default_rng(7)
    lengths = 1 + 8 * np.arange(size) // size
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    row = np.repeat(np.arange(size), lengths)
    columns = np.clip(row + rng.integers(-1500, 1500, len(row)), 0, size - 1)
    columns[-1] = 10
    values = rng.uniform(0.1, 1.0, len(row)) / lengths[row]
    return CsrMatrix(offsets, columns.astype(np.int32), values, size)


def ring(rate):
    """Each state takes the mean of its neighbours, times a rate, which changes contract by."""
    columns = (np.arange(SIZE)[:, None] + [-1, 1]) % SIZE
    offsets = np.arange(0, 2 * SIZE + 1, 2, dtype=np.int32)
    values = np.full(2 * SIZE, rate / 2)
    matrix = CsrMatrix(offsets, columns.ravel().astype(np.int32), values, SIZE)
    return SweepSystem(matrix, np.linspace(1.0, 2.0, SIZE))


def named(states):
    """Jacobi for some of the states of a chain, with a right-hand side."""
    system = replace(chain(Scaling.DIAGONAL), offset=np.linspace(0.0, 1.0, SIZE))
    matrix = system.matrix
    keep = np.isin(matrix.row_of_entry(), states)
    offsets = np.concatenate(([0], np.cumsum(matrix.row_lengths()[states]))).astype(np.int32)
    part = CsrMatrix(offsets, matrix.columns[keep], 1e-2 * matrix.values[keep], SIZE)
    return replace(system, matrix=part, offset=system.offset[states], states=states)


CASES = {
    **SYSTEMS,
    "unequal rows": lambda: SweepSystem(uneven(SIZE), np.linspace(1.0, 2.0, SIZE)),
    "a run of states": lambda: named(np.arange(100, SIZE - 7, dtype=np.int32)),
    "states here and there": lambda: named(np.flatnonzero(np.arange(SIZE) % 5).astype(np.int32)),
}
NEARBY = "unequal rows"


def swept(engine, system):
    sweeper = engine.sweeper(system, -1.0, False)
    changes = sweeper.run(SWEEPS)
    more = sweeper.run(3)
    return sweeper, np.append(changes, more), sweeper.residual(), sweeper.values()


@pytest.mark.parametrize("matrix_format", [Format.CSR, Format.AUTO])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_iterates_as_on_one(name, matrix_format, devices):
    system = SYSTEMS[name]()
    _, changes, residual, values = swept(CudaEngine(0, matrix_format), system)
    shared, changes_shared, residual_shared, values_shared = swept(
        SeveralEngine(devices, matrix_format), system
    )
    assert isinstance(shared, SeveralSweeper)
    assert f"shared among {len(devices)} GPUs" in told(shared.cost.events)
    np.testing.assert_allclose(values_shared, values, rtol=1e-12)
    np.testing.assert_allclose(changes_shared, changes, rtol=1e-6, atol=1e-12)
    assert residual_shared == pytest.approx(residual, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("early", [False, True], ids=["late", "early"])
@pytest.mark.parametrize("name", CASES)
def test_the_digits_are_those_of_one(name, early, devices, monkeypatch):
    monkeypatch.setattr("engines.cuda.sweeper.LONG_SWEEP_BYTES", 0 if early else 2**60)
    # Scaled on the host for both: exit rates are added up in another order on the device.
    system = scaled(CASES[name]())
    _, *alone = swept(CudaEngine(0), system)
    shared, *together = swept(SeveralEngine(devices), system)
    assert isinstance(shared, SeveralSweeper)
    assert shared._early is early
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, expected)
    runs = name != "states here and there"
    assert [part.rows.device.states is None for part in shared._parts] == [runs] * len(devices)


@pytest.mark.parametrize("matrix_format", [Format.VALUES, Format.PATTERNS])
@pytest.mark.parametrize("choices", [False, True])
def test_columns_before_a_block_are_read_in_every_format(matrix_format, choices, devices):
    matrix = MATRICES["tandem-like"]()
    matrix = replace(matrix, values=0.9 * matrix.values / matrix.row_sums().max())
    size = matrix.num_rows
    system = SweepSystem(matrix, np.linspace(1.0, 2.0, size), np.arange(size) % 3 / 4.0)
    if choices:
        groups = np.arange(0, size + 1, 2, dtype=np.int32)
        states = np.arange(size // 2, size, dtype=np.int32)
        system = replace(system, group_offsets=groups, states=states, direction=Direction.MAXIMISE)
    _, changes, residual, values = swept(CudaEngine(0), system)
    shared, changes_shared, residual_shared, values_shared = swept(
        SeveralEngine(devices, matrix_format), system
    )
    assert shared.cost.format == str(matrix_format)
    assert all(part.rows.device.states is None for part in shared._parts)
    np.testing.assert_allclose(values_shared, values, rtol=1e-12)
    np.testing.assert_allclose(changes_shared, changes, rtol=1e-6, atol=1e-12)
    assert residual_shared == pytest.approx(residual, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("met", [1, 63, 64, 65, 100, 129])
def test_all_stop_in_the_middle_of_a_stretch(met, devices):
    system = ring(0.97)
    alone = CudaEngine(0).sweeper(system, -1.0, True)
    changes = alone.run(met)
    assert changes[-1] < changes[:-1].min(initial=np.inf)
    shared = SeveralEngine(devices).sweeper(system, np.nextafter(changes[-1], np.inf), True)
    np.testing.assert_array_equal(shared.run(5 * STRETCH), changes)
    np.testing.assert_array_equal(shared.values(), alone.values())
    assert shared.residual() == alone.residual()
    assert shared.run(STRETCH).tolist() == [changes[-1]]
    # A lower threshold: the graphs are captured again, and all go on.
    shared.stop_at(-1.0)
    np.testing.assert_array_equal(shared.run(STRETCH + 1), alone.run(STRETCH + 1))
    np.testing.assert_array_equal(shared.values(), alone.values())


def test_many_stretches_of_either_parity(devices):
    system = scaled(CASES["Jacobi"]())
    alone, shared = (
        e.sweeper(system, -1.0, False) for e in (CudaEngine(0), SeveralEngine(devices))
    )
    for count in (640, 1, 640, 64, 63, 65, 128, 7, 1280):
        np.testing.assert_array_equal(shared.run(count), alone.run(count))
        np.testing.assert_array_equal(shared.values(), alone.values())


def test_only_double_precision(devices):
    shared = SeveralEngine(devices).sweeper(CASES["balance"](), -1.0, False)
    with pytest.raises(UnsupportedError, match="several GPUs sweep in double precision"):
        shared.in_single(-1.0, False)


def test_names_of_states_that_form_a_run_are_not_read(devices):
    system = scaled(CASES[NEARBY]())
    alone = CudaEngine(0).sweeper(system, -1.0, False)
    shared = SeveralEngine(devices).sweeper(system, -1.0, False)
    # Each block has one offset more than it has rows.
    more = 4 * (len(devices) - 1)
    assert shared.cost.bytes_per_sweep == alone.cost.bytes_per_sweep + more


def test_devices_meet_by_flags_unless_they_send_much(all_devices):
    system = scaled(CASES[NEARBY]())
    flags = SeveralEngine(all_devices).sweeper(system, -1.0, False)
    assert told(flags.cost.events).endswith("synchronised by flags")
    little = MeetingTuning(most_stored_bytes=0)
    events = SeveralEngine(all_devices, meeting=little).sweeper(system, -1.0, False)
    assert told(events.cost.events).endswith("synchronised by events")
    np.testing.assert_array_equal(flags.run(SWEEPS), events.run(SWEEPS))
    np.testing.assert_array_equal(flags.values(), events.values())


def test_two_solves_by_turns(all_devices):
    system = scaled(CASES["balance"]())
    whole = CudaEngine(0).sweeper(system, -1.0, False)
    expected = [whole.run(STRETCH) for _ in range(5)]
    sweepers = [SeveralEngine(all_devices).sweeper(system, -1.0, False) for _ in range(2)]
    for changes in expected:
        for sweeper in sweepers:
            np.testing.assert_array_equal(sweeper.run(STRETCH), changes)


def met_by_hand():
    """Two parts on one GPU, of which each meets only when it is told to."""
    sweeper = SeveralEngine((0, 0)).sweeper(CASES[NEARBY](), -1.0, False)
    assert told(sweeper.cost.events).endswith("synchronised by events")
    flags = ByFlags(sweeper._parts, MeetingTuning(patience_s=0.25))
    for part, size in zip(sweeper._parts, (3.0, 5.0), strict=True):
        for vector in part.vectors:
            vector.set(np.full(SIZE, size))
        part.changes.set(np.full(STRETCH + 1, size))
    # What is copied from pageable memory may still be on its way, and other streams do not wait.
    cupy().cuda.runtime.deviceSynchronize()
    return sweeper, flags


def test_a_meeting_sends_what_is_read_and_the_largest_change():
    sweeper, flags = met_by_hand()
    first, second = sweeper._parts
    begin, end = first.sends[1]
    assert 0 < begin < end < SIZE
    # Each has come to the first meetings already, as far as the other knows.
    for place, number in ((0, 2), (1, 1)):
        inbox = np.zeros((3, 2), dtype=np.uint64)
        inbox[0, 1 - place] = number
        inbox[1:, 1 - place] = np.array([4.0, 7.0]).view(np.uint64)
        flags._inboxes[place].set(inbox)
    cupy().cuda.runtime.deviceSynchronize()
    flags._come(0, 5, 1)
    first.stream.synchronize()
    assert float(first.merged.get()[5]) == 7.0
    assert (second.vectors[1].get() == np.where(is_in(begin, end), 3.0, 5.0)).all()
    assert (second.vectors[0].get() == 5.0).all()
    told = flags._inboxes[1].get()
    assert told[0].tolist() == [1, 0]
    assert told[1:, 0].view(np.float64).tolist() == [4.0, 3.0]
    flags._come(0, 6, 0)
    first.stream.synchronize()
    assert float(first.merged.get()[6]) == 4.0
    assert (second.vectors[0].get() == np.where(is_in(begin, end), 3.0, 5.0)).all()
    flags._come(1, 5, 1)
    second.stream.synchronize()
    assert float(second.merged.get()[5]) == 5.0
    assert [own.get().tolist() for own in flags._own] == [[2, 0, 0], [1, 0, 0]]
    flags.require_all()


def is_in(begin, end):
    return (np.arange(SIZE) >= begin) & (np.arange(SIZE) < end)


def test_a_device_that_does_not_come_is_an_error_and_no_number():
    sweeper, flags = met_by_hand()
    sweeper._meetings.by_flags = flags
    sweeper.values()
    began = time.perf_counter()
    for _ in range(20):
        flags._come(1, 1, 0)
    sweeper._parts[1].stream.synchronize()
    # It is waited for once.
    assert 0.25 <= time.perf_counter() - began < 2.5
    for look in (flags.require_all, sweeper.values, sweeper.residual, lambda: sweeper.run(1)):
        with pytest.raises(UnsupportedError, match=r"GPU 0 has waited 0\.25 s for GPU 0"):
            look()


def test_a_solve_ends_at_the_same_sweep(devices):
    settings = SolverEnvironment(device=DeviceChoice.GPU, method=Method.JOR)
    model = big.random_rates(3, SIZE)
    whole = solve_steady_state(model, np.ones(SIZE, np.bool_), settings)
    system = SweepSystem(
        model.matrix, np.full(SIZE, 1.0 / SIZE), scaling=Scaling.BALANCE, omega=settings.omega
    )
    sweeper = SeveralEngine(devices).sweeper(system, settings.epsilon, settings.absolute)
    made = 0
    while made < whole.iterations:
        changes = sweeper.run(64)
        made += len(changes)
        if changes[-1] < settings.epsilon:
            break
    assert made == whole.iterations
    values = sweeper.values()
    np.testing.assert_allclose(values / values.sum(), whole.values, rtol=1e-9)


def test_only_what_others_read_is_sent():
    line = SIZE
    offsets = np.arange(0, 2 * line + 1, 2, dtype=np.int32)
    ahead = np.minimum(np.arange(line) + 1, line - 1)
    behind = np.maximum(np.arange(line) - 1, 0)
    columns = np.stack((behind, ahead), axis=1).ravel().astype(np.int32)
    matrix = replace(chain(Scaling.NONE).matrix, row_offsets=offsets, columns=columns)
    matrix = replace(matrix, values=np.full(2 * line, 0.5))
    sweeper = SeveralEngine((0, 0)).sweeper(SweepSystem(matrix, np.ones(line)), -1.0, False)
    sent = [end - begin for part in sweeper._parts for begin, end in part.sends.values()]
    assert sent == [1, 1]


def test_rows_out_of_order_are_swept_on_one_device_with_a_remark():
    system = chain(Scaling.NONE)
    backwards = np.arange(SIZE - 1, -1, -1, dtype=np.int32)
    sweeper = SeveralEngine((0, 0)).sweeper(replace(system, states=backwards), -1.0, False)
    assert not isinstance(sweeper, SeveralSweeper)
    assert "not shared among 2 GPUs: the rows are not in the order" in told(sweeper.cost.events)


def test_what_one_sweeps_alone_is_remarked(devices):
    system = CASES["balance"]()
    engine = GaussSeidelScheme(SeveralEngine(devices), Order.FORWARDS)
    note = told(engine.sweeper(system, -1.0, False).events)
    assert f"not shared among {len(devices)} GPUs: one sweeps in colours" in note


def test_more_devices_than_there_are_is_an_error(gpu):
    count = gpu.cuda.runtime.getDeviceCount() + 1
    settings = SolverEnvironment(device=DeviceChoice.GPU, num_devices=count)
    with pytest.raises(UnsupportedError, match=f"GPUs from number 0 on, not {count}"):
        choose_engine(settings, chain(Scaling.NONE))
