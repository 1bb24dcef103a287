"""Tiling hints: the layouts that follow from them, and the hints that cannot hold."""

from __future__ import annotations

from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import tt, ttg
from mltriton.errors import ConstexprError, IRSyntaxError, OptionError, TilingError, TritonError
from mltriton.frontend.function import LanguageFunction
from mltriton.ir.location import UNKNOWN
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.layouts.encodings import BlockedEncoding, Shape
from mltriton.layouts.tiling import as_hinted
from mltriton.targets.registry import spec

from .. import hinted_kernels
from ..programs import kernel_module, transform

TO_TTG = ",".join(spec("generic").pipeline[:2])
ONE = {"BM": 128, "BN": 128, "BK": 16}
BACKWARD = {"BM": 64, "BN": 64, "BD": 64}


def compiled(fn: LanguageFunction, num_warps: int, target: str = "generic", **constants: Any) -> str:
    """The text at the level ttg."""
    pointers = {name: "*fp32:16" for name in fn.signature.parameters if name.endswith("_ptr")}
    numbers = {name: "i32" for name in fn.signature.parameters if name == "n"}
    return triton.compile(fn, pointers | numbers, constants, target, num_warps).asm["ttg"]


def dots(text: str) -> list[Any]:
    """The dots at the level ttg, by the names of their results."""
    return [op for op in parse_module(text).walk() if isinstance(op, tt.Dot)]


def shares(text: str) -> dict[str, Shape]:
    """What one warp has of each dot's result."""
    return {dot.result.hint: dot.result.type.encoding.per_warp_shape(dot.result.type.shape) for dot in dots(text)}


def error_of(fn: LanguageFunction, num_warps: int, target: str = "generic", **constants: Any) -> TritonError:
    with pytest.raises(TritonError) as raised:
        compiled(fn, num_warps, target, **constants)
    return raised.value


def line_of(fn: LanguageFunction, text: str) -> int:
    """The number of the line of a kernel that holds `text`."""
    (found,) = (number for number, line in enumerate(fn.source.text.splitlines()) if text in line)
    return fn.source.first_line + found


@pytest.mark.parametrize(
    ("tiling", "shape", "warps", "size", "count"),
    [
        ("horizontal", (128, 64), 8, (16, 64), (8, 1)),
        ("vertical", (128, 64), 4, (128, 16), (1, 4)),
        ("square", (256, 256), 32, (32, 64), (8, 4)),
        ("horizontal", (4, 64, 64), 8, (1, 32, 64), (4, 2, 1)),
        ("vertical", (4, 64, 64), 16, (1, 64, 16), (4, 1, 4)),
        ("square", (2, 64, 64), 8, (1, 32, 32), (2, 2, 2)),
        ("horizontal", (4, 64), 1, (4, 64), (1, 1)),
        ("vertical", (8, 16, 16), 4, (2, 16, 16), (4, 1, 1)),
        ("square", (16, 64), 8, (8, 16), (2, 4)),
    ],
)
def test_the_cut(tiling: str, shape: Shape, warps: int, size: Shape, count: Shape) -> None:
    order = tuple(reversed(range(len(shape))))
    assert as_hinted(tiling, shape, warps, (8, 16)) is BlockedEncoding(size, count, order)


@pytest.mark.parametrize(
    ("tiling", "shape", "warps"),
    [
        ("horizontal", (16, 64), 32),
        ("horizontal", (16, 64), 4),
        ("horizontal", (4, 64), 2),
        ("vertical", (64, 32), 4),
        ("vertical", (2, 64, 32), 8),
        ("square", (16, 16), 4),
        ("square", (16, 64), 16),
    ],
)
def test_no_such_cut(tiling: str, shape: Shape, warps: int) -> None:
    assert as_hinted(tiling, shape, warps, (8, 16)) is None


@pytest.mark.parametrize("tiling", ["horizontal", "vertical", "square"])
def test_the_rest_follows(tiling: str) -> None:
    (dot,) = dots(text := compiled(hinted_kernels.one_dot, 8, **ONE, TILING=tiling))
    root = as_hinted(tiling, (128, 128), 8, (8, 16))
    assert dot.result.type.encoding is root
    stores = [op for op in parse_module(text).walk() if isinstance(op, tt.Store)]
    assert [store.value.type.encoding for store in stores] == [root]
    assert not any(isinstance(op, ttg.ConvertLayout) for op in parse_module(text).walk())
    assert "tiling" not in text


