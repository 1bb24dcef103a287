"""Values that many steps lead to, and that are needed again, are computed once: a bitonic sort grows as its stages."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.dialects import scf, tile, tt
from mltriton.tools.verify import verify_kernel
from processors import RUNNABLE


@triton.jit
def compare_and_swap(x, idx, n, flip, i: tl.constexpr, n_dims: tl.constexpr):
    """Every stage sums over pairs what the stage before it made, and combines the sums with that."""
    shape: tl.constexpr = [(x.numel >> n_dims) * 2**i, 2, 2 ** (n_dims - i - 1)]
    y = tl.reshape(x.to(tl.int32, bitcast=True), shape)
    right_mask = tl.arange(0, 2)[None, :, None]
    left_mask = 1 - right_mask
    ileft = tl.reshape(tl.broadcast_to(tl.sum(y * left_mask, 1)[:, None, :], shape), x.shape)
    iright = tl.reshape(tl.broadcast_to(tl.sum(y * right_mask, 1)[:, None, :], shape), x.shape)
    left, right = ileft.to(tl.float32, bitcast=True), iright.to(tl.float32, bitcast=True)
    z = tl.reshape(idx, shape)
    left_idx = tl.reshape(tl.broadcast_to(tl.sum(z * left_mask, 1)[:, None, :], shape), x.shape)
    right_idx = tl.reshape(tl.broadcast_to(tl.sum(z * right_mask, 1)[:, None, :], shape), x.shape)
    cond = (left > right) | ((left == right) & (left_idx > right_idx))
    cond = ((right_idx < n) > (left_idx < n)) | (((right_idx < n) == (left_idx < n)) & cond)
    cond = (cond ^ flip).to(tl.int1)
    ret = x.to(tl.int32, bitcast=True) ^ tl.where(cond, ileft ^ iright, 0)
    return ret.to(tl.float32, bitcast=True), idx ^ tl.where(cond, left_idx ^ right_idx, 0)


@triton.jit
def sort_rows(inp, out, where, n, ROWS: tl.constexpr, DIMS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, 2**DIMS)[None, :]
    x = tl.load(inp + i * n + j, j < n, other=0.0)
    idx = tl.broadcast_to(j, [ROWS, 2**DIMS])
    for stage in tl.static_range(1, DIMS + 1):
        if stage < DIMS:
            shape: tl.constexpr = [x.numel // 2 ** (stage + 1), 2, 2**stage]
            flip = tl.reshape(tl.broadcast_to(tl.arange(0, 2)[None, :, None], shape), x.shape)
        else:
            flip = False
        for step in tl.static_range(stage):
            x, idx = compare_and_swap(x, idx, n, flip, step + (DIMS - stage), DIMS)
    tl.store(out + i * n + j, x, j < n)
    tl.store(where + i * n + j, idx, j < n)


@pytest.mark.parametrize(("rows", "n", "dims"), [(1, 16, 4), (4, 13, 4), (2, 30, 5), (8, 8, 3)])
def test_a_bitonic_sort_sorts(rows, n, dims):
    x = np.random.default_rng(n).integers(-9, 9, (rows, n)).astype(np.float32) / 2  # with equal ones
    out, where = np.empty_like(x), np.empty((rows, n), np.int32)
    sort_rows[(1,)](x, out, where, n, ROWS=rows, DIMS=dims)
    np.testing.assert_array_equal(out, np.sort(x, -1))
    np.testing.assert_array_equal(where, np.argsort(x, -1, kind="stable"))


def test_its_program_grows_as_its_stages():
    lines = {}
    for dims in (3, 6):
        kernel = triton.compile(sort_rows, "*fp32, *fp32, *i32, i32, 1, " + str(dims))
        lines[dims] = kernel.asm["intrinsic"].count("\n")
    assert lines[6] < 8 * lines[3]  # 21 stages and 6: 12 times where each repeats all before it


@triton.jit
def long_formula(inp, out, total, n, COUNT: tl.constexpr):
    i = tl.arange(0, 64)
    x = tl.load(inp + i, i < n, other=0.0)
    for k in tl.static_range(COUNT):
        x = tl.sin(x) * 0.5 + x * (1.0 - k * 0.01)
    y = x * 2.0
    s = tl.sum(tl.where(i < n, y, 0.0), 0)
    tl.store(out + i, x - s, i < n)
    tl.store(total, s)


@pytest.mark.parametrize("count", [3, 20, 40])
def test_what_is_kept_is_right(count):
    x = np.random.default_rng(count).standard_normal(50).astype(np.float32) * 0.1
    out, total = np.empty_like(x), np.empty(1, np.float32)
    long_formula[(1,)](x, out, total, 50, COUNT=count)
    expected = x.astype(np.float64)
    for k in range(count):
        expected = np.sin(expected) * 0.5 + expected * (1.0 - k * 0.01)
    scale = np.abs(expected).sum()
    np.testing.assert_allclose(total[0] / scale, 2 * expected.sum() / scale, atol=1e-4)
    np.testing.assert_allclose(out / scale, (expected - 2 * expected.sum()) / scale, atol=1e-4)


@triton.jit
def scaled_dot(a, b, scales, c, K: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    """Columns of the right operand in groups with a scale each, that lie group after group."""
    i, j, k = tl.arange(0, 32)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    scale = tl.load(scales + tl.arange(0, N)[None, :] * (K // GROUP) + tl.arange(0, K // GROUP)[:, None])
    many = tl.reshape(tl.broadcast_to(scale[:, None, :], [K // GROUP, GROUP, N]), [K, N])
    right = (tl.load(b + k[:, None] * N + j).to(tl.float32) * many).to(tl.bfloat16)
    tl.store(c + i * N + j, tl.dot(tl.load(a + i * K + k[None, :]).to(tl.bfloat16), right))


@pytest.mark.parametrize("target", sorted({"cpu:avx2", "cpu:avx512-bf16"}.intersection(RUNNABLE)))
def test_scales_of_groups_are_loaded_once(target):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 64), (64, 48 + 16)))
    scales = np.exp2(rng.integers(-3, 4, (64, 2))).astype(np.float32)
    args = {"a": a, "b": b, "scales": scales, "c": np.zeros((32, 64), np.float32), "K": 64, "N": 64, "GROUP": 32}
    result = verify_kernel(scaled_dot, args=args, grid=(1,), target=target, uninitialised=True)
    assert result.ok, str(result)
    kernel = triton.compile(scaled_dot, signature="*fp32, *fp32, *fp32, *fp32, 64, 64, 32", target=target)
    loops = [op for op in kernel.job.module("intrinsic").walk() if isinstance(op, scf.For)]
    bodies = [{type(op) for op in loop.body.block.ops} for loop in loops]
    gathering = [kinds for kinds in bodies if tt.Load in kinds]
    assert len(gathering) == 1 and tile.Load not in gathering[0]  # Only what fills the scales' own place gathers.


@triton.jit
def shares_and_others(x, out, N: tl.constexpr, HOW: tl.constexpr):
    """Shares of rows, and powers of other rows or of the same one, at the same place."""
    i = tl.arange(0, N)
    p = tl.exp(tl.sin((i[:, None] * 37 + i[None, :] * 11).to(tl.float32)))
    if HOW == "halves":
        other = tl.reshape(tl.trans(tl.reshape(p, (2, N // 2, N)), (1, 0, 2)), (N, N))
    else:
        a, b = tl.split(tl.reshape(p, (N, N // 2, 2)))
        other = tl.reshape(tl.join(b, a), (N, N))
    tl.store(out + i[:, None] * N + i[None, :], p / tl.sum(p, 1)[:, None] + other)


@each_value(("target", ["cpu", "cpu:sse"]), ("how", ["halves", "pairs"]))
def test_a_value_that_is_kept_for_a_row_is_not_that_of_another(target: str, how: str) -> None:
    n, i = 256, np.arange(256)
    out = np.zeros((n, n), np.float32)
    args = {"x": np.zeros(1, np.float32), "out": out, "N": n, "HOW": how}
    result = verify_kernel(shares_and_others, args=args, grid=(1,), target=target, uninitialised=True)
    assert result.ok, str(result)
    if target != "cpu":
        return
    shares_and_others[(1,)](args["x"], out, n, how)
    p = np.exp(np.sin((i[:, None] * 37 + i * 11).astype(np.float64)))
    halves = p.reshape(2, n // 2, n).transpose(1, 0, 2) if how == "halves" else p.reshape(n, n // 2, 2)[:, :, ::-1]
    expected = p / p.sum(1)[:, None] + halves.reshape(n, n)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
