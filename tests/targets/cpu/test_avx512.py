"""Where instructions of AVX-512 take the place of several; what they compute is in test_emit_elementwise.py."""

from __future__ import annotations

import pytest

from .test_emit_programs import assembly


@pytest.mark.parametrize(("flushes", "instruction"), [("true", True), ("false", False)])
def test_only_what_is_no_denormal_is_rounded_by_the_instruction(flushes, instruction):
    body = """%x = tile.load %p : tensor<16xf32>
      %e = math.exp2 %x {flushes = FLUSHES} : tensor<16xf32>
      %r = arith.truncf %e : tensor<16xf32> to tensor<16xbf16>
      tile.store %q, %r : tensor<16xbf16>""".replace("FLUSHES", flushes)
    text = f"""module attributes {{mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32}} {{
      tt.func @f(%p: !tt.ptr<f32>, %q: !tt.ptr<bf16>) {{
      {body}
      tt.return }} }}"""
    assert ("vcvtneps2bf16" in assembly(text, "avx512-bf16")) == instruction
    assert "vcvtneps2bf16" not in assembly(text, "avx512")
