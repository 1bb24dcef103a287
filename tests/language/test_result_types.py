"""The dtype of every builtin's result for every dtype of its operands, as upstream has them.

Found by tracing each expression with upstream's own front end: Triton 3.9, and for bf16 in `minimum`, `maximum`,
`clamp`, `cumsum` and `cumprod` Triton 3.8, which computes them in fp32. "-" is an error, "p" a pointer. Where upstream
refuses and the table does not, a kernel may do more here (`abs` of fp8, `cat` of blocks of rank 2, dots of any size).
Histograms are here of integers of any width and of booleans.
"""

from __future__ import annotations

import pytest

import mltriton.language as tl
from mltriton.errors import TritonError

from .test_promotion import NAMED
from .tracing import traced

# x: a block of 16 by 16 of the column's dtype, p the pointer it is loaded from; h: the same of fp16; i: of int32.
RESULTS = """
                                          i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
x + x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
x + 1                                    i32  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
x + 1.5                                  f32 f32 f32 f32 f32 f32 f32 f32 f32  e4  e5 f16  bf f32 f64
x - x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
x * x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
x / x                                    f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
x / 2                                      - f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
x // x                                    i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x % x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64 f32 f32 f32 f32 f32 f64
-x                                        i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
+x                                        i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
~x                                        i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x & x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x | x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x ^ x                                     i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x << 1                                   i32  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x >> 1                                   i32  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
x < x                                     i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1
x == 1                                    i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1
tl.add(x, x)                              i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.sub(x, x)                              i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.mul(x, x)                              i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.minimum(x, x)                          i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.maximum(x, x)                          i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.maximum(x, 0)                         i32  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.minimum(0.5, x)                       f32 f32 f32 f32 f32 f32 f32 f32 f32  e4  e5 f16 f32 f32 f64
tl.clamp(x, x, x)                         i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.clamp(x, 0, 1)                        i32  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.clamp(x, 0.5, 1.5)                    f32 f32 f32 f32 f32 f32 f32 f32 f32  e4  e5 f16 f32 f32 f64
tl.fma(x, x, x)                            -   -   -   -   -   -   -   -   -  e4  e5 f16  bf f32 f64
tl.fma(x, x, 1.0)                        f32 f32 f32 f32 f32 f32 f32 f32 f32  e4  e5 f16  bf f32 f64
tl.where(x, x, x)                         i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.where(x == x, x, 0)                   i32  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.where(x == x, x, 1.5)                 f32 f32 f32 f32 f32 f32 f32 f32 f32  e4  e5 f16  bf f32 f64
tl.where(x == x, 1, 0)                   i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32
tl.abs(x)                                 i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.exp(x)                                  -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.exp2(x)                                 -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.log(x)                                  -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.log2(x)                                 -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.sin(x)                                  -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.cos(x)                                  -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.erf(x)                                  -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.sqrt(x)                                 -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.sqrt_rn(x)                              -   -   -   -   -   -   -   -   -   -   -   -   - f32   -
tl.rsqrt(x)                                -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.floor(x)                                -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.ceil(x)                                 -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.sigmoid(x)                              -   -   -   -   -   -   -   -   -   -   -   -   - f32 f64
tl.softmax(x)                              -   -   -   -   -   -   -   -   - f32 f32 f32 f32 f32 f64
tl.umulhi(x, x)                            -   -   - i32 i64   -   - u32 u64   -   -   -   -   -   -
tl.fdiv(x, x)                              -   -   -   -   -   -   -   -   - f32 f32 f32 f32 f32 f64
tl.div_rn(x, x)                            -   -   -   -   -   -   -   -   -   -   -   -   - f32   -
tl.cdiv(x, x)                              -  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
tl.cdiv(x, 3)                            i32  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
tl.sum(x)                                u32 i32 i32 i32 i64 u32 u32 u32 u64  e4  e5 f16  bf f32 f64
tl.sum(x, 0)                             u32 i32 i32 i32 i64 u32 u32 u32 u64  e4  e5 f16  bf f32 f64
tl.sum(x, 0, dtype=tl.float32)           f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32
tl.max(x)                                i32 i32 i32 i32 i64 i32 i32 u32 u64 f32 f32 f32 f32 f32 f64
tl.max(x, 0)                             i32 i32 i32 i32 i64 i32 i32 u32 u64 f32 f32 f32 f32 f32 f64
tl.max(x, 0, return_indices=True)[0]      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.max(x, 0, return_indices=True)[1]     i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32
tl.min(x, 1)                             i32 i32 i32 i32 i64 i32 i32 u32 u64 f32 f32 f32 f32 f32 f64
tl.min(x, 0, return_indices=True)[0]      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16 f32 f32 f64
tl.argmax(x, 0)                          i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32
tl.argmin(x, 0)                          i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32
tl.xor_sum(x, 0)                          i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
tl.reduce_or(x, 0)                        i1  i8 i16 i32 i64  u8 u16 u32 u64   -   -   -   -   -   -
tl.reduce(x, 0, add)                      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.associative_scan(x, 0, add)            i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.cumsum(x, 0)                          u32 i32 i32 i32 i64 u32 u32 u32 u64  e4  e5 f16 f32 f32 f64
tl.cumsum(x, 0, dtype=tl.float32)        f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32
tl.cumsum(x, 0, dtype=tl.int64)          i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64
tl.cumprod(x, 0)                         u32 i32 i32 i32 i64 u32 u32 u32 u64  e4  e5 f16 f32 f32 f64
tl.sort(x)                                i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.topk(x, 4)                            i32 i32 i32 i32 i64 i32 i32 u32 u64 f32 f32 f32 f32 f32 f64
tl.flip(x, 0)                             i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.gather(x, i, 0)                        i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.histogram(tl.ravel(x), 16)            i32 i32 i32 i32 i32 i32 i32 i32 i32   -   -   -   -   -   -
tl.join(x, x)                             i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.join(x, i)                              -   -   - i32   -   -   - u32   -   -   -   -   -   -   -
tl.interleave(x, x)                       i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.cat(x, x, can_reorder=True)            i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.trans(x)                               i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.reshape(x, (256,))                     i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.broadcast_to(x, (16, 16))              i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.expand_dims(x, 0)                      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.permute(x, (1, 0))                     i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.ravel(x)                               i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.zeros_like(x)                          i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.full((16,), 1, x.dtype)                i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.zeros((16,), x.dtype)                  i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.dot(x, x)                               - i32   -   -   - i32   -   -   - f32 f32 f32 f32 f32 f64
tl.dot(x, x, out_dtype=tl.float16)         - i32   -   -   - i32   -   -   - f16 f16 f16 f32 f32 f64
tl.dot(x, x, out_dtype=tl.float32)         - i32   -   -   - i32   -   -   - f32 f32 f32 f32 f32 f64
tl.dot(x, x, out_dtype=tl.int32)           - i32   -   -   - i32   -   -   -   -   -   - f32 f32 f64
tl.dot(x, x, out_dtype=tl.float64)         - i32   -   -   - i32   -   -   -   -   -   - f32 f32 f64
tl.dot(x, x, out_dtype=tl.bfloat16)        - i32   -   -   - i32   -   -   -   -   -   -   -   -   -
tl.load(p)                                i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.atomic_add(p, tl.load(p))               -   -   - i32 i64   -   - u32 u64   -   - f16  bf f32 f64
tl.atomic_max(p, tl.load(p))               -   -   - i32 i64   -   - u32 u64   -   -   -   - f32 f64
tl.atomic_min(p, tl.load(p))               -   -   - i32 i64   -   - u32 u64   -   -   -   - f32 f64
tl.atomic_and(p, tl.load(p))               -   -   - i32 i64   -   - u32 u64   -   -   -   -   -   -
tl.atomic_or(p, tl.load(p))                -   -   - i32 i64   -   - u32 u64   -   -   -   -   -   -
tl.atomic_xor(p, tl.load(p))               -   -   - i32 i64   -   - u32 u64   -   -   -   -   -   -
tl.atomic_xchg(p, tl.load(p))              -   -   - i32 i64   -   - u32 u64   -   -   -   - f32 f64
tl.atomic_cas(p, tl.load(p), tl.load(p))   -   - i16 i32 i64   - u16 u32 u64   -   - f16  bf f32 f64
tl.cast(x, tl.float32)                   f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32
tl.swizzle2d(x, x, 4, 4, 2)[0]           i32 i32 i32 i32 i64   -   -   -   -   -   -   -   -   -   -
tl.rand(0, x)                            f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32   -
tl.randn(0, x)                           f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32   -
tl.randint(0, x)                         u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32   -
tl.randint4x(0, x)[0]                    u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32   -
tl.rand4x(0, x)[0]                       f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32   -
tl.randn4x(0, x)[0]                      f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32   -
tl.philox(0, x, x, x, x)[0]                -   -   - u32 u64   -   - u32 u64   -   -   -   -   -   -
tl.uint_to_uniform_float(x)                -   -   - f32 f32   -   - f32 f32   -   -   -   -   -   -
tl.pair_uniform_to_normal(x, x)[0]       f32 f32 f32 f32 f32 f32 f32 f32 f32   -   -   -   - f32 f64
p + i                                      p   p   p   p   p   p   p   p   p   p   p   p   p   p   p
p + x                                      p   p   p   p   p   p   p   p   p   -   -   -   -   -   -
p - i                                      p   p   p   p   p   p   p   p   p   p   p   p   p   p   p
x + i                                    i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
i + x                                    i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
x * i                                    i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
x / i                                      - f32 f32 f32 f32   -   -   -   - f32 f32 f32 f32 f32 f64
x // i                                     - i32 i32 i32 i64   -   -   -   -   -   -   -   -   -   -
x % i                                      - i32 i32 i32 i64   -   -   -   - f32 f32 f32 f32 f32 f64
tl.maximum(x, i)                         i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
tl.where(x == x, x, i)                   i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
x + h                                    f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
tl.maximum(x, h)                         f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64
tl.clamp(x, h, 1)                        f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64
tl.fma(x, h, i)                          f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
tl.fdiv(x, h)                            f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
x < h                                     i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  i1
tl.squeeze(tl.expand_dims(x, 0), 0)       i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
tl.unsqueeze(x, 0)                        i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
"""


