"""Blocks copied by Hopper's engine, on the PTX emulator: clipped tensors, element sizes, pipelines, what falls back.

So run all tests of the language with descriptors: `pytest tests/language --target cuda:90 --emulated -k descriptor`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_pair, each_value
from mltriton.targets.base import TensorCopies
from mltriton.targets.nvidia import spec
from mltriton.tools.remarks import kernel_remarks
from mltriton.tools.tensor_descriptor import TensorDescriptor
from persistent_product import product
from ptx_emulator.launch import install

ENGINE = "cp.async.bulk.tensor"
ALL: dict[str, Any] = {"target": "cuda:90", "tensor_maps": "all"}  # also in programs without products


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def copy(x, y, M, N, S, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [S, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [M, N], [S, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]))


@triton.jit
def copy_described(source, sink):
    at = [tl.program_id(0) * 2, tl.program_id(1) * 16, 0]
    sink.store(at, source.load(at))


@triton.jit
def batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z, i, j = tl.program_id(2), tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a + z * M * K, (M, K), (K, 1), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b + z * N * K, (K, N), (1, K), (0, j), (BK, BN), (0, 1))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1)), total)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    out = tl.make_block_ptr(c + z * M * N, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


@triton.jit
def by_pointers(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As upstream's tutorial: rows and columns wrap around, the end of K is masked."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    left = a + (i % M)[:, None] * sam + along[None, :] * sak
    right = b + along[:, None] * sbk + (j % N)[None, :] * sbn
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=along[None, :] < K - k * BK, other=0.0)
        y = tl.load(right, mask=along[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * sak
        right += BK * sbk
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), mask=inside)


@each_value(("block", [(16, 128), (64, 32), (4, 256)]), ("dtype", ["int8", "float16", "float32", "float64"]))
def test_tensors_are_clipped(dtype: str, block: tuple[int, int]) -> None:
    x = (100 * np.random.default_rng(0).normal(size=(70, 272))).astype(dtype)
    y, wanted = np.zeros_like(x), np.zeros_like(x)
    wanted[:67, :261] = x[:67, :261]
    grid = triton.cdiv(67, block[0]), triton.cdiv(261, block[1])
    kernel = copy[grid](x, y, 67, 261, 272, *block, **ALL)
    assert (y == wanted).all()
    bytes_ = block[0] * block[1] * x.itemsize
    assert (ENGINE in kernel.asm["ptx"]) == (bytes_ >= 2048)


def test_descriptors_of_the_host() -> None:
    x = np.random.default_rng(0).normal(size=(5, 40, 64)).astype(np.float16)
    y = np.zeros_like(x)
    described = (TensorDescriptor.from_tensor(array, [2, 16, 64]) for array in (x, y))
    kernel = copy_described[(3, 3)](*described, **ALL)
    assert (x == y).all()
    assert f"{ENGINE}.3d.shared" in kernel.asm["ptx"]


@pytest.mark.parametrize(("shift", "stride"), [(0, 72), (1, 72), (4, 72), (8, 72), (0, 73), (0, 76)])
def test_what_cannot_be_described_is_copied_otherwise(shift: int, stride: int) -> None:
    memory = np.random.default_rng(0).normal(size=64 * stride + 8).astype(np.float16)
    room = np.zeros(len(memory) + 8, np.float16)
    start = -(memory.ctypes.data // 2) % 8
    x = memory[start:][shift:][: 48 * stride].reshape(48, stride)
    y = room[-(room.ctypes.data // 2) % 8 :][: x.size].reshape(x.shape)
    for _ in range(2):
        copy[(1, 2)](x, y, 48, stride, stride, 64, 64, **ALL)
    assert (x == y).all()


@each_pair(("programs", [1, 4]), ("turned", [False, True]), ("stages", [1, 2, 3]))
def test_products(stages: int, turned: bool, programs: int) -> None:
    """Tails of all three sizes; one program walks over all tiles, so that barriers begin anew."""
    rng = np.random.default_rng(0)
    m, n, k = 40, 72, 104
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    right = np.ascontiguousarray(b.T) if turned else b
    blocks = (32, 64, 32, turned)
    kernel = product[(programs,)](a, right, c, m, n, k, *blocks, num_stages=stages, target="cuda:90")
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=2e-3, atol=2e-3)
    assert ENGINE in kernel.asm["ptx"] and "ld.global" not in kernel.asm["ptx"]


@each_value(("columns", [136, 137]), ("turned", [False, True]))
def test_products_by_plain_pointers(turned: bool, columns: int) -> None:
    """Blocks of pointers are found to be blocks of tensors; rows of 137 elements only at the launch to be none."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(72, 200)).astype(np.float16), rng.normal(size=(200, columns)).astype(np.float16)
    c = np.full((72, columns), np.nan, np.float16)
    right, strides = (np.ascontiguousarray(b.T), (1, 200)) if turned else (b, (columns, 1))
    kernel = by_pointers[(2, 2)](a, right, c, 72, columns, 200, 200, 1, *strides, 64, 128, 32, target="cuda:90")
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=2e-3, atol=2e-3)
    ptx = kernel.asm["ptx"]
    assert ptx.count(f"{ENGINE}.2d.shared") >= 2 and f"{ENGINE}.2d.global" in ptx
    assert not any(access in ptx for access in ("ld.global", "st.global", "cp.async.cg", "cp.async.ca"))


