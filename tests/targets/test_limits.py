"""Each operation of the intrinsic level is in its target's table of sizes: what breaks it, and kernels that did."""

from __future__ import annotations

from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
from levels import check_levels
from mltriton.errors import VerificationError
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify
from mltriton.passes.levels import verify_level

GENERIC, AVX512, BF16 = "generic", "cpu:avx512", "cpu:avx512-bf16"


def module_of(target: str, parameters: str, body: str) -> Module:
    attributes = f'mltriton.level = "intrinsic", ttg.target = "{target}"'
    text = f"module attributes {{{attributes}}} {{\ntt.func @f({parameters}) {{\n{body}\ntt.return\n}}\n}}"
    module = parse_module(text, "limits.mlir")
    verify(module)
    return module


def dot(m: int, n: int, k: int, element: str = "f16", batch: str = "") -> tuple[str, str]:
    """Parameters and text of a dot in registers."""
    result = "i32" if element == "i8" else "f32"
    a, b, c = (
        f"tensor<{batch}{rows}x{columns}x{of}>"
        for rows, columns, of in ((m, k, element), (k, n, element), (m, n, result))
    )
    return f"%a: {a}, %b: {b}, %c: {c}", f"%0 = tt.dot %a, %b, %c : {a} * {b} -> {c}"


def load(type: str) -> tuple[str, str]:
    return f"%p: !tt.ptr<tensor<{type}>>", f"%0 = tt.load %p : !tt.ptr<tensor<{type}>>"


def store(type: str) -> tuple[str, str]:
    return f"%p: !tt.ptr<tensor<{type}>>, %x: tensor<{type}>", f"tt.store %p, %x : !tt.ptr<tensor<{type}>>"


def gather(shape: str, element: str) -> tuple[str, str]:
    return f"%p: tensor<{shape}x!tt.ptr<{element}>>", f"%0 = tt.load %p : tensor<{shape}x!tt.ptr<{element}>>"


def micro_kernel(attributes: str, a: str = "f32", c: str = "f32") -> tuple[str, str]:
    """Parameters and text of a dot on memory."""
    return (
        f"%a: !tt.ptr<{a}>, %c: !tt.ptr<{c}>, %s: i64, %t: i1",
        f"tile.dot %a, %s, %a, %s, %c, %s, %s, %t {{{attributes}}} : !tt.ptr<{a}>, !tt.ptr<{a}>, !tt.ptr<{c}>",
    )


def indirect(attributes: str, a: str = "f32", b: str = "f32") -> tuple[str, str]:
    """Parameters and text of a dot on lines."""
    return (
        f"%a: !tt.ptr<{a}>, %l: !tt.ptr<!tt.ptr<{b}>>, %c: !tt.ptr<f32>, %s: i64, %t: i1",
        f"tile.indirect_dot %a, %s, %s, %l, %c, %s, %s, %t {{{attributes}}} : "
        f"!tt.ptr<{a}>, !tt.ptr<!tt.ptr<{b}>>, !tt.ptr<f32>",
    )


FEW = "m = 4 : i32, n = 64 : i32, k = 8 : i32"


def interleave(count: int, lanes: int, element: str) -> tuple[str, str]:
    chunk = f"tensor<{lanes}x{element}>"
    parts, types = ", ".join(["%x"] * count), ", ".join([chunk] * count)
    return f"%p: !tt.ptr<{element}>", (
        f"%x = tile.load %p : {chunk}\n"
        f"%0 = tile.interleave {parts} : {types} -> tensor<{count * lanes}x{element}>\n"
        f"tile.store %p, %0 : tensor<{count * lanes}x{element}>"
    )


