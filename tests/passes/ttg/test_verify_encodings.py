"""verify-encodings: a wrong layout stops the compilation of a launch with a named error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mltriton as triton
from mltriton.dialects import tt
from mltriton.errors import LayoutError
from mltriton.layouts import tiling
from mltriton.layouts.encodings import SliceEncoding
from mltriton.passes.ttg import layout_rules
from mltriton.passes.ttg.layout_plan import LayoutPlan

from ..rearranging_kernels import rearranged

Mistake = Callable[[LayoutPlan, Any], None]


def _slice_of_another_parent(plan: LayoutPlan, op: tt.Reduce) -> None:
    layout_rules.reduce(plan, op)
    other = tiling.along((8, 32), plan.num_warps, (1,))
    plan.encodings[op.results[0]] = SliceEncoding(op.axis, other)


def _cut_along_the_axis(plan: LayoutPlan, op: tt.Scan) -> None:
    encoding = tiling.along((8, 32), plan.num_warps, (op.axis,))
    plan.want(op, 0, encoding)
    plan.anchor(op.results[0], encoding, by=op)


def _part_of_a_source(plan: LayoutPlan, op: tt.Reshape) -> None:
    plan.want(op, 0, tiling.outer_first((16, 16), plan.num_warps))
    layout_rules.whole_everywhere(plan, op)


def _not_transposed(plan: LayoutPlan, op: tt.Trans) -> None:
    plan.want(op, 0, tiling.outer_first((32, 8), plan.num_warps))
    plan.anchor(op.result, tiling.outer_first((8, 32), plan.num_warps))


@pytest.mark.parametrize(
    ("cls", "mistake", "shape", "move", "end", "message"),
    [
        (tt.Reduce, _slice_of_another_parent, (8, 32), "none", "sum", "the encoding of a result does not fit"),
        (tt.Scan, _cut_along_the_axis, (8, 32), "none", "cumsum", "a warp has only a part of a block along 1"),
        (tt.Reshape, _part_of_a_source, (16, 16), "reshape", "none", "a warp has only a part of a block"),
        (tt.Trans, _not_transposed, (32, 8), "permute", "none", "the warps' parts are not permuted"),
    ],
)
@pytest.mark.parametrize("target", ["generic", "xe:pvc"])
def test_a_wrong_layout_is_found_at_a_launch(
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    cls: type,
    mistake: Mistake,
    shape: tuple[int, ...],
    move: str,
    end: str,
    message: str,
) -> None:
    monkeypatch.setenv("MLTRITON_VERIFY_PASSES", "0")
    monkeypatch.setitem(layout_rules.RULES, cls, mistake)
    to = (1, 0) if move == "permute" else (8, 32)
    constants = {"SHAPE": shape, "MOVE": move, "TO": to, "END": end, "AXIS": 1}
    with pytest.raises(LayoutError, match=message) as caught:
        triton.compile(rearranged, {"x": "*i32", "out": "*fp32"}, constants, target=target, num_warps=4)
    assert caught.value.file == __file__.replace("ttg/test_verify_encodings", "rearranging_kernels")
    assert caught.value.reproducer is not None
    assert "verify-encodings" in Path(caught.value.reproducer).read_text(encoding="utf-8")