@pytest.mark.parametrize(
    ("first", "second"), [(None, "horizontal"), ("vertical", "horizontal"), ("vertical", None), (None, "square")]
)
def test_a_dot_behind_a_transpose_follows(first: str | None, second: str | None) -> None:
    """Rows of the second dot's left operand are columns of the first dot."""
    text = compiled(hinted_kernels.product_of_three, 4, BM=64, FIRST=first, SECOND=second)
    expected = (
        {"first": (64, 32), "second": (32, 32)} if second == "square" else {"first": (64, 16), "second": (16, 64)}
    )
    assert shares(text) == expected


def test_the_backward_pass_follows_from_one_hint() -> None:
    text = compiled(hinted_kernels.attention_backward, 4, **BACKWARD, DK="horizontal", DQ=None, S=None)
    found = shares(text)
    assert found["s"] == found["dp"] == (64, 16)
    assert {share for name, share in found.items() if name.startswith(("dk", "dv"))} == {(16, 64)}


def test_two_hints_that_agree() -> None:
    """s follows from dq: its own hint says the same, and changes nothing."""
    hinted = {"DK": None, "DQ": "horizontal"}
    both = compiled(hinted_kernels.attention_backward, 4, **BACKWARD, **hinted, S="horizontal")
    assert both == compiled(hinted_kernels.attention_backward, 4, **BACKWARD, **hinted, S=None)
    assert shares(both)["s"] == shares(both)["dq"] == (16, 64)


def test_results_that_do_not_meet_are_free() -> None:
    """Two dots may share an operand, which one of them gets by a conversion."""
    text = compiled(hinted_kernels.shared_operand, 4, BM=64, FIRST="horizontal", SECOND="vertical")
    assert [dot.result.type.encoding.warps_per_cta for dot in dots(text)] == [(4, 1), (1, 4)]
    text = compiled(hinted_kernels.attention_backward, 4, **BACKWARD, DK="horizontal", DQ="horizontal", S=None)
    assert {shares(text)[name] for name in shares(text) if name.startswith(("dq", "dk", "dv"))} == {(16, 64)}


CONFLICTS = [
    (hinted_kernels.sum_of_two, {"FIRST": "horizontal", "SECOND": "vertical"}, "first = ", "second = "),
    (hinted_kernels.sum_of_two, {"FIRST": "square", "SECOND": "vertical"}, "first = ", "second = "),
    (hinted_kernels.product_of_three, {"FIRST": "horizontal", "SECOND": "horizontal"}, "first = ", "second = "),
    (hinted_kernels.product_of_three, {"FIRST": "vertical", "SECOND": "vertical"}, "first = ", "second = "),
    (hinted_kernels.product_of_three, {"FIRST": "square", "SECOND": "horizontal"}, "first = ", "second = "),
    (
        hinted_kernels.attention_backward,
        {"BN": 64, "BD": 64, "DK": None, "DQ": "vertical", "S": "vertical"},
        "s = tl.dot",
        "dq = tl.dot",
    ),
]


@pytest.mark.parametrize(("fn", "constants", "one", "other"), CONFLICTS)
def test_two_hints_that_cannot_both_hold(fn: LanguageFunction, constants: dict[str, Any], one: str, other: str) -> None:
    error = error_of(fn, 4, BM=64, **constants)
    assert isinstance(error, TilingError)
    assert error.message.startswith("two tiling hints cannot both hold: ")
    here = {line_of(fn, one), line_of(fn, other)}
    assert error.line in here
    (there,) = here - {error.line}
    assert f"{error.file}:{there}:" in error.message
    assert "of 64x64 for each of 4 warps" in (error.expected or "")
    assert "from the other dot (64x64)" in (error.found or "")
    lines = error.render().splitlines()
    assert lines[1][lines[2].index("^") :].startswith("tl.dot(")


def test_a_block_too_small_for_the_warps() -> None:
    error = error_of(hinted_kernels.one_dot, 32, BM=16, BN=64, BK=16, TILING="horizontal")
    assert isinstance(error, TilingError)
    lines = error.render().splitlines()
    assert lines[0].endswith('TilingError: 16x64 cannot be cut over 32 warps with tiling="horizontal"')
    assert lines[1][lines[2].index("^") :].startswith("tl.dot(a, b, ")
    assert lines[3:] == [
        "expected at least 8x16 for each warp, the size of one dot of the target generic, "
        "found a block that is enough for 2 warps",
        "Take a larger block, fewer warps (num_warps), another tiling, or leave the hint out.",
    ]


