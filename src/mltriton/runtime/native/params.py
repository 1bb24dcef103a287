"""What a launcher must check of each argument: `ParamSpec`, and the table of them that the launcher's code reads.

Level: runtime. A specialised kernel is right only for arguments like those it was compiled for: each parameter's spec
says which ones these are. Guarantees: an argument that passes its spec can be handed to the kernel as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mltriton.records import record

INTEGER_RANGES: dict[str, tuple[int, int]] = {
    f"{sign}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "i" else (0, (1 << bits) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}

# What an unannotated int is: the first of i32, i64 and u64 that holds it. So these two also leave a range out.
_NATURAL_RANGES: dict[str, tuple[int, int]] = {
    "i32": INTEGER_RANGES["i32"],
    "i64": INTEGER_RANGES["i64"],
    "u64": (1 << 63, (1 << 64) - 1),
}

_EMPTY = (1, 0)
_KINDS = {"tensor": 0, "i1": 2, "f32": 3, "f64": 4}
_INTEGER, _SAME, _EQUAL, _EQUAL_FLOAT = 1, 5, 6, 7
_TABLE = struct.Struct("<QqqIId")
_PARAM = struct.Struct("<II6Q")
_MASK_64 = (1 << 64) - 1
ON_HOST = "cpu"  # the device of arrays in main memory
_TORCH_DEVICES = {ON_HOST: 0, "cuda": 1}


def float_bits(kind: str, value: float) -> int:
    """Return the bits of a float, rounded to `f32` if that is the kind; too large values become infinite."""
    if kind == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))


@record(frozen=True, eq=False)
class ParamSpec:
    """One parameter of a kernel as it was specialised. Use the constructors `tensor`, `integer`, ...

    `kind` is `tensor`, `i1`, one of `i8` to `i64` and `u8` to `u64`, `f32`, `f64`, or `constant`.
    `device` is where a tensor lies: "cpu", or another device with its number ("cuda:0").
    `divisible_by_16`, of a tensor's address in bytes or an integer's value: True, the kernel relies on it; False, such
    arguments belong to another specialisation; None, any will do.
    """

    kind: str
    numpy_dtype: np.dtype[Any] | None = None  # A tensor's dtype as a numpy array; None: no numpy arrays.
    torch_dtype: Any = None  # A tensor's dtype as a torch tensor (a torch.dtype); None: no torch tensors.
    writes: bool = False  # Whether the kernel writes to the tensor: read-only numpy arrays are refused.
    divisible_by_16: bool | None = None
    range: tuple[int, int] = _EMPTY  # An integer's least and greatest value.
    hole: tuple[int, int] = _EMPTY  # A range of values inside `range` that belong to another specialisation.
    value: Any = None  # What a constant is.
    device: str = ON_HOST

    @staticmethod
    def tensor(
        numpy_dtype: np.dtype[Any] | None = None,
        torch_dtype: Any = None,
        *,
        writes: bool = True,
        divisible_by_16: bool | None = None,
        device: str = ON_HOST,
    ) -> ParamSpec:
        """Take numpy arrays of `numpy_dtype` and torch tensors of `torch_dtype` (either may be None) at `device`.

        Elements may lie at any address: what a kernel accesses is aligned to 16 bytes or taken not to be aligned.
        """
        if numpy_dtype is None and torch_dtype is None:
            raise ValueError("a tensor parameter takes numpy arrays, torch tensors or both")
        itemsize = numpy_dtype.itemsize if numpy_dtype is not None else torch_dtype.itemsize
        if itemsize.bit_count() != 1:
            raise ValueError(f"elements of {itemsize} bytes are not a number a kernel knows")
        return ParamSpec("tensor", numpy_dtype, torch_dtype, writes, divisible_by_16, device=device)

    @staticmethod
    def integer(
        kind: str, *, annotated: bool = False, not_one: bool = False, divisible_by_16: bool | None = None
    ) -> ParamSpec:
        """Take Python ints that `kind` (`i8` to `i64`, `u8` to `u64`) holds.

        Without an annotation the type follows the value: `i32`, or `i64` or `u64` for what does not fit the one before.
        `not_one`: 1 was specialised away and belongs to another kernel.
        """
        if kind not in (INTEGER_RANGES if annotated else _NATURAL_RANGES):
            raise ValueError(f"{kind} is not an integer type that an argument {'' if annotated else 'by itself '}has")
        if annotated:
            values, hole = INTEGER_RANGES[kind], _EMPTY
        else:
            values, hole = _NATURAL_RANGES[kind], INTEGER_RANGES["i32"] if kind == "i64" else _EMPTY
        if not_one and hole == _EMPTY:
            hole = (1, 1)
        return ParamSpec(kind, range=values, hole=hole, divisible_by_16=divisible_by_16)

    @staticmethod
    def floating(kind: str) -> ParamSpec:
        """Take Python floats as `f32` or `f64`."""
        if kind not in ("f32", "f64"):
            raise ValueError(f"{kind} is not a floating-point type that an argument has")
        return ParamSpec(kind)

    @staticmethod
    def boolean() -> ParamSpec:
        """Take True and False."""
        return ParamSpec("i1")

    @staticmethod
    def constant(value: object) -> ParamSpec:
        """Take only `value`: an equal int, str or float (with the same bits), anything else by identity.

        Raises `TypeError` if `value` cannot be hashed: what can change is not a constant.
        """
        hash(value)
        return ParamSpec("constant", value=value)

    @property
    def is_integer(self) -> bool:
        """Whether the parameter is an integer of 8 to 64 bits."""
        return self.kind in INTEGER_RANGES

    @property
    def takes_slot(self) -> bool:
        """Whether the kernel has this parameter: one that was specialised to a constant is gone."""
        return self.kind != "constant"

    @property
    def masks(self) -> tuple[int, int]:
        """Bits of the address or value that must all be 0, and bits of which one must be 1 (0: no such demand)."""
        return 15 if self.divisible_by_16 else 0, 15 if self.divisible_by_16 is False else 0


def encode_table(
    kernel: int,
    scratch_bytes: int,
    serial_below: int,
    specs: Sequence[ParamSpec],
    torch_key: Callable[[Any], int],
) -> bytes:
    """Return the launcher's table for the kernel at address `kernel`: `Table` of sources/launcher.py, and after it each
    `Param` of sources/arguments.py.

    `torch_key` turns a torch dtype into what the code compares. The table holds addresses of the specs' dtypes and
    constants: they must outlive it.
    """
    slots = sum(spec.takes_slot for spec in specs)
    return _TABLE.pack(kernel, scratch_bytes, serial_below, len(specs), slots, 0.0) + encode_params(specs, torch_key)


def encode_params(specs: Sequence[ParamSpec], torch_key: Callable[[Any], int]) -> bytes:
    """Return the %Param records alone."""
    return b"".join(_encode(spec, torch_key) for spec in specs)


def _encode(spec: ParamSpec, torch_key: Callable[[Any], int]) -> bytes:
    number, flags, first, second = _fields(spec, torch_key)
    words = (first, second, *spec.masks, *(_device(spec.device) if spec.kind == "tensor" else spec.hole))
    return _PARAM.pack(number, flags, *(word & _MASK_64 for word in words))


def _device(device: str) -> tuple[int, int]:
    """Return the type and the index of the device that torch must say: in main memory any index."""
    kind, _, index = device.partition(":")
    return _TORCH_DEVICES.get(kind, -1), int(index or -1)


def _fields(spec: ParamSpec, torch_key: Callable[[Any], int]) -> tuple[int, int, int, int]:
    """Return a record's kind, flags, first and second, as sources/arguments.py defines them."""
    if spec.is_integer:
        return _INTEGER, spec.kind == "u64", *spec.range
    if spec.kind == "tensor":
        numpy_key = 0 if spec.numpy_dtype is None or spec.device != ON_HOST else id(spec.numpy_dtype)
        return _KINDS["tensor"], spec.writes, numpy_key, 0 if spec.torch_dtype is None else torch_key(spec.torch_dtype)
    if spec.takes_slot:
        return _KINDS[spec.kind], 0, 0, 0
    if type(spec.value) is float:
        return _EQUAL_FLOAT, 0, 0, struct.unpack("<Q", struct.pack("<d", spec.value))[0]
    return _EQUAL if type(spec.value) in (int, str) else _SAME, 0, id(spec.value), 0
