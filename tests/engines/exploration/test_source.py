"""The kernels that are written for a program compile for GPUs without warnings."""

from __future__ import annotations

import pytest

from engines.cuda.exploring import OPTIONS, source_of
from engines.program.packing import Packing
from tests.engines.montecarlo.programs import herman_model
from tests.engines.montecarlo.reader import read_model
from tests.engines.test_kernels_compile import (
    AS_PTX,
    GLOBAL,
    compile_source,
    expect_kernels,
    nvrtc,
)

from .programs import random_program
from .test_successors import BEGINNING

__all__ = ["nvrtc"]


def source(program):
    packing = Packing.of(program)
    return source_of(program, packing, [label.expression for label in program.labels])[0]


@pytest.mark.parametrize("seed", [*BEGINNING[:3], None])
def test_sources_compile_without_warnings(nvrtc, seed):
    # Modules of Herman's rings synchronise in more ways than are written out.
    program = read_model(herman_model(9))[0] if seed is None else random_program(seed)
    text = source(program)
    code = compile_source(nvrtc, text, "exploring.cu", (*OPTIONS, "--gpu-architecture=sm_90"))
    names = GLOBAL.findall(text)
    assert {"search_levels", "rank_states", "write_rows", "evaluate_states"} < set(names)
    expect_kernels(code, names)


def test_states_of_two_words_compile_without_warnings(nvrtc):
    variables = " ".join(f"x{i} : [0..{10**9}] init {i};" for i in range(3))
    program, _ = read_model(f"ctmc module m {variables} [] x0<9 -> 1 : (x0'=x0+1); endmodule")
    assert Packing.of(program).words == 2
    text = source(program)
    code = compile_source(nvrtc, text, "exploring.cu", (*OPTIONS, "--gpu-architecture=sm_90"))
    expect_kernels(code, GLOBAL.findall(text))


def test_no_instruction_for_the_greatest_of_three_is_asked_for(nvrtc):
    # NVIDIA's compilers before that of CUDA 13.4 lose the sign of a part of it.
    program, _ = read_model(
        "dtmc module m x : [0..5]; y : [0..5]; z : [0..5]; [] true -> 0.5 : (x'=max(x, -y, z)) + "
        "0.25 : (y'=min(5, max(0, -min(x, -y, -z)))) + 0.25 : (z'=max((x>-y ? x : -y), 3-y, z)); "
        "endmodule"
    )
    text = source(program)
    ptx = compile_source(nvrtc, text, "exploring.cu", (*OPTIONS, AS_PTX))
    assert b".entry write_rows(" in ptx
    assert b"max.s32" not in ptx
    assert b"min.s32" not in ptx
    assert b"max.s32" in compile_source(
        nvrtc, text.replace('asm("" : "+r"(truth));', ""), "exploring.cu", (*OPTIONS, AS_PTX)
    )


def test_one_source_serves_all_values_of_constants():
    def written(p, rate):
        text = f"""ctmc const double p = {p}; module m x : [0..3] init 0;
            [a] x<3 & x*{rate}<7.5 -> {rate}*p : (x'=x+1) + {rate}*(1-p) : (x'=0); endmodule
            label "far" = x > {rate}/2;"""
        program, _ = read_model(text)
        packing = Packing.of(program)
        return source_of(program, packing, [label.expression for label in program.labels])

    (first, numbers), (second, others) = written(0.3, 2.5), written(0.1, 3.5)
    assert first == second
    assert len(numbers) == len(others)
    assert set(numbers) & set(others) == {2.0, 7.5}
    # A weight that cannot be 0 needs no question whether it is.
    assert written(0.0, 2.5)[0] != first
