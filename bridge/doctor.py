"""`prism-gpu doctor`: what a run needs, what is there, and the command that gets the rest."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from bridge.install import find_java, find_prism, require_compiler
from bridge.versions import NoPrismError, RequirementError, supported_release
from engines.errors import BridgeError, UnsupportedError

# Import name → distribution. Without any of these no run works; CuPy is looked at apart.
_PACKAGES = {"numpy": "numpy", "scipy": "scipy", "jpype": "jpype1"}
# Where no PRISM was named or found, the embedded front end needs none of these.
_FOR_PRISM_ONLY = ("PRISM", "Java", "jpype1", "cache folder")
_BYTE_CODE = "byte code"
_NOT_OF_THE_GPU = (*_FOR_PRISM_ONLY, "C compiler", _BYTE_CODE)
_CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_CPU_INSTEAD = "runs use the CPU engine"
# Good, missing, missing but not required, remedy.
_MARKS = ("\N{CHECK MARK}", "\N{BALLOT X}", "\N{EN DASH}", "\N{RIGHTWARDS ARROW}")
_ASCII_MARKS = ("+", "x", "-", "->")


class _Attribute(IntEnum):
    """What a device can be asked for: of the driver's `CUdevice_attribute`, the two in use."""

    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


@dataclass(frozen=True)
class Finding:
    """One line of the examination.

    Attributes
    ----------
    name : str
        What was looked for.
    ok : bool
        Whether it is there and usable.
    required : bool
        Whether no run works without it. The GPU is not: without one, runs use the CPU. Nor is
        PRISM, with all that only PRISM needs, where there is none: models are built here then.
    detail : str
        What was found, or what is wrong.
    remedy : str or None
        What to do, where something is wrong.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    remedy: str | None = None


def examine(prism_dir: str | None = None) -> list[Finding]:
    """Look for all that a run needs. Starts neither a JVM nor, without CuPy, a GPU.

    Parameters
    ----------
    prism_dir : str, optional
        The folder named with `--prism-dir`.

    Returns
    -------
    list of Finding
        The required ones first.
    """
    findings = [_prism(prism_dir), _java()]
    findings += [_package(name, distribution) for name, distribution in _PACKAGES.items()]
    findings += [_compiled_library(), _cache_folder()]
    if not findings[0].ok and _no_prism_at_all(prism_dir):
        findings = [
            replace(found, required=found.name not in _FOR_PRISM_ONLY) for found in findings
        ]
    findings += [_c_compiler(), *_byte_code()]
    driver = cuda_driver_version()
    findings += [_driver(driver), _cupy(driver), _nvrtc(driver), *_gpus(driver)]
    return findings


def would_run(findings: list[Finding]) -> bool:
    """Tell whether nothing required is missing."""
    return all(finding.ok for finding in findings if finding.required)


def report(findings: list[Finding]) -> str:
    """Lay the findings out as a table.

    Parameters
    ----------
    findings : list of Finding
        From `examine`.

    Returns
    -------
    str
        A line each, its remedy below it, the verdict last; plain ASCII marks where the encoding
        of the standard output has no others.
    """
    encoding = sys.stdout.encoding or "ascii"
    good, bad, absent, arrow = _MARKS
    try:
        "".join(_MARKS).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        good, bad, absent, arrow = _ASCII_MARKS
        encoding = "ascii"
    width = max((len(finding.name) for finding in findings), default=0)
    lines = []
    for finding in findings:
        mark = good if finding.ok else bad if finding.required else absent
        first, *more = finding.detail.splitlines() or [""]
        lines.append(f"{mark} {finding.name:<{width}}  {first}".rstrip())
        lines += [" " * (width + 4) + line for line in more]
        if finding.remedy and not finding.ok:
            lines.append(" " * (width + 4) + f"{arrow} {finding.remedy}")
    lines += ["", _verdict(findings)]
    return "\n".join(lines).encode(encoding, "backslashreplace").decode(encoding)


def doctor(prism_dir: str | None) -> int:
    """Print what was found, what is missing and the command that gets it.

    Parameters
    ----------
    prism_dir : str or None
        The folder named with `--prism-dir`.

    Returns
    -------
    int
        The exit code: 0 only if a run would work, on the CPU at least.
    """
    findings = examine(prism_dir)
    print(report(findings))
    return 0 if would_run(findings) else 1


def cuda_driver_version() -> tuple[int, int] | None:
    """Ask the NVIDIA driver for the newest CUDA version that it runs.

    Returns
    -------
    tuple of int or None
        (12, 8), or None where there is no driver. No GPU is touched.
    """
    library = _driver_library()
    version = ctypes.c_int()
    if library is None or library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def _verdict(findings: list[Finding]) -> str:
    missing = [finding.name for finding in findings if finding.required and not finding.ok]
    if missing:
        return f"prism-gpu cannot run yet: see {', '.join(missing)}."
    gpu = all(found.ok for found in findings if found.name not in _NOT_OF_THE_GPU)
    where = "on the GPU" if gpu else "on the CPU only"
    if any(found.name == "PRISM" and not found.ok for found in findings):
        return (
            f"prism-gpu can run, {where}: PRISM models, .umb and .tra files work now. What PRISM's "
            "own pipeline does besides needs PRISM 4.10 and a JDK."
        )
    return f"prism-gpu can run, {where}."


def _failed(name: str, error: BridgeError) -> Finding:
    if isinstance(error, RequirementError):
        return Finding(name, False, True, error.problem, error.remedy)
    return Finding(name, False, True, str(error))


def _compiled_library() -> Finding:
    from engines.host.compiled.library import LibraryMissingError, library

    name = "compiled library"
    try:
        return Finding(name, True, True, str(library()._name))
    except LibraryMissingError as error:
        return Finding(name, False, True, str(error))


def _c_compiler() -> Finding:
    """Look for what the CPU's sampler is compiled by."""
    from engines.program.native import compiler

    try:
        return Finding("C compiler", True, False, " ".join(compiler()))
    except UnsupportedError:
        detail = "none, so the CPU samples no paths (-sim)"
        return Finding("C compiler", False, False, detail, "apt-get install gcc (Debian, Ubuntu)")


