"""LLVM IR to SPIR-V: mangled names, built-in functions, patches of the words, undefined functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import xe_modules as modules
from mltriton.errors import BackendError
from mltriton.targets.llvm.types import F32, GLOBAL_PTR, I16, I32, VOID, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.emulation import image_of
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.emission import emit
from mltriton.targets.xe.spirv.mangling import llvm_type, mangled, unmangled
from mltriton.targets.xe.spirv.patches import OPTNONE, OPTNONE_CAPABILITY, leave_kernels_alone
from mltriton.targets.xe.spirv.words import Op, read, text_of, words_of
from spirv_validation import RejectedModuleError, validate

SURFACE = "PU3AS1viiiDv2_i"
EMPTY = "define spir_kernel void @k() {\n  ret void\n}\n"


@pytest.mark.parametrize(
    ("builtin", "symbol"),
    [
        (xe.BLOCK_LOAD, f"_Z32__spirv_Subgroup2DBlockLoadINTELiiii{SURFACE}Pv"),
        (xe.BLOCK_LOAD_VNNI, f"_Z41__spirv_Subgroup2DBlockLoadTransformINTELiiii{SURFACE}Pv"),
        (xe.BLOCK_STORE, f"_Z33__spirv_Subgroup2DBlockStoreINTELiiiiPv{SURFACE}"),
        (xe.BLOCK_PREFETCH, f"_Z36__spirv_Subgroup2DBlockPrefetchINTELiiii{SURFACE}"),
        (xe.GET_GROUP_ID, "_Z12get_group_idj"),
        (xe.GET_SUB_GROUP_ID, "_Z16get_sub_group_idv"),
        (xe.BARRIER_WAIT, "_Z31__spirv_ControlBarrierWaitINTELiii"),
        (xe.SHUFFLE.of("half"), "_Z17sub_group_shuffleDhj"),
        (xe.PREDICATED_LOAD.of("float4"), "_Z27__spirv_PredicatedLoadINTELPU3AS1KDv4_fbS_"),
        (xe.group_function("max", "float"), "_Z27__spirv_GroupNonUniformFMaxiif"),
    ],
    ids=lambda value: value.name if isinstance(value, xe.Builtin) else "",
)
def test_symbols(builtin: xe.Builtin, symbol: str) -> None:
    assert builtin.symbol == symbol
    assert unmangled(symbol) == builtin.name


@pytest.mark.parametrize(
    ("dtypes", "rows", "parameters", "k", "operands"),
    [
        (("f16", "f16", "f32"), 8, "iDv8_sDv8_iDv8_fi", 16, 0xC00),
        (("f16", "f16", "f16"), 8, "iDv8_sDv8_iDv8_Dhi", 16, 0xC00),
        (("bf16", "bf16", "f32"), 4, "iDv4_sDv8_iDv4_fi", 16, 0x3000),
        (("bf16", "bf16", "bf16"), 8, "iDv8_sDv8_iS_i", 16, 0x300C),
        (("tf32", "tf32", "f32"), 8, "iDv4_fDv8_fS0_i", 8, 0x300),
        (("s8", "s8", "i32"), 8, "iDv8_sDv8_iS0_i", 32, 0x33),
        (("u8", "s8", "i32"), 1, "isDv8_iii", 32, 0x32),
    ],
)
def test_products(dtypes: tuple[str, str, str], rows: int, parameters: str, k: int, operands: int) -> None:
    product = xe.DPAS_TABLE[dtypes]
    assert product.builtin(rows).symbol == f"_Z45__spirv_SubgroupMatrixMultiplyAccumulateINTEL{parameters}"
    assert (product.k, product.operands) == (k, operands)


def test_substitutions_count_what_was_written_before() -> None:
    parameters = ["global float*", "global float*", "global const float*", "float4*", "float4*", "float4"]
    assert mangled("f", parameters) == "_Z1fPU3AS1fS0_PU3AS1KfPDv4_fS4_S3_"


@pytest.mark.parametrize("text", ["quarter", "int*8", "global int", "const int", ""])
def test_other_texts_are_no_types(text: str) -> None:
    with pytest.raises(ValueError, match="is not a C type"):
        llvm_type(text)


def test_llvm_knows_every_builtin() -> None:
    module = read(emit(modules.every_call()))
    assert module.version == (1, 4)
    assert module.imports == []
    assert {"SPV_INTEL_2d_block_io", "SPV_INTEL_subgroup_matrix_multiply_accumulate"} <= set(module.extensions)
    opcodes = {instruction.opcode for instruction in module.instructions}
    assert {6258, 6259} <= opcodes
    assert not {6528, 6529} & opcodes


@pytest.mark.usefixtures("needs_validator")
def test_the_validator_takes_every_builtin() -> None:
    assert validate(emit(modules.every_call()))


@pytest.mark.usefixtures("needs_validator")
@pytest.mark.parametrize("kernel", [modules.vadd, modules.gemm, modules.lanes])
def test_the_validator_takes_kernels(kernel: Callable[[], Function]) -> None:
    assert validate(emit(kernel().module.text))
    assert validate(image_of(kernel(), device("pvc")))


@pytest.mark.usefixtures("needs_validator")
@pytest.mark.parametrize("lanes", [1, 8])
def test_low_bits_are_extended_in_any_width(lanes: int) -> None:
    """LLVM's back end masks what was cut off without cutting it off; each width needs its own instructions."""
    module, f = modules.kernel("kernel", [("x", GLOBAL_PTR), ("y", GLOBAL_PTR)])
    x, y = f.parameters
    for number, (wide, kept, made) in enumerate(((32, 8, 16), (64, 16, 32), (64, 8, 16), (16, 8, 32), (32, 16, 32))):
        source, cut, result = (vector(f"i{bits}", lanes) for bits in (wide, kept, made))
        low = f.cast("trunc", f.load(source, f.gep(x, number, source)), cut)
        f.store(f.cast("zext", low, result), f.gep(y, number, result))
    f.ret()
    assert validate(emit(module.text))


