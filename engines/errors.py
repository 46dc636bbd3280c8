"""The errors that prism-gpu raises on purpose; each says what was wrong, where, and what to do."""

from __future__ import annotations


class InvalidModelError(ValueError):
    """A model breaks a rule of its kind: a target out of range, a negative rate, a NaN."""


class ModelSizeError(InvalidModelError):
    """A model is larger than was allowed; the message is that of `-maxstates`.

    Parameters
    ----------
    most
        How many there may be.
    what
        Of what, such as "states" or "transitions".
    """

    def __init__(self, most: int, what: str) -> None:
        super().__init__(f"The model has more than {most} {what}, the limit that -maxstates sets")
        self.most = most
        self.what = what


class UnsupportedError(NotImplementedError):
    """The engines cannot do what was asked; the message is the reason that the log shows."""


class ConvergenceError(RuntimeError):
    """An iterative method did not converge within the allowed number of iterations."""


class DeviceMemoryError(MemoryError):
    """The device cannot hold the model; the message names the bytes wanted and the bytes free."""


class BridgeError(RuntimeError):
    """PRISM, Java or the link between them is missing or unusable."""


class CacheError(BridgeError, UnsupportedError):
    """No folder can be used for what is built and executed; the message says why, for each."""


def amount_text(size: int) -> str:
    """Return a number of bytes as messages name it: `3.1 GiB`."""
    amount, unit = float(max(size, 0)), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024.0:
            break
        amount, unit = amount / 1024.0, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
