# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""What a matrix product can do on the way in and out, without another pass over memory.

Level: user. C = activation(prologue(A) B + bias + add), as in BLAS with the activation around it: `finish` is the
part behind the K loop, for kernels whose accumulator is a block of C; `transform` is the part before a dot.
`Epilogue` is what a caller of such a kernel wants, checked; its `arguments` and `constants` go to the kernel.
"""

from __future__ import annotations

from typing import Any

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.frontend.function import LanguageFunction
from mltriton.kernels.arrays import Array, canonical_dtype, dtype_name, expand, require_one_kind, strides_of
from mltriton.kernels.gemm_tiles import ACCUMULATORS
from mltriton.records import NamedTuple

Function = str | LanguageFunction  # of one block, element by element

SQRT_HALF = tl.constexpr(0.7071067811865476)
SQRT_2_OVER_PI = tl.constexpr(0.7978845608028654)


@triton.jit
def relu(x):
    """max(x, 0); a NaN stays one."""
    return tl.maximum(x, 0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def silu(x):
    """x / (1 + exp(-x)), also called swish."""
    return x * tl.sigmoid(x)


@triton.jit
def gelu(x):
    """x times the normal distribution function of x (arXiv:1606.08415)."""
    return 0.5 * x * (1 + tl.erf(x * SQRT_HALF))


@triton.jit
def gelu_tanh(x):
    """The approximation of `gelu` with a hyperbolic tangent, from the same paper."""
    return 0.5 * x * (1 + tl.math.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))


@triton.jit
def exp(x):
    """e to the power of x."""
    return tl.exp(x)


# Functions that have a name; a caller may also give one of his own, written in the language.
FUNCTIONS = {"relu": relu, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh, "exp": exp}
OF_INTEGERS = (relu,)


@triton.jit
def transform(a, FUNCTION: tl.constexpr, k_left):
    """The function of a block [BM, BK] of A; columns from `k_left` on, which are outside A, stay zero whatever the
    function makes of zero.
    """
    if FUNCTION is None:
        return a
    wide = a if a.dtype.is_int() else a.to(tl.float64 if a.dtype == tl.float64 else tl.float32)
    inside = tl.arange(0, a.shape[1])[None, :] < k_left
    return tl.where(inside, FUNCTION(wide).to(a.dtype), 0)


@triton.jit
def finish(
    acc, bias_ptr, add_ptr, add_offset, m, n, M, N, stride_bias, stride_dm, stride_dn,
    ACTIVATION: tl.constexpr, COMPUTE: tl.constexpr,
):  # fmt: skip
    """activation(acc + bias + add) of the block of C with first row m and first column n, as COMPUTE. A pointer that
    is None adds nothing.
    """
    c = acc.to(COMPUTE)
    if bias_ptr is not None:
        columns = n + tl.arange(0, acc.shape[1])
        bias = tl.load(bias_ptr + columns * stride_bias, mask=columns < N, other=0)
        c += bias.to(COMPUTE)[None, :]
    if add_ptr is not None:
        d_block = tl.make_block_ptr(
            add_ptr + add_offset, (M, N), (stride_dm, stride_dn), (m, n), (acc.shape[0], acc.shape[1]), (1, 0)
        )
        c += tl.load(d_block, boundary_check=(0, 1), padding_option="zero").to(COMPUTE)
    if ACTIVATION is not None:
        c = ACTIVATION(c)
    return c


class Epilogue(NamedTuple):
    """What happens to a product of shape [batch, M, N] before it is stored as `out_dtype`.

    `bias` is [N] and `add` [batch, M, N], with any strides; either may be None.
    """

    out_dtype: str
    bias: Array | None = None
    add: Array | None = None
    activation: LanguageFunction | None = None

    @property
    def is_trivial(self) -> bool:
        """Whether the product is only rounded."""
        return self.bias is None and self.add is None and self.activation is None

    def arguments(self) -> tuple[Any, ...]:
        """bias_ptr, add_ptr and their strides: bias n; add batch, m, n."""
        bias_stride = (0,) if self.bias is None else strides_of(self.bias)
        add_strides = (0, 0, 0) if self.add is None else strides_of(self.add)
        return (self.bias, self.add, *bias_stride, *add_strides)

    def constants(self, a_dtype: str) -> dict[str, Any]:
        """ACC of a product of `a_dtype`, ACTIVATION, and COMPUTE: integers stay exact where the result has them."""
        accumulator = ACCUMULATORS[a_dtype]
        integers = is_integer(a_dtype) and is_integer(self.out_dtype)
        compute = accumulator if integers or not is_integer(a_dtype) else tl.float32
        return {"ACC": accumulator, "ACTIVATION": self.activation, "COMPUTE": compute}


OUT_DTYPES = (*ACCUMULATORS, "int32")


def is_integer(dtype: str) -> bool:
    """Whether a dtype's name is that of integers."""
    return dtype.startswith(("int", "uint"))


