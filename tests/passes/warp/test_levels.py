"""Programs at every level against level tt, with 1 to 32 warps."""

from __future__ import annotations

from typing import Any

import numpy as np

from combinations import each_value

from .. import kernels
from ..programs import LIBRARY, Program, kernel

CLEAN = "canonicalize,cse,combine,reorder-broadcast,canonicalize,cse,licm,dce"
LEVELS = (
    f"{CLEAN},assign-layouts,cse",
    "distribute-to-warps,canonicalize,cse,licm,dce",
    "match-target-size,dce",
)
WARPS = [1, 4, 8, 32]


def arrays(*shapes: tuple[int, ...]) -> Any:
    """Random f32 arrays; a shape that starts with 0 stands for zeros of the rest."""

    def make(random: np.random.Generator) -> list[Any]:
        made = [
            np.zeros(shape[1:], np.float32) if shape[0] == 0 else random.standard_normal(shape).astype(np.float32)
            for shape in shapes
        ]
        return list(made)

    return make


def epilogue(kind: str, a_transposed: bool = False, b_transposed: bool = False) -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        return [*arrays((64, 64), (64, 32), (0, 64, 32), (64, 32), (32,))(random), 64]

    meta = {"BM": 64, "BN": 32, "BK": 32, "A_T": a_transposed, "B_T": b_transposed, "KIND": kind}
    return kernel(kernels.gemm_epilogue, "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32", make, **meta)


def three_dots() -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        return [*arrays((32, 16), (50, 16), (50, 16), (0, 32, 16))(random), 50]

    return kernel(kernels.three_dots, "*fp32, *fp32, *fp32, *fp32, i32", make, BM=32, BN=16, BD=16)


def atomics() -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        return [random.integers(0, 50, 64).astype(np.int32), np.zeros(200, np.int32), 50]

    return kernel(kernels.atomics, "*i32, *i32, i32", make, BLOCK=64)


def carried_rows() -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        return [*arrays((5, 16, 32), (0, 600))(random), 5]

    return kernel(kernels.carried_rows, "*fp32, *fp32, i32", make, BM=16, BN=32)


PROGRAMS: dict[str, Program] = {
    **LIBRARY,
    **{f"epilogue-{kind}": epilogue(kind) for kind in ("none", "bias", "gelu", "matrix")},
    "a-transposed": epilogue("none", a_transposed=True),
    "b-transposed": epilogue("bias", b_transposed=True),
    "both-transposed": epilogue("matrix", a_transposed=True, b_transposed=True),
    "trans": kernel(
        kernels.transposed_operands, "*fp32, *fp32, *fp32", arrays((16, 32), (64, 16), (0, 32, 64)), BM=32, BN=64, BK=16
    ),
    "three-dots": three_dots(),
    **{
        f"reductions-{axis}": kernel(
            kernels.reductions, "*fp32, *fp32", arrays((4, 8, 16), (0, 4 * 512)), B=4, M=8, N=16, AXIS=axis
        )
        for axis in range(3)
    },
    "shapes": kernel(kernels.shapes, "*fp32, *fp32", arrays((8, 32), (0, 2 * 256)), M=8, N=32),
    "transposed-slice": kernel(
        kernels.transposed_slice, "*fp32, *fp32, *fp32", arrays((16, 2), (2, 2, 16), (0, 2, 2)), B=2, M=2, N=16
    ),
    "atomics": atomics(),
    "carried-rows": carried_rows(),
}


@each_value(("name", PROGRAMS), ("warps", WARPS))
def test_every_level(name: str, warps: int) -> None:
    PROGRAMS[name].with_warps(warps).check_each(LEVELS)
