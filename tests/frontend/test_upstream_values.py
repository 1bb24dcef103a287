"""What upstream lets kernels do with constants, tuples, aggregates and functions of its builder."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl


@triton.jit
def types_of_constants():
    count: tl.constexpr = 3
    pair: tl.constexpr = (1, (2, "text"))
    tl.static_assert(count.type == tl.constexpr_type(3))
    tl.static_assert(pair.type == (1, (2, "text")).type)
    tl.static_assert((tl.program_id(0), 1.5).type == tl.tuple_type([tl.int32, tl.constexpr_type(1.5)]))
    tl.static_assert((1, 2).type != (1, 3).type)


def test_types_of_constants_and_tuples():
    types_of_constants.warmup(grid=(1,))


@triton.aggregate
class Span:
    values: tl.tensor
    size: tl.constexpr

    def __init__(self, start, _semantic=None):
        self.values = tl.arange(0, 8, _semantic=_semantic) + start
        self.size = tl.constexpr(8)

    @staticmethod
    def after(span, _semantic=None):
        return Span(span.values + span.size)

    @triton.jit
    def __getitem__(self, factor):
        return self.values * factor


@triton.jit
def spans(out):
    span = Span.after(Span(tl.program_id(0)))
    tl.store(out + tl.arange(0, 8), span[3])


def test_aggregates_index_by_their_own_method_and_make_themselves():
    out = np.zeros(8, np.int32)
    spans[(1,)](out)
    np.testing.assert_array_equal(out, (2 * np.arange(8) + 8) * 3)


@tl.core.builtin
def is_constant(value, _semantic=None):
    return isinstance(value, tl.constexpr)


@triton.jit
def seen_by_a_builtin(x, shape):
    tl.static_assert(is_constant(shape[1]))
    tl.static_assert(not is_constant(x))


def test_builtins_of_programs_get_constants_as_such():
    seen_by_a_builtin.warmup(np.zeros(1), (4, 1), grid=(1,))


@pytest.mark.parametrize(
    ("kind", "bias"),
    [
        *((tl.float8e4nv, 7), (tl.float8e5, 15), (tl.float8e4b8, 8), (tl.float8e4b15, 15), (tl.float8e5b16, 16)),
        *((tl.float16, 15), (tl.bfloat16, 127), (tl.float32, 127), (tl.float64, 1023)),
    ],
)
def test_exponent_biases(kind, bias):
    assert kind.exponent_bias == bias


def test_names_of_dtypes_by_kind():
    names = tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES + tl.dtype.FP_TYPES + tl.dtype.OTHER_TYPES
    assert len({tl.dtype(name) for name in names}) == len(names) == 19
    assert set(tl.dtype.STANDARD_FP_TYPES) < set(tl.dtype.FP_TYPES)
    assert tl.str_to_ty("*ki64", None).const and tl.str_to_ty("bf16", None) is tl.bfloat16


@triton.jit
def product(x, y, out):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    at = rows * 16 + columns
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


@pytest.mark.parametrize("kind", [tl.float8e4b8, tl.float8e4b15, tl.float8e5b16])
def test_products_of_packed_floats(kind):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(16, 48, (16, 16)).astype(np.uint8) for _ in range(2))
    out = np.zeros((16, 16), np.float32)
    product[(1,)](triton.reinterpret(x, kind), triton.reinterpret(y, kind), out)

    def exact(bits):
        mantissa = bits & ((1 << kind.fp_mantissa_width) - 1)
        exponent = (bits >> kind.fp_mantissa_width).astype(np.int64) - kind.exponent_bias
        return np.ldexp(1 + mantissa / 2.0**kind.fp_mantissa_width, exponent)

    np.testing.assert_allclose(out, exact(x) @ exact(y), rtol=1e-6)


def test_names_that_programs_make_of_kernels():
    def shown(of):
        return f"{of.name}_{of.signature['x']}_{of.constants['one']}"

    @triton.jit(repr=shown)
    def kernel(x, one):
        pass

    assert kernel.warmup(np.zeros(1, np.float16), 1, grid=(1,)).name == "kernel_*fp16_1"
    assert spans.warmup(np.zeros(8, np.int32), grid=(1,)).name == "spans"


def test_wrappers_take_another_array():
    wrapped = triton.reinterpret(np.arange(6, dtype=np.int32).reshape(2, 3), tl.uint32)
    wrapped.data = wrapped.base[:, :2]
    assert (wrapped.shape, wrapped.stride(), wrapped.dtype) == ((2, 2), (3, 1), tl.uint32)
