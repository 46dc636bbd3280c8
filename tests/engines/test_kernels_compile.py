"""Every CUDA module compiles for every architecture, by NVRTC's wheel; no GPU is needed.

A module is compiled for the oldest architecture, as far as PTX, and for one of today, each with
another type of offsets; over each variant of a format, one module; every product of these is among
the slow tests.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import sysconfig
from pathlib import Path

import pytest

from engines.cuda import src as kernels
from engines.program.source import kernel

OLDEST, USUAL, OLDEST_PTX = "sm_75", "sm_90", "compute_75"
ARCHITECTURES = (OLDEST, "sm_80", USUAL, "sm_100", OLDEST_PTX)
AS_PTX = f"--gpu-architecture={OLDEST_PTX}"
"""PTX takes half of the time of machine code."""
BY_ARCHITECTURE = ("windows",)
"""Modules whose text asks which architecture it is compiled for."""
GLOBAL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) |LISTED )?(\w+)\(')


def find_nvrtc():
    """The newest NVRTC library of an installed wheel, or None."""
    packages = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    found = [
        path
        for folder in packages
        for path in folder.glob("nvidia/**/libnvrtc.so*")
        if "alt" not in path.name
    ]
    return max(found, default=None)


@pytest.fixture(scope="module")
def nvrtc():
    path = find_nvrtc()
    if path is None:
        pytest.skip("the wheel nvidia-cuda-nvrtc is not installed")
    for builtins in path.parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


def compile_source(nvrtc, source, name, options):
    """The machine code of a source, or its PTX, as bytes."""

    def call(function, *arguments):
        status = getattr(nvrtc, function)(*arguments)
        if status != 0 and function != "nvrtcCompileProgram":
            pytest.fail(f"{function} answered {status}")
        return status

    program = ctypes.c_void_p()
    call(
        "nvrtcCreateProgram",
        ctypes.byref(program),
        source.encode(),
        name.encode(),
        0,
        None,
        None,
    )
    try:
        flags = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        status = call("nvrtcCompileProgram", program, len(options), flags)
        size = ctypes.c_size_t()
        call("nvrtcGetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        call("nvrtcGetProgramLog", program, log)
        text = log.value.decode()
        assert status == 0, f"{name} {options}:\n{text}"
        assert not text.strip(), f"{name} {options} compiles with warnings:\n{text}"
        what = "PTX" if options[-1:] == (AS_PTX,) else "CUBIN"
        call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{what}", program, code)
        return code.raw
    finally:
        call("nvrtcDestroyProgram", ctypes.byref(program))


def expect_kernels(code, names):
    """The code has kernels of these names: as sections, or as entries of PTX."""
    for name in names:
        text = name.encode()
        assert b".text." + text + b"\0" in code or b".entry " + text + b"(" in code, name


def architecture_is_known(nvrtc, architecture):
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(numbers)
    return int(architecture.partition("_")[2]) in numbers


def products(quick, *factors):
    """All products as parameters of a test: slow, but for those that are quick."""
    return [
        pytest.param(*chosen, marks=() if quick(*chosen) else pytest.mark.slow)
        for chosen in itertools.product(*factors)
    ]


def is_quick(module, offset_type, architecture):
    """Whether a module is always compiled in this way."""
    narrow = offset_type == kernels.OFFSET_TYPES[0]
    if module in BY_ARCHITECTURE:
        return narrow or architecture == USUAL
    return architecture == (OLDEST_PTX if narrow else USUAL)


@pytest.mark.parametrize(
    ("module", "offset_type", "architecture"),
    products(is_quick, kernels.MODULES, kernels.OFFSET_TYPES, ARCHITECTURES),
)
def test_a_module_compiles_without_warnings_and_holds_its_kernels(
    nvrtc, module, offset_type, architecture
):
    if not architecture_is_known(nvrtc, architecture):
        pytest.skip(f"this NVRTC does not know {architecture}")
    source = kernels.source(module)
    options = (*kernels.options(offset_type), f"--gpu-architecture={architecture}")
    code = compile_source(nvrtc, source, f"{module}.cu", options)
    names = GLOBAL.findall(source)
    assert names
    assert len(names) == source.count("__global__")
    expect_kernels(code, names)


CODES = ("unsigned char", "unsigned short", "unsigned int")
VARIANTS = [
    ("csr", ("OWN_BATCH=2",)),
    ("values", ("CODE=unsigned char", "COLUMN=int", "OWN_BATCH=2", "ALONE")),
    ("values", ("CODE=unsigned char", "COLUMN=int", "OWN_BATCH=8")),
    *(
        ("values", (f"CODE={code}", f"COLUMN={column}"))
        for code in CODES[:2]
        for column in ("int", "short")
    ),
    *(
        ("patterns", (f"CODE={code}", *staged))
        for code in CODES
        for staged in ((), ("STAGED",))
        if staged == () or code == "unsigned char"
    ),
    ("segments", ()),
    ("hybrid", ()),
    ("panels", ()),
]


FIRST_OF_A_FORMAT = [
    next(variant for variant in VARIANTS if variant[0] == name) for name in kernels.HEADERS
]


def named(part):
    """The name of a variant in that of a test."""
    return "-".join((part[0], *part[1])) if isinstance(part, tuple) else None


def over_formats():
    """Modules over variants of formats: sweeps over all, the others over one of each format."""
    for module, variant in itertools.product(kernels.FORMATTED, VARIANTS):
        if variant[0] in ("segments", "panels") and module != "sweep":
            continue  # Sums of segments serve one-sided sweeps.
        if variant[0] == "hybrid" and module == "windows":
            continue  # Blocks of a diagram are not swept by windows.
        quick = module == "sweep" or variant in FIRST_OF_A_FORMAT
        yield pytest.param(module, variant, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("module", "variant"), list(over_formats()), ids=named)
def test_a_module_compiles_over_every_format(nvrtc, module, variant):
    name, defines = variant
    source = kernels.source(module, name)
    options = (*kernels.options("int", defines), f"--gpu-architecture={USUAL}")
    code = compile_source(nvrtc, source, f"{module}.cu", options)
    expect_kernels(code, GLOBAL.findall(source))


def in_single():
    """Variants in single precision: each in one way of rounding always, and CSR in both."""
    single = [("csr", ()), *(variant for variant in VARIANTS if variant[0] != "segments")]
    for number, variant in enumerate(single):
        for nearest, architecture in itertools.product((False, True), (OLDEST_PTX, USUAL)):
            csr = variant == ("csr", ())
            quick = (csr or nearest == bool(number % 2)) if architecture == OLDEST_PTX else csr
            marks = () if quick else pytest.mark.slow
            yield pytest.param(variant, nearest, architecture, marks=marks)
    for nearest, architecture in itertools.product((False, True), ARCHITECTURES):
        if architecture not in (OLDEST_PTX, USUAL):
            yield pytest.param(("csr", ()), nearest, architecture, marks=pytest.mark.slow)


@pytest.mark.parametrize(("variant", "nearest", "architecture"), list(in_single()), ids=named)
def test_sweeps_in_single_precision_compile_over_every_format(
    nvrtc, variant, nearest, architecture
):
    if not architecture_is_known(nvrtc, architecture):
        pytest.skip(f"this NVRTC does not know {architecture}")
    name, defines = variant
    source = kernels.source("sweep", name)
    every = (*defines, *kernels.IN_SINGLE[nearest])
    options = (*kernels.options("long long", every), f"--gpu-architecture={architecture}")
    code = compile_source(nvrtc, source, "sweep.cu", options)
    expect_kernels(code, GLOBAL.findall(source))


def test_sweeps_are_in_double_precision_unless_told_otherwise():
    assert {"-DREAL=double", "-DROUNDED="} <= set(kernels.options("int"))
    single = kernels.options("int", ("CODE=short", *kernels.IN_SINGLE[True]))
    assert "-DREAL=float" in single
    assert "-DREAL=double" not in single


@pytest.mark.parametrize("offset_type", kernels.OFFSET_TYPES)
@pytest.mark.parametrize("module", kernels.BUILDING)
def test_what_lays_matrices_out_compiles(nvrtc, module, offset_type):
    source = kernels.source(module)
    options = (*kernels.options(offset_type), f"--gpu-architecture={USUAL}")
    code = compile_source(nvrtc, source, f"{module}.cu", options)
    names = GLOBAL.findall(source)
    assert names
    assert len(names) == source.count("__global__")
    expect_kernels(code, names)


def test_modules_without_a_format_are_the_same_in_all():
    assert kernels.source("prepare", "patterns") == kernels.source("prepare")
    assert len({kernels.source("sweep", name) for name in kernels.HEADERS}) == len(kernels.HEADERS)


def test_broken_sources_are_noticed(nvrtc):
    with pytest.raises(AssertionError, match="identifier"):
        compile_source(nvrtc, "__global__ void f() { g(); }", "broken.cu", ())


def test_the_engines_launch_only_kernels_that_exist():
    launched = re.compile(
        r'"((?:sweep_rows|sweep_groups|divide|measure|scatter|sort|scan|add|uniformise|end|'
        r"collect|close|bar|drop|count|name|gather|encode|find|copy|size|fill|split|flag|sum|"
        r'clear|begin|raise|place|invert|settle|colour_by)_\w+)"'
    )
    folder = Path(kernels.__file__).parents[1]
    wanted = {
        name for path in folder.rglob("*.py") for name in launched.findall(path.read_text("utf-8"))
    }
    modules = (*kernels.MODULES, *kernels.BUILDING)
    there = {name for module in modules for name in GLOBAL.findall(kernels.source(module))}
    there |= set(GLOBAL.findall(kernel("exploring")))
    assert wanted
    # A module of kernels may have a name like theirs.
    assert wanted - set(modules) <= there
