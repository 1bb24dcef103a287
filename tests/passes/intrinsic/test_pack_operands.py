"""pack-operands: what is packed means what it was, match-target-size takes it as it is written, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.dialects import tile
from mltriton.errors import TargetError, VerificationError
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify

from ...levels import check_passes
from ..programs import transform

PACKED = "form-nests,pack-operands,match-target-size,dce,allocate-scratch"
TEXT = """
#c = #ttg.blocked<{{sizePerWarp = [64, 64], warpsPerCTA = [1, 1], order = [1, 0]}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #c}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #c}}>
module attributes {{mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "{target}"}} {{
tt.func public @product(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %z: !tt.ptr<f32>) {{
  %n = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #c>
  %left = tt.make_tensor_ptr %x, [%n, %n], [%n, %one], [%c0, %c0]
    {{order = array<i32: 1, 0>}} : !tt.ptr<tensor<64x64xf32, #a>>
  %right = tt.make_tensor_ptr %y, [%n, %n], [%n, %one], [%c0, %c0]
    {{order = array<i32: 1, 0>}} : !tt.ptr<tensor<64x64xf32, #b>>
  %into = tt.make_tensor_ptr %z, [%n, %n], [%n, %one], [%c0, %c0]
    {{order = array<i32: 1, 0>}} : !tt.ptr<tensor<64x64xf32, #c>>
  %l = tt.load %left : !tt.ptr<tensor<64x64xf32, #a>>
  %r = tt.load %right : !tt.ptr<tensor<64x64xf32, #b>>
  {body}
  tt.store %into, %q : !tt.ptr<tensor<64x64xf32, #c>>
  tt.return
}}
}}
"""
DOT = "tt.dot {} : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #c>\n"
TWO = f"""%e = math.exp2 %r : tensor<64x64xf32, #b>
%p = {DOT.format("%l, %e, %zero")}
%pa = ttg.convert_layout %p : tensor<64x64xf32, #c> -> tensor<64x64xf32, #a>
%q = {DOT.format("%pa, %e, %zero")}"""


def product(body: str, target: str = "cpu:avx2") -> Module:
    return parse_module(TEXT.format(body=body, target=target))


def test_two_dots_share_what_is_packed() -> None:
    """The powers are computed once: there is one copy, and one loop that makes it."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(3)]
    check_passes(product(TWO), PACKED, dict(zip("xyz", arrays, strict=True)))
    made = list(transform(product(TWO), PACKED).walk())
    assert sum(isinstance(op, tile.Dot) for op in made) == 2
    (powers,) = {op.block for op in made if op.name == "math.exp2"}
    assert sum(op.name == "math.exp2" for op in powers.ops) == sum(isinstance(op, tile.Store) for op in powers.ops)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"%q = {DOT.format('%l, %r, %zero')}", "pack-operands comes before match-target-size"),
        (
            f"""%k = tile.pack %r {{element = f32}} : tensor<64x64xf32, #b>
            %s = ttg.convert_layout %k : tensor<64x64xf32, #b> -> tensor<64x64xf32, #c>
            %q = {DOT.format("%l, %k, %s")}""",
            "what is packed is for dots, on the left or right",
        ),
        (
            f"""%k = tile.pack %r {{element = f32}} : tensor<64x64xf32, #b>
            %q = {DOT.format("%l, %k, %zero")}""",
            "operands of a dot are packed",
        ),
    ],
)
def test_what_is_not_packed_for_a_dot_is_refused(body: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        transform(product(body), "form-nests,match-target-size")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("by_columns = true, group = 2 : i32", "columns have neither groups nor panels"),
        ("along_rows = true, in_place = true", "a block is read in place in the order in which it is packed"),
    ],
)
def test_a_pack_that_cannot_be_is_refused(attributes: str, message: str) -> None:
    body = f"%k = tile.pack %l {{element = f32, {attributes}}} : tensor<64x64xf32, #a>"
    with pytest.raises(VerificationError) as caught:
        verify(product(f"{body}\n%q = {DOT.format('%k, %r, %zero')}"))
    assert message in caught.value.message
