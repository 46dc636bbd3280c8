"""The random numbers: known blocks, independence of the batch, uniformity."""

from __future__ import annotations

import pytest

from engines.montecarlo.philox import Stream, philox4x32, positive_unit, split, unit

FULL = 2**32 - 1
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [
        # the known answers that come with the authors' library Random123
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (PI, (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_blocks_are_those_of_the_authors(counter, key, block):
    assert philox4x32(counter, key) == block


def test_a_stream_is_a_function_of_seed_and_path():
    first = Stream(7, 3)
    draws = [first.draw() for _ in range(5)]
    again, other_path, other_seed = Stream(7, 3), Stream(7, 4), Stream(8, 3)
    assert [again.draw() for _ in range(5)] == draws
    assert not {other_path.draw(), other_seed.draw()} & set(draws)


def test_a_stream_takes_both_halves_of_each_block():
    a, b, c, d = philox4x32((0, 0, 5, 0), (9, 0))
    e, f, _, _ = philox4x32((1, 0, 5, 0), (9, 0))
    stream = Stream(9, 5)
    assert [stream.draw() for _ in range(3)] == [b << 32 | a, d << 32 | c, f << 32 | e]


def test_seed_and_path_have_64_bits():
    blocks = {Stream(s, p).draw() for s in (1, 1 << 40) for p in (2, 2 << 40)}
    assert len(blocks) == 4


def test_units_lie_where_they_should():
    assert unit(0) == 0.0
    assert unit(2**64 - 1) == 1.0 - 2.0**-53
    assert positive_unit(0) == 2.0**-53
    assert positive_unit(2**64 - 1) == 1.0


def test_a_split_draw_is_uniform_and_so_is_what_is_left_of_it():
    counts, left_below = [0] * 6, 0
    stream = Stream(1, 0)
    for _ in range(6000):
        which, left = split(stream.draw(), 6)
        counts[which] += 1
        left_below += unit(left) < 0.25
    assert all(abs(count - 1000) < 5 * 29 for count in counts)  # 5 standard deviations
    assert abs(left_below - 1500) < 5 * 34
