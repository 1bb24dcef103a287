"""A GPU that is a table, a machine and nothing else compiles to code that its assembler takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import TargetError

F32, I32 = np.float32, np.int32


@triton.jit
def added(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    row = tl.load(x + at, mask=inside, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit
def combined(x, y, out, n, BLOCK: tl.constexpr):
    """Reductions within and across warps, and a scan."""
    row, column = tl.arange(0, 16), tl.arange(0, BLOCK)
    at = row[:, None] * BLOCK + column[None, :]
    value = tl.load(x + at)
    tl.store(out + column, tl.sum(value, 0))
    tl.store(y + row, tl.max(value, 1))
    tl.store(x + at, tl.cumsum(value, 1, reverse=True))


@triton.jit
def gathered(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(y + at).to(tl.int32), 0))


@triton.jit
def updated(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    old = tl.atomic_add(out + (at & 15), value, mask=at < n, sem="relaxed", scope="cta")
    tl.atomic_cas(y, tl.load(x), tl.load(out), sem="release")
    tl.store(y + at, old)


@triton.jit
def rearranged(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    value = tl.load(x + at)
    first, second = tl.split(tl.reshape(value, (16, 16, 2)))
    turned = tl.reshape(tl.trans(value), (16, 32))
    tl.store(out + at, turned + tl.reshape(tl.join(second, first), (16, 32)))


@triton.jit
def looped(x, y, out, n, BLOCK: tl.constexpr):
    """Block pointers and descriptors, lane by lane; loops of both kinds."""
    source = tl.make_block_ptr(x, (n, n), (1, n), (0, 0), (32, 32), (0, 1))
    total, row = tl.zeros((32, 32), tl.float32), 0
    for _ in range(0, n, 32):
        total += tl.load(source, boundary_check=(0, 1), padding_option="nan").to(tl.float32)
        source = tl.advance(source, (32, 0))
    there = tl.make_tensor_descriptor(out, [n, n], [n, 1], [32, 32])
    while row < n:
        there.store([row, 0], total.to(out.dtype.element_ty))
        row += 32


@triton.jit
def told(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.device_assert(value != 0, "no zero")
    tl.device_print("value", value)
    tl.device_print("size", n, tl.program_id(0))


@triton.jit
def converted(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    narrow = value.to(tl.float16).to(tl.float32) + value.to(tl.bfloat16).to(tl.float32)
    narrow += value.to(tl.float8e4nv).to(tl.float32) + value.to(tl.float8e5).to(tl.float32)
    whole = value.to(tl.int64) // 7 + value.to(tl.int8) % 3
    powers = tl.exp(narrow) + tl.log2(tl.abs(narrow) + 1) + tl.erf(narrow) + tl.rsqrt(narrow) + tl.floor(narrow)
    tl.store(out + at, (tl.maximum(powers, narrow) + whole.to(tl.float64)).to(out.dtype.element_ty))


@triton.jit(warp_level=True)
def shared(x, y, out, n, BLOCK: tl.constexpr):
    """A warp writes and reads its own part of shared memory, and after a barrier the next one's."""
    warp, at = tl.warp_id(), tl.arange(0, 32)
    parts = tl.alloc((tl.num_warps(), 32, 32), tl.float32)
    block = at[:, None] * 32 + at[None, :]
    tl.store(parts[warp], tl.load(x + block).to(tl.float32))
    turned = tl.trans(tl.load(parts[warp]))
    tl.store(parts[warp], turned)
    tl.barrier()
    tl.store(out + block, tl.load(parts[(warp + 1) % tl.num_warps()]).to(out.dtype.element_ty))


@triton.jit
def multiplied(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def compiled(kernel: Any, dtype: Any = F32, block: int = 1024, warps: int = 4, **options: Any) -> Any:
    x = np.zeros(1 << 12, dtype)
    return kernel.warmup(x, x, x, 1 << 12, block, grid=(1,), num_warps=warps, target="second", **options).asm


def assembled(ptx: str, tmp_path: Path) -> None:
    """Let NVIDIA's assembler read it, where there is one."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("there is no ptxas")
    (tmp_path / "kernel.ptx").write_text(ptx)
    run = subprocess.run([assembler, "-arch=sm_90", "-o", "/dev/null", "kernel.ptx"], cwd=tmp_path, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (added, F32),
        (softmax, F32),
        (combined, F32),
        (combined, np.int64),
        (gathered, np.int8),
        (updated, np.float64),
        (updated, I32),
        (rearranged, np.float16),
        (looped, np.float16),
        (told, F32),
        (converted, F32),
        (converted, np.float16),
        (shared, F32),
    ],
)
def test_it_compiles(kernel: Any, dtype: Any, warps: int, tmp_path: Path) -> None:
    asm = compiled(kernel, dtype, block=64 if kernel is combined else 256, warps=warps, debug=kernel is told)
    assert f".maxntid {32 * warps}" in asm["ptx"]
    assembled(asm["ptx"], tmp_path)


def test_neighbours_are_accessed_together() -> None:
    assert compiled(added)["ptx"].count("ld.global.v4.b32") == 4


def test_lanes_wait_for_each_other_around_shared_memory() -> None:
    """Once between each two accesses of which one writes; not where all warps wait."""
    lines = [line.split()[0] for line in compiled(shared, warps=4)["ptx"].splitlines() if line.strip()]
    order = [line for line in lines if line.startswith(("bar", "ld.shared", "st.shared"))]
    kinds = [kind for kind, before in zip(order, ["", *order], strict=False) if kind[:9] != before[:9]]
    assert [kind.split(".")[0] for kind in kinds] == ["st", "bar", "ld", "bar", "st", "bar", "ld"]
    assert [kind.startswith("bar.warp") for kind in kinds if kind.startswith("bar")] == [True, True, False]


def test_there_is_no_matrix_product() -> None:
    with pytest.raises(TargetError, match="the target second has no dot of f32 elements"):
        compiled(multiplied)["ptx"]
