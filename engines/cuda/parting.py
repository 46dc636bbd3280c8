"""How the states of a search for components are parted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Parting:
    """How the states of a question are parted; arrays are on the device, None for empty sets.

    Parameters
    ----------
    by_regions
        Whether the leader of an open state is its region so far: a number that is the same in all
        of a component.
    cut, barred
        Bitmaps of edges forwards, and of the rows that these make up, that do not count.
    cut_behind
        Bitmap of edges backwards: those of `cut` that are not in barred rows.
    parts
        How many parts the numbers of states were last seen to tell of.
    is_parted
        Whether regions have been parted by numbers.
    is_crossed
        Whether edges backwards between regions still count.
    is_deep
        Whether trimming or a search has taken many rounds.
    met
        Two bitmaps of states, by which regions are to be parted; None for neither.
    """

    by_regions: bool
    cut: Any | None
    barred: Any | None
    cut_behind: Any | None = None
    parts: int = 1
    is_parted: bool = False
    is_crossed: bool = False
    is_deep: bool = False
    met: tuple[Any, Any] | None = None
