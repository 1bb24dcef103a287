"""The kernel's argument slots filled in Python: for arguments that the launcher's machine code does not know.

Level: runtime. A slot is 8 bytes: an address, an integer in its low part, the bits of a float (docs/architecture.md,
"Kernel ABI"). Used for array types other than numpy's and torch's, and for numpy scalars.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mltriton.errors import ArgumentError
from mltriton.runtime.specialization import address
from mltriton.tools.signature import Argument, Entry


def slots_of(entries: Mapping[str, Entry], arguments: Sequence[Any], written: Sequence[str]) -> list[int]:
    """The slots of a kernel's parameters, those that were specialised to constants left out.

    `written` are the parameters that the kernel writes through: a read-only array there is an `ArgumentError`.
    """
    named = dict(zip(entries, arguments, strict=True))
    for name in written:
        _check_writable(name, named[name])
    return [_slot(entry, named[name]) for name, entry in entries.items() if isinstance(entry, Argument)]


def _slot(entry: Argument, value: Any) -> int:
    if entry.is_pointer:
        return address(value)
    if entry.scalar == "fp32":
        return int.from_bytes(struct.pack("<f", value), "little")
    if entry.scalar == "fp64":
        return int.from_bytes(struct.pack("<d", value), "little")
    return int(value) & (2**64 - 1)


def _check_writable(name: str, value: Any) -> None:
    if not isinstance(value, np.ndarray):  # What a `TensorWrapper` wraps may be one.
        value = getattr(value, "base", None)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise ArgumentError(f"the kernel writes to {name}, which is a read-only array", hint=f"Pass {name}.copy().")