IN_TABLE = {
    "dot": (GENERIC, dot(8, 16, 16)),
    "dot-of-few-rows": (GENERIC, dot(2, 16, 16)),
    "dot-of-bytes": (GENERIC, dot(8, 16, 32, "i8")),
    "dot-of-floats": (GENERIC, dot(8, 16, 8, "f32")),
    "dot-with-a-batch": (GENERIC, dot(8, 16, 16, batch="1x")),
    "load": (GENERIC, load("32x32xf16")),
    "store": (GENERIC, store("8x16xf32")),
    "vector": (GENERIC, load("512xf32")),
    "gather": (GENERIC, gather("8x32", "f64")),
    "scalar": (GENERIC, ("%p: !tt.ptr<f32>", "%0 = tt.load %p : !tt.ptr<f32>")),
    "anything-else": (GENERIC, ("%x: tensor<64x64xf32>", "%0 = arith.addf %x, %x : tensor<64x64xf32>")),
    "chunk": (AVX512, ("%p: !tt.ptr<f32>", "%0 = tile.load %p : tensor<16xf32>")),
    "micro-kernel": (AVX512, micro_kernel("m = 3 : i32, n = 5 : i32")),
    "panels": (AVX512, micro_kernel("m = 3 : i32, n = 128 : i32, panel = 64 : i32, panel_stride = 640 : i32")),
    "groups": (BF16, micro_kernel("m = 3 : i32, n = 8 : i32, group = 2 : i32", "bf16")),
    "lines": (AVX512, indirect(FEW, b="bf16")),
    "lines-of-pairs": (BF16, indirect(FEW, "bf16", "bf16")),
    "interleaved-pairs": (BF16, interleave(2, 16, "bf16")),
    "interleaved-quads": (AVX512, interleave(4, 16, "i8")),
}


@pytest.mark.parametrize(("target", "program"), IN_TABLE.values(), ids=IN_TABLE)
def test_what_is_in_the_table_passes(target: str, program: tuple[str, str]) -> None:
    verify_level(module_of(target, *program))


