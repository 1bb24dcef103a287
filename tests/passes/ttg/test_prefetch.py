# pyright: basic
"""prefetch: every block that a loop loads was asked for before, no line by two warps, and the results stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import scf, tt, ttig
from mltriton.executor import run
from mltriton.executor.blocks import TensorView
from mltriton.executor.machine import Warp
from mltriton.executor.table import OPERATIONS
from mltriton.ir.types import F16, F32, I8, TensorType, block_of, byte_width
from mltriton.targets.registry import spec
from mltriton.targets.xe.layouts.prefetches import prefetch_encoding

from .. import kernels
from ..programs import Array, Program, flash_attention, kernel, matmul

CLEAN = "canonicalize,cse,combine,reorder-broadcast,canonicalize,cse,licm,dce"
TTG = f"{CLEAN},normalize-block-pointers,assign-layouts,prefetch{{distance=2}},cse"
INTRINSIC = f"{TTG},distribute-to-warps,lower-cross-warp,canonicalize,cse,licm,dce,match-target-size,canonicalize,cse"


@triton.jit
def persistent_matmul(a, b, c, n_tiles, K, B: tl.constexpr):
    """Tiles of a row of C one after the other: a loop over K in a loop over tiles, and a load that is no dot's."""
    for tile in range(n_tiles):
        b_block = tl.make_block_ptr(b, (K, n_tiles * B), (n_tiles * B, 1), (0, tile * B), (B, B), (1, 0))
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a_block = tl.make_block_ptr(a, (B, K), (K, 1), (0, k), (B, B), (1, 0))
            acc = tl.dot(tl.load(a_block), tl.load(b_block), acc, input_precision="ieee")
            b_block = tl.advance(b_block, (B, 0))
        c_block = tl.make_block_ptr(c, (B, n_tiles * B), (n_tiles * B, 1), (0, tile * B), (B, B), (1, 0))
        tl.store(c_block, acc + tl.load(c_block))


@triton.jit
def two_loops(a, b, c, middle, K, B: tl.constexpr):
    """C = 2 A B over the first part of K and A B over the rest, as causal attention goes on after the unmasked keys."""
    a_block = tl.make_block_ptr(a, (B, K), (K, 1), (0, 0), (B, B), (1, 0))
    b_block = tl.make_block_ptr(b, (K, B), (B, 1), (0, 0), (B, B), (1, 0))
    acc = tl.zeros((B, B), tl.float32)
    for _ in range(0, middle, B):
        acc = tl.dot(tl.load(a_block) * 2, tl.load(b_block), acc, input_precision="ieee")
        a_block, b_block = tl.advance(a_block, (0, B)), tl.advance(b_block, (B, 0))
    for _ in range(middle, K, B):
        acc = tl.dot(tl.load(a_block), tl.load(b_block), acc, input_precision="ieee")
        a_block, b_block = tl.advance(a_block, (0, B)), tl.advance(b_block, (B, 0))
    tl.store(tl.make_block_ptr(c, (B, B), (B, 1), (0, 0), (B, B), (1, 0)), acc)


def chained() -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in ((32, 160), (160, 32), (32, 32)))
        return [a, b, c, 96, 160]

    return kernel(two_loops, "*fp32:16, *fp32:16, *fp32:16, i32, i32", make, B=32)


def persistent() -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in ((32, 96), (96, 64), (32, 64)))
        return [a, b, c, 2, 96]

    return kernel(persistent_matmul, "*fp32:16, *fp32:16, *fp32:16, i32, i32", make, B=32)


ELEMENTS = {"f16": F16, "f32": F32, "i8": I8}
PROGRAMS = {
    "block pointers": matmul(kernels.matmul_block_pointer, BM=32, BN=32, BK=16),
    "descriptors": matmul(kernels.matmul_descriptor, BM=32, BN=32, BK=16),
    "f16": matmul(kernels.matmul_block_pointer, dtype="fp16", BM=32, BN=64, BK=32),
    "attention": flash_attention(False, dtype="fp16", BM=32, BN=32),
    "causal attention": flash_attention(True, queries=70, keys=70, BM=32, BN=16),
    "nested loops": persistent(),
    "two loops": chained(),
}


