"""Several GPUs: the iterates of one, whoever computes them; one device may stand for several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.backend import choose_engine
from engines.cuda.engine import CudaEngine
from engines.cuda.several import SeveralEngine, SeveralSweeper
from engines.environment import DeviceChoice, Method, SolverEnvironment
from engines.errors import UnsupportedError
from engines.formats.choice import Format
from engines.steady_state import solve_steady_state
from engines.system import Scaling, SweepSystem
from tests.gpu import big
from tests.gpu.test_split import SIZE, SYSTEMS, chain

SWEEPS = 150


@pytest.fixture(params=[(0, 0), (0, 0, 0), "all"])
def devices(request, gpu):
    """Names of devices: one that stands for several, and all that there are."""
    if request.param != "all":
        return request.param
    count = gpu.cuda.runtime.getDeviceCount()
    if count == 1:
        pytest.skip("there is one GPU")
    return tuple(range(count))


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
    assert f"shared out among {len(devices)} GPUs" in shared.cost.remark
    np.testing.assert_allclose(values_shared, values, rtol=1e-12)
    np.testing.assert_allclose(changes_shared, changes, rtol=1e-6, atol=1e-12)
    assert residual_shared == pytest.approx(residual, rel=1e-6, abs=1e-12)


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
    assert "not shared out among 2 GPUs: the rows are not in the order" in sweeper.cost.remark


def test_more_devices_than_there_are_is_an_error(gpu):
    count = gpu.cuda.runtime.getDeviceCount() + 1
    settings = SolverEnvironment(device=DeviceChoice.GPU, num_devices=count)
    with pytest.raises(UnsupportedError, match=f"GPUs from number 0 on, not {count}"):
        choose_engine(settings, chain(Scaling.NONE))