def function_of(function: Function | None, what: str) -> LanguageFunction | None:
    """The function that a name stands for. Raises `ArgumentError` for an unknown name, and what is no function of the
    language.
    """
    if function is None or isinstance(function, LanguageFunction):
        return function
    found = FUNCTIONS.get(function) if isinstance(function, str) else None
    if found is None:
        expected = f"{', '.join(FUNCTIONS)}, or a function decorated with @triton.jit"
        raise ArgumentError(f"matmul: unknown {what}", expected=expected, found=repr(function))
    return found


def make_epilogue(
    a: Array,
    shape: tuple[int, ...],
    bias: Array | None = None,
    add: Array | None = None,
    activation: Function | None = None,
    out_dtype: Any = None,
) -> Epilogue:
    """The epilogue of a product of shape [..., M, N] whose left operand is `a`. Raises `ArgumentError` for what does
    not fit.
    """
    out = dtype_name(a) if out_dtype is None else canonical_dtype(out_dtype, a)
    operands = {name: x for name, x in (("bias", bias), ("add", add)) if x is not None}
    require_one_kind(a=a, **operands)
    function = function_of(activation, "activation")
    for name, dtype in (("out_dtype", out), *((name, dtype_name(x)) for name, x in operands.items())):
        if dtype not in OUT_DTYPES:
            raise ArgumentError(f"matmul: unsupported dtype of {name}", expected=", ".join(OUT_DTYPES), found=dtype)
    _check_integers(out, {name: dtype_name(x) for name, x in operands.items()}, dtype_name(a), function)
    if bias is not None and tuple(bias.shape) != shape[-1:]:
        raise ArgumentError(
            "matmul: the bias does not fit", expected=f"shape {shape[-1:]}", found=str(tuple(bias.shape))
        )
    return Epilogue(out, bias, None if add is None else _expanded(add, shape), function)


def _expanded(add: Array, shape: tuple[int, ...]) -> Array:
    """`add` as [batch, M, N]; copied only where batch dimensions cannot be merged."""
    try:
        expanded = expand(add, shape)
    except (ValueError, RuntimeError):
        raise ArgumentError(
            "matmul: the added matrix does not fit",
            expected=f"a shape that broadcasts to {shape}",
            found=str(tuple(add.shape)),
        ) from None
    return expanded.reshape(-1, *shape[-2:])


def _check_integers(out: str, operands: dict[str, str], a_dtype: str, activation: LanguageFunction | None) -> None:
    """Nothing is rounded to an integer, and an integer result has only operands and functions of integers."""
    if not is_integer(out):
        return
    floats = [f"{name} {dtype}" for name, dtype in {"a": a_dtype, **operands}.items() if not is_integer(dtype)]
    if floats or activation not in (None, *OF_INTEGERS):
        found = ", ".join(
            [*floats, *([] if activation in (None, *OF_INTEGERS) else [f"activation {activation.__name__}"])]
        )
        raise ArgumentError(
            f"matmul: an {out} result has only integer operands", expected="a float out_dtype", found=found
        )
