"""The writer of LLVM IR: exact constants, folding, reuse of values, structured control flow."""

from __future__ import annotations

import struct

import pytest

from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.types import BF16, F16, F32, F64, I1, I32, I64, PTR, VOID, constant, vector
from mltriton.targets.llvm.writer import Module


def function(*parameters):
    module = Module()
    return module, module.function("f", VOID, [(f"p{i}", type_) for i, type_ in enumerate(parameters)], linkage="")


def finish(module, f):
    """The text, which LLVM must accept."""
    f.ret()
    toolchain.verify(module.text)
    return module.text


def test_one_lane_is_the_scalar():
    assert vector("float", 1) is F32
    assert str(vector("float", 4)) == "<4 x float>"
    assert vector("i64", 8).suffix == "v8i64"
    assert (F16.bytes, I1.bytes, vector("i8", 3).bytes) == (2, 1, 3)
    with pytest.raises(ValueError, match="fp7"):
        vector("fp7", 1)


@pytest.mark.parametrize(
    ("type_", "number", "text"),
    [
        (I32, (1 << 31) + 5, str(5 - (1 << 31))),
        (I1, 3, "true"),
        (F32, 0.1, "0x3FB99999A0000000"),
        (F64, 0.1, f"0x{struct.unpack('<Q', struct.pack('<d', 0.1))[0]:016X}"),
        (F16, 1e9, "0xH7C00"),
        (BF16, 1.00390625, "0xR3F80"),
        (vector("i32", 4), 7, "splat (i32 7)"),
        (vector("float", 4), 0.0, "zeroinitializer"),
        (vector("float", 4), -0.0, "splat (float 0x8000000000000000)"),
    ],
)
def test_constants_are_exact(type_, number, text):
    assert constant(type_, number).text == text


def test_code_in_front_of_the_innermost_loop():
    module, f = function(I64, PTR)
    n, p = f.parameters
    with f.loop(0, n, name="outer"), f.loop(0, n, name="inner") as inner:
        with f.before_loop():
            f.mul(n, n)
        f.store(f.add(f.mul(n, n), inner.index), p)
    with f.loop(0, 1), f.before_loop():  # straight code: there is no place in front of it
        f.store(f.mul(n, n), p)
    text = finish(module, f)
    assert text.count("mul i64") == 2
    assert text.index("outer.body") < text.index("mul i64") < text.index("br label %inner.head")


def test_arithmetic_on_constants_and_neutral_elements_is_folded():
    _, f = function(I64)
    (x,) = f.parameters
    assert f.mul(constant(I64, 6), 7).literal == 42
    assert f.add(x, 0) is x
    assert f.mul(x, 1) is x
    assert f.mul(x, 0).literal == 0
    assert f.and_(constant(I64, -1), x) is not x
    assert f.gep(constant(PTR, 0), 0, F32).text == "0"
    assert len(f.lines) == 1


def test_comparisons_of_constants_are_folded():
    _, f = function()
    low, high = constant(I32, -3), constant(vector("i32", 4), 5)
    assert f.icmp("slt", low, 5) == constant(I1, 1) == f.icmp("ugt", low, 5)
    assert f.icmp("sge", low, 5) == constant(I1, 0) == f.icmp("ule", low, 5)
    assert f.icmp("ne", high, 5) == constant(vector("i1", 4), 0)


def test_a_value_is_computed_once_where_the_first_dominates():
    module, f = function(I64, I1)
    x, condition = f.parameters
    outside = f.add(x, 3)
    with f.when(condition):
        assert f.add(x, 3) is outside
        inside = f.add(x, 4)
    assert f.add(x, 4) is not inside
    finish(module, f)


def test_effects_are_never_merged():
    module, f = function(PTR)
    (pointer,) = f.parameters
    assert f.load(I32, pointer) is not f.load(I32, pointer)
    f.store(constant(I32, 1), pointer)
    f.store(constant(I32, 1), pointer)
    assert finish(module, f).count("store i32 1") == 2


@pytest.mark.parametrize("at_least_once", [False, True])
def test_loops_carry_values(at_least_once):
    module, f = function(I64, PTR)
    n, out = f.parameters
    with f.loop(0, n, 2, [constant(I64, 1), constant(F32, 0.5)], at_least_once=at_least_once) as loop:
        product, half = loop.carried
        with f.loop(0, loop.index, carried=[product]) as inner:
            inner.yield_(f.mul(inner.carried[0], 3))
        loop.yield_(inner.results[0], f.fadd(half, half))
    f.store(loop.results[0], out)
    f.store(loop.results[1], out)
    assert finish(module, f).count("phi") == 5


def test_a_loop_of_one_iteration_is_straight_code():
    module, f = function(PTR)
    with f.loop(0, 8, 8, [constant(I64, 5)]) as loop:
        loop.yield_(f.add(loop.carried[0], loop.index))
    f.store(loop.results[0], f.parameters[0])
    text = finish(module, f)
    assert "br" not in text
    assert "store i64 5" in text


def test_a_loop_must_yield_what_it_carries():
    _, f = function(I64)
    with (
        pytest.raises(ValueError, match="a loop carries"),
        f.loop(0, f.parameters[0], carried=[constant(I32, 0)]) as loop,
    ):
        loop.yield_(constant(I64, 0))


def test_choices_and_while_loops():
    module, f = function(I64, PTR)
    n, out = f.parameters
    (a,) = f.choose(f.icmp("slt", n, 5), lambda: [f.add(n, 1)], lambda: [f.mul(n, n)])
    with f.repeat([a]) as loop:
        (value,) = loop.carried
        loop.leave_unless(f.icmp("sgt", value, 10))
        loop.yield_(f.sub(value, 3))
    f.store(value, out)
    finish(module, f)


def test_operands_must_agree():
    _, f = function(I64, I32)
    with pytest.raises(TypeError, match="add on i64 and i32"):
        f.add(*f.parameters)
