"""What the limits of a process leave of the host's memory."""

from __future__ import annotations

import resource

import pytest

from engines.host.expansion import room

MEGABYTE = 1 << 20


@pytest.fixture
def taken(monkeypatch, tmp_path):
    status = tmp_path / "status"
    status.write_text(
        "Name:\tpython\nVmSize:\t  307200 kB\nVmData:\t  102400 kB\n", encoding="utf-8"
    )
    monkeypatch.setattr(room, "OWN_STATUS", status)


@pytest.mark.parametrize(
    ("addresses", "data", "left"),
    [
        (500 * MEGABYTE, resource.RLIM_INFINITY, 200 * MEGABYTE),
        (resource.RLIM_INFINITY, 150 * MEGABYTE, 50 * MEGABYTE),
        (500 * MEGABYTE, 150 * MEGABYTE, 50 * MEGABYTE),
        (200 * MEGABYTE, resource.RLIM_INFINITY, 0),
    ],
)
@pytest.mark.usefixtures("taken")
def test_limits_of_the_process_bound_what_is_free(monkeypatch, addresses, data, left):
    limits = {resource.RLIMIT_AS: addresses, resource.RLIMIT_DATA: data}
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limits[what], resource.RLIM_INFINITY))
    assert room.available_host_bytes() == left
    assert not room.fits_expanded(left + 1).fits


@pytest.mark.usefixtures("taken")
def test_without_limits_nothing_is_taken_away(monkeypatch):
    free = room.available_host_bytes()
    monkeypatch.setattr(resource, "getrlimit", lambda _: 2 * (resource.RLIM_INFINITY,))
    assert room.available_host_bytes() == pytest.approx(free, rel=0.5)
    assert free > 300 * MEGABYTE
