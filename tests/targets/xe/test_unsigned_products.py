"""Products of bytes of either sign: the matrix engine reads each operand as what it is, at no cost in the loop."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from aligned_arrays import aligned
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.targets.xe import isa

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
SIGNS = list(product((np.int8, np.uint8), repeat=2))


def gemm(a: Array, b: Array, tile: Tile) -> Launch:
    return matmul_launch(a[None], b[None], np.zeros((1, len(a), b.shape[1]), np.int32), tile=tile)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize(("of_a", "of_b"), SIGNS[1:])
def test_values(of_a: type, of_b: type, codegen: str) -> None:
    """Every byte, where blocks are loaded whole and at ragged edges."""
    a = aligned(np.frombuffer(RNG.bytes(70 * 96), of_a).reshape(70, 96))
    b = aligned(np.frombuffer(RNG.bytes(96 * 48), of_b).reshape(96, 48))
    launch = gemm(a, b, Tile(32, 32, 64, 1))
    launch.kernel[launch.grid](
        *launch.arguments, **launch.constants, target="xe:pvc", codegen=codegen, num_warps=1 if codegen == "simd" else 4
    )
    assert (launch.arguments[2][0] == a.astype(np.int32) @ b.astype(np.int32)).all()


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize("codegen", ["simt", "simd"])
def test_each_operand_has_its_own_sign(codegen: str) -> None:
    """As Intel's compiler writes it: `dpas` result, sum, b, a."""
    launch = gemm(np.zeros((64, 64), np.uint8), np.zeros((64, 64), np.int8), Tile(32, 32, 32, 1))
    kernel = launch.kernel.warmup(*launch.arguments, **launch.constants, target="xe:pvc", codegen=codegen, num_warps=1)
    products = [line.split("{")[0].split()[-2:] for line in kernel.asm["isa"].splitlines() if " dpas." in line]
    assert {tuple(operand.partition(":")[2] for operand in pair) for pair in products} == {("b", "ub")}


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize("codegen", ["simt", "simd"])
def test_loops_have_one_length(codegen: str) -> None:
    found: list[isa.Instructions] = []
    for kinds in (SIGNS[0], SIGNS[3]):
        launch = gemm(*(np.zeros((1024, 1024), kind) for kind in kinds), Tile(256, 256, 32, 4))
        options = {"target": "xe:pvc", "codegen": codegen, "num_warps": 32}
        kernel = launch.kernel.warmup(*launch.arguments, **launch.constants, **options)
        text = kernel.asm["isa"]
        loops = [loop.instructions for loop in isa.innermost_loops(text) if loop.instructions.operations["dpas"]]
        found.append(max(loops, key=lambda loop: loop.messages["load_block2d"]))
        kind = "b" if kinds[0] is np.int8 else "ub"
        assert all(f":{kind} " in line for line in text.splitlines() if " dpas." in line)
    signed, unsigned = found
    assert signed.operations["dpas"] == 16
    assert unsigned == signed
