"""Signatures: what is known of a kernel's arguments when it is compiled ahead of time.

Takes upstream's ahead-of-time syntax (`"*fp32:16, i32, 1024, fp32:1"`, one entry a parameter in order) or a dict from
parameter name to entry; gives one `Argument` or `Constant` a parameter. Guarantees canonical type names, and an error
that points at the entry. Imports no compiler module.

    entry      := type [":" hint] | constant
    type       := ["*" ["k"]] scalar | "tensordesc<" scalar "[" sizes "]>"      k: the memory is not written
    hint       := 16 (the address or value is divisible by 16) | 1 (the value is the constant 1)
    constant   := integer | float | True | False | None | quoted string
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mltriton.errors import SignatureError, SourceLocation, did_you_mean
from mltriton.records import record

_INTEGERS = ("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64")
_FLOATS = ("fp16", "bf16", "fp32", "fp64", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e4b15", "fp8e5b16")
_ALIASES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "B": "i1"}
SCALARS: Mapping[str, str] = {name: name for name in _INTEGERS + _FLOATS} | _ALIASES

# Texts, which `re` compiles once when the first is read: a launch from Python reads none.
_TYPE = r"(?P<pointer>\*(?P<const>k)?)?(?P<scalar>\w+)$"
_TUPLE = r"\((?:[^()]|\([^()]*\))*\)"
_ENTRIES = rf"""(?:^|,)((?:<[^>]*>|\[[^\]]*\]|{_TUPLE}|'[^']*'|"[^"]*"|[^,])*)"""
_DESCRIPTOR = r"tensordesc<\s*(?P<scalar>\w+)\s*\[(?P<sizes>[^\]]*)\]\s*>$"


@record(frozen=True)
class Argument:
    """A parameter whose value comes at launch.

    `scalar` is a canonical dtype name such as "fp32"; `divisibility` is 16 or 1 and speaks of the address (in bytes)
    for a pointer and of the value for an integer; `block` is the block shape of a tensor
    descriptor, which `with_parts` takes apart before a kernel is compiled.
    """

    scalar: str
    is_pointer: bool = False
    is_const: bool = False
    divisibility: int = 1
    block: tuple[int, ...] | None = None

    def __str__(self) -> str:
        hint = f":{self.divisibility}" if self.divisibility > 1 else ""
        if self.block is not None:
            return f"tensordesc<{self.scalar}[{','.join(map(str, self.block))}]>{hint}"
        return f"{'*' * self.is_pointer}{'k' * self.is_const}{self.scalar}{hint}"


@record(frozen=True)
class Constant:
    """A parameter whose value is known: a constexpr, or an integer specialised to 1."""

    value: Any  # a number, string, None, tuple of constants, dtype or function

    def __str__(self) -> str:
        return repr(self.value)


Entry = Argument | Constant


def parse_signature(signature: str | Mapping[str, str], parameters: Sequence[str]) -> dict[str, Entry]:
    """Return what is known of every parameter, in the order of `parameters`: of a tuple, `(i32, 1)`, of each of its
    parts, which `runtime/parts.py` names.

    A dict may leave out parameters (the caller gives their constexpr values another way); a string may not.
    Raises SignatureError for an entry that cannot be read, for too many or too few of them and for unknown names.
    """
    if isinstance(signature, str):
        return _parse_text(signature, parameters)
    unknown = [name for name in signature if name not in parameters]
    if unknown:
        raise SignatureError(
            f"the kernel has no parameter {unknown[0]!r}",
            hint=did_you_mean(unknown[0], parameters) or f"Its parameters are {', '.join(parameters)}.",
        )
    entries: dict[str, Entry] = {}
    for name in parameters:
        if name in signature:
            text, location = signature[name], SourceLocation(f"<signature of {name}>", 1, 0)
            entries |= _entries_at(name, text, location, text)
    return entries


