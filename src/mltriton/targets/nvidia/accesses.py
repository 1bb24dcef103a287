"""Accesses to memory under a condition, by one instruction each.

Level: `llvm`. Takes an address, an i1 and up to 16 bytes: elements of one type that lie next to each other. Guarantees:
where the condition does not hold memory is not touched, and a load gives what is kept in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I16, I32, I64, Type, Value, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.nvidia.assembly import ptx, tied
from mltriton.targets.nvidia.calls import as_integer, from_integer

SPACES = {1: "global", 3: "shared"}
WORDS = (I64, I32, I16)
PRIORITIES = ("evict_first", "evict_last")


class Shape(NamedTuple):
    """How an access is made: so many `words` of one type. A word of 8 bits travels in 16."""

    word: Type
    words: int
    bits: int

    @property
    def text(self) -> str:
        """PTX's name of it: `.v4.b32`."""
        return (f".v{self.words}" if self.words > 1 else "") + f".b{self.bits}"


class Hints(NamedTuple):
    """What an access asks of the caches: PTX's `text` behind its name, and its `priority` in the second-level one."""

    text: str
    priority: str = ""


NO_HINTS = Hints("")


def hints_of(modifier: str, priority: str) -> Hints | None:
    """Those of an operator (`ca`, `cs`, ...; "none"), or else of a priority (`evict_first`, ...; "normal")."""
    if modifier != "none":
        return Hints(f".{modifier}")
    return Hints(f".L1::{priority}.L2::cache_hint", priority) if priority in PRIORITIES else None


def shape_of(element: Type, width: int, align: int) -> Shape | None:
    """The access of `width` elements at an address with that alignment; None where there is none."""
    size = element.bytes * width
    if size > 16 or align < size:
        return None
    if size == 1:
        return Shape(I16, 1, 8)
    bits = max(16 if size == 2 else 32, element.bits)
    word = vector(f"i{bits}", 1)
    return Shape(word, size // word.bytes, bits)


def space_of(pointer: Type) -> str:
    """PTX's name of the memory that a pointer points to, with its dot; none where it may be any."""
    number = pointer.element.removeprefix("ptr").strip(" adrspce()")
    return f".{SPACES[int(number)]}" if number else ""


def load(
    f: Function,
    element: Type,
    pointer: Value,
    mask: Value,
    kept: Sequence[Value],
    shape: Shape,
    hints: Hints = NO_HINTS,
) -> list[Value]:
    """The elements in memory; `kept` where the mask does not hold."""
    width = len(kept)
    words = _words(f, kept, shape)
    registers = ", ".join(f"${number}" for number in range(shape.words))
    listed = f"{{{registers}}}" if shape.words > 1 else registers
    address, condition = shape.words, shape.words + 1
    policy, named = _policy(f, hints, condition + 1)
    text = f"@${condition} ld{space_of(pointer.type)}{hints.text}{shape.text} {listed}, [${address}]{named};"
    loaded = tied(f, text, words, pointer, mask, *policy)
    return _elements(f, loaded, element, width, shape)


def store(
    f: Function, pointer: Value, mask: Value, values: Sequence[Value], shape: Shape, hints: Hints = NO_HINTS
) -> None:
    """Write the elements where the mask holds."""
    words = _words(f, values, shape)
    registers = ", ".join(f"${number + 2}" for number in range(shape.words))
    listed = f"{{{registers}}}" if shape.words > 1 else registers
    policy, named = _policy(f, hints, shape.words + 2)
    text = f"@$1 st{space_of(pointer.type)}{hints.text}{shape.text} [$0], {listed}{named};"
    ptx(f, text, [], pointer, mask, *words, *policy)


def _policy(f: Function, hints: Hints, number: int) -> tuple[list[Value], str]:
    """The operand, with that number, that says how a line is to be kept, and how it is named; none and "" for none."""
    if not hints.priority:
        return [], ""
    made = ptx(f, f"createpolicy.fractional.L2::{hints.priority}.b64 $0, 1.0;", [I64], pure=True)
    return made, f", ${number}"


def _words(f: Function, values: Sequence[Value], shape: Shape) -> list[Value]:
    """Elements as the words of an access."""
    bits = [as_integer(f, value) for value in values]
    if shape.bits < shape.word.bits:
        return [f.cast("zext", bits[0], shape.word)]
    return in_words(f, bits, shape.word)


def in_words(f: Function, bits: Sequence[Value], word: Type) -> list[Value]:
    """Integers, of which a word has several or one, as words."""
    each = word.bits // bits[0].type.bits
    return [f.bitcast(f.joined(bits[start : start + each]), word) for start in range(0, len(bits), each)]


def _elements(f: Function, words: Sequence[Value], element: Type, width: int, shape: Shape) -> list[Value]:
    """The words of an access as elements."""
    held = vector(f"i{element.bits}", 1)
    if shape.bits < shape.word.bits:
        return [from_integer(f, f.cast("trunc", words[0], held), element)]
    if element == I16 and shape.word == I32:
        return [part for word in words for part in halves_of(f, word)]
    each = width // shape.words
    parts = [f.bitcast(word, held.with_lanes(each)) for word in words]
    return [from_integer(f, f.extract(part, number), element) for part in parts for number in range(each)]


def halves_of(f: Function, word: Value) -> list[Value]:
    """The halves of a word, shifted out of it, so that LLVM sees that the upper one of two bf16 is an f32 already but
    for the lower bits.
    """
    return [f.cast("trunc", word, I16), f.cast("trunc", f.lshr(word, 16), I16)]
