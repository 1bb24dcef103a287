"""Which accesses can be 2D blocks, and why others cannot."""

from __future__ import annotations

import pytest

from mltriton.analysis.block_io import BlockAccess, BlockIOAnalysis
from mltriton.dialects import tt
from mltriton.ir.parser import parse_module
from mltriton.targets.base import BlockIO

LIMITS = BlockIO(max_rows=32, max_row_bytes=64, max_blocks=4, pitch_multiple=16, base_alignment=64, store_rows=8)
ONE = "arith.constant 1 : i64"


def accesses(body: str, base: int = 64) -> list[BlockAccess]:
    """The accesses of a function: `base` divides the address %x, 16 the number %n, nothing %m and %i."""
    promise, known = (f"{{tt.divisibility = {number} : i32}}" for number in (base, 16))
    text = f"tt.func @f(%x: !tt.ptr<f16> {promise}, %n: i64 {known}, %m: i64, %i: i32) {{\n{body}\n tt.return\n}}"
    module = parse_module(text)
    (function,) = (op for op in module.walk() if isinstance(op, tt.Func))
    return list(BlockIOAnalysis(function, LIMITS).accesses.values())


def block_pointer(strides: str = "%n, %one", order: str = "1, 0", type: str = "32x32xf16") -> str:
    return (
        f"%one = {ONE}\n%p = tt.make_tensor_ptr %x, [%n, %n], [{strides}], [%i, %i] "
        f"{{order = array<i32: {order}>}} : <tensor<{type}>>\n"
    )


LOAD = "%v = tt.load %p : !tt.ptr<tensor<32x32xf16>>\n"
STORE = LOAD + "tt.store %p, %v : !tt.ptr<tensor<32x32xf16>>\n"
VECTOR = f"""%one = {ONE}
%p = tt.make_tensor_ptr %x, [%n], [%one], [%i] {{order = array<i32: 0>}} : <tensor<32xf16>>
%v = tt.load %p : !tt.ptr<tensor<32xf16>>"""


def test_rows_whose_pitch_and_base_are_known() -> None:
    (access,) = accesses(block_pointer() + LOAD)
    assert (access.contiguous, access.reason) == (1, None)


def test_columns() -> None:
    (access,) = accesses(block_pointer("%one, %n", "0, 1") + LOAD)
    assert (access.contiguous, access.reason) == (0, None)


def test_a_loop_hands_the_pointer_on() -> None:
    body = """%zero = arith.constant 0 : i32
    %c = arith.constant 32 : i32
    %q = scf.for %k = %zero to %i step %c iter_args(%p0 = %p) -> (!tt.ptr<tensor<32x32xf16>>) : i32 {
      %v = tt.load %p0 : !tt.ptr<tensor<32x32xf16>>
      %p1 = tt.advance %p0, [%zero, %c] : <tensor<32x32xf16>>
      scf.yield %p1 : !tt.ptr<tensor<32x32xf16>>
    }"""
    (access,) = accesses(block_pointer() + body)
    assert access.contiguous == 1
    assert len(access.makers) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (block_pointer("%n, %n") + LOAD, "no stride is known to be 1"),
        (f"%odd = arith.constant 50 : i64\n{block_pointer('%odd, %one')}{LOAD}", "rows are 100 bytes apart"),
        (VECTOR, "the block has one dimension"),
    ],
)
def test_why_not(body: str, reason: str) -> None:
    (access,) = accesses(body)
    assert access.contiguous is None
    assert access.reason is not None
    assert access.reason.startswith(reason)


def test_a_store_does_not_transpose() -> None:
    load, store = accesses(block_pointer("%one, %n", "0, 1") + STORE)
    assert load.contiguous == 0
    assert store.contiguous is None
    assert store.fastest == 0
    assert store.reason == "block messages store rows, and columns lie in memory"


def test_padding_is_no_reason() -> None:
    (access,) = accesses(f"{block_pointer()}{LOAD.replace(' :', ' {padding = 2 : i32} :')}")
    assert access.contiguous == 1
    assert access.pads_with_nan


@pytest.mark.parametrize(
    ("strides", "contiguous", "reason"),
    [("%n, %n, %one", 2, None), ("%n, %one, %n", 1, None), ("%one, %n, %n", None, "what lies next to each other")],
)
def test_batches(strides: str, contiguous: int | None, reason: str | None) -> None:
    block = "tensor<4x32x32xf16>"
    body = f"""%one = {ONE}
    %p = tt.make_tensor_ptr %x, [%n, %n, %n], [{strides}], [%i, %i, %i] {{order = array<i32: 2, 1, 0>}} : <{block}>
    %v = tt.load %p : !tt.ptr<{block}>"""
    (access,) = accesses(body)
    assert access.contiguous == contiguous
    assert access.transposes == (contiguous == 1)
    assert (access.reason or "").startswith(reason or "")


def test_pointers_of_their_own() -> None:
    body = """%s = tt.splat %x : !tt.ptr<f16> -> tensor<32x!tt.ptr<f16>>
    %v = tt.load %s : tensor<32x!tt.ptr<f16>>"""
    (access,) = accesses(body)
    assert access.reason == "each element has a pointer of its own"
    assert access.hint is not None
    assert "make_tensor_descriptor" in access.hint
