"""Rules of upstream's language that programs rely on, each shown by a kernel that runs on the CPU."""

from __future__ import annotations

import signal
from typing import NamedTuple

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import (
    ConstexprError,
    DeviceAssertionError,
    NameNotFoundError,
    PointerError,
    TritonError,
)
from mltriton.executor import run
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.passes.manager import PassManager


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Values rounded to bf16, as their bits."""
    return (values.astype(np.float32).view(np.uint32) + 0x8000 >> 16).astype(np.uint16)


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@triton.jit
def running(x, out, N: tl.constexpr, PRODUCT: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumprod(v, 0, REVERSE) if PRODUCT else tl.cumsum(v, 0, REVERSE))


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_bfloat16_accumulate_in_float32(product: bool, reverse: bool):
    random = np.random.default_rng(0)
    bits = bfloat16(random.uniform(0.97, 1.03, 1024) if product else random.standard_normal(1024))
    out = np.empty(1024, np.float32)
    running[(1,)](triton.reinterpret(bits, tl.bfloat16), out, N=1024, PRODUCT=product, REVERSE=reverse)
    values = widened(bits).astype(np.float64)[:: -1 if reverse else 1]
    expected = (np.cumprod if product else np.cumsum)(values)[:: -1 if reverse else 1]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)  # A sum in bf16 is off by 0.5.


@triton.jit
def extremes(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.maximum(a, b) * 1.001)
    tl.store(out + N + i, tl.minimum(a, 0.3) * 1.001)
    tl.store(out + 2 * N + i, tl.clamp(a, -0.5, b) * 1.001)


def test_extremes_of_bfloat16_go_on_in_float32():
    random = np.random.default_rng(1)
    x, y = (bfloat16(random.standard_normal(64)) for _ in range(2))
    out = np.empty((3, 64), np.float32)
    extremes[(1,)](triton.reinterpret(x, tl.bfloat16), triton.reinterpret(y, tl.bfloat16), out, N=64)
    a, b = widened(x).astype(np.float64), widened(y).astype(np.float64)
    expected = [np.maximum(a, b), np.minimum(a, 0.3), np.minimum(np.maximum(a, -0.5), b)]
    np.testing.assert_allclose(out, np.array(expected) * 1.001, rtol=2e-7)


@triton.jit
def constants(out, A: tl.constexpr, B: tl.constexpr):
    tl.store(out, min(A, B))
    tl.store(out + 1, max(A, B))


def test_extremes_of_constants():
    out = np.empty(2, np.float32)
    constants[(1,)](out, 2.5, -1)
    assert out.tolist() == [-1, 2.5]


@pytest.mark.parametrize("value", [float("nan"), -0.0])
@pytest.mark.parametrize("first", [False, True])
def test_extremes_of_constants_that_have_no_order(value: float, first: bool):
    pair = (value, 1.0) if first else (1.0, value)
    what = "negative zero" if value == 0 else "NaN values"
    with pytest.raises(ConstexprError, match=f"constexpr min does not support {what}"):
        constants[(1,)](np.empty(2, np.float32), *pair)


@triton.jit
def through_const(x: tl.const, out, KIND: tl.constexpr):
    value = tl.load(x)
    if KIND == "store":
        tl.store(x, value)
    elif KIND == "moved":
        tl.store(x + tl.arange(0, 4), value)
    elif KIND == "atomic":
        tl.atomic_add(x, value)
    tl.store(out, value)


def test_const_pointers_are_read_only():
    x, out = np.full(4, 3, np.int32), np.zeros(1, np.int32)
    through_const[(1,)](x, out, "load")
    assert out[0] == 3
    for kind in ("store", "moved", "atomic"):
        with pytest.raises(PointerError, match="Cannot store to a constant pointer"):
            through_const[(1,)](x, out, kind)


@triton.jit
def asserting(x, out):
    value = tl.load(x)
    tl.device_assert(value > 0, "boom")
    assert value > 0, "bang"
    tl.store(out, value)


def test_assertions_are_checked_when_debugging(monkeypatch):
    x, out = np.array([-5], np.int32), np.zeros(1, np.int32)
    asserting[(1,)](x, out)
    assert out[0] == -5
    with pytest.raises(RuntimeError, match="boom"):
        asserting[(1,)](x, out, debug=True)
    for name in ("MLTRITON_DEBUG", "TRITON_DEBUG"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            with pytest.raises(DeviceAssertionError, match="boom"):
                triton.jit(asserting.fn)[(1,)](x, out)


@triton.jit
def unpacking(out):
    a, b = tl.program_id(0), 7, tl.program_id(1)
    tl.store(out, a + b)


def test_more_values_than_names_are_left_out():
    out = np.zeros(1, np.int32)
    unpacking[(1,)](out)
    assert out[0] == 7


class Pair(NamedTuple):
    """Two arguments in one."""

    ptr: object
    n: object


@triton.jit
def of_fields(pair, other):
    tl.store(pair.ptr, pair.n + other[1].n)
    tl.store(other[0], other[1].ptr)


def test_named_tuples_keep_their_fields():
    for n in (7, 1, 40):  # 1 is compiled in.
        out, second = np.zeros(1, np.int32), np.zeros(1, np.int32)
        of_fields[(1,)](Pair(out, n), (second, Pair(5, n)))
        assert (out[0], second[0]) == (2 * n, 5)
    with pytest.raises(TritonError, match="has no attribute ptr"):
        of_fields[(1,)]((out, 1), (second, Pair(5, 2)))


@triton.jit
def constant_parts(out, v, whole):
    tl.static_assert(v[1] == 3 and v[2][0] == "text")
    block = tl.full((whole,), v[0], tl.int32)
    tl.store(out + tl.arange(0, whole), block + v[1])


def test_constants_inside_tuples_stay_constants():
    out = np.zeros(8, np.int32)
    for whole, first in ((4, 10), (8, 20), (4, 30)):
        out[:] = 0
        constant_parts[(1,)](out, (first, tl.constexpr(3), (tl.constexpr("text"),)), tl.constexpr(whole))
        assert out.tolist() == [first + 3] * whole + [0] * (8 - whole)


@triton.jit
def narrow_scalars(out, a: tl.float16, b: tl.bfloat16, c: tl.float64):
    tl.static_assert(a.dtype == tl.float16 and b.dtype == tl.bfloat16 and c.dtype == tl.float64)
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, c)


@pytest.mark.parametrize("launcher", ["auto", "portable"])
def test_scalars_of_16_bits(launcher: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLTRITON_LAUNCHER", launcher)
    out = np.zeros(3)
    for value in (42.0, 0.1, -1e-3):
        narrow_scalars[(1,)](out, value, value, value)
        expected = [np.float16(value), widened(bfloat16(np.array([value])))[0], value]
        assert out.tolist() == [float(number) for number in expected]
    compiled = triton.compile(narrow_scalars, signature="*fp64, fp16, bf16, fp64")
    compiled[(1,)](out, 0.3, 0.3, 0.3)
    assert out[0] == float(np.float16(0.3))


@triton.jit
def answer():
    return tl.constexpr(42)


@triton.jit
def sign_of(x):
    if x < 0:
        return -1
    else:
        return 1


@triton.jit
def parts_of(shape):
    return shape[0] * 2, shape[1]


@triton.jit
def constant_calls(out, n, SHAPE: tl.constexpr):
    a: tl.constexpr = answer()
    b: tl.constexpr = sign_of(-3)
    rows: tl.constexpr
    columns: tl.constexpr
    rows, columns = parts_of(SHAPE)
    block = tl.full((rows, columns), a * b, tl.int32)
    tl.store(out, tl.sum(block) + sign_of(n))


def test_functions_that_return_constants():
    out = np.zeros(1, np.int32)
    for n in (5, -5):
        constant_calls[(1,)](out, n, (2, 4))
        assert out[0] == -42 * 16 + (1 if n > 0 else -1)


@triton.jit
def constant_from_value(out, n):
    first: tl.constexpr
    first, second = n, 2
    tl.store(out, first + second)


def test_a_declared_constant_must_be_one():
    with pytest.raises(ConstexprError, match=r"a tl\.constexpr must be known"):
        constant_from_value[(1,)](np.zeros(1, np.int32), 7)


@triton.jit
def sometimes(x, p):
    if x > 5:
        return x, p
    if x > 3:
        return x + 100, p


@triton.jit
def without_else(out, n):
    value, pointer = sometimes(n, out)
    if n > 3:
        tl.store(pointer, value)


def test_a_function_whose_end_is_reached():
    out = np.zeros(1, np.int32)
    for n, expected in ((7, 7), (4, 104), (2, 104)):
        without_else[(1,)](out, n)
        assert out[0] == expected


@triton.jit
def one_element(x, out):
    condition = tl.load(x + tl.arange(0, 1)) > 42
    if condition:
        tl.store(out, 1)
    count = 0
    while tl.load(x + tl.full((1, 1), 0, tl.int32)) > count:
        count += 10
    tl.store(out + 1, 5 if condition else 6)
    tl.store(out + 2, count)


def test_a_block_of_one_element_is_a_condition():
    for value, expected in ((43, [1, 5, 50]), (7, [0, 6, 10])):
        out = np.zeros(3, np.int32)
        one_element[(1,)](np.array([value], np.int32), out)
        assert out.tolist() == expected


@triton.jit
def several_elements(x, out):
    if tl.load(x + tl.arange(0, 2)) > 42:
        tl.store(out, 1)


def test_a_block_of_several_elements_is_no_condition():
    with pytest.raises(ConstexprError, match="Boolean value of Tensor with more than one value is ambiguous"):
        several_elements[(1,)](np.zeros(2, np.int32), np.zeros(1, np.int32))


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def tuples_of_one(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    (s,) = tl.reduce((v,), 0, add)
    (c,) = tl.associative_scan((v,), 0, add)
    tl.store(out, s)
    tl.store(out + 1 + tl.arange(0, N), c)


def test_a_tuple_of_one_block_gives_a_tuple():
    x, out = np.arange(1, 9, dtype=np.float32), np.zeros(9, np.float32)
    tuples_of_one[(1,)](x, out, N=8)
    assert out.tolist() == [36, *np.cumsum(x)]


@triton.jit
def indexed_scalars(out, n):
    tl.store(out[None, None], tl.full((1, 1), 3, tl.int32))
    tl.store((out + 1)[None, None, :], n)
    tl.store(out + 2, tl.sum(n[:, None]))


def test_scalars_are_indexed():
    out = np.zeros(3, np.int32)
    indexed_scalars[(1,)](out, 5)
    assert out.tolist() == [3, 5, 5]


@triton.jit
def missing_name(x, NAME: tl.constexpr):
    tl.store(x, getattr(tl.extra.libdevice, NAME)(tl.load(x)))


def test_getattr_of_a_module():
    x = np.full(1, 4, np.float32)
    missing_name[(1,)](x, "sqrt")
    assert x[0] == 2
    with pytest.raises(NameNotFoundError, match="has no attribute squareroot"):
        missing_name[(1,)](x, "squareroot")


def test_autotuning_without_an_array():
    for keyword in ("restore_value", "reset_to_zero"):

        @triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["N"], **{keyword: ["src"]})
        @triton.jit
        def fill(src, dst, N, B: tl.constexpr):
            tl.store(dst + tl.arange(0, B), 1.0)

        out = np.zeros(64, np.float32)
        fill[(1,)](None, out, 64)
        assert out[:32].tolist() == [1.0] * 32


@triton.jit
def moving_descriptor(a, b, M, N, K, MB: tl.constexpr, NB: tl.constexpr):
    d = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[MB, NB])
    for i in range(0, N, NB):
        if i % (3 * NB) == 0:
            d = tl.make_tensor_descriptor(b, shape=[M, K], strides=[N, 1], block_shape=[MB, NB])
        elif i == NB:
            d = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[MB, NB])
        d.store([0, i], d.load([0, i]) + 10)
    d.store([0, 0], d.load([0, 0]) + 100)


@pytest.mark.parametrize("level", ["tt", "ttg", "warp", "intrinsic", ""])
@pytest.mark.parametrize("target", ["cpu", "generic", "xe:pvc"])
def test_a_descriptor_that_control_flow_chooses(target: str, level: str):
    a, b = np.zeros((8, 256), np.float32), np.zeros((8, 256), np.float32)
    if level:
        signature = "*fp32, *fp32, i32, i32, i32, 8, 32"
        module = triton.compile(moving_descriptor, signature=signature, target=target).job.module(level)
        run(module, [a, b, 8, 256, 200], (1,))
    elif target == "cpu":
        moving_descriptor[(1,)](a, b, 8, 256, 200, MB=8, NB=32)
    else:
        pytest.skip("runs in the executor only")
    expected = np.zeros((2, 8, 256), np.float32)
    chosen, width = 0, 256
    for i in range(0, 256, 32):
        if i % 96 == 0:
            chosen, width = 1, 200
        elif i == 32:
            chosen, width = 0, 256
        expected[chosen, :, i : min(i + 32, width)] += 10
    expected[chosen, :, :32] += 100
    np.testing.assert_array_equal([a, b], expected)


@triton.jit
def equal_types(x, out, target, debug):
    i = tl.arange(0, 16)
    value = tl.load(x + i).to(out.dtype.element_ty, fp_downcast_rounding="rtne")
    tl.store(out + i, value + tl.load(target + i) + debug)


def test_names_of_launch_options_and_roundings_that_round_nothing():
    x, y = np.random.default_rng(0).standard_normal((2, 16), np.float32)
    for arguments, keywords in (((x,), {"target": y, "debug": 0.5}), ((x,), {"debug": 0.5, "target": y})):
        out = np.zeros(16, np.float32)
        equal_types[(1,)](*arguments, **keywords, out=out)
        np.testing.assert_array_equal(out, x + y + np.float32(0.5))


@triton.jit
def checked_add(a, b):
    total = a.to(tl.int64) + b.to(tl.int64)
    tl.device_assert(total < 2**31, "too large")
    return a + b


@triton.jit
def checked_sums(x, out, N: tl.constexpr, SCAN: tl.constexpr, AXIS: tl.constexpr):
    i = tl.arange(0, N)
    if SCAN:
        tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, checked_add))
    else:
        tl.store(out + i, tl.reduce(tl.load(x + i[:, None] * N + i[None, :]), AXIS, checked_add))


@pytest.mark.parametrize("scan", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_assertions_in_what_combines_elements(scan: bool, axis: int):
    x, out = np.ones((32, 32), np.int32), np.zeros(32, np.int32)
    expected = np.arange(1, 33) if scan else np.full(32, 32)
    checked_sums[(1,)](x, out, 32, scan, axis, debug=True)
    np.testing.assert_array_equal(out, expected)
    for target in ("generic", "xe:pvc"):
        for warps in (1, 4):
            text = f"*i32, *i32, 32, {scan}, {axis}"
            job = triton.compile(checked_sums, signature=text, target=target, num_warps=warps, debug=True).job
            for level in ("tt", "warp", "intrinsic"):
                out[:] = 0
                run(job.module(level), [x.ravel(), out], (1,))
                np.testing.assert_array_equal(out, expected)
            with pytest.raises(DeviceAssertionError, match="too large"):
                run(job.module("warp"), [np.full(1024, 2**30, np.int32), out], (1,))
    with pytest.raises(DeviceAssertionError, match="too large"):
        checked_sums[(1,)](np.full((32, 32), 2**30, np.int32), out, 32, scan, axis, debug=True)


class TooLateError(Exception):
    """What a handler of signals raises."""


def interrupt(*_: object) -> None:
    raise TooLateError


@tl.core.builtin
def interrupted():
    signal.raise_signal(signal.SIGUSR1)


@triton.jit
def slow_kernel(x):
    interrupted()


def test_exceptions_of_signal_handlers_pass_through():
    saved = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(TooLateError):
            slow_kernel[(1,)](np.zeros(1))
    finally:
        signal.signal(signal.SIGUSR1, saved)


class SlowPass(Pass):
    name = "slow"

    def run(self, module):
        signal.raise_signal(signal.SIGUSR1)
        return module


def test_exceptions_of_signal_handlers_pass_through_passes():
    saved = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(TooLateError):
            PassManager([SlowPass()], verify_each=False).run(Module.empty())
    finally:
        signal.signal(signal.SIGUSR1, saved)


@triton.jit
def mistaken(x, n, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    if KIND == "range":
        tl.arange(0, 12)
    elif KIND == "ends":
        tl.arange(4, 4)
    elif KIND == "shape":
        tl.zeros((16, 3), tl.float32)
    elif KIND == "numbers":
        tl.zeros((4096, 4096), tl.float32)
    elif KIND == "reshape":
        tl.reshape(i, (4, 8))
    elif KIND == "broadcast":
        i[:, None] + tl.arange(0, 8)[:, None]
    elif KIND == "bitcast":
        i.to(tl.float16, bitcast=True)
    elif KIND == "other":
        tl.load(x, other=0)
    elif KIND == "value":
        tl.store(x, i)
    elif KIND == "mask":
        tl.load(x, mask=i < 4)
    elif KIND == "pointer":
        tl.load(n)
    elif KIND == "eviction":
        tl.load(x, eviction_policy="first")
    elif KIND == "negative":
        i.to(tl.uint32) + (-1)
    elif KIND == "scalar":
        i.to(tl.int8) + 1000
    elif KIND == "signs":
        i // i.to(tl.uint32)
    elif KIND == "exp":
        tl.exp(i.to(tl.float16))
    elif KIND == "dot":
        tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))
    elif KIND == "permute":
        tl.permute(i[:, None], (0, 0))
    elif KIND == "descriptor":
        tl.make_tensor_descriptor(x, [n, n], [n, n], [16, 16])
    elif KIND == "unpack":
        a, b = (i,)
    elif KIND == "return":
        for _ in range(n):
            return
    elif KIND == "carried":
        a = 1
        for _ in range(n):
            a = i
    elif KIND == "ternary":
        a = i if n > 3 else 1.5


# What upstream says, which its tests and tools that know its errors look for.
SENTENCES = {
    "range": "arange's range must be a power of 2",
    "ends": "arange's end argument must be greater than the start argument",
    "shape": "Shape element 1 must be a power of 2",
    "numbers": "exceeds triton maximum tensor numel (1048576)",
    "reshape": "reshape() cannot change total number of elements in tensor",
    "broadcast": "Cannot make_shape_compatible: incompatible dimensions at index 0: 16 and 8",
    "bitcast": "Cannot bitcast data-type of size 32 to data-type of size 16",
    "other": "`other` cannot be provided without `mask`",
    "value": "Value argument cannot be block type if pointer argument is not a block",
    "mask": "Mask argument cannot be block type if pointer argument is not a block",
    "pointer": "Unsupported ptr type int32 in `tl.load`",
    "eviction": "Eviction policy first not supported",
    "negative": "Cannot perform a binary operation between an unsigned tensor and a negative scalar",
    "scalar": "Scalar 1000 is out of range for type int8",
    "signs": "because they have different signedness",
    "exp": "Expected dtype ['fp32', 'fp64'] but got fp16",
    "dot": "Both operands must be same dtype. Got fp16 and fp32",
    "permute": "permute dims must be a permutation of 0, 1, ..., n-1",
    "descriptor": "Tensor descriptor last dim must be 1 but got",
    "unpack": "not enough values to unpack (expected 2, got 1)",
    "return": "Cannot have `return` statements inside `while` or `for` statements in triton.",
    "carried": "Loop-carried variable a has initial type",
    "ternary": "Ternary expression with dynamic condition has inconsistent types",
}
OF_SYNTAX = ("broadcast", "negative", "scalar", "signs", "unpack", "return", "carried", "ternary")


@pytest.mark.parametrize("kind", SENTENCES)
def test_errors_carry_the_sentence_of_upstream(kind: str):
    with pytest.raises(TritonError) as caught:
        mistaken[(1,)](np.zeros(16, np.float32), 7, kind)
    assert SENTENCES[kind] in str(caught.value) and caught.value.message not in SENTENCES[kind]
    assert (caught.value.__cause__ is None) == (kind in OF_SYNTAX)
    assert kind in OF_SYNTAX or SENTENCES[kind] in str(caught.value.__cause__)
