"""LLVM IR text of SIMD kernels to SPIR-V, instruction by instruction; Intel's compiler takes what comes out."""

from __future__ import annotations

import pytest

from mltriton.errors import BackendError
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.ocloc import compile_native
from mltriton.targets.xe.spirv.emission import Code
from mltriton.targets.xe.spirv.vectors.translate import emit
from mltriton.targets.xe.spirv.words import Op, SpirvModule, read

STORE = "llvm.genx.lsc.store.2d.ugm.desc.v2i8.v128i16"


def kernel(*lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    head = "define spir_kernel void @k(i32 %n, float %x) #0 !reqd_work_group_size !0 {\nentry:\n"
    return f"{head}{body}\n  ret void\n}}\n\n!0 = !{{i32 4, i32 1, i32 1}}\n"


def translated(*lines: str) -> SpirvModule:
    return read(emit(kernel(*lines), 4, 0))


def test_capabilities_and_decorations() -> None:
    module = translated()
    assert {5617, 5619} <= module.capabilities
    assert module.extensions == ["SPV_INTEL_vector_compute"]
    (function,) = module.of(Op.FUNCTION)
    assert (function[1], 5626) in set(module.of(Op.DECORATE))
    assert (function[1], 17, 4, 1, 1) in set(module.of(16))


def test_vectors_of_any_width() -> None:
    module = translated(
        "%a = insertelement <128 x float> poison, float %x, i64 0",
        "%b = shufflevector <128 x float> %a, <128 x float> poison, <128 x i32> zeroinitializer",
        "%c = fmul <128 x float> %b, splat (float 0x4000000000000000)",
        "%d = fcmp uno <128 x float> %c, %b",
        "%e = select <128 x i1> %d, <128 x float> %b, <128 x float> %c",
    )
    opcodes = [item.opcode for item in module.instructions]
    assert [opcodes.count(number) for number in (82, 79, 133, 183, 166, 169)] == [1, 1, 1, 2, 1, 1]
    (two,) = [words for words in module.of(43) if words[2:] == (0x40000000,)]
    assert (two[1],) * 128 in {words[2:] for words in module.of(44)}


def test_branches_and_loops() -> None:
    module = translated(
        "br label %head",
        "head:",
        "%i = phi i32 [ 0, %entry ], [ %next, %head ]",
        "%next = add i32 %i, 1",
        "%more = icmp slt i32 %next, %n",
        "br i1 %more, label %head, label %done",
        "done:",
    )
    ((_, _, _, _, value, _),) = module.of(245)
    assert value in {words[1] for words in module.of(128)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%a = freeze i32 %n", "an instruction of a SIMD kernel"),
        ("%a = call i32 @unknown(i32 %n)", "a function of OpenCL's or of the vector compiler's"),
        ("%a = icmp above i32 %n, 1", "one of eq, ne"),
        ("%a = add i33x %n, 1", "a type"),
    ],
)
def test_what_has_no_counterpart_is_named_with_its_line(line: str, expected: str) -> None:
    with pytest.raises(BackendError, match="a line of LLVM IR that no SPIR-V is made of") as caught:
        translated(line)
    assert expected in str(caught.value.expected)
    assert caught.value.found == line


@pytest.mark.usefixtures("needs_ocloc")
def test_intels_compiler_takes_the_module() -> None:
    described = "insertelement <16 x i32> zeroinitializer, i32 %n, i64 2"
    shape = "i1 true, <2 x i8> zeroinitializer, i8 1, i16 16, i16 8"
    store = f"call void @{STORE}({shape}, <16 x i32> %d, i32 0, i32 0, <128 x i16> zeroinitializer)"
    image = emit(kernel(f"%d = {described}", store), 4, 0)
    assert read(image).imports == [STORE]
    native = compile_native(image, device("bmg"), code=Code.SIMD, registers=256)
    assert (native.kernels["k"].registers, native.spills) == (256, False)
