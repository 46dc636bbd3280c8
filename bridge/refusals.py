"""What ends a command or a property, in the form of text that PRISM gives its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, SolverEnvironment

if TYPE_CHECKING:
    from prism_hooks.options import HookOptions

FORMATS_OF_CPU = (Format.AUTO, Format.CSR, Format.VALUES, Format.PATTERNS)
"""The formats that the CPU engine knows."""


def fault_text(error: BaseException) -> str:
    """Return what an exception says.

    Parameters
    ----------
    error
        Of the system's errors the text is the cause, and the file where there is one; of an
        array that could not be allocated it says that memory has run out; an exception without a
        text gives its own name.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, MemoryError) and not isinstance(error, DeviceMemoryError):
        cause = str(error).rstrip(".")
        return f"prism-gpu ran out of memory{f': {cause}' if cause else ''}"
    return str(error) or type(error).__name__


def error_line(error: BaseException) -> str:
    """Return an exception as PRISM prints an error, after an empty line.

    Parameters
    ----------
    error
        The exception.
    """
    text = fault_text(error).rstrip(".")
    # The last line may be a mark that points at a place in the line above.
    return f"\nError: {text}" if text.endswith("^") else f"\nError: {text}."


def require_gpu(device_number: int, *, opened: bool = True) -> None:
    """Refuse to go on without a GPU, where `-gpu` was given.

    Parameters
    ----------
    device_number
        Which GPU.
    opened
        Whether it is opened for that; else its driver is asked, which takes less time.

    Raises
    ------
    UnsupportedError
        Saying why it cannot be used.
    """
    from engines.cuda.driver import early_refusal, gpu_refusal

    refusal = (gpu_refusal if opened else early_refusal)(device_number)
    if refusal is not None:
        raise UnsupportedError(f"-gpu was given, but no GPU can be used: {refusal}")


def unused_switches(hooks: HookOptions | SolverEnvironment) -> str | None:
    """Return a remark on switches that only a GPU heeds, where no GPU can be used; else None.

    Parameters
    ----------
    hooks
        What the command line says about the engines.
    """
    named = []
    if hooks.matrix_format not in FORMATS_OF_CPU:
        named.append(f"-gpuformat {hooks.matrix_format}")
    if hooks.num_devices != 1:
        named.append(f"-gpudevices {hooks.num_devices or 'all'}")
    if hooks.device_memory is not None:
        named.append("-gpumaxmem")
    if hooks.device_number:
        named.append(f"-gpudevice {hooks.device_number}")
    if not named:
        return None
    reason: str | None = "-nogpu was given"
    if hooks.device is not DeviceChoice.CPU:
        from engines.cuda.driver import early_refusal

        reason = early_refusal(hooks.device_number)
    if reason is None:
        return None
    return f"prism-gpu: without effect, as no GPU is used: {', '.join(named)} ({reason})"
