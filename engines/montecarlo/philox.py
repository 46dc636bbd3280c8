"""Random numbers that are a function of the seed, the path and the place within the path.

Philox4x32-10 turns a counter of 128 bits under a key of 64 bits into 128 random bits. The key is
the seed; the counter's upper half is the path number, its lower half the number of the block within
the path, and each block gives two draws of 64 bits. So path i of a seed is the same wherever, in
whatever order and in however large batches paths are sampled.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
1, 2, 3, SC 2011.
"""

from __future__ import annotations

_MASK = 2**32 - 1
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10

Words = tuple[int, int, int, int]


def philox4x32(counter: Words, key: tuple[int, int]) -> Words:
    """Return the block of a counter under a key; all are words of 32 bits."""
    a, b, c, d = counter
    k, l_ = key
    for _ in range(ROUNDS):
        first, second = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b, c, d = (
            (second >> 32) ^ b ^ k,
            second & _MASK,
            (first >> 32) ^ d ^ l_,
            first & _MASK,
        )
        k, l_ = (k + _WEYL[0]) & _MASK, (l_ + _WEYL[1]) & _MASK
    return a, b, c, d


class Stream:
    """The draws of one path, one after another.

    Parameters
    ----------
    seed, path
        Of 64 bits each.
    """

    def __init__(self, seed: int, path: int) -> None:
        self._key = seed & _MASK, seed >> 32 & _MASK
        self._path = path & _MASK, path >> 32 & _MASK
        self._block = 0
        self._waiting: int | None = None

    def draw(self) -> int:
        """Return the next 64 random bits."""
        if self._waiting is not None:
            value, self._waiting = self._waiting, None
            return value
        counter = (self._block & _MASK, self._block >> 32 & _MASK, *self._path)
        a, b, c, d = philox4x32(counter, self._key)
        self._block += 1
        self._waiting = d << 32 | c
        return b << 32 | a


def unit(bits: int) -> float:
    """Return a multiple of 2⁻⁵³ in [0, 1), of the upper 53 of 64 bits."""
    return (bits >> 11) * 2.0**-53


def positive_unit(bits: int) -> float:
    """Return a multiple of 2⁻⁵³ in (0, 1]."""
    return ((bits >> 11) + 1) * 2.0**-53


def split(bits: int, count: int) -> tuple[int, int]:
    """Return a whole number below `count` < 2³², and 64 bits that are left of the draw.

    Each number has the probability 1/count up to 2⁻⁶⁴, and given the number the bits that are left
    are uniform up to count · 2⁻⁶⁴.
    """
    product = bits * count
    return product >> 64, product & (2**64 - 1)