@pytest.mark.parametrize("target", ["cpu", "cpu:sse"])
def test_one_warp_holds_every_hint(target: str) -> None:
    """The number of warps that counts is the one that the target gives the program: of a CPU, one."""
    compiled(hinted_kernels.one_dot, 32, target, BM=16, BN=64, BK=16, TILING="horizontal")
    compiled(hinted_kernels.sum_of_two, 32, target, BM=64, FIRST="horizontal", SECOND="vertical")
    compiled(hinted_kernels.sum_of_two, 1, "generic", BM=64, FIRST="horizontal", SECOND="vertical")


@triton.jit
def helper(x, TILING: tl.constexpr):
    return tl.dot(x, x, input_precision="ieee", tiling=TILING)


@triton.jit
def through_a_helper(x_ptr, y_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    x = tl.load(x_ptr + at)
    y = helper(x, FIRST)
    z = helper(x, SECOND)
    tl.store(y_ptr + at, y + z)


def test_an_inlined_dot_says_how_it_was_reached() -> None:
    error = error_of(through_a_helper, 4, FIRST="horizontal", SECOND="vertical")
    assert error.line == line_of(helper, "tl.dot(")
    (called,) = error.explanation()[-1:]
    calls = [called, error.message.partition(", ")[2]]
    assert all(call.startswith(f"called from {error.file}:") for call in calls)
    lines = {line_of(through_a_helper, text) for text in ("y = helper", "z = helper")}
    assert {int(call.split(":")[-2]) for call in calls} == lines


@triton.jit
def runtime_hint(x_ptr, y_ptr, n):
    x = tl.zeros((16, 16), tl.float32)
    tl.dot(x, x, tiling=n)


def test_hints_are_constants() -> None:
    error = error_of(hinted_kernels.one_dot, 4, **ONE, TILING="diagonal")
    assert isinstance(error, OptionError)
    assert error.line == line_of(hinted_kernels.one_dot, "tl.dot(")
    assert (error.expected, error.found) == ("one of 'square', 'horizontal', 'vertical'", "'diagonal'")
    error = error_of(hinted_kernels.one_dot, 4, **ONE, TILING=2)
    assert (type(error), error.found) == (OptionError, "2")
    error = error_of(runtime_hint, 4)
    assert isinstance(error, ConstexprError)
    assert error.line == line_of(runtime_hint, "tl.dot(")
    assert (error.message, error.found) == ("the tiling of tl.dot must be known when compiling", "int32")


@pytest.mark.parametrize("tiling", ["horizontal", "vertical", "square"])
@pytest.mark.parametrize("generic", [False, True])
def test_text_keeps_the_hint(tiling: str, generic: bool) -> None:
    from mltriton.ir.printer import print_op

    def hints(module: Module) -> list[str]:
        return [op.tiling for op in module.walk() if isinstance(op, tt.Dot)]

    module = kernel_module(hinted_kernels.one_dot, "*fp32, *fp32, *fp32", **ONE, TILING=tiling)
    text = print_op(module, generic)
    assert hints(parse_module(text)) == hints(module) == [tiling]
    assert generic or f"tiling = {tiling}" in text


def test_text_with_an_unknown_hint() -> None:
    text = str(kernel_module(hinted_kernels.one_dot, "*fp32, *fp32, *fp32", **ONE, TILING="square"))
    with pytest.raises(IRSyntaxError) as raised:
        parse_module(text.replace("tiling = square", "tiling = diagonal"), "dot.mlir")
    (number,) = (number for number, line in enumerate(text.splitlines(), 1) if "tiling" in line)
    assert raised.value.line == number
    assert all(name in raised.value.render() for name in ("square", "horizontal", "vertical", "diagonal"))


TWO_DOTS = """module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "generic"} {
tt.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = tt.dot %x, %x, %x tiling = vertical : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  %d = tt.dot %c, %x, %x tiling = horizontal : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}
}"""


def test_hints_in_text_that_cannot_both_hold() -> None:
    with pytest.raises(TilingError, match=r'dots\.mlir:4:3: .* "horizontal" here and "vertical" at dots\.mlir:3:3'):
        transform(parse_module(TWO_DOTS, "dots.mlir"), "assign-layouts")
    module = parse_module(TWO_DOTS)
    for op in module.walk():
        op.loc = UNKNOWN
    with pytest.raises(TilingError, match=r'"horizontal" here and "vertical" at an unknown line'):
        transform(module, "assign-layouts")
