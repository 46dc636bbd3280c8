"""How much a number is rounded when it is stored in single precision."""

from __future__ import annotations

TO_NEAREST = 2.0**-24
DOWN = 2.0**-23
"""What a number loses at most when it is stored in single precision, relative to it."""
