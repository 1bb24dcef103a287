"""The language by numpy: Python itself runs a kernel's text, over `tl` as it is written here and nowhere else.

Shares no line with the compiler or its executor, so that a mistake which those have in common is seen. Takes what
generated kernels use of the language; anything else is an AttributeError. An access outside an array raises
IndexError: such a program is not valid.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fuzz.blocks import OPERATORS, STORAGE, Array, Block, DType, Pointer, binary, lifted, paired, rounded, sizes_of

# Memory


def load(pointer: Pointer, mask: Any = None, other: Any = 0) -> Block:
    """Elements; `other` where the mask does not hold."""
    held = np.broadcast_to(True if mask is None else mask.data, np.broadcast_shapes(pointer.places.shape, _shape(mask)))
    places = np.broadcast_to(pointer.places, held.shape)
    _require_inside(pointer, places[held])
    bits = pointer.bits[np.where(held, places, 0)]
    found = _decoded(bits, pointer.dtype)
    return Block(np.where(held, found, lifted(other, pointer.dtype).to(pointer.dtype).data), pointer.dtype)


def store(pointer: Pointer, value: Any, mask: Any = None) -> None:
    """Elements where the mask holds."""
    held = np.broadcast_to(True if mask is None else mask.data, pointer.places.shape)
    _require_inside(pointer, pointer.places[held])
    data = np.broadcast_to(lifted(value, pointer.dtype).to(pointer.dtype).data, pointer.places.shape)
    pointer.bits[pointer.places[held]] = encoded(data[held], pointer.dtype)


class Descriptor:
    """A tensor by its strides, of which blocks are moved; outside of it is 0, and nothing is stored."""

    def __init__(self, base: Pointer, shape: Sequence[Any], strides: Sequence[Any], block_shape: Sequence[int]) -> None:
        self.base, self.block = base, block_shape
        self.shape, self.strides = [[operator.index(x) for x in sizes] for sizes in (shape, strides)]

    def _places(self, offsets: Sequence[Any]) -> tuple[Pointer, Block]:
        along = [operator.index(first) + np.arange(size) for first, size in zip(offsets, self.block, strict=True)]
        indices = np.meshgrid(*along, indexing="ij")
        inside = np.all([(at >= 0) & (at < size) for at, size in zip(indices, self.shape, strict=True)], axis=0)
        places = sum(at * step for at, step in zip(indices, self.strides, strict=True))
        return Pointer(self.base.bits, self.base.dtype, self.base.places + places), Block(inside, "int1")

    def load(self, offsets: Sequence[Any]) -> Block:
        """A block."""
        return load(*self._places(offsets))

    def store(self, offsets: Sequence[Any], value: Block) -> None:
        """A block."""
        pointer, inside = self._places(offsets)
        store(pointer, value, inside)


def _shape(mask: Any) -> tuple[int, ...]:
    return () if mask is None else mask.shape


def _require_inside(pointer: Pointer, places: Array) -> None:
    if places.size and not (places.min() >= 0 and places.max() < pointer.bits.size):
        raise IndexError(f"{places.min()} to {places.max()} of {pointer.bits.size} elements")


def _decoded(bits: Array, dtype: DType) -> Array:
    return (bits.astype("u4") << 16).view("f4") if dtype == "bfloat16" else bits


def encoded(data: Array, dtype: DType) -> Array:
    """As it lies in memory."""
    if dtype != "bfloat16":
        return np.asarray(data, "u1" if dtype == "int1" else STORAGE[dtype])
    return (rounded(data, dtype).view("u4") >> 16).astype("u2")


# Elements


def where(condition: Block, a: Any, b: Any) -> Block:
    """One or the other."""
    x, y, dtype = paired(a, b)
    return Block(np.where(condition.data, x.data, y.data), dtype)


def _unary(apply: Callable[[Any], Any]) -> Callable[[Block], Block]:
    def computed(x: Block) -> Block:
        wide = x.to("float32") if x.dtype == "bfloat16" else x
        with np.errstate(all="ignore"):
            return Block(apply(wide.data), x.dtype)

    return computed


# Shapes


def permute(x: Block, *dims: Any) -> Block:
    """Dimensions in another order; without one the last two exchanged."""
    order = sizes_of(dims) if dims else (*range(x.data.ndim - 2), x.data.ndim - 1, x.data.ndim - 2)
    return Block(x.data.transpose(order), x.dtype)


def split(x: Block) -> tuple[Block, Block]:
    """The two halves along a last dimension of 2."""
    return Block(x.data[..., 0], x.dtype), Block(x.data[..., 1], x.dtype)


def interleave(a: Block, b: Block) -> Block:
    """Elements of both by turns along the last dimension."""
    both = np.stack([a.data, b.data], -1)
    return Block(both.reshape(*a.shape[:-1], 2 * a.shape[-1]), a.dtype)


def topk(x: Block, k: int) -> Block:
    """The largest elements of rows, the largest first."""
    return Block(np.flip(np.sort(x.data, -1), -1)[..., :k], x.dtype)


def sort(x: Block, descending: bool = False) -> Block:
    """Rows in order."""
    ordered = np.sort(x.data, -1)
    return Block(np.flip(ordered, -1) if descending else ordered, x.dtype)


# Reductions and scans


def _sum_type(dtype: DType) -> DType:
    if dtype.is_float or dtype.bits >= 32:
        return dtype
    return DType("int32" if dtype.is_signed or dtype == "int1" else "uint32")


def _ordered(x: Block) -> Block:
    return x.to("float32" if x.dtype.is_float else "int32") if x.dtype.bits < 32 else x


def _flat(x: Block, axis: int | None) -> tuple[Array, int]:
    return (x.data.reshape(-1), 0) if axis is None else (x.data, axis)


def _kept(data: Any, x: Block, axis: int | None, keep_dims: bool) -> Any:
    if not keep_dims:
        return data
    return np.reshape(data, (1,) * x.data.ndim) if axis is None else np.expand_dims(data, axis)


def _reduction(apply: Callable[..., Any], prepare: Callable[[Block], Block], result: str = "") -> Callable[..., Block]:
    def reduced(x: Block, axis: int | None = None, keep_dims: bool = False) -> Block:
        made = prepare(x)
        data, place = _flat(made, axis)
        with np.errstate(all="ignore"):
            return Block(_kept(apply(data, place), x, axis, keep_dims), result or made.dtype)

    return reduced


def _as_sum(x: Block) -> Block:
    return x.to(_sum_type(x.dtype))


def _total(data: Array, axis: int) -> Any:
    return data.sum(axis, dtype=data.dtype)


def reduce(x: Block, axis: int | None, combine: Callable[[Block, Block], Block], keep_dims: bool = False) -> Block:
    """Elements combined one after the other."""
    data, place = _flat(x, axis)
    parts = [Block(part, x.dtype) for part in np.moveaxis(data, place, 0)]
    total = functools.reduce(combine, parts)
    return Block(_kept(total.to(x.dtype).data, x, axis, keep_dims), x.dtype)


def associative_scan(x: Block, axis: int, combine: Callable[[Block, Block], Block], reverse: bool = False) -> Block:
    """Elements combined with all before them."""
    rows = np.moveaxis(x.data, axis, 0)
    parts = [Block(part, x.dtype) for part in (rows[::-1] if reverse else rows)]
    for number in range(1, len(parts)):
        parts[number] = combine(parts[number - 1], parts[number]).to(x.dtype)
    data = np.stack([part.data for part in (parts[::-1] if reverse else parts)])
    return Block(np.moveaxis(data, 0, axis), x.dtype)


def _scan(combine: Callable[[Block, Block], Block]) -> Callable[..., Block]:
    return lambda x, axis=0, reverse=False: associative_scan(_as_sum(x), axis, combine, reverse)


def dot(a: Block, b: Block, acc: Block | None = None, out_dtype: str = "float32", input_precision: str = "") -> Block:
    """A product of matrices."""
    wide = "float64" if a.dtype.is_float else "int64"
    product = Block(a.to(wide).data @ b.to(wide).data, wide).to(out_dtype)
    return product if acc is None else acc + product


def histogram(x: Block, bins: int) -> Block:
    """How often each number below `bins` occurs."""
    return Block(np.bincount(x.data.reshape(-1)[(x.data.reshape(-1) < bins)], minlength=bins), "int32")


LANGUAGE: dict[str, Any] = {
    **{name: DType(name) for name in STORAGE},
    "constexpr": int,
    "cdiv": lambda a, b: (a + (b - 1)) // b,
    "debug_barrier": lambda: None,
    "load": load,
    "store": store,
    "make_tensor_descriptor": Descriptor,
    "where": where,
    "permute": permute,
    "trans": permute,
    "dot": dot,
    "split": split,
    "interleave": interleave,
    "topk": topk,
    "sort": sort,
    "histogram": histogram,
    "reduce": reduce,
    "associative_scan": associative_scan,
    "arange": lambda start, end: Block(np.arange(start, end), "int32"),
    "zeros": lambda shape, dtype: Block(np.zeros(shape), dtype),
    "full": lambda shape, value, dtype: Block(np.full(shape, lifted(value, dtype).data), dtype),
    "maximum": binary(np.maximum),
    "minimum": binary(np.minimum),
    "abs": _unary(np.abs),
    **{name: _unary(getattr(np, name)) for name in ("floor", "ceil", "sqrt", "exp", "exp2", "log", "sin")},
    "reshape": Block.reshape,
    "ravel": lambda x: x.reshape(x.data.size),
    "expand_dims": lambda x, axis: Block(np.expand_dims(x.data, axis), x.dtype),
    "broadcast_to": lambda x, *shape: Block(np.broadcast_to(x.data, sizes_of(shape)), x.dtype),
    "flip": lambda x, dim: Block(np.flip(x.data, dim), x.dtype),
    "join": lambda a, b: Block(np.stack([a.data, b.data], -1), a.dtype),
    "cat": lambda a, b, can_reorder=False: Block(np.concatenate([a.data, b.data]), a.dtype),
    "gather": lambda x, index, axis: Block(np.take_along_axis(x.data, index.data.astype("i8"), axis), x.dtype),
    "sum": _reduction(_total, _as_sum),
    "max": _reduction(np.max, _ordered),
    "min": _reduction(np.min, _ordered),
    "xor_sum": _reduction(np.bitwise_xor.reduce, lambda x: x),
    "reduce_or": _reduction(np.bitwise_or.reduce, lambda x: x),
    "argmax": _reduction(np.argmax, lambda x: x, "int32"),
    "argmin": _reduction(np.argmin, lambda x: x, "int32"),
    "cumsum": _scan(OPERATORS["add"]),
    "cumprod": _scan(OPERATORS["mul"]),
}


def _counted(*bounds: Any, **_hints: Any) -> Iterator[Block]:
    """`range`, whose counter is an i32."""
    return (Block(number, "int32") for number in range(*map(operator.index, bounds)))


def evaluate(body: str, grid: Sequence[int], args: Mapping[str, Any], dtypes: Mapping[str, str]) -> None:
    """Run `kernel` of a text without imports over a grid; arrays are changed in place.

    `dtypes` names the dtypes of arrays and of runtime scalars; arguments that it does not name are constants.
    """
    now = [0, 0, 0]
    language = SimpleNamespace(**LANGUAGE, static_range=range, range=_counted)
    language.program_id = lambda axis: Block(now[axis], "int32")
    names: dict[str, Any] = {"tl": language, "triton": SimpleNamespace(jit=lambda f: f), "range": _counted}
    exec(compile(body, "<kernel>", "exec"), names)
    values = {name: _argument(value, dtypes.get(name)) for name, value in args.items()}
    for place in np.ndindex(*reversed(grid)):
        now[: len(grid)] = reversed(place)
        names["kernel"](**values)


def _argument(value: Any, dtype: str | None) -> Any:
    if isinstance(value, np.ndarray):
        return Pointer(value.reshape(-1), DType(dtype or value.dtype.name))
    return value if dtype is None else Block(value, dtype)
