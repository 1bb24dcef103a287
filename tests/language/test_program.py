"""Programs, hints, printing, assertions, iterators, the values of a kernel, and the table of names."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import (
    AssertionFailed,
    AxisError,
    CompilationError,
    ConstexprError,
    DeviceAssertionError,
    InternalError,
    NameNotFoundError,
    ShapeMismatchError,
    TypeMismatchError,
)
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block
from mltriton.language import building

from .tracing import Trace, execute, traced


def test_coordinates():
    out = np.zeros((2, 3, 4), np.int32)

    def body(out):
        x, y, z = tl.program_id(0), tl.program_id(axis=1), tl.program_id(tl.constexpr(2))
        place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
        tl.store(out + place, place + 100 * tl.num_programs(2))

    execute(body, out.reshape(-1), grid=(4, 3, 2))
    np.testing.assert_array_equal(out.ravel(), np.arange(24) + 200)


def test_wrong_coordinates(kernel: Trace):
    with pytest.raises(AxisError, match="0, 1 or 2"):
        tl.program_id(3)
    with pytest.raises(ConstexprError, match=r"the axis of tl.num_programs"):
        tl.num_programs(tl.program_id(0))


def test_swizzle2d():
    rows, columns = np.zeros((4, 4), np.int32), np.zeros((4, 4), np.int32)

    def body(rows, columns):
        i, j = tl.program_id(0), tl.program_id(1)
        row, column = tl.swizzle2d(i, j, 4, 4, 2)
        tl.store(rows + i * 4 + j, row)
        tl.store(columns + i * 4 + j, column)

    execute(body, rows.reshape(-1), columns.reshape(-1), grid=(4, 4))
    expected = np.array([[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]])
    order = np.zeros((4, 4), int)
    order[rows, columns] = np.arange(16).reshape(4, 4)
    np.testing.assert_array_equal(order, expected)


def test_promises(kernel: Trace):
    block = tl.arange(0, 8)[:, None] * 16
    assert tl.multiple_of(block, (16, tl.constexpr(1))) is block
    tl.max_contiguous(block, [1, 1])
    tl.max_constancy(block, [1, 1])
    attributes = block.handle.defining_op.attributes
    assert [attributes[f"tt.{name}"].values for name in ("divisibility", "contiguity", "constancy")] == [
        (16, 1),
        (1, 1),
        (1, 1),
    ]
    assert tl.multiple_of(tl.program_id(0), 8).type == tl.int32
    assert tl.multiple_of(32, 8) == 32
    tl.assume(tl.program_id(0) >= 0)
    assert kernel.names[-1] == "llvm.intr.assume"
    tl.assume(True)
    tl.debug_barrier()
    assert kernel.names[-1] == "gpu.barrier"
    with pytest.raises(ShapeMismatchError, match="one value for each dimension"):
        tl.multiple_of(block, 16)
    with pytest.raises(ConstexprError, match=r"the values of tl.max_contiguous"):
        tl.max_contiguous(block, (tl.program_id(0), 1))
    with pytest.raises(TypeMismatchError, match="a scalar int1"):
        tl.assume(block > 0)


def test_promises_about_parameters():
    trace = Trace()
    with building.building(trace.builder):
        tl.multiple_of(trace.parameter(tl.int32), 16)
        tl.multiple_of(trace.parameter(tl.pointer_type(tl.int8)), 32)
        promises = building.deferred()
    first, second = trace.block.arguments
    assert promises == {first: {"tt.divisibility": (16,)}, second: {"tt.divisibility": (32,)}}


def test_printing(kernel: Trace, capsys: pytest.CaptureFixture[str]):
    tl.static_print("block", tl.arange(0, 8), tl.constexpr(3), sep="|")
    assert capsys.readouterr().out == "block|int32[constexpr[8]]|3\n"
    tl.static_print(tl.program_id(0), (1, tl.arange(0, 8)))
    assert capsys.readouterr().out == "int32[] ['1', 'int32[constexpr[8]]']\n"
    tl.device_print("x", tl.arange(0, 8), 2.5, hex=True)
    op = kernel.ops[-1]
    assert (op.prefix, op.hex, [str(value.type) for value in op.arguments]) == (" x: ", True, ["tensor<8xi32>", "f32"])
    tl.device_print("u ", kernel.parameter(tl.uint32))
    assert (kernel.ops[-1].prefix, str(kernel.ops[-1].arguments[0].type)) == (" u: ", "i64")
    tl.device_print("v:", 1)
    assert kernel.ops[-1].prefix == " v: "
    tl.device_print("here")
    assert kernel.ops[-1].prefix == " here"
    with pytest.raises(ConstexprError, match="needs a text first"):
        tl.device_print(tl.arange(0, 8))


def test_assertions(kernel: Trace):
    tl.static_assert(tl.constexpr(True), "fine")
    with pytest.raises(AssertionFailed, match="static assertion failed: BLOCK is odd"):
        tl.static_assert(False, "BLOCK is odd")
    with pytest.raises(ConstexprError, match=r"use tl.device_assert"):
        tl.static_assert(tl.program_id(0) > 0)
    with pytest.raises(TypeMismatchError, match="needs a condition"):
        tl.device_assert(tl.arange(0, 8))


@pytest.mark.parametrize(("bound", "fails"), [(8, False), (4, True)])
def test_device_assert(bound: int, fails: bool):
    def body(out):
        i = tl.arange(0, 16)
        tl.device_assert(i < bound, "too large", mask=i < 8)

    if fails:
        with pytest.raises(DeviceAssertionError, match="too large"):
            execute(body, np.zeros(1, np.int32))
    else:
        execute(body, np.zeros(1, np.int32))


def test_iterators(kernel: Trace):
    unrolled = tl.static_range(2, tl.constexpr(9), 3)
    assert [i.value for i in unrolled] == [2, 5, 8] and all(isinstance(i, tl.constexpr) for i in tl.static_range(2))
    n = tl.program_id(0)
    loop = tl.range(n, num_stages=tl.constexpr(3), loop_unroll_factor=2, flatten=True)
    assert (loop.start, loop.step, loop.num_stages, loop.loop_unroll_factor, loop.flatten, loop.warp_specialize) == (
        0,
        1,
        3,
        2,
        True,
        False,
    )
    assert loop.end is n
    with pytest.raises(ConstexprError, match=r"the end of tl.static_range"):
        tl.static_range(n)
    with pytest.raises(CompilationError, match="outside a kernel"):
        iter(tl.range(3))
    assert tl.condition(n > 0, disable_licm=True).disable_licm


def test_flatten_and_unflatten(kernel: Trace):
    pair = namedtuple("pair", ["first", "second"])
    x, pointer = kernel.parameter(tl.uint8), kernel.parameter(tl.pointer_type(tl.float16))
    descriptor = tl.make_tensor_descriptor(pointer, [8, 8], [8, 1], [8, 8])
    value = (x, tl.constexpr(3), [pointer, None], pair(tl.float32, descriptor), test_iterators)
    handles = tl.flatten(value)
    assert len(handles) == 2 + 5 and all(handle.type for handle in handles)
    again = tl.unflatten(value, handles)
    assert tl.flatten(again) == handles
    assert again[0].type == tl.uint8 and again[1] is value[1] and again[2][1] is None and again[4] is test_iterators
    assert isinstance(again[3], pair) and again[3].second.type == descriptor.type and again[3].first is tl.float32


def test_outside_a_kernel():
    for attempt in (
        lambda: tl.arange(0, 8),
        lambda: tl.program_id(0),
        lambda: tl.exp(1.0),
        lambda: tl.num_programs(1),
    ):
        with pytest.raises(CompilationError, match="called outside a kernel"):
            attempt()
    assert not tl.target_info.is_hip()  # Asks for the machine that is active.


def test_builders_nest():
    outer, inner = Builder(Block()), Builder(Block())
    with building.building(outer):
        with building.building(inner, target="cuda"):
            assert building.current() is inner and tl.target_info.is_cuda() and not tl.target_info.is_cpu()
        assert (
            building.current() is outer
            and tl.target_info.is_cpu()
            and not tl.target_info.is_hip()
            and not tl.target_info.is_xpu()
        )
        with pytest.raises(InternalError, match="no inliner"):
            tl.reduce(tl.arange(0, 8), 0, lambda a, b: a)


def test_every_name_is_found_where_the_table_says():
    from importlib import import_module

    listed = {module: set(names.split()) for module, names in tl._HOMES.items()}
    for module, names in listed.items():
        offered = set(import_module(f"mltriton.language.{module}").__all__)
        elsewhere = {name for other, theirs in listed.items() if other != module for name in theirs}
        assert names <= offered and offered - names <= elsewhere, module
    for name in tl._HOME:
        value = getattr(tl, name)
        assert isinstance(value, type) or building.is_builtin(value), name
        assert value.__doc__ and value.__name__ == name
    assert set(tl._HOME) <= set(dir(tl)) and tl.TRITON_MAX_TENSOR_NUMEL == 1 << 20


# The public names of Triton 3.9's language that concern kernels (not its type system's own classes).
UPSTREAM = """
PropagateNan TRITON_MAX_TENSOR_NUMEL abs add arange argmax argmin associative_scan assume atomic_add atomic_and
atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll atomic_store atomic_xchg atomic_xor bfloat16
bitonic_merge block_type broadcast broadcast_to cast cat cdiv ceil clamp condition const constexpr cos cumprod cumsum
debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2 expand_dims expect_zero extra fdiv
flip float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram
inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2 make_block_ptr
advance make_tensor_descriptor map_elementwise math max max_constancy max_contiguous maximum min minimum mul
multiple_of num_programs pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type program_id rand rand4x
randint randint4x randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn
squeeze static_assert static_print static_range store store_tensor_descriptor sub sum swizzle2d target_info tensor
tensor_descriptor to_tensor topk trans tuple uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view
void where xor_sum zeros zeros_like
"""


def test_upstream_names_are_offered_or_explained(kernel: Trace):
    assert [name for name in UPSTREAM.split() if not hasattr(tl, name)] == []
    for name in tl._MISSING:
        with pytest.raises(NameNotFoundError, match=f"tl.{name} is not offered") as caught:
            getattr(tl, name)(1, a=2)
        assert caught.value.hint


def test_unknown_names():
    """In either wording: a test before this one may have put the language in Triton's place."""
    with pytest.raises(AttributeError, match=r"did you mean '?maximum"):
        _ = tl.maximun
    with pytest.raises(AttributeError, match=r"no .*qqqq"):
        _ = tl.qqqq


def test_importing_the_language_does_not_import_the_compiler():
    code = (
        "import sys, mltriton.language as tl; tl.constexpr, tl.float32, tl.tensor, tl.range, tl.const;"
        "heavy = ('mltriton.ir', 'mltriton.dialects', 'numpy', 'llvmlite');"
        "loaded = [name for name in sys.modules if name.startswith(heavy)]; sys.exit(str(loaded) if loaded else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""


def test_a_kernel_verifies():
    trace = traced(lambda p, n: tl.store(p + tl.arange(0, 8), tl.arange(0, 8) * n), tl.pointer_type(tl.int32), tl.int32)
    assert trace.names[-2:] == ["tt.store", "tt.return"]
