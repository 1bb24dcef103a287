"""One block pointer or descriptor for accesses that are used in different ways: every level agrees."""

from __future__ import annotations

import numpy as np
import pytest

from levels import check_levels
from mltriton.dialects import ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.frontend.function import LanguageFunction

from .. import pointer_kernels as kernels
from ..programs import kernel

KERNELS = [kernels.plain_and_operand, kernels.advanced, kernels.chosen, kernels.described]
CLEAN = "canonicalize,cse,combine,reorder-broadcast,normalize-block-pointers,canonicalize,cse,licm,dce"


def _check(fn: LanguageFunction, target: str, warps: int, rows: int, codegen: str | None = None) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: (rng.random((rows, 32)) / 4).astype(np.float32) for name in ("x", "w", "out")}
    check_levels(fn, arrays | {"rows": rows, "D": 32, "BR": 64}, (1,), target=target, num_warps=warps, codegen=codegen)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("fn", KERNELS, ids=lambda fn: fn.__name__)
def test_levels_agree(fn: LanguageFunction, warps: int) -> None:
    _check(fn, "generic", warps, rows=50)


@pytest.mark.parametrize("fn", KERNELS, ids=lambda fn: fn.__name__)
def test_on_the_cpu(fn: LanguageFunction) -> None:
    _check(fn, "cpu", 4, rows=33)


@pytest.mark.parametrize(
    ("fn", "codegen"),
    [
        (kernels.plain_and_operand, "simt"),
        (kernels.advanced, "simt"),
        pytest.param(kernels.advanced, "simd", marks=pytest.mark.slow),
        (kernels.chosen, "simt"),
        (kernels.chosen, "simd"),
        (kernels.described, "simt"),
    ],
)
def test_on_xe(fn: LanguageFunction, codegen: str) -> None:
    pytest.importorskip("dpctl")
    _check(fn, "xe:pvc", 4, rows=50, codegen=codegen)


@pytest.mark.parametrize("fn", KERNELS, ids=lambda fn: fn.__name__)
def test_no_block_pointer_is_converted(fn: LanguageFunction) -> None:
    program = kernel(fn, "*fp32:16, *fp32:16, *fp32:16, i32", lambda _: [], D=32, BR=64).with_warps(4)
    module = program.transformed(f"{CLEAN},assign-layouts")
    conversions = [op for op in module.walk() if isinstance(op, ttg.ConvertLayout)]
    assert not [op for op in conversions if is_block_pointer(op.result.type)]