def _byte_code() -> list[Finding]:
    """Look whether Python has kept what it compiled this package to; nothing where it has."""
    if Path(importlib.util.cache_from_source(__file__)).exists():
        return []
    remedy = "unset PYTHONDONTWRITEBYTECODE"
    if not sys.dont_write_bytecode:
        # Whoever may write there has to do it.
        remedy = f"{sys.executable} -m compileall -q {Path(__file__).parents[1]}"
    detail = "not kept, so Python compiles anew in every run, which takes up to a second"
    return [Finding(_BYTE_CODE, False, False, detail, remedy)]


def _prism(prism_dir: str | None) -> Finding:
    try:
        install = find_prism(prism_dir)
        supported_release(install.version, install.root)
    except BridgeError as error:
        return _failed("PRISM", error)
    kind = "source build" if install.class_location.is_dir() else "binary distribution"
    detail = f"{install.version} in {install.root} ({kind}, found by {install.found_by})"
    return Finding("PRISM", True, True, detail)


def _no_prism_at_all(prism_dir: str | None) -> bool:
    try:
        find_prism(prism_dir)
    except NoPrismError:
        return True
    except BridgeError:
        pass
    return False


def _java() -> Finding:
    try:
        java = find_java()
        require_compiler(java)
    except BridgeError as error:
        return _failed("Java", error)
    vendor = f" by {java.vendor}" if java.vendor else ""
    detail = f"{java.version}{vendor} in {java.home} (with compiler, found by {java.found_by})"
    return Finding("Java", True, True, detail)


def _package(name: str, distribution: str) -> Finding:
    try:
        importlib.import_module(name)
    except Exception as error:  # a package built for another NumPy raises whatever it likes
        remedy = f"pip install --force-reinstall {distribution}"
        return Finding(distribution, False, True, f"cannot be imported: {error}", remedy)
    return Finding(distribution, True, True, _distribution_version(distribution) or "importable")


def _distribution_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cache_folder() -> Finding:
    name = "cache folder"
    try:
        from engines.process.cache import cache_folder

        return Finding(name, True, True, str(cache_folder()))
    except BridgeError as error:
        return _failed(name, error)
    except ImportError as error:
        return Finding(name, False, True, f"cannot be used: {error}", None)


def _driver_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _driver(driver: tuple[int, int] | None) -> Finding:
    name = "CUDA driver"
    if driver is None:
        return Finding(
            name,
            False,
            False,
            f"none, so {_CPU_INSTEAD}",
            "for an NVIDIA GPU: https://www.nvidia.com/drivers (a container needs --gpus all)",
        )
    number = f"{driver[0]}.{driver[1]}"
    if driver[0] < 12:
        return Finding(
            name,
            False,
            False,
            f"for CUDA {number}, older than CUDA 12, so {_CPU_INSTEAD}",
            "get a newer driver: https://www.nvidia.com/drivers",
        )
    return Finding(name, True, False, f"for CUDA {number}")


def _extra(driver: tuple[int, int]) -> str:
    return "cuda13x" if driver[0] >= 13 else "cuda12x"


def _cupy_installed() -> dict[str, str]:
    """CuPy's distributions and their versions, found without importing any."""
    versions = {name: _distribution_version(name) for name in _CUPY_DISTRIBUTIONS}
    return {name: version for name, version in versions.items() if version is not None}


def _cupy_found() -> bool:
    return bool(_cupy_installed()) or importlib.util.find_spec("cupy") is not None


