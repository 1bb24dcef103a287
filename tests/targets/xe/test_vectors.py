"""SIMD kernels as SPIR-V, instruction by instruction; Intel's compiler takes what comes out."""

from __future__ import annotations

import pytest

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import F32, I32, VOID, Value, constant, integers, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.llvm.simd import intrinsics
from mltriton.targets.xe.ocloc import compile_native
from mltriton.targets.xe.spirv.emission import Code
from mltriton.targets.xe.spirv.vectors.translate import emit
from mltriton.targets.xe.spirv.words import Op, SpirvModule, read


def kernel() -> tuple[Function, Value, Value]:
    f = Module().function("k", VOID, [("n", I32), ("x", F32)], linkage="spir_kernel", keeps_parts=True)
    return f, *f.parameters


def image_of(f: Function) -> bytes:
    f.ret()
    return emit(f, 4, 0)


def translated(f: Function) -> SpirvModule:
    return read(image_of(f))


def test_capabilities_and_decorations() -> None:
    module = translated(kernel()[0])
    assert {5617, 5619} <= module.capabilities
    assert module.extensions == ["SPV_INTEL_vector_compute"]
    (function,) = module.of(Op.FUNCTION)
    assert (function[1], 5626) in set(module.of(Op.DECORATE))
    assert (function[1], 17, 4, 1, 1) in set(module.of(16))


def test_vectors_of_any_width() -> None:
    f, _, x = kernel()
    wide = f.splat(x, 128)
    doubled = f.fmul(wide, constant(wide.type, 2.0))
    f.select(f.fcmp("uno", doubled, wide), wide, doubled)
    module = translated(f)
    opcodes = [item.opcode for item in module.instructions]
    assert [opcodes.count(number) for number in (82, 79, 133, 183, 166, 169)] == [1, 1, 1, 2, 1, 1]
    (two,) = [words for words in module.of(43) if words[2:] == (0x40000000,)]
    assert (two[1],) * 128 in {words[2:] for words in module.of(44)}


def test_branches_and_loops() -> None:
    f, n, _ = kernel()
    with f.loop(constant(I32, 0), n, constant(I32, 1), [n]) as loop:
        loop.yield_(f.mul(loop.carried[0], 3))
    module = translated(f)
    labels = {words[0] for words in module.of(248)}
    phis = list(module.of(245))
    assert [len(words) for words in phis] == [6, 6]
    assert all({words[3], words[5]} <= labels for words in phis)
    assert {words[4] for words in phis} == {words[1] for opcode in (128, 132) for words in module.of(opcode)}


@pytest.mark.parametrize(
    ("element", "number", "words"),
    [
        ("i8", -1, (0xFF,)),
        ("i16", -2, (0xFFFE,)),
        ("i64", -3, (0xFFFFFFFD, 0xFFFFFFFF)),
        ("half", -0.0, (0x8000,)),
        ("half", 1e9, (0x7C00,)),
        ("bfloat", 1.00390625, (0x3F80,)),
        ("float", 0.1, (0x3DCCCCCD,)),
        ("double", 0.1, (0x9999999A, 0x3FB99999)),
    ],
)
def test_bits_of_numbers(element: str, number: float, words: tuple[int, ...]) -> None:
    for lanes in (1, 8):
        f, n, _ = kernel()
        type_ = vector(element, lanes)
        f.select(f.icmp("eq", n, 1), constant(type_, number), constant(type_, 3))
        assert words in {made[2:] for made in translated(f).of(43)}


def test_each_number_of_a_vector_is_its_own() -> None:
    f, n, _ = kernel()
    f.add(f.splat(n, 3), integers("i32", [7, 0, -1]))
    module = translated(f)
    numbers = {words[1]: words[2] for words in module.of(43)}
    assert [7, 0, 0xFFFFFFFF] in [[numbers[id_] for id_ in words[2:]] for words in module.of(44)]


@pytest.mark.parametrize(("op", "element", "one"), [("uitofp", "half", 0x3C00), ("sitofp", "float", 0xBF800000)])
def test_a_bit_as_a_float(op: str, element: str, one: int) -> None:
    """A boolean of SPIR-V has no bits: a cast of it chooses."""
    f, n, _ = kernel()
    f.cast(op, f.icmp("eq", n, 1), vector(element, 1))
    module = translated(f)
    ((_, _, _, chosen, other),) = module.of(169)
    assert {words[1]: words[2] for words in module.of(43)} | {chosen: one, other: 0} == {
        words[1]: words[2] for words in module.of(43)
    }


@pytest.mark.parametrize(
    ("op", "names", "expected"),
    [
        ("freeze", (), "an instruction of a SIMD kernel"),
        ("call", ("unknown",), "a function of OpenCL's or of the vector compiler's"),
        ("icmp", ("above",), "one of eq, ne"),
    ],
)
def test_what_has_no_counterpart_is_named(op: str, names: tuple[str, ...], expected: str) -> None:
    f, n, _ = kernel()
    f.emit(f"{op} i32 %n", I32, op, (n, n), names)
    with pytest.raises(BackendError, match="an instruction of LLVM that SPIR-V has not") as caught:
        translated(f)
    assert expected in str(caught.value.expected)
    assert caught.value.found == f"%v1 = {op} i32 %n"


def test_what_is_text_alone_is_named() -> None:
    f, n, _ = kernel()
    f.gep(Value(vector("ptr", 1), "%p"), n, I32)
    with pytest.raises(BackendError) as caught:
        translated(f)
    assert caught.value.found == "%v1 = getelementptr i32, ptr %p, i32 %n"


@pytest.mark.usefixtures("needs_ocloc")
def test_intels_compiler_takes_the_module() -> None:
    f, n, _ = kernel()
    described = f.insert(constant(I32.with_lanes(16), 0), n, 2)
    intrinsics.store_rectangle(f, constant(vector("i16", 128), 0), (1, 8, 16), described, (0, 0))
    image = image_of(f)
    assert read(image).imports == ["llvm.genx.lsc.store.2d.ugm.desc.v2i8.v128i16"]
    native = compile_native(image, device("bmg"), code=Code.SIMD, registers=256)
    assert (native.kernels["k"].registers, native.spills) == (256, False)
