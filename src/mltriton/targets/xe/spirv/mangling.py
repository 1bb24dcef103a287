"""C types by name, and the Itanium mangling of the OpenCL and SPIR-V functions that take them.

Level: `llvm`. A C type is written as OpenCL writes it: `int`, `ushort8`, `global const float*`, `local void*`, `void*`
(private memory). Guarantees: every length in a mangled name is counted here, and a type that occurred before is written
as the substitution that the ABI asks for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from mltriton.targets.llvm.types import Type, vector

# C name -> (letters of the mangled name, LLVM's element type).
SCALARS: dict[str, tuple[str, str]] = {
    "void": ("v", "void"),
    "bool": ("b", "i1"),
    "char": ("c", "i8"),
    "uchar": ("h", "i8"),
    "short": ("s", "i16"),
    "ushort": ("t", "i16"),
    "int": ("i", "i32"),
    "uint": ("j", "i32"),
    "long": ("l", "i64"),
    "ulong": ("m", "i64"),
    "half": ("Dh", "half"),
    "bfloat": ("DF16b", "bfloat"),
    "float": ("f", "float"),
    "double": ("d", "double"),
}
# Where a pointer points to -> the number of the address space.
SPACES = {"": 0, "private": 0, "global": 1, "constant": 2, "local": 3}

_TYPE = re.compile(r"(?:(private|global|constant|local) )?(const )?([a-z]+?)(\d+)?(\*)?")


def mangled(name: str, parameters: Sequence[str]) -> str:
    """The symbol of a C++ function `name` with parameters of these C types."""
    seen: list[str] = []
    return f"_Z{len(name)}{name}{''.join(_mangle(parameter, seen) for parameter in parameters) or 'v'}"


def unmangled(symbol: str) -> str | None:
    """The function's name in a symbol; None where it is not mangled. A count that is too long takes what is there."""
    match = re.match(r"_Z(\d+)", symbol)
    return symbol[match.end() :][: int(match[1])] if match else None


@cache
def llvm_type(text: str) -> Type:
    """LLVM's type for a C type. Raises `ValueError` for a text that is none."""
    space, _, name, lanes, star = _parse(text)
    if star:
        number = SPACES[space or ""]
        return vector(f"ptr addrspace({number})" if number else "ptr", 1)
    return vector(SCALARS[name][1], int(lanes or 1))


def _parse(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _TYPE.fullmatch(text)
    if match is None or match[3] not in SCALARS or (match[5] is None and (match[1] or match[2])):
        raise ValueError(f"{text!r} is not a C type that is known here")
    return match[1], match[2], match[3], match[4], match[5]


def _mangle(text: str, seen: list[str]) -> str:
    """Letters of one parameter. `seen` has what was written before and may be referred to, unabbreviated."""
    space, const, name, lanes, star = _parse(text)
    letters = SCALARS[name][0]
    if lanes:
        letters = _once(f"Dv{lanes}_{letters}", f"Dv{lanes}_{letters}", seen)
    if not star:
        return letters
    full = f"Dv{lanes}_{SCALARS[name][0]}" if lanes else letters
    number = SPACES[space or ""]
    qualifiers = (f"U3AS{number}" if number else "") + ("K" if const else "")
    if qualifiers:
        letters = _once(qualifiers + full, qualifiers + letters, seen)
    return _once("P" + qualifiers + full, "P" + letters, seen)


def _once(full: str, letters: str, seen: list[str]) -> str:
    """`letters`, or the substitution where the type `full` was written before."""
    if full in seen:
        index = seen.index(full)
        return "S_" if index == 0 else f"S{_BASE36[index - 1]}_"
    seen.append(full)
    return letters


_BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