def _cupy(driver: tuple[int, int] | None) -> Finding:
    installed = _cupy_installed()
    described = ", ".join(f"{name} {version}" for name, version in installed.items())
    install = f'pip install "prism-gpu[{_extra(driver)}]"' if driver else None
    if not installed:
        if _cupy_found():
            return Finding("CuPy", True, False, "installed")
        return Finding("CuPy", False, False, f"not installed, so {_CPU_INSTEAD}", install)
    if len(installed) > 1:
        wrong = f"{described}: more than one is installed, and they overwrite each other"
    elif driver and (needed := _cuda_of(installed)) is not None and needed > driver[0]:
        wrong = f"{described} needs a driver for CUDA {needed}, so {_CPU_INSTEAD}"
    else:
        return Finding("CuPy", True, False, described)
    remedy = f"pip uninstall {' '.join(installed)}" + (f" && {install}" if install else "")
    return Finding("CuPy", False, False, wrong, remedy)


def _cuda_of(installed: dict[str, str]) -> int | None:
    for name in installed:
        if name.startswith("cupy-cuda"):
            return int(name.removeprefix("cupy-cuda").removesuffix("x"))
    return None


def _nvrtc(driver: tuple[int, int] | None) -> Finding:
    """CuPy's wheels come without the run-time compiler; it must be installed beside them."""
    cuda = _cuda_of(_cupy_installed()) or (driver[0] if driver else None)
    for major in (cuda,) if cuda else (13, 12):
        for library in _nvrtc_libraries(major):
            found = _nvrtc_version(library)
            if found is not None:
                where = f" in {Path(library).parent}" if os.sep in library else ""
                return Finding("NVRTC", True, False, f"{found[0]}.{found[1]}{where}")
    wanted = f" for CUDA {cuda}" if cuda else ""
    package = "nvidia-cuda-nvrtc-cu12" if cuda == 12 else "nvidia-cuda-nvrtc"
    return Finding(
        "NVRTC",
        False,
        False,
        f"no run-time compiler{wanted}, so {_CPU_INSTEAD}",
        f"pip install {package}" if driver else None,
    )


def _nvrtc_libraries(major: int) -> Iterator[str]:
    name = f"libnvrtc.so.{major}"
    yield name
    yield f"{sys.prefix}/lib/{name}"  # conda's
    nvidia = importlib.util.find_spec("nvidia")
    for base in (nvidia.submodule_search_locations or []) if nvidia is not None else []:
        yield from (f"{base}/{part}/lib/{name}" for part in (f"cu{major}", "cuda_nvrtc"))
    for home in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if home:
            yield f"{home}/lib64/{name}"


def _nvrtc_version(library: str) -> tuple[int, int] | None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        if ctypes.CDLL(library).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return major.value, minor.value


def _gpus(driver: tuple[int, int] | None) -> list[Finding]:
    """What the engines see through CuPy; where they see nothing, what the driver sees."""
    if driver is None:
        return [Finding("GPU", False, False, f"none without a driver, so {_CPU_INSTEAD}")]
    try:
        if not _cupy_found():
            raise UnsupportedError("not usable without CuPy")
        from engines.cuda.driver import device_summary

        lines = device_summary()
    except UnsupportedError as error:
        reason = str(error)
    except Exception as error:  # CuPy's own errors share no base class
        reason = f"CuPy fails: {type(error).__name__}: {error}"
    else:
        return [_gpu_line(line) for line in lines]
    seen = "".join(f"\nthe driver sees {device}" for device in _devices_of_driver())
    return [Finding("GPU", False, False, f"{reason}, so {_CPU_INSTEAD}{seen}")]


def _gpu_line(line: str) -> Finding:
    """Split "GPU 0: name, memory …"; the line on CuPy's own versions has no such head."""
    head, colon, rest = line.partition(": ")
    if colon and head.startswith("GPU"):
        return Finding(head, True, False, rest)
    return Finding("GPU engine", True, False, line)


def _devices_of_driver() -> list[str]:
    """Name, memory and compute capability of each GPU, from the driver alone."""
    library = _driver_library()
    count = ctypes.c_int()
    if (
        library is None
        or library.cuInit(0) != 0
        or library.cuDeviceGetCount(ctypes.byref(count)) != 0
    ):
        return []
    devices = []
    for ordinal in range(count.value):
        device, memory = ctypes.c_int(), ctypes.c_size_t()
        major, minor = ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        library.cuDeviceGet(ctypes.byref(device), ordinal)
        library.cuDeviceGetName(name, len(name), device)
        library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        library.cuDeviceGetAttribute(
            ctypes.byref(major), _Attribute.COMPUTE_CAPABILITY_MAJOR, device
        )
        library.cuDeviceGetAttribute(
            ctypes.byref(minor), _Attribute.COMPUTE_CAPABILITY_MINOR, device
        )
        devices.append(
            f"{name.value.decode(errors='replace')}, {memory.value / 2**30:.1f} GiB, "
            f"compute capability {major.value}.{minor.value}"
        )
    return devices
