"""Elementwise operations, casts and comparisons: the CPU against the reference executor, mostly bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mltriton.executor.values import decode, encode, memory_dtype, rounder, value_dtype
from mltriton.ir.attribute_parser import AttributeParser

from .conftest import run_both

SIZE = 16
INTEGERS = ["i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALL_FLOATS = ["f8E4M3FN", "f8E5M2"]


def type_named(text):
    return AttributeParser(text, "<type>").type()


def floats(values, type_):
    """Numbers rounded to a type, as they lie in memory."""
    named = type_named(type_)
    with np.errstate(over="ignore"):
        return encode(rounder(named)(values).astype(value_dtype(named)), named)


def numbers(type_, seed, count):
    """Random values of a type with the edges of its range among them, as the array that lies in memory."""
    rng = np.random.default_rng(seed)
    dtype = memory_dtype(type_named(type_))
    if type_ == "i1":
        return rng.integers(0, 2, count).astype(dtype)
    if type_ in INTEGERS:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        values[: count // 2] = rng.integers(-9, 9, count // 2)
        values[:4] = (0, -1, limits.min, limits.max)
        return rng.permutation(values)
    values = rng.standard_normal(count) * np.exp2(rng.integers(-20, 20, count))
    values[:10] = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6e-8, -1e-39, 70000.0)
    return floats(rng.permutation(values), type_)


def program(operations, inputs, result, count, lanes):
    """Loads chunks %x0, %x1, ...; computes %r0, %r1, ... by the operations; stores them: a program for each chunk."""
    types = [*inputs, *[result] * len(operations)]
    parameters = ", ".join(f"%p{i}: !tt.ptr<{type_}>" for i, type_ in enumerate(types))
    lines = [f"%id = tt.get_program_id x : i32\n%c = arith.constant {lanes} : i32\n%o = arith.muli %id, %c : i32"]
    for i, type_ in enumerate(types):
        lines.append(f"%a{i} = tt.addptr %p{i}, %o : !tt.ptr<{type_}>, i32")
        if i < len(inputs):
            lines.append(f"%x{i} = tile.load %a{i} : tensor<{lanes}x{type_}>")
    for i, operation in enumerate(operations):
        lines.append(operation.replace("<N", f"<{lanes}").replace("%r =", f"%r{i} ="))
        lines.append(f"tile.store %a{len(inputs) + i}, %r{i} : tensor<{lanes}x{result}>")
    body = "\n".join(lines)
    level = '"mltriton.level" = "intrinsic", "ttg.num-warps" = 1 : i32'
    return f"module attributes {{{level}}} {{ tt.func @f({parameters}) {{\n{body}\ntt.return\n}} }}"


def check(isa, operations, inputs, result, *, ulp=0, count=256, lanes=SIZE, arrays=None, where=None):
    """Compare what the operations give; `where` picks the elements that count, `ulp` allows a distance."""
    operations = [operations] if isinstance(operations, str) else operations
    arrays = arrays or [numbers(type_, seed, count) for seed, type_ in enumerate(inputs)]
    outs = [np.zeros(count, memory_dtype(type_named(result))) for _ in operations]
    text = program(operations, inputs, result, count, lanes)
    pairs = run_both(text, isa, [*arrays, *outs], (count // lanes, 1, 1))[len(inputs) :]
    for operation, pair in zip(operations, pairs, strict=True):
        mine, expected = (decode(array, type_named(result))[slice(None) if where is None else where] for array in pair)
        if ulp == 0:
            np.testing.assert_array_equal(mine, expected, operation)
            continue
        same = (mine == expected) | (np.isnan(mine) & np.isnan(expected))
        with np.errstate(all="ignore"):
            distance = np.abs(mine.astype(np.float64) - expected) / np.spacing(np.abs(expected))
        assert (same | (distance <= ulp)).all(), operation


def binary(ops, type_, dialect="arith"):
    return [f"%r = {dialect}.{op} %x0, %x1 : tensor<Nx{type_}>" for op in ops.split()]


@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_operations(isa, type_):
    check(isa, binary("addi subi muli andi ori xori maxsi minsi maxui minui", type_), [type_, type_], type_)
    check(isa, f"%r = tt.mulhiui %x0, %x1 : tensor<Nx{type_}>", [type_, type_], type_)
    check(isa, f"%r = math.absi %x0 : tensor<Nx{type_}>", [type_], type_)


def test_boolean_operations(isa):
    check(isa, binary("addi subi muli andi ori xori", "i1"), ["i1", "i1"], "i1")


@pytest.mark.parametrize("lanes", [1, SIZE])
@pytest.mark.parametrize("type_", INTEGERS)
def test_division_is_exact_and_never_traps(isa, type_, lanes):
    dividend, divisor = numbers(type_, 0, 512), numbers(type_, 1, 512)
    # What a division by zero gives is unspecified, and so is least / -1 in numpy: only that it does not trap matters.
    safe = (divisor != 0) & ~((dividend == np.iinfo(dividend.dtype).min) & (divisor == -1))
    operations = binary("divsi divui remsi remui ceildivsi floordivsi", type_)
    arrays = [dividend, divisor]
    check(isa, operations, [type_, type_], type_, count=512, lanes=lanes, arrays=arrays, where=safe)


@pytest.mark.parametrize("divisor", [1, -1, 2, 7, -7, 64, 0])
def test_division_by_a_constant(isa, divisor):
    operation = f"%c1 = arith.constant dense<{divisor}> : tensor<Nxi32>\n%r = arith.{{}} %x0, %c1 : tensor<Nxi32>"
    x = numbers("i32", 0, 256)
    x[x == np.iinfo(np.int32).min] = 5
    for op in ("divsi", "remsi") if divisor else ():
        check(isa, operation.format(op), ["i32"], "i32", arrays=[x])


@pytest.mark.parametrize("type_", INTEGERS)
def test_shifts_within_the_width(isa, type_):
    x = numbers(type_, 0, 256)
    amount = np.random.default_rng(1).integers(0, x.itemsize * 8, 256).astype(x.dtype)
    check(isa, binary("shli shrsi shrui", type_), [type_, type_], type_, arrays=[x, amount])


@pytest.mark.parametrize("type_", [*INTEGERS, "i1"])
def test_integer_comparisons(isa, type_):
    predicates = "eq ne slt sle sgt sge ult ule ugt uge"
    check(isa, compare("cmpi", predicates, type_), [type_, type_], "i1")


def compare(op, predicates, type_):
    return [f"%r = arith.{op} {predicate}, %x0, %x1 : tensor<Nx{type_}>" for predicate in predicates.split()]


@pytest.mark.parametrize("type_", FLOATS)
def test_float_comparisons(isa, type_):
    predicates = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno"
    check(isa, compare("cmpf", predicates, type_), [type_, type_], "i1")


@pytest.mark.parametrize("lanes", [1, SIZE])
@pytest.mark.parametrize("type_", FLOATS)
def test_float_operations(isa, type_, lanes):
    operations = binary("addf subf mulf divf maximumf minimumf maxnumf minnumf", type_)
    check(isa, operations, [type_, type_], type_, lanes=lanes)


@pytest.mark.parametrize("op", ["maxnumf", "minnumf", "maximumf", "minimumf"])
@pytest.mark.parametrize("order", ["%x0, %c1", "%c1, %x0"])
def test_extrema_with_a_number(isa, op, order):
    constant = "%c1 = arith.constant dense<0.5> : tensor<Nxf32>"
    check(isa, f"{constant}\n%r = arith.{op} {order} : tensor<Nxf32>", ["f32"], "f32")


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_extrema_of_every_lane_count(isa, type_, lanes):
    chunk = f"tensor<Nx{type_}>"
    operations = [f"%r = arith.{op} %x0, %x1 : {chunk}" for op in ("maxnumf", "minnumf", "maximumf", "minimumf")]
    check(isa, operations, [type_, type_], type_, lanes=lanes)


def unary(ops, type_):
    return [f"%r = {op} %x0 : tensor<Nx{type_}>" for op in ops.split()]


@pytest.mark.parametrize("type_", FLOATS)
def test_exact_functions(isa, type_):
    operations = unary("arith.negf math.absf math.floor math.ceil math.sqrt tt.precise_sqrt", type_)
    check(isa, operations, [type_], type_)


@pytest.mark.parametrize("type_", FLOATS)
def test_transcendental_functions(isa, type_):
    ops = "math.exp math.exp2 math.log math.log2 math.sin math.cos math.tanh math.erf math.rsqrt"
    check(isa, unary(ops, type_), [type_], type_, ulp=4 if type_ in ("f32", "f64") else 1)


@pytest.mark.parametrize("lanes", [1, 2, 8, SIZE])
def test_powers_without_denormals_as_bf16(isa, lanes):
    exponents = np.linspace(-140, 130, 256, dtype=np.float32)
    exponents[:4] = np.nan, np.inf, -np.inf, -0.0
    denormal = (exponents < -126) & (exponents > -150)
    power = "%e = math.exp2 %x0 {flushes = true} : tensor<Nxf32>\n"
    rounded = power + "%r = arith.truncf %e : tensor<Nxf32> to tensor<Nxbf16>"
    check(isa, rounded, ["f32"], "bf16", arrays=[exponents], lanes=lanes, ulp=1, where=~denormal)


@pytest.mark.parametrize("type_", FLOATS)
def test_fused_multiply_add(isa, type_):
    check(isa, f"%r = math.fma %x0, %x1, %x2 : tensor<Nx{type_}>", [type_] * 3, type_, ulp=1 if type_ != "f32" else 0)


@pytest.mark.parametrize("hint", ["", " <{propagate_nan = true}>"])
def test_clamp(isa, hint):
    low, high = (
        f"%{name} = arith.constant dense<{value}> : tensor<Nxf32>\n" for name, value in (("l", -1.5), ("h", 2.0))
    )
    chunk = "tensor<Nxf32>"
    clamp = f'%r = "tt.clampf"(%x0, %l, %h){hint} : ({chunk}, {chunk}, {chunk}) -> {chunk}'
    check(isa, low + high + clamp, ["f32"], "f32")


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS, "i1"])
def test_select(isa, type_):
    check(isa, f"%r = arith.select %x0, %x1, %x2 : tensor<Nxi1>, tensor<Nx{type_}>", ["i1", type_, type_], type_)


@pytest.mark.parametrize(("narrow", "wide"), list(itertools.combinations(["i1", *INTEGERS], 2)))
def test_integer_casts(isa, narrow, wide):
    casts = [f"%r = arith.{op} %x0 : tensor<Nx{narrow}> to tensor<Nx{wide}>" for op in ("extsi", "extui")]
    check(isa, casts, [narrow], wide)
    check(isa, f"%r = arith.trunci %x0 : tensor<Nx{wide}> to tensor<Nx{narrow}>", [wide], narrow)


@pytest.mark.parametrize("lanes", [1, SIZE])
@pytest.mark.parametrize(
    ("narrow", "wide"), [("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"), ("f32", "f64")]
)
def test_float_casts(isa, narrow, wide, lanes):
    check(isa, f"%r = arith.extf %x0 : tensor<Nx{narrow}> to tensor<Nx{wide}>", [narrow], wide, lanes=lanes)
    check(
        isa, f"%r = arith.truncf %x0 : tensor<Nx{wide}> to tensor<Nx{narrow}>", [wide], narrow, lanes=lanes, count=4096
    )


def test_narrowing_rounds_ties_and_denormals_right(isa):
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = np.concatenate([halves, (halves[1:] + halves[:-1]) / 2, np.nextafter(halves, np.float32(np.inf))])
    between = np.concatenate([between, -between])[: 1 << 16]
    for target in ("f16", "bf16", *SMALL_FLOATS):
        op = "tt.fp_to_fp" if target in SMALL_FLOATS else "arith.truncf"
        text = f"%r = {op} %x0 : tensor<Nxf32> to tensor<Nx{target}>"
        text = text.replace(" to ", " -> ") if op == "tt.fp_to_fp" else text
        check(isa, text, ["f32"], target, arrays=[between], count=between.size)


@pytest.mark.parametrize("source", SMALL_FLOATS)
def test_every_fp8_code(isa, source):
    codes = np.arange(256, dtype=np.uint8)
    check(isa, f"%r = tt.fp_to_fp %x0 : tensor<Nx{source}> -> tensor<Nxf32>", [source], "f32", arrays=[codes])


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16"), ("f64", "f32")]
)
def test_rounding_toward_zero(isa, source, target):
    text = f"%r = tt.fp_to_fp %x0, rounding = rtz : tensor<Nx{source}> -> tensor<Nx{target}>"
    check(isa, text, [source], target, count=4096)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", [*INTEGERS, "i1"])
def test_integer_to_float(isa, source, target):
    casts = [f"%r = arith.{op} %x0 : tensor<Nx{source}> to tensor<Nx{target}>" for op in ("sitofp", "uitofp")]
    x = numbers(source, 0, 256)
    if source == "i64":  # and next to the middle of two neighbours, nearer than f64 tells from it
        middle = np.array([257, 2049, -257, -511]) << np.arange(44, 52)[:, None]
        x = np.concatenate([x, *(middle.ravel() + by for by in (-1, 0, 1, 2))])
    check(isa, casts, [source], target, arrays=[x], count=x.size)


LARGEST = {"f16": 65504.0}


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("op", ["fptosi", "fptoui"])
def test_float_to_integer(isa, op, source, target):
    most = 0.99 * min(2.0 ** (int(target[1:]) - (op == "fptosi")), LARGEST.get(source, np.inf))
    rng = np.random.default_rng(0)
    values = [rng.uniform(-top if op == "fptosi" else 0, top, 128) for top in (min(most, 100), most)]
    arrays = [floats(np.concatenate(values), source)]
    check(isa, f"%r = arith.{op} %x0 : tensor<Nx{source}> to tensor<Nx{target}>", [source], target, arrays=arrays)


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "i32"), ("i32", "f32"), ("f16", "i16"), ("bf16", "i16"), ("i64", "f64")]
)
def test_bitcasts(isa, source, target):
    check(isa, f"%r = arith.bitcast %x0 : tensor<Nx{source}> to tensor<Nx{target}>", [source], target)
