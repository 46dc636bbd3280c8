"""How several GPUs meet, as far as that needs no GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engines.cuda.meeting import ByFlags, MeetingTuning, flags_serve
from engines.errors import UnsupportedError


def parts(*devices, sends=()):
    """Parts of which only places and ranges count."""
    made = [SimpleNamespace(device=device, sends={}) for device in devices]
    for place, reader, begin, end in sends:
        made[place].sends[reader] = (begin, end)
    return made


def test_flags_serve_where_each_device_is_named_once():
    assert flags_serve(parts(0))
    assert flags_serve(parts(0, 1))
    assert flags_serve(parts(3, 1, 2))
    assert not flags_serve(parts(0, 0))
    assert not flags_serve(parts(0, 1, 0))


def test_flags_serve_as_many_devices_as_a_warp_has_threads():
    assert flags_serve(parts(*range(32)))
    assert not flags_serve(parts(*range(33)))


def test_what_is_long_is_copied():
    states = MeetingTuning().most_stored_bytes // 8
    two = [(0, 1, 5, 5 + states), (1, 0, 0, states)]
    assert flags_serve(parts(0, 1, sends=two))
    assert not flags_serve(parts(0, 1, sends=[*two[:1], (1, 0, 0, states + 1)]))


def test_who_was_missing_is_named():
    flags = ByFlags.__new__(ByFlags)
    flags._parts, flags._missing = parts(4, 5, 7), [0, 0, 0]
    flags._tuning = MeetingTuning(patience_s=20.0)
    flags.require_all()
    flags._missing[1] = 3
    with pytest.raises(UnsupportedError, match="GPU 5 has waited 20 s for GPU 7 between"):
        flags.require_all()
