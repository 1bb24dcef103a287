"""What Intel's offline compiler makes of the library's kernels for Xe: the figures of docs/measurements.md.

Run `PYTHONPATH=src:tests python scripts/measure_xe.py [--without PASS] [WORDS]`; without words all rows, otherwise
those with one of them in their name. A row has for SIMT and for SIMD, PVC and BMG each, the instructions of the loops
that multiply (of the whole kernel where none does), registers, and bytes spilled; all of it as if the pipeline had not
a pass. It takes about 10 s of a processor for each row.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mltriton.errors import TritonError
from mltriton.kernels.attention import attention_launch
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.attention_paged import Form, paged_attention_launches
from mltriton.kernels.epilogues import make_epilogue
from mltriton.kernels.fused_gemm import fused_matmul_launch
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.runtime import config
from mltriton.targets.xe import isa, spec
from targets.xe import test_library_isa as library  # type: ignore[import-not-found]

Row = tuple[Launch, int]
HALF, WORD, BYTE = np.float16, np.float32, np.int8


def gemm(dtype: type, result: type, **turned: bool) -> Row:
    """256 x 256 x 32 by 32 warps."""
    return library.gemm(dtype, result, **turned), 32


def tf32(kernel: Any) -> Row:
    """The same of f32 as it lies in memory."""
    a, b, c = (np.zeros((1024, 1024), WORD) for _ in range(3))
    return Launch(kernel, (4, 4), (a, b, c, 1024, 1024, 1024), {"BM": 256, "BN": 256, "BK": 32}), 32


def gemm_f32() -> Row:
    """By three products of tf32."""
    a, b, c = (np.zeros((1, 1024, 1024), WORD) for _ in range(3))
    return matmul_launch(a, b, c, tile=Tile(256, 128, 16, 4)), 32


def attention(head: int, warps: int, causal: bool) -> Row:
    """Forward, 128 queries, 64 keys a step, f16."""
    q, k, v, o = (np.zeros((1, 4, 1024, head), HALF) for _ in range(4))
    return attention_launch(q, k, v, o, causal=causal, blocks=Blocks(128, 64)), warps


def paged(block: int, warp_level: bool, head: int = 128) -> Row:
    """Four heads on one, 64 keys a step, f16."""
    q, o = (np.zeros((4, 32, head), HALF) for _ in range(2))
    k, v = (np.zeros((64, block, 8, head), HALF) for _ in range(2))
    table, lengths = np.zeros((4, 16), np.int32), np.zeros(4, np.int32)
    form = Form(warp_level, heads=4, keys=64, block=block)
    (launch,) = paged_attention_launches(q, k, v, table, lengths, o, form=form)
    return launch, launch.constants.pop("num_warps")


def epilogue() -> Row:
    """A GEMM with a bias, an addend and gelu."""
    a, b, c, add = (np.zeros((1, 1024, 1024), HALF) for _ in range(4))
    made = make_epilogue(a, (1, 1024, 1024), np.zeros(1024, HALF), add, "gelu")
    return fused_matmul_launch(a, b, c, made, tile=Tile(256, 256, 32, 4)), 32


def alone(launch: Callable[[], Launch], warps: int) -> Row:
    """A launch that needs nothing to be said."""
    return launch(), warps


ROWS: dict[str, Callable[[], Row]] = {
    "GEMM f16": partial(gemm, HALF, HALF),
    "GEMM int8": partial(gemm, BYTE, np.int32),
    "GEMM tf32": partial(tf32, library.tf32_product),
    "GEMM tf32, A transposed": partial(tf32, library.tf32_product_of_columns),
    "GEMM f16, B transposed": partial(gemm, HALF, HALF, right_turned=True),
    "GEMM f16, A transposed": partial(gemm, HALF, HALF, left_turned=True),
    "GEMM int8, A transposed": partial(gemm, BYTE, np.int32, left_turned=True),
    **{
        f"attention D {head}, {warps} warps{', causal' if causal else ''}": partial(attention, head, warps, causal)
        for head, warps in ((64, 8), (64, 16), (128, 16))
        for causal in (False, True)
    },
    **{f"attention's gradient, D {dim}, causal": partial(library.gradient, dim, HALF) for dim in (64, 128, 256)},
    **{
        f"paged attention D 128, pages of {block} keys, {'warps' if form else 'workgroup'}": partial(paged, block, form)
        for form in (True, False)
        for block in (64, 16, 8, 4, 1)
    },
    "GEMM f32": gemm_f32,
    "grouped GEMM": partial(alone, library.grouped, 32),
    "stream-K": partial(alone, library.stream_k, 32),
    "GEMM with bias, an addend and gelu": epilogue,
    "softmax of 1000 columns": partial(alone, library._softmax, 4),
    "layer norm of 1000 columns": partial(alone, library._layer_norm, 4),
}


def figures(row: Row, name: str, options: dict[str, Any]) -> str:
    """Instructions of each loop, registers and spilled bytes."""
    launch, warps = row
    kernel = launch.kernel.warmup(
        *launch.arguments, **launch.constants, target=f"xe:{name}", num_warps=warps, **options
    )
    text = kernel.asm["isa"]
    registers, spilled = map(int, re.findall(r"\d+", text.splitlines()[0]))
    loops = [loop.instructions for loop in isa.innermost_loops(text) if loop.instructions.operations["dpas"]]
    loops.sort(key=lambda loop: -loop.messages["load_block2d"])
    counted = "; ".join(str(loop.total) for loop in loops) or f"{isa.count(text).total} in all"
    return f"{counted} ({registers}, {spilled})"


def columns(make: Callable[[], Row]) -> Iterator[str]:
    """What stands in the columns of a row."""
    for options in ({}, {"codegen": "simd"}):
        for name in ("pvc", "bmg"):
            try:
                yield figures(make(), name, options)
            except TritonError as error:
                yield f"{type(error).__name__}: {error.message}"


def without(name: str) -> None:
    """Compile without a pass from now on."""
    kept = [",".join(each for each in level.split(",") if each != name) for level in spec.PIPELINE]
    assert tuple(kept) != spec.PIPELINE, f"{name} is no pass for Xe"
    spec.PIPELINE = tuple(kept)
    os.environ[config.ALWAYS_COMPILE.name] = "1"


def main() -> None:
    """Print the table."""
    words = sys.argv[1:]
    if words[:1] == ["--without"]:
        without(words[1])
        words = words[2:]
    print(
        "| kernel: instructions (registers, bytes spilled) | SIMT, PVC | BMG | SIMD, PVC | BMG |\n|---|---|---|---|---|"
    )
    for name, make in ROWS.items():
        if not words or any(word in name for word in words):
            print(f"| {name} | {' | '.join(columns(make))} |", flush=True)


if __name__ == "__main__":
    main()
