"""Values of the evaluator: numpy arrays with a dtype of the language, and pointers into flat arrays.

Shares no line with the compiler or its executor. A value is a `Block`: a numpy array (of rank 0 for scalars) and its
dtype by name; bf16 is held as rounded f32. Guarantees: arithmetic promotes and wraps as the language says.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
STORAGE: dict[str, Any] = {
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "int1": np.dtype(bool),
    "float16": np.dtype("f2"),
    "float32": np.dtype("f4"),
    "float64": np.dtype("f8"),
    "bfloat16": np.dtype("f4"),
}
FLOATS = ("float64", "float32", "float16", "bfloat16")


class DType(str):
    """The name of a dtype, as `tl.int32`."""

    __slots__ = ()

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return self in FLOATS

    @property
    def is_signed(self) -> bool:
        """Whether it is an integer with a sign."""
        return self.startswith("int") and self != "int1"

    @property
    def bits(self) -> int:
        """Its width."""
        return int("".join(letter for letter in self if letter.isdigit()))


def rounded(data: Any, dtype: DType) -> Array:
    """An array as it is held for a dtype."""
    if dtype != "bfloat16":
        return np.asarray(data, STORAGE[dtype])
    bits = np.asarray(data, "f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("u4").view("f4")


def common(a: DType, b: DType) -> DType:
    """The dtype in which two are combined: floats before integers, wide before narrow, of equal width the unsigned."""
    for kind in ("float64", "float32", "float16"):
        if kind in (a, b):
            return DType(kind)
    if "bfloat16" in (a, b):
        return a if a == b else DType("float32")
    if a.is_signed == b.is_signed or a.bits != b.bits:
        return a if a.bits > b.bits else b
    return b if a.is_signed else a


class Block:
    """A value."""

    __array_priority__ = 100

    def __init__(self, data: Any, dtype: str) -> None:
        self.dtype = DType(dtype)
        self.data = rounded(data, self.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
        return self.data.shape

    def to(self, dtype: str) -> Block:
        """Converted; a float to an integer rounds to zero."""
        if dtype == "int1":
            return Block(self.data != 0, dtype)
        data = np.trunc(self.data) if self.dtype.is_float and not DType(dtype).is_float else self.data
        if self.dtype.is_float and dtype == "uint64":
            return Block(np.where(data >= 2.0**63, data, 0).astype("u8") | data.astype("i8").astype("u8"), dtype)
        wide = data.astype("i8") if self.dtype.is_float and not DType(dtype).is_float else data
        return Block(wide.astype(STORAGE[dtype]), dtype)

    def reshape(self, *shape: Any) -> Block:
        """The same elements in another shape."""
        return Block(self.data.reshape(sizes_of(shape)), self.dtype)

    def __getitem__(self, index: Any) -> Block:
        return Block(self.data[index], self.dtype)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __index__(self) -> int:
        return int(self.data)

    def __invert__(self) -> Block:
        return Block(~self.data, self.dtype)

    def __neg__(self) -> Block:
        return Block(-self.data, self.dtype)


class Pointer:
    """Places in a flat array; `bits` holds elements as they lie in memory."""

    def __init__(self, bits: Array, dtype: DType, places: Any = 0) -> None:
        self.bits, self.dtype, self.places = bits, dtype, np.asarray(places, "i8")

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.bits, self.dtype, self.places + lifted(offset, DType("int64")).data)

    def __sub__(self, offset: Any) -> Pointer:
        return Pointer(self.bits, self.dtype, self.places - lifted(offset, DType("int64")).data)

    def __getitem__(self, index: Any) -> Pointer:
        return Pointer(self.bits, self.dtype, self.places[index])


def lifted(value: Any, like: DType) -> Block:
    """A number as a value of the dtype that it meets."""
    if isinstance(value, Block):
        return value
    if isinstance(value, bool):
        return Block(value, "int1")
    return Block(value, like if like.is_float or isinstance(value, int) else "float32")


def paired(a: Any, b: Any) -> tuple[Block, Block, DType]:
    like = next((v.dtype for v in (a, b) if isinstance(v, Block)), DType("int32"))
    if like == "int1" and not (isinstance(a, Block) and isinstance(b, Block)):
        like = DType("int32")
    a, b = lifted(a, like), lifted(b, like)
    dtype = common(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype), dtype


def binary(apply: Callable[[Any, Any], Any], *, compares: bool = False) -> Callable[[Any, Any], Block]:
    def combined(a: Any, b: Any) -> Block:
        if isinstance(b, Pointer):
            return NotImplemented
        x, y, dtype = paired(a, b)
        with np.errstate(all="ignore"):
            return Block(apply(x.data, y.data), "int1" if compares else dtype)

    return combined


def _quotient(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def _divided(a: Any, b: Any) -> Block:
    x, y, dtype = paired(a, b)
    dtype = dtype if dtype == "float64" else DType("float32")
    return Block(x.to(dtype).data / y.to(dtype).data, dtype)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: binary(getattr(operator, name)) for name in ("add", "sub", "mul", "xor", "lshift", "rshift")},
    "and": binary(operator.and_),
    "or": binary(operator.or_),
    "truediv": _divided,
    "floordiv": binary(_quotient),
    "mod": binary(np.fmod),
}
for _name, _function in OPERATORS.items():
    setattr(Block, f"__{_name}__", _function)
    setattr(Block, f"__r{_name}__", lambda self, other, f=_function: f(other, self))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Block, f"__{_name}__", binary(getattr(operator, _name), compares=True))


def sizes_of(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else tuple(shape)