def test_remarks() -> None:
    """What the engine does, and why it does not do the rest."""
    kernel: Any = triton.compile(
        by_pointers, "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,i32,i32,i32,1,64,64,32", target="cuda:90"
    )
    load, other, store, *_ = kernel_remarks(kernel)
    assert "load 64x32xf16: each element has a pointer of its own: no stride is known to be 1" in load
    assert "load 32x64xf16: by the engine for whole blocks, from a tensor of 2 dimensions" in other
    assert "store 64x64xf32: by the engine for whole blocks, to a tensor of 2 dimensions" in store


@triton.jit
def squared_and_copied(x, y, z, COLUMNS: tl.constexpr):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    block = tl.load(x + at)
    tl.store(z + at, tl.dot(block, block))
    tl.store(y + at, block, mask=tl.arange(0, 64)[None, :] < COLUMNS)


@pytest.mark.parametrize(("dtype", "columns"), [("float32", 13), ("float16", 33), ("int8", 1), ("float16", 24)])
def test_columns_are_all_that_is_stored(dtype: str, columns: int) -> None:
    """The engine writes 16 bytes where any of them are inside: lanes store rows that end elsewhere."""
    x = np.random.default_rng(0).integers(1, 99, (64, 64)).astype(dtype)
    y, z = np.zeros_like(x), np.zeros((64, 64), np.int32 if dtype == "int8" else np.float32)
    kernel = squared_and_copied[(1,)](x, y, z, columns, **ALL)
    assert (y[:, :columns] == x[:, :columns]).all()
    assert not y[:, columns:].any()
    assert kernel.asm["ptx"].count(f"{ENGINE}.2d.global") == 2 + (columns == 24)