def short(kind: tl.dtype) -> str:
    """A dtype as the table names it."""
    return "p" if kind.is_ptr() else next(name for name, known in NAMED.items() if known == kind)


def rows() -> list[tuple[str, list[str]]]:
    """Expressions, and what they give for each dtype."""
    count = len(NAMED)
    lines = RESULTS.strip("\n").splitlines()
    assert lines[0].split() == list(NAMED)
    return [(" ".join(line.split()[:-count]), line.split()[-count:]) for line in lines[1:]]


def found(expression: str, kind: tl.dtype) -> str:
    """The short name of an expression's dtype; "-" for an error that is ours."""
    seen: list[str] = []

    def body(p: tl.tensor, q: tl.tensor) -> None:
        o = tl.arange(0, 16)
        i = o[:, None] + o[None, :]
        names = {"tl": tl, "p": p, "i": i, "x": tl.load(p + i), "h": tl.load(q + i), "add": lambda a, b: a + b}
        seen.append(short(eval(expression, names).dtype))

    try:
        traced(body, tl.pointer_type(kind), tl.pointer_type(tl.float16))
    except TritonError:
        return "-"
    return seen[0]


@pytest.mark.filterwarnings("ignore:tl.where with a non-boolean condition")
@pytest.mark.parametrize(("expression", "expected"), rows(), ids=[row[0] for row in rows()])
def test_result_types(expression: str, expected: list[str]) -> None:
    assert [found(expression, kind) for kind in NAMED.values()] == expected