# target, program, the operation and what is wrong with it, the allowed size, the found one
NOT_IN_TABLE: dict[str, tuple[str, tuple[str, str], str, str | None, str | None]] = {
    "dot-of-many-rows": (
        GENERIC,
        dot(16, 16, 16),
        "tt.dot: the target generic has no dot of this size",
        "M x N x K = 1 or 2 or 4 or 8 x 16 x 16 for f16",
        "16x16x16",
    ),
    "dot-of-odd-rows": (GENERIC, dot(3, 16, 16), "no dot of this size", "M x N x K = 1 or 2", "3x16x16"),
    "dot-of-few-columns": (GENERIC, dot(8, 8, 16), "no dot of this size", "x 16 x 16 for f16", "8x8x16"),
    "dot-of-short-k": (GENERIC, dot(8, 16, 16, "i8"), "no dot of this size", "x 16 x 32 for i8", "8x16x16"),
    "dot-with-batches": (GENERIC, dot(8, 16, 16, batch="2x"), "no dot of this size", "x 16 x 16", "2x8x16x16"),
    "dot-of-doubles": (GENERIC, dot(8, 16, 8, "f64"), "no dot of these elements", "f16, bf16, f32, i8", "f64"),
    "load-of-many-rows": (
        GENERIC,
        load("64x16xf16"),
        "tt.load: the target generic loads smaller blocks",
        "at most 32 rows of 64 bytes",
        "tensor<64x16xf16>, rows of 32 bytes",
    ),
    "load-of-long-rows": (GENERIC, load("8x16xf64"), "loads smaller blocks", "32 rows of 64 bytes", "rows of 128"),
    "load-of-a-batch": (GENERIC, load("2x8x16xf32"), "loads smaller blocks", "at most 32 rows", "2x8x16xf32"),
    "store-of-many-rows": (
        GENERIC,
        store("16x16xf32"),
        "tt.store: the target generic stores smaller blocks",
        "at most 8 rows of 64 bytes",
        "tensor<16x16xf32>",
    ),
    "prefetch": (
        GENERIC,
        ("%p: !tt.ptr<tensor<64x32xf16>>", "ttig.prefetch %p : !tt.ptr<tensor<64x32xf16>>"),
        "ttig.prefetch: the target generic loads smaller blocks",
        "at most 32 rows",
        "tensor<64x32xf16>",
    ),
    "vector-of-doubles": (GENERIC, load("512xf64"), "accesses fewer bytes", "at most 2048 bytes", "4096 bytes"),
    "gather": (GENERIC, gather("32x64", "f16"), "accesses fewer bytes", "at most 2048 bytes", "2048 x f16, 4096 bytes"),
    "atomic": (
        GENERIC,
        (
            "%p: tensor<1024x!tt.ptr<i32>>, %x: tensor<1024xi32>",
            "%0 = tt.atomic_rmw add, acq_rel, gpu, %p, %x : "
            "(tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>) -> tensor<1024xi32>",
        ),
        "tt.atomic_rmw: the target generic accesses fewer bytes",
        "at most 2048 bytes",
        "4096 bytes",
    ),
    "shared-memory": (
        GENERIC,
        ("", "%0 = ttg.local_alloc : () -> !ttg.memdesc<256x256xf32, #ttg.shared_memory, mutable>"),
        "ttg.local_alloc: the target generic has less shared memory",
        "at most 131072 bytes",
        "262144 bytes",
    ),
    "chunks-in-registers": (
        GENERIC,
        ("%p: !tt.ptr<f32>", "tile.prefetch %p : !tt.ptr<f32>"),
        "tile.prefetch: the target generic holds blocks in registers: the operation does not exist there",
        None,
        None,
    ),
    "wide-chunk": (
        AVX512,
        ("%p: !tt.ptr<f32>", "%0 = tile.load %p : tensor<32xf32>"),
        "tile.load: the target cpu:avx512 works on smaller chunks",
        "scalars and chunks of at most 16 lanes",
        "tensor<32xf32>",
    ),
    "narrower": ("cpu:sse", ("%p: !tt.ptr<f32>", "%0 = tile.load %p : tensor<8xf32>"), "smaller chunks", "4", "8"),
    "block": (AVX512, ("%x: tensor<2x4xf32>", ""), "tt.func: the target cpu:avx512 works on smaller", "chunks", "2x4"),
    "block-pointer": (AVX512, ("%p: !tt.ptr<tensor<32xf32>>", ""), "works on smaller chunks", "16 lanes", "32xf32"),
    "block-dot": (AVX512, dot(8, 16, 16), "tt.func: the target cpu:avx512 works on smaller chunks", "16", "8x16"),
    "types-of-lines": (AVX512, indirect(FEW, "bf16", "bf16"), "no indirect dot of these types", "f32 to f32", "bf16"),
    "many-rows-of-lines": (
        AVX512,
        indirect("m = 16 : i32, n = 64 : i32, k = 8 : i32"),
        "tile.indirect_dot: the target cpu:avx512 has no indirect dot of this size",
        "at most 8 rows, lines of a multiple of 16 elements",
        "16 rows, lines of 64",
    ),
    "short-lines": (
        AVX512,
        indirect(f'{FEW}, b_layout = 1 : i32'),
        "no indirect dot of this size",
        "multiple of 16",
        "lines of 8",
    ),
    "pieces": (
        AVX512,
        ("%x: tensor<16xf32>", "%0 = ttig.extract %x[0] : tensor<16xf32> -> tensor<8xf32>"),
        "ttig.extract: the target cpu:avx512 holds blocks in memory",
        None,
        None,
    ),
    "no-such-types": (
        AVX512,
        micro_kernel("m = 3 : i32, n = 8 : i32, group = 2 : i32", "bf16"),
        "tile.dot: the target cpu:avx512 has no dot of these types",
        "f32 in groups of 1 to f32",
        "bf16 and bf16 in groups of 2 to f32",
    ),
    "accumulator": (AVX512, micro_kernel("m = 3 : i32, n = 8 : i32", c="f64"), "of these types", "to f32", "to f64"),
    "columns-of-groups": (
        BF16,
        micro_kernel("m = 3 : i32, n = 6 : i32, group = 2 : i32", "bf16"),
        "no dot of these columns",
        "columns in multiples of 4, panels of 64",
        "6 columns, no panels",
    ),
    "other-panels": (
        AVX512,
        micro_kernel("m = 3 : i32, n = 64 : i32, panel = 32 : i32, panel_stride = 640 : i32"),
        "no dot of these columns",
        "panels of 64",
        "64 columns, panels of 32, 640 apart",
    ),
    "half-a-panel": (
        AVX512,
        micro_kernel("m = 3 : i32, n = 96 : i32, panel = 64 : i32, panel_stride = 640 : i32"),
        "no dot of these columns",
        "panels of 64",
        "96 columns",
    ),
    "overlapping-panels": (
        AVX512,
        micro_kernel("m = 3 : i32, n = 128 : i32, panel = 64 : i32, panel_stride = 32 : i32"),
        "no dot of these columns",
        "panels of 64",
        "32 apart",
    ),
    "pairs-of-floats": (AVX512, interleave(2, 16, "f32"), "no dot of such groups", None, "2 chunks of f32"),
    "pairs-of-bytes": (AVX512, interleave(2, 16, "i8"), "no dot of such", "groups of 4 for i8", "2 chunks of i8"),
}  # fmt: skip