def of_parameter(name: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries of a parameter, or of its parts."""
    return {part: entry for part, entry in entries.items() if part.partition(".")[0] == name}


def with_parts(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries with those of tensor descriptors replaced by their parts', which `runtime/parts.py` names."""
    found: dict[str, Entry] = {}
    for name, entry in entries.items():
        if isinstance(entry, Argument) and entry.block is not None:
            found |= _descriptor_parts(name, entry, entry.block)
        else:
            found[name] = entry
    return found


def _descriptor_parts(name: str, entry: Argument, block: tuple[int, ...]) -> Iterator[tuple[str, Entry]]:
    last = len(block) - 1
    yield f"{name}.base", Argument(entry.scalar, is_pointer=True, divisibility=16)
    yield from ((f"{name}.shape.{dim}", Argument("i32")) for dim in range(len(block)))
    yield from ((f"{name}.strides.{dim}", Argument("i64")) for dim in range(last))
    yield f"{name}.strides.{last}", Constant(1)
    yield f"{name}.block_shape", Constant(block)
    yield f"{name}.padding", Constant("zero")


def of_parameters(entries: Mapping[str, Entry]) -> dict[str, str]:
    """The entries by parameter as text: a descriptor's parts as the descriptor, a tuple's in parentheses."""
    texts: dict[str, list[str]] = {}
    for name, entry in entries.items():
        texts.setdefault(name.partition(".")[0], []).append(str(entry))
    for name in texts:
        base, block = entries.get(f"{name}.base"), entries.get(f"{name}.block_shape")
        if isinstance(base, Argument) and isinstance(block, Constant):
            texts[name] = [str(Argument(base.scalar, block=block.value))]
    return {name: text[0] if len(text) == 1 else f"({', '.join(text)})" for name, text in texts.items()}


def parse_entry(text: str) -> Entry:
    """Read one entry; SignatureError where it is neither a type nor a constant."""
    constant = _parse_constant(text)
    if constant is not None:
        return constant
    name, _, hint = text.partition(":")
    return _apply_hint(_parse_type(name.strip()), hint.strip(), text)


def _parse_text(signature: str, parameters: Sequence[str]) -> dict[str, Entry]:
    pieces = list(_split(signature))
    if len(pieces) != len(parameters):
        raise SignatureError(
            f"the signature has {len(pieces)} entries and the kernel {len(parameters)} parameters",
            expected=", ".join(parameters),
            found=signature.strip() or "an empty signature",
        )
    entries: dict[str, Entry] = {}
    for parameter, (column, text) in zip(parameters, pieces, strict=True):
        entries |= _entries_at(parameter, text, SourceLocation("<signature>", 1, column), signature)
    return entries


def _entries_at(name: str, text: str, location: SourceLocation, whole: str) -> dict[str, Entry]:
    try:
        return dict(_entries_of(name, text.strip()))
    except SignatureError as error:
        raise error.at(location, whole) from None


def _entries_of(name: str, text: str) -> Iterator[tuple[str, Entry]]:
    if text.startswith("(") and text.endswith(")"):
        for number, (_, part) in enumerate(_split(text[1:-1].strip().removesuffix(","))):
            yield from _entries_of(f"{name}.{number}", part)
    else:
        yield name, parse_entry(text)


def _split(signature: str) -> Iterator[tuple[int, str]]:
    """Yield column and text of every entry; commas in brackets and quotes do not separate."""
    if not signature.strip():
        return
    for match in re.finditer(_ENTRIES, signature):
        text = match.group(1)
        yield match.start(1) + len(text) - len(text.lstrip()), text.strip()


def _parse_constant(text: str) -> Constant | None:
    """Return the constant, or None for text that is no Python number, bool, None or string."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return Constant(value) if value is None or isinstance(value, int | float | str) else None


def _parse_type(text: str) -> Argument:
    if match := re.match(_DESCRIPTOR, text):
        return Argument(_canonical(match["scalar"]), block=_sizes(match["sizes"]))
    match = re.match(_TYPE, text)
    if match is None:
        raise SignatureError(
            f"{text!r} is neither a type nor a constant" if text else "an entry is empty",
            hint="Types look like *fp32, i32, tensordesc<fp16[64,64]>; constants like 1024, 0.5, True, None, 'ieee'.",
        )
    pointer, const, scalar = match["pointer"], match["const"], match["scalar"]
    return Argument(_canonical(scalar), is_pointer=pointer is not None, is_const=const is not None)


def _canonical(scalar: str) -> str:
    if scalar not in SCALARS:
        raise SignatureError(f"unknown type {scalar!r}", hint=did_you_mean(scalar, SCALARS) or _KNOWN)
    return SCALARS[scalar]


def _sizes(text: str) -> tuple[int, ...]:
    sizes = [size.strip() for size in text.split(",")]
    if not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise SignatureError(f"the block shape [{text}] of a tensor descriptor is not a list of positive integers")
    return tuple(map(int, sizes))


def _apply_hint(argument: Argument, hint: str, text: str) -> Entry:
    """Return the argument with its hint: 16 is divisibility, 1 makes a scalar the constant 1."""
    is_scalar = not argument.is_pointer and argument.block is None
    is_float = is_scalar and argument.scalar in _FLOATS
    if hint == "" and not text.endswith(":"):
        return argument
    if hint == "1" and is_scalar:
        return Constant(1.0 if is_float else 1)
    if hint == "16" and not is_float and argument.block is None:
        return Argument(argument.scalar, argument.is_pointer, argument.is_const, divisibility=16)
    allowed = "16" if argument.is_pointer else "1" if is_float else "1 or 16" if is_scalar else "no hint"
    raise SignatureError(
        f"{argument} does not take the hint {hint!r}",
        expected=allowed,
        hint="16 says that an address or integer is divisible by 16, 1 that a value is the constant 1.",
    )


_KNOWN = f"The types are {', '.join(_INTEGERS + _FLOATS)}, and pointers to them (*fp32)."