class Record:
    """The lines of 64 bytes of every matrix that are loaded in loops, and prefetched by each warp."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prefetched: dict[int, set[int]] = {}
        self.late: list[str] = []
        self.loads = 0
        load = OPERATIONS[tt.Load]
        monkeypatch.setitem(OPERATIONS, ttig.Prefetch, self.prefetch)
        monkeypatch.setitem(OPERATIONS, tt.Load, lambda op: self.before(op, op.ptr, load(op)))

    def prefetch(self, op: ttig.Prefetch) -> Any:
        block = block_of(op.ptr.type)
        assert block is not None

        def call(warp: Warp, view: TensorView) -> None:
            self.prefetched.setdefault(warp.id, set()).update(elements(view, block))

        return call

    def before(self, op: Any, pointer: Any, handler: Any) -> Any:
        block = block_of(pointer.type)
        if block is None or block.rank != 2 or not isinstance(op.parent_op, scf.For):
            return handler

        def call(warp: Warp, view: TensorView, *rest: Array) -> Any:
            self.loads += 1
            known = set[int]().union(*self.prefetched.values())
            # Another warp may still have to ask for its part of the blocks of this very iteration.
            if warp.id == 0 and not elements(view, block) & known:
                self.late.append(str(op))
            return handler(warp, view, *rest)

        return call


def elements(view: TensorView, block: TensorType) -> set[int]:
    """The addresses of the elements of a block inside the tensor."""
    addresses = view.addresses(block.shape, byte_width(block.element))
    inside = view.inside(block.shape, (0, 1))
    return set((addresses if inside is None else addresses[inside]).ravel().tolist())


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_levels_agree(name: str, warps: int) -> None:
    program = PROGRAMS[name].with_warps(warps)
    program.check(TTG)
    module = program.check(INTRINSIC)
    assert any(isinstance(op, ttig.Prefetch) for op in module.walk())


@pytest.mark.parametrize(
    "name", ["block pointers", "f16", "attention", "causal attention", "nested loops", "two loops"]
)
def test_what_is_loaded_was_prefetched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level ttg, where a program runs as one: nothing is loaded in a loop that was not asked for before."""
    record = Record(monkeypatch)
    program = PROGRAMS[name].with_warps(4)
    program.results(program.transformed(TTG))
    assert record.loads and not record.late
    without = program.transformed(TTG.replace("distance=2", "distance=0"))
    record.prefetched.clear()
    program.results(without)
    assert record.late, "without prefetches every load comes late"


@pytest.mark.parametrize("name", ["block pointers", "descriptors", "f16"])
def test_warps_share_what_is_prefetched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level intrinsic: all warps together ask for what the program as a whole does, and each for another part."""
    record = Record(monkeypatch)
    program = PROGRAMS[name].with_warps(4)
    arguments = program.arguments(np.random.default_rng(0))  # The same arrays, so that addresses are the same.
    run(program.transformed(TTG), arguments, program.grid)
    whole = record.prefetched[0]
    record.prefetched = {}
    run(program.transformed(INTRINSIC), arguments, program.grid)
    parts = [record.prefetched[warp] for warp in range(4)]
    assert set().union(*parts) == whole
    assert max(map(len, parts)) <= len(whole) * 3 // 4


def test_a_loop_that_goes_on_prefetches_nothing_twice() -> None:
    """Of two loops over one sequence of blocks only the first starts from nothing."""
    module = chained().with_warps(4).transformed(TTG)
    loops = [op for op in module.walk() if isinstance(op, scf.For)]
    assert len(loops) == 2
    first = [op for op in module.walk() if isinstance(op, ttig.Prefetch) and op.parent_op is loops[0].parent_op]
    inner = [[op for op in loop.body.block.ops if isinstance(op, ttig.Prefetch)] for loop in loops]
    assert (len(first), [len(ops) for ops in inner]) == (2 * 2, [2, 2])


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("warps", [1, 3, 8, 64])
@pytest.mark.parametrize("shape", [(256, 32), (32, 256), (8, 16), (128, 1), (2, 32)])
def test_cuts(shape: tuple[int, int], warps: int, element: str) -> None:
    """Warps have boxes of equal size that cover the block; one access is within the limits."""
    target = spec("generic")
    assert target.block_load is not None
    block = TensorType(shape, ELEMENTS[element])
    for contiguous in (0, 1):
        encoding = prefetch_encoding(block, contiguous, warps, target.block_load, target.warp_size)
        assert encoding is not None
        assert np.prod(encoding.block) >= target.warp_size
        assert np.prod(encoding.warps_per_cta) <= warps
        covered = np.zeros(shape, int)
        per_warp = encoding.per_warp_shape(shape)
        for warp in range(warps):
            cuts = encoding.cut(shape)
            start = [warp // cut.stride % cut.parts(extent) * cut.size for cut, extent in zip(cuts, shape, strict=True)]
            covered[tuple(slice(s, s + size) for s, size in zip(start, per_warp, strict=True))] += 1
        assert covered.min() >= 1
        rows, columns = encoding.tile
        across, along = (rows, columns) if contiguous == 1 else (columns, rows)
        assert across <= 32 and along * byte_width(block.element) <= 64
        assert per_warp[0] % rows == 0 and per_warp[1] % columns == 0


def test_a_block_smaller_than_a_warp_is_left() -> None:
    target = spec("generic")
    assert target.block_load is not None
    for shape in ((2, 4), (8, 1)):
        assert prefetch_encoding(TensorType(shape, F32), 1, 4, target.block_load, target.warp_size) is None


def test_a_target_without_block_accesses_has_none() -> None:
    program = PROGRAMS["block pointers"].with_warps(1, "cpu")
    assert not any(isinstance(op, ttig.Prefetch) for op in program.transformed(TTG).walk())