def test_batches_by_block_pointers() -> None:
    """What moves the base is a dimension of its own; a column-major operand is turned."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 40, 56)).astype(np.float16), rng.normal(size=(3, 48, 56)).astype(np.float16)
    c = np.full((3, 40, 48), np.nan, np.float32)
    kernel = batched[(2, 1, 3)](a, b, c, 40, 48, 56, 32, 64, 32, target="cuda:90")
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.transpose(0, 2, 1), rtol=1e-3, atol=1e-3)
    assert f"{ENGINE}.3d.shared" in kernel.asm["ptx"]


@triton.jit
def moved(x, y, i, j, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [100, 80], [80, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    target.store([0, 0], source.load([i, j]))


@pytest.mark.parametrize("at", [(3, 5), (-5, 16), (90, -16), (99, 32), (200, 0), (0, 80)])
def test_blocks_begin_anywhere(at: tuple[int, int]) -> None:
    """Outside of the tensor, too; columns of which nothing is known are loaded by lanes."""
    x = np.random.default_rng(0).normal(size=(100, 80)).astype(np.float16)
    y, room = np.full((64, 64), np.nan, np.float16), np.zeros((600, 600), np.float16)
    room[200:300, 200:280] = x
    moved[(1,)](x, y, *at, 64, **ALL)
    assert (y == room[200 + at[0] :, 200 + at[1] :][:64, :64]).all()


def test_an_empty_product() -> None:
    """A tensor without elements cannot be described: the launch does without."""
    a, c = np.ones((32, 32), np.float16), np.full((32, 64), np.nan, np.float16)
    product[(1,)](a, a, c, 32, 64, 0, 32, 64, 32, False, target="cuda:90")
    assert not c.any()


@pytest.mark.parametrize(("asked", "used"), [("products", False), ("all", True), ("none", False)])
def test_the_option(asked: str, used: bool) -> None:
    """A program that multiplies nothing is not faster by the engine."""
    x = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    kernel = copy[(1, 1)](x, np.zeros_like(x), 64, 64, 64, 64, 64, target="cuda:90", tensor_maps=asked)
    assert (ENGINE in kernel.asm["ptx"]) == used


def test_older_gpus_have_no_engine() -> None:
    assert spec.spec("80").tensor_copies is None
    assert isinstance(spec.spec("90").tensor_copies, TensorCopies)


def test_blocks_that_are_needed_at_once_share_no_memory() -> None:
    """The sum is sent from where operands were: it takes no shared memory of its own."""
    arguments = "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,128,128,64,False,False"
    kernel: Any = triton.compile(product, arguments, target="cuda:90", num_stages=3)
    assert kernel.metadata.shared < 3 * 2 * (128 * 64) * 2 + 4096


@pytest.mark.parametrize(
    ("block", "by_engine"),
    [((64, 32, 32), False), ((64, 64, 32), False), ((32, 64, 32), True), ((64, 128, 32), True)],
)
def test_lanes_bring_small_blocks_with_short_rows(block: tuple[int, int, int], by_engine: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (64, 96)).astype(np.float16), rng.integers(-3, 4, (96, 128)).astype(np.float16)
    c = np.full((64, 128), np.nan, np.float16)
    grid = (64 // block[0], 128 // block[1])
    kernel = by_pointers[grid](a, b, c, 64, 128, 96, 96, 1, 128, 1, *block, target="cuda:90", num_warps=2)
    np.testing.assert_array_equal(c, a @ b)
    assert (f"{ENGINE}.2d.shared" in kernel.asm["ptx"]) == by_engine
    told = any("lanes bring small blocks" in remark for remark in kernel_remarks(kernel))
    assert told != by_engine


@pytest.mark.parametrize(
    ("columns", "how"),
    [
        (128, "3 buffers of 128x64xf16 + 64x128xf16, from an iteration's end on, so that 2 programs share"),
        (256, "4 buffers of 128x64xf16 + 64x256xf16, of which products under way read one"),
    ],
)
def test_how_far_ahead_a_loop_copies(columns: int, how: str) -> None:
    given = f"*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,i32:16,1,i32:16,1,128,{columns},64"
    kernel = triton.compile(
        by_pointers, given, target="cuda:90", num_warps=columns // 32, num_stages=3, specialize_warps="none"
    )
    assert any(f"loop: copies 2 iterations ahead, in {how}" in remark for remark in kernel_remarks(kernel))


def test_the_engine_brings_rows_of_which_lanes_know_too_little() -> None:
    """Lanes would copy 2 bytes at once where a row may begin anywhere."""
    for number, by_engine in (("i32:16", False), ("i32", True)):
        given = f"*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,{number},1,{number},1,128,64,32"
        kernel = triton.compile(by_pointers, given, target="cuda:90")
        assert (f"{ENGINE}.2d.shared" in kernel.asm["ptx"]) == by_engine