@pytest.mark.usefixtures("needs_validator")
def test_what_the_validator_rejects_is_an_error() -> None:
    module = read(emit(EMPTY))
    without = module.with_instructions(item for item in module.instructions if item.opcode != Op.CAPABILITY)
    with pytest.raises(RejectedModuleError):
        validate(without.image)


def test_no_validator_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_SPIRV_VAL", str(tmp_path / "none"))
    assert not validate(emit(EMPTY))


def calling(symbol: str) -> str:
    return EMPTY.replace("  ret", f"  call void @{symbol}(i32 0)\n  ret") + f"declare void @{symbol}(i32)\n"


@pytest.mark.parametrize(
    ("symbol", "meant"),
    [
        ("_Z33__spirv_ControlBarrieriii", xe.BARRIER.symbol),  # a wrong length
        ("_Z27__spirv_RoundFToTF32Intelf", xe.ROUND_TO_TF32.of("float").symbol),
        ("somewhere_else", None),
    ],
)
def test_an_undefined_function_is_an_error_with_the_name_that_was_meant(symbol: str, meant: str | None) -> None:
    with pytest.raises(BackendError, match=f"calls the undefined function {symbol}") as caught:
        emit(calling(symbol))
    assert caught.value.expected == meant
    assert caught.value.reproducer is not None


def test_intrinsics_of_intels_compiler_are_left_to_it() -> None:
    module = read(emit(calling("llvm.genx.GenISA.something.i32")))
    assert module.imports == ["spirv.llvm_genx_GenISA_something_i32"]


def test_what_llvm_cannot_translate_ends_its_own_process_only() -> None:
    wide = "define spir_kernel void @k(ptr addrspace(1) %p) {\n  %x = load <32 x i32>, ptr addrspace(1) %p\n"
    wide += "  %y = add <32 x i32> %x, %x\n  store <32 x i32> %y, ptr addrspace(1) %p\n  ret void\n}\n"
    with pytest.raises(BackendError, match="LLVM crashed"):
        emit(wide)
    assert read(emit(EMPTY)).kernels == ["k"]


def test_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = "".join(EMPTY.replace("@k", f"@k{number}") for number in range(3000))
    monkeypatch.setattr("mltriton.targets.xe.spirv.emission.TIME_LIMIT", 0.001)
    with pytest.raises(BackendError, match="LLVM took longer than"):
        emit(functions)


# Calls.


def body() -> tuple[Module, xe.Function]:
    module = Module()
    return module, module.function("f", VOID, [("x", F32), ("i", I32), ("p", GLOBAL_PTR)])


def test_a_call_checks_its_arguments() -> None:
    _, function = body()
    x, i, _ = function.parameters
    with pytest.raises(BackendError, match="__spirv_RoundFToTF32INTEL is called wrongly") as caught:
        xe.ROUND_TO_TF32.of("float").call(function, i)
    assert (caught.value.expected, caught.value.found) == ("float", "i32")
    with pytest.raises(BackendError, match="__spirv_ControlBarrier is called wrongly"):
        xe.BARRIER.call(function, 2, 2)
    assert xe.FLOATS_TO_BF16[1].call(function, x).type == I16


def test_pure_functions_are_called_once() -> None:
    module, function = body()
    x, i, _ = function.parameters
    assert xe.ROUND_TO_TF32.of("float").call(function, x) == xe.ROUND_TO_TF32.of("float").call(function, x)
    assert xe.SHUFFLE.of("float").call(function, x, i) != xe.SHUFFLE.of("float").call(function, x, i)
    assert module.text.count("declare float @_Z17sub_group_shufflefj(float, i32)") == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda: xe.SHUFFLE.of("bfloat"),
        lambda: xe.group_function("max", "bool"),
        lambda: xe.group_function("mean", "float"),
        lambda: xe.MATH["native_exp2"].of("double"),
        lambda: xe.DPAS_TABLE["f16", "f16", "f32"].builtin(3),
    ],
)
def test_there_is_no_such_function(ask: Callable[[], object]) -> None:
    with pytest.raises(BackendError) as caught:
        ask()
    assert caught.value.expected
    assert caught.value.found


# Words.


def test_words_come_back_as_they_were() -> None:
    image = emit(EMPTY)
    assert read(image).image == image
    assert read(image).kernels == ["k"]
    assert text_of(words_of("abcd")) == "abcd"


def test_kernels_are_left_alone_and_nothing_else_changes() -> None:
    module = read(emit(modules.gemm().module.text))
    asked = leave_kernels_alone(module)
    assert sorted(asked.capabilities - module.capabilities) == [OPTNONE_CAPABILITY]
    assert set(asked.extensions) - set(module.extensions) == {OPTNONE}
    kernels = {operands[1] for operands in module.of(Op.ENTRY_POINT)}
    for before, after in zip(module.of(Op.FUNCTION), asked.of(Op.FUNCTION), strict=True):
        assert after == (*before[:2], 0x10002 if before[1] in kernels else before[2], before[3])
    same = [item for item in module.instructions if item.opcode not in (Op.FUNCTION, Op.CAPABILITY, Op.EXTENSION)]
    assert [item for item in asked.instructions if item in same] == same


def test_other_bytes_are_no_module() -> None:
    image = emit(EMPTY)
    for wrong in (b"", b"\x7fELF" + bytes(40), image[:24], image[:21], image[:20] + bytes(4)):
        with pytest.raises(BackendError, match="SPIR-V"):
            read(wrong)
