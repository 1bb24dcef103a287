"""Matrix products of blocks in memory run for Xe, emulated on the CPU, against numpy: turned, and of each dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
import xe_modules as modules
from aligned_arrays import aligned
from mltriton.errors import BackendError, OptionError
from mltriton.targets.llvm.types import GLOBAL_PTR, I8, I32
from mltriton.targets.xe.block_limits import Access, Block
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.emulation import emulate
from mltriton.targets.xe.llvm import payloads

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(11)
Array = np.ndarray[Any, Any]
SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, i32:16, 1, 1, i32:16"
BLOCKS = {"BM": 32, "BN": 32, "BK": 32, "TF32": False}


@triton.jit
def multiply(
    a, b, c, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TF32: tl.constexpr = False
):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a, (M, K), (sam, sak), (row, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (sbk, sbn), (0, column), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), c.dtype.element_ty)
    for _ in range(0, K, BK):
        x, y = tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1))
        total = tl.dot(x, y, total, input_precision="tf32" if TF32 else "ieee", out_dtype=c.dtype.element_ty)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    there = tl.make_block_ptr(c, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(there, total, boundary_check=(0, 1))


def product(a: Array, b: Array, out: type, *, depth: int = 32, **options: Any) -> Array:
    """What the kernel makes of two matrices, in blocks of 32 x 32."""
    (m, k), n, size = a.shape, b.shape[1], a.itemsize
    c = aligned(np.full((m, n), 77, out))
    strides = [stride // size for x in (a, b) for stride in x.strides]
    arrays = [x if x.flags.c_contiguous else x.T for x in (a, b)]
    multiply[(-(-m // 32), -(-n // 32))](*arrays, c, m, n, k, *strides, 32, 32, depth, target=TARGET, **options)
    return c


def test_tf32_takes_the_upper_bits_of_operands() -> None:
    a, b = (aligned(RNG.uniform(0.5, 1.5, shape).astype(np.float32)) for shape in ((70, 48), (48, 64)))
    cut = [(x.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64) for x in (a, b)]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    c = product(a, b, np.float32, depth=16, TF32=True)
    np.testing.assert_allclose(c, cut[0] @ cut[1], rtol=1e-6)
    assert (np.abs(c / exact - 1) < 2**-9).all()
    np.testing.assert_allclose(product(a, b, np.float32, depth=16), exact, rtol=2**-20)


@pytest.mark.parametrize(("dtype", "out", "turned"), [(np.float16, np.float32, True), (np.int8, np.int32, False)])
def test_address_payloads(dtype: type, out: type, turned: bool) -> None:
    """What a loop writes into the addresses that it keeps is where its blocks are."""
    a, b = (RNG.integers(-9, 9, shape).astype(dtype) for shape in ((80, 144), (144, 96)))
    c = product(aligned(a), aligned(b.T).T if turned else aligned(b), out, address_payloads=True)
    assert (c == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_what_has_no_address_payloads() -> None:
    for value, target, message in ((True, "cpu", "the target cpu has no address_payloads"), (1, TARGET, "a bool")):
        with pytest.raises(OptionError, match=message):
            triton.compile(multiply, SIGNATURE, BLOCKS, target=target, address_payloads=value)


def test_a_payload_is_of_one_block() -> None:
    _, f = modules.kernel("load", [("base", GLOBAL_PTR), ("size", I32)])
    base, size = f.parameters
    wide, narrow = (Block(Access.LOAD, 2, 16, 8, blocks) for blocks in (2, 1))
    payload = payloads.create(f, payloads.Surface(base, size, size, size), wide, size, size)
    payloads.load(f, payload, narrow, f.alloca(I8, 1024), 0)
    with pytest.raises(BackendError, match="a payload is of another block"):
        emulate(f, device("pvc"))


@pytest.mark.parametrize(
    ("dtype", "out", "tf32", "codegen"),
    [
        (np.float16, np.float32, False, "simt"),
        (np.float32, np.float32, True, "simt"),
        (np.float32, np.float32, True, "simd"),
        (np.int8, np.int32, False, "simt"),
    ],
)
def test_a_transposed_left_operand(dtype: type, out: type, tf32: bool, codegen: str) -> None:
    a, b = (RNG.integers(-9, 9, shape).astype(dtype) for shape in ((80, 144), (144, 96)))
    c = product(aligned(a.T).T, aligned(b), out, TF32=tf32, codegen=codegen)
    assert (c == a.astype(np.int32) @ b.astype(np.int32)).all()
