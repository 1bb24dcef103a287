"""`tl.dot`: dtypes, shapes, accumulators, options, values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, DotShapeError, DotTypeError, OptionError

from .tracing import Trace, compute


def block(kind: tl.dtype, *shape: int) -> tl.tensor:
    return tl.zeros(shape, kind)


@pytest.mark.parametrize(
    ("kind", "default", "others"),
    [
        (tl.int8, tl.int32, []),
        (tl.uint8, tl.int32, []),
        (tl.float16, tl.float32, [tl.float16]),
        (tl.bfloat16, tl.float32, []),
        (tl.float32, tl.float32, []),
        (tl.float64, tl.float64, []),
        (tl.float8e4nv, tl.float32, [tl.float16]),
        (tl.float8e5, tl.float32, [tl.float16]),
    ],
)
def test_dtypes(kernel: Trace, kind: tl.dtype, default: tl.dtype, others: list[tl.dtype]):
    a, b = block(kind, 16, 32), block(kind, 32, 8)
    assert tl.dot(a, b).type == tl.block_type(default, (16, 8))
    for out in (default, *others):
        assert tl.dot(a, b, out_dtype=out).dtype == tl.dot(a, b, acc=block(out, 16, 8)).dtype == out
    for out in {tl.float16, tl.float32, tl.float64, tl.int32, tl.bfloat16} - {default, *others}:
        if kind.is_floating() and out is tl.bfloat16:
            refusal = "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16"
        else:
            refusal = "cannot accumulate in" if others else "has another dtype than the result"
        if others or "bfloat16" in refusal:
            with pytest.raises(DotTypeError, match=refusal):
                tl.dot(a, b, out_dtype=out)
        else:  # The only dtype of a result is that of every result.
            assert tl.dot(a, b, out_dtype=out).dtype == default
        with pytest.raises(DotTypeError, match=refusal):
            tl.dot(a, b, block(out, 16, 8))


def test_shapes(kernel: Trace):
    assert tl.dot(block(tl.float32, 1, 2), block(tl.float32, 2, 1)).type.shape == (1, 1)
    assert tl.dot(block(tl.float32, 4, 8, 16), block(tl.float32, 4, 16, 2)).type.shape == (4, 8, 2)
    assert tl.dot(block(tl.float8e5, 16, 16), block(tl.float8e4nv, 16, 16)).dtype == tl.float32
    many = block(tl.float16, 2, 4, 8, 16), block(tl.float16, 2, 4, 16, 2), block(tl.float16, 2, 4, 8, 2)
    assert tl.dot(*many).type == tl.block_type(tl.float16, (2, 4, 8, 2))
    with pytest.raises(DotShapeError, match="has another shape than the product"):
        tl.dot(many[0], many[1], block(tl.float32, 8, 8, 2))
    with pytest.raises(DotShapeError, match=r"the batch sizes of tl.dot differ: 2, 4 and 4, 2"):
        tl.dot(many[0], block(tl.float16, 4, 2, 16, 2))


def test_options(kernel: Trace):
    a, b = block(tl.float32, 16, 16), block(tl.float32, 16, 16)
    for keywords, precision in [
        ({}, "ieee"),
        ({"allow_tf32": True}, "tf32"),
        ({"allow_tf32": False}, "ieee"),
        ({"input_precision": "TF32x3"}, "tf32x3"),
        ({"input_precision": "bf16x3"}, "bf16x3"),
        ({"input_precision": "BF16x6"}, "bf16x6"),
    ]:
        tl.dot(a, b, **keywords)
        assert kernel.ops[-1].precision == precision
    tl.dot(a, b, tiling="horizontal")
    assert kernel.ops[-1].tiling == "horizontal"
    narrow = block(tl.float8e5, 16, 16)
    tl.dot(narrow, narrow, max_num_imprecise_acc=8)
    assert kernel.ops[-1].max_num_imprecise_acc == 8
    for keywords, text in [
        ({"input_precision": "bf16"}, "unknown input_precision of tl.dot"),
        ({"input_precision": "ieee", "allow_tf32": True}, "say the same"),
        ({"tiling": "diagonal"}, "unknown tiling"),
    ]:
        with pytest.raises(OptionError, match=text):
            tl.dot(a, b, **keywords)
    with pytest.raises(OptionError, match="0 to 16"):
        tl.dot(narrow, narrow, max_num_imprecise_acc=17)


@pytest.mark.parametrize(
    ("a", "b", "acc", "error", "text"),
    [
        ((16, 64), (32, 16), None, DotShapeError, "the inner sizes of tl.dot differ: 64 and 32"),
        ((16, 64), (32, 64), None, DotShapeError, r"tl.dot\(a, b.T\)"),
        ((64, 16), (64, 32), None, DotShapeError, r"tl.dot\(a.T, b\)"),
        ((16,), (16,), None, DotShapeError, "the same number of dimensions"),
        ((2, 16, 16), (16, 16), None, DotShapeError, "the same number of dimensions"),
        ((2, 16, 16), (4, 16, 16), None, DotShapeError, "batch sizes of tl.dot differ: 2 and 4"),
        ((16, 16), (16, 16), (16, 32), DotShapeError, "expected <16x16xfp32>"),
    ],
)
def test_wrong_shapes(kernel: Trace, a, b, acc, error, text: str):
    with pytest.raises(error, match=text):
        tl.dot(block(tl.float32, *a), block(tl.float32, *b), acc and block(tl.float32, *acc))


def test_wrong_operands(kernel: Trace):
    a = block(tl.float32, 16, 16)
    with pytest.raises(DotTypeError, match="different dtypes"):
        tl.dot(a, a.to(tl.float16))
    with pytest.raises(DotTypeError, match="does not multiply int32"):
        tl.dot(a.to(tl.int32), a.to(tl.int32))
    with pytest.raises(DotTypeError, match="does not multiply uint16"):
        tl.dot(a.to(tl.uint16), a.to(tl.uint8))
    with pytest.raises(DotTypeError, match="different dtypes"):
        tl.dot(a.to(tl.uint8), a.to(tl.float8e5))
    with pytest.raises(DotShapeError, match=r"the second operand of tl.dot must be a block"):
        tl.dot(a, 3)
    with pytest.raises(DotShapeError, match="the accumulator"):
        tl.dot(a, a, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "hint"),
    [
        (tl.int1, tl.int1, r"with .to\(tl.uint8\)"),
        (tl.int16, tl.int16, r"tl.sum\(a.to\(tl.int32\)"),
        (tl.int64, tl.int8, r"tl.sum\(a.to\(tl.int64\)"),
        (tl.pointer_type(tl.float16), tl.float16, r"tl.load\(...\)"),
        (tl.float16, tl.int8, r"\.to\(tl.float16\)"),
        (tl.float16, tl.float32, r"\.to\(tl.float32\)"),
        (tl.float8e5, tl.bfloat16, r"\.to\(tl.bfloat16\)"),
    ],
)
def test_hints(kernel: Trace, a: tl.dtype, b: tl.dtype, hint: str):
    operands = [kernel.parameter(tl.block_type(kind, (16, 16))) for kind in (a, b)]
    with pytest.raises(DotTypeError, match=hint):
        tl.dot(*operands)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        (
            {"out_dtype": "fp32"},
            DotTypeError,
            "expected fp32 or fp16, found 'fp32'\npass out_dtype=tl.float32",
        ),
        ({"acc": 1.0}, DotShapeError, "must be a block\nexpected <16x16xfp32>, found 1.0"),
        ({"allow_tf32": "yes"}, OptionError, "expected True or False, found 'yes'"),
        ({"max_num_imprecise_acc": "8"}, OptionError, "expected 0 to 16, the inner size, found '8'"),
        ({"allow_tf32": tl.int32}, ConstexprError, "the allow_tf32 of tl.dot must be known"),
        ({"max_num_imprecise_acc": tl.int32}, ConstexprError, "the max_num_imprecise_acc of tl.dot must be known"),
        ({"input_precision": tl.int32}, ConstexprError, "the input_precision of tl.dot must be known"),
    ],
)
def test_wrong_options(kernel: Trace, keywords: dict[str, object], error: type[Exception], text: str):
    a = block(tl.float8e5, 16, 16)
    given = {name: kernel.parameter(value) if value is tl.int32 else value for name, value in keywords.items()}
    with pytest.raises(error, match=text):
        tl.dot(a, a, **given)


def test_accumulator_of_another_dtype_than_asked(kernel: Trace):
    a = block(tl.float16, 16, 16)
    with pytest.raises(DotTypeError, match=r"pass out_dtype=tl.float16"):
        tl.dot(a, a, block(tl.float16, 16, 16), out_dtype=tl.float32)


def test_values_of_four_dimensions():
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape, np.float32) for shape in ((2, 4, 8, 16), (2, 4, 16, 4), (2, 4, 8, 4)))
    found = compute(lambda a, b, c: tl.dot(a, b, c), a, b, c)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b + c, rtol=1e-5, atol=1e-5)


def test_values():
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape, np.float32) for shape in ((8, 16), (16, 4), (8, 4)))
    found = compute(lambda a, b, c: tl.dot(a, b, c), a, b, c)
    np.testing.assert_allclose(found, c + a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
    x, y = random.standard_normal((2, 8, 4)), random.standard_normal((2, 4, 8))
    np.testing.assert_allclose(compute(lambda a, b: tl.dot(a, b), x, y), x @ y, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), list(product((np.int8, np.uint8), repeat=2)))
def test_bytes_of_any_sign(a: type, b: type):
    random = np.random.default_rng(1)
    x, y = (np.frombuffer(random.bytes(128), kind).reshape(shape) for kind, shape in ((a, (4, 32)), (b, (32, 4))))
    found = compute(lambda x, y: tl.dot(x, y), x, y)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, x.astype(np.int32) @ y.astype(np.int32))