@pytest.mark.parametrize(("target", "program", "message", "expected", "found"), NOT_IN_TABLE.values(), ids=NOT_IN_TABLE)
def test_what_is_not_in_the_table_is_named(
    target: str, program: tuple[str, str], message: str, expected: str | None, found: str | None
) -> None:
    with pytest.raises(VerificationError) as caught:
        verify_level(module_of(target, *program))
    error = caught.value
    assert message in error.message
    assert error.location is not None and error.location.file == "limits.mlir"
    for wanted, text in ((expected, error.expected), (found, error.found)):
        assert text is None if wanted is None else wanted in (text or "")


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(VerificationError, match="unknown target") as caught:
        verify_level(module_of("abacus", "", ""))
    assert caught.value.found == "abacus"
    assert "generic" in (caught.value.expected or "")


def test_a_program_without_a_target_has_no_table() -> None:
    module = module_of(GENERIC, *dot(64, 64, 64))
    del module.attributes["ttg.target"]
    verify_level(module)


# Kernels whose pieces used to be larger or smaller than what the generic target has.


@triton.jit
def small_dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A dot, one block."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    z = tl.dot(x, y, input_precision="ieee", out_dtype=c.dtype.element_ty)
    tl.store(c + m[:, None] * N + n[None, :], z)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (1, 16, 32), (2, 8, 16), (4, 4, 4), (32, 1, 2)])
@pytest.mark.parametrize("dtype", ["i8", "fp16", "fp32"])
def test_small_dots_are_filled_up(dtype: str, m: int, n: int, k: int) -> None:
    out = "i32" if dtype == "i8" else "fp32"
    args: dict[str, Any] = {"a": f"{m}x{k}:{dtype}", "b": f"{k}x{n}:{dtype}", "c": f"{m}x{n}:{out}"}
    check_levels(small_dot, {**args, "M": m, "N": n, "K": k}, (1,), target="generic", num_warps=1)


@triton.jit
def wide_elements(x, y, z, n, M: tl.constexpr, N: tl.constexpr):
    """Doubles through pointers and block pointers, and along one dimension."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    block = tl.make_block_ptr(x, (M, n), (n, 1), (0, 0), (M, N), (1, 0))
    v = tl.load(block, boundary_check=(0, 1), padding_option="zero")
    w = tl.load(x + i[:, None] * n + j[None, :], mask=j[None, :] < n, other=1.0)
    out = tl.make_block_ptr(y, (M, n), (n, 1), (0, 0), (M, N), (1, 0))
    tl.store(out, v + w, boundary_check=(0, 1))
    tl.store(z + tl.arange(0, M * N), tl.reshape(w, [M * N]))


@pytest.mark.parametrize("warps", [1, 4])
def test_wide_elements_are_accessed_in_parts(warps: int) -> None:
    args = {"x": "32x61:fp64", "y": "32x61:fp64", "z": "2048:fp64", "n": 61, "M": 32, "N": 64}
    check_levels(wide_elements, args, (1,), target="generic", num_warps=warps)


@triton.jit
def operands_stored(a, b, c, d, e, M: tl.constexpr, K: tl.constexpr):
    """A dot whose operands come from wider elements and are stored, too, and whose result is widened."""
    m, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(tl.make_block_ptr(a, (M, K), (K, 1), (0, 0), (M, K), (1, 0)))
    y = tl.load(b + k[:, None] * M + m[None, :])
    z = tl.dot(x.to(tl.int8), y.to(tl.int8), out_dtype=tl.int32)
    tl.store(tl.make_block_ptr(c, (M, K), (K, 1), (0, 0), (M, K), (1, 0)), x * 2)
    tl.store(tl.make_block_ptr(d, (M, M), (M, 1), (0, 0), (M, M), (1, 0)), z.to(tl.int64))
    out = tl.make_tensor_descriptor(e, [M, M], [M, 1], [M, M])
    out.store([0, 0], z.to(tl.int64) * 3)


@pytest.mark.parametrize("warps", [1, 4])
def test_operands_of_dots_are_accessed_in_parts(warps: int) -> None:
    args = {"a": "32x64:i32", "b": "64x32:i64", "c": "32x64:i32", "d": "32x32:i64", "e": "32x32:i64", "M": 32, "K": 64}
    check_levels(operands_stored, args, (1,), target="generic", num_warps=warps)
