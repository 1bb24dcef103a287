"""Programs of lanes: what GPUs share is compiled for one whose lanes need not run in step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.targets import registry
from mltriton.targets import target as targets

from . import amd

F32, I32 = np.float32, np.int32


@triton.jit
def combined(x, y, out, n, BLOCK: tl.constexpr):
    """Reductions within and across warps, a sort and a scan."""
    row, column = tl.arange(0, 16), tl.arange(0, BLOCK)
    at = row[:, None] * BLOCK + column[None, :]
    value = tl.load(x + at)
    tl.store(out + column, tl.sum(value, 0))
    tl.store(y + row, tl.max(value, 1))
    tl.store(x + at, tl.cumsum(tl.sort(value, 1), 1, reverse=True))


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
def counted(x, y, out, n, BLOCK: tl.constexpr):
    """Whoever comes last reads what all lanes have written."""
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))
    if tl.atomic_add(y, 1, sem="acq_rel") == n:
        tl.store(x + at, tl.load(out + BLOCK - 1 - at))


@triton.jit
def multiplied(x, y, out, n, BLOCK: tl.constexpr):
    at, along = tl.arange(0, 64), tl.arange(0, 32)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, n, 32):
        left = tl.load(x + at[:, None] * n + (k + along)[None, :])
        right = tl.load(y + (k + along)[:, None] * 64 + at[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + at[:, None] * 64 + at[None, :], total.to(out.dtype.element_ty))


def compiled(
    kernel: Any, dtype: Any = F32, block: int = 1024, warps: int = 4, target: str = "cuda:90", **options: Any
) -> str:
    """PTX for a GPU whose lanes need not run in step."""
    x = np.zeros(1 << 12, dtype)
    made = kernel.warmup(x, x, x, 1 << 12, block, grid=(1,), num_warps=warps, target=target, **options)
    return made.asm["ptx"]


@each_value(
    ("warps", [1, 4]),
    (
        "kernel, dtype",
        [
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
    ),
)
def test_it_compiles(kernel: Any, dtype: Any, warps: int) -> None:
    block = 64 if kernel is combined else 256
    assert f".maxntid {32 * warps}" in compiled(kernel, dtype, block, warps, debug=kernel is told)


@pytest.fixture
def amd_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The target `amd`, as if a package of that name stood among the others."""
    monkeypatch.setitem(targets.FAMILIES, amd.NAME, ())
    for module in ("spec", "target"):
        monkeypatch.setitem(sys.modules, f"mltriton.targets.{amd.NAME}.{module}", amd)
    targets.split_name.cache_clear()
    yield
    for remembered in (targets.find_target, targets.split_name, registry.spec):
        remembered.cache_clear()


@pytest.mark.parametrize(
    ("kernel", "dtype", "warps", "instruction"),
    [
        (combined, F32, 4, "s_barrier"),
        (combined, np.int64, 1, "ds_bpermute_b32"),
        (gathered, np.int8, 4, "ds_load_"),
        (updated, I32, 4, "global_atomic_cmpswap_b32"),
        (rearranged, np.float16, 1, "global_store_"),
        (looped, np.float16, 4, "s_cbranch"),
        (converted, F32, 4, "v_fma_f32"),
        (shared, F32, 4, "ds_load_b"),
        (counted, I32, 4, "s_barrier"),
    ],
)
def test_a_new_gpu_is_a_table_and_a_machine(
    amd_gpu: None, kernel: Any, dtype: Any, warps: int, instruction: str
) -> None:
    x = np.zeros(1 << 12, dtype)
    block = 64 if kernel is combined else 256
    made = kernel.warmup(x, x, x, 1 << 12, block, grid=(1,), num_warps=warps, target=amd.NAME)
    assert instruction in made.asm["asm"] and '.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"' in made.asm["asm"]


def instructions(ptx: str, *starts: str) -> list[str]:
    """Those that start so, in order, without neighbours of one kind."""
    names = [line.split()[0] for line in ptx.splitlines() if line.strip()]
    found = [start for name in names for start in starts if name.startswith(start)]
    return [name for name, before in zip(found, ["", *found], strict=False) if name != before]


def test_lanes_wait_for_each_other_around_shared_memory() -> None:
    """Once between each two accesses of which one writes; not where all warps wait."""
    order = instructions(compiled(shared), "st.shared", "ld.shared", "bar.warp", "bar.sync")
    assert [name.removesuffix(".shared") for name in order] == [
        *("st", "bar.warp", "ld", "bar.warp", "st", "bar.sync", "ld")
    ]


def test_ordered_updates_are_ordered_for_all_lanes() -> None:
    order = instructions(compiled(counted, I32, 256, warps=1), "st.global", "atom", "bar.warp", "ld.global")
    assert order[1:6] == ["st.global", "bar.warp", "atom", "bar.warp", "ld.global"]


@pytest.mark.parametrize(("warps", "meeting"), [(1, "bar.warp"), (4, "bar.sync")])
def test_lanes_meet_once_for_what_was_copied(warps: int, meeting: str) -> None:
    """Behind the wait, in front of everything else."""
    ptx = compiled(multiplied, np.float16, warps=warps, target="cuda:80")
    order = instructions(ptx, "cp.async.wait", "bar.warp", "bar.sync", "cp.async.cg", "cp.async.commit", "ldmatrix")
    loop = order[order.index("cp.async.wait") :]
    assert loop[:5] == ["cp.async.wait", meeting, "cp.async.cg", "cp.async.commit", "ldmatrix"]


def test_lanes_that_run_in_step_wait_for_nobody() -> None:
    x = np.zeros(1 << 12, F32)
    made = shared.warmup(x, x, x, 1 << 12, 256, grid=(1,), target="xe:pvc")
    assert made.asm["llvm"].count("ControlBarrier") == 2  # its declaration, and the call
