"""The kernel's argument slots filled in Python: for arguments that the launcher's machine code does not know.

Level: runtime. A slot is 8 bytes: an address, an integer in its low part, the bits of a float (docs/cpu.md,
"Kernel ABI"). Used for array types other than numpy's and torch's, for numpy scalars, for kernels that were compiled
ahead of time, and for launches that must know the arrays themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mltriton.errors import ArgumentError
from mltriton.frontend.signature import Argument, Entry
from mltriton.records import NamedTuple
from mltriton.runtime.arrays import has_memory
from mltriton.runtime.grid import Grid
from mltriton.runtime.native.params import ParamSpec, float_bits
from mltriton.runtime.native.portable import read_argument
from mltriton.runtime.parts import unwrapped
from mltriton.runtime.specialization import ON_HOST, address, device_of, plain


class Slot(NamedTuple):
    """An argument as the kernel takes it. `kind` is that of a `ParamSpec`; a tensor's `bits` are an address inside
    `array`, which the kernel may write to if `writes`.
    """

    kind: str
    bits: int
    array: Any = None
    writes: bool = True


_KINDS = {
    "fp64": "f64",
    **dict.fromkeys(("fp32", "fp16", "bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e4b15", "fp8e5b16"), "f32"),
}


def slots_of(entries: Mapping[str, Entry], arguments: Sequence[Any], written: Sequence[str]) -> list[Slot]:
    """The slots of a kernel's parameters, those that were specialised to constants left out.

    `written` are the parameters that the kernel writes through: a read-only array there is an `ArgumentError`.
    """
    named = dict(zip(entries, arguments, strict=True))
    for name in written:
        _check_writable(name, named[name])
    return [
        _slot(entry, named[name], name in written) for name, entry in entries.items() if isinstance(entry, Argument)
    ]


def _slot(entry: Argument, value: Any, writes: bool) -> Slot:
    if entry.is_pointer:
        return Slot("tensor", address(value), value, writes)
    kind = _KINDS.get(entry.scalar, entry.scalar)
    return Slot(kind, float_bits(kind, value) if kind in ("f32", "f64") else int(value) & (2**64 - 1))


def value_of(slot: Slot) -> int | float | bool:
    """The number that a slot holds."""
    if slot.kind in ("f32", "f64"):
        form, size = ("<f", 4) if slot.kind == "f32" else ("<d", 8)
        return struct.unpack(form, slot.bits.to_bytes(size, "little"))[0]
    if slot.kind == "i1":
        return bool(slot.bits)
    width = int(slot.kind[1:])
    low = slot.bits & ((1 << width) - 1)
    return low - (1 << width) if slot.kind[0] == "i" and low >> (width - 1) else low


def _check_writable(name: str, value: Any) -> None:
    array = unwrapped(value)
    is_constant = not array.flags.writeable if isinstance(array, np.ndarray) else getattr(array, "is_read_only", False)
    if is_constant:
        raise ArgumentError(f"the kernel writes to {name}, which is a read-only array", hint=f"Pass {name}.copy().")


def launcher_of(run: Callable[[Grid, Sequence[Slot]], None], specs: Sequence[ParamSpec]) -> Callable[..., Any]:
    """The function `launch(grid_x, grid_y, grid_z, *arguments)`, which runs arguments that pass `specs`."""

    def launch(grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
        if len(arguments) != len(specs):
            return NotImplemented
        slots: list[Slot] = []
        for spec, argument in zip(specs, arguments, strict=True):
            bits = read(spec, argument := plain(argument))
            if bits is None:
                return NotImplemented
            if spec.takes_slot:
                slots.append(Slot(spec.kind, bits, argument, spec.writes))
        run((grid_x, grid_y, grid_z), slots)
        return None

    return launch


def read(spec: ParamSpec, argument: Any) -> int | None:
    """The slot for an argument, or None if it does not pass its spec. Tensors may lie on the GPU."""
    if spec.kind != "tensor":
        return read_argument(spec, argument)
    if device_of(argument) != spec.device:
        return None
    if spec.device == ON_HOST:
        return read_argument(spec, argument)
    if spec.torch_dtype is None or argument.dtype is not spec.torch_dtype:
        return None
    if argument.is_neg() or not has_memory(argument):
        return None
    address, (zero, some) = argument.data_ptr(), spec.masks
    return address if not address & zero and (not some or address & some) else None
