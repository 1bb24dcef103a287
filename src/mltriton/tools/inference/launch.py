"""Numbers for a launch of which only the kernel's text, its constants and its types are known.

Level: runtime. Sizes are odd and a little larger than a block, so that every end sticks out; strides are odd as well,
and follow each other as in a tensor, so that no two elements of one share an address. Arrays of integers mean what the
text says: ends of sequences, chunks of them. What a parameter is comes from `roles.py`, as for the proofs of `migrate`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mltriton.executor.values import memory_dtype
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Constant, Entry
from mltriton.tools.inference.arguments import integers, is_count
from mltriton.tools.inference.roles import Roles, functions_in, roles_of
from mltriton.tools.samples import TYPES

_DEFAULT_BLOCK = 32
_INNER = 3  # of a stride that may be other than 1
_MOST_PROGRAMS = 16
_BLOCK_NAME = re.compile(r"(?:BLOCK_?(?:SIZE_?)?|B|TILE_?)(\w+)$")


@dataclass(frozen=True)
class Chosen:
    """Values by parameter, and a grid that covers every block of the sizes."""

    values: dict[str, Any]
    grid: tuple[int, ...]


def choose(
    fn: LanguageFunction, entries: Mapping[str, Entry], given: Mapping[str, Any], rng: np.random.Generator
) -> Chosen:
    """Values for the integers of a kernel and its arrays of integers that have none; `given` are those that have."""
    if all(name in given or isinstance(entry, Constant) or _is_float(entry) for name, entry in entries.items()):
        return Chosen({}, (2,))
    roles = roles_of(fn.source.tree, functions_in(fn.fn.__globals__))
    known = {name: entry.value for name, entry in entries.items() if isinstance(entry, Constant)} | dict(given)
    missing = [name for name in roles.numbers if _is_integer(entries.get(name)) and name not in given]
    strides = [name for name in roles.numbers if _is_stride(name, roles)]
    bounded = set(_bounds(fn.source.tree))
    sizes: dict[str, int] = {}
    for name in missing:
        if name not in strides:
            sizes[name] = (
                2
                if is_count(name, roles) and name not in bounded
                else _size(name, len(sizes), known, roles, entries[name])
            )
    extents = [*sizes.values(), *(v for n, v in known.items() if type(v) is int and n in roles.numbers)]
    values: dict[str, Any] = dict(sizes)
    extent = max(extents, default=48)
    for index, group in enumerate(_tensors(strides)):
        open_strides = [name for name in group if name in missing]
        values |= _strides(group, open_strides, known, roles, entries, extent + 2 * index)
    block = max(_blocks(known, roles).values(), default=_DEFAULT_BLOCK)
    for name, held in roles.pointers.items():
        entry = entries.get(name)
        if held != "numbers" and name not in given and isinstance(entry, Argument) and "i" in entry.scalar:
            values[name] = integers(held, block, rng).astype(memory_dtype(TYPES[entry.scalar]))
    return Chosen(values, _grid(fn.source.tree, sizes, known, roles))


def _is_float(entry: Entry) -> bool:
    return isinstance(entry, Argument) and entry.scalar[0] not in "iu"


def _is_integer(entry: Entry | None) -> bool:
    return isinstance(entry, Argument) and not entry.is_pointer and entry.scalar[0] in "iu" and entry.scalar != "i1"


def _is_stride(name: str, roles: Roles) -> bool:
    return name in roles.strides or name in roles.units


# Sizes.


def _blocks(known: Mapping[str, Any], roles: Roles) -> dict[str, int]:
    """The sizes of blocks among the constants."""
    return {name: known[name] for name in sorted(roles.blocks) if type(known.get(name)) is int and known[name] > 1}


def _block_of(name: str, blocks: Mapping[str, int]) -> int:
    """The block that a size is cut into: `BLOCK_SIZE_M` for `M`, else the largest."""
    for block, size in blocks.items():
        match = _BLOCK_NAME.match(block.upper())
        if match and match[1].strip("_") in (name.upper(), name.upper().rpartition("_")[2]):
            return size
    return max(blocks.values(), default=_DEFAULT_BLOCK)


def _size(name: str, index: int, known: Mapping[str, Any], roles: Roles, entry: Entry) -> int:
    """More than one block, less than two, and odd, each another; a multiple where the signature says so."""
    block = _block_of(name, _blocks(known, roles))
    step = entry.divisibility if isinstance(entry, Argument) else 1
    if step > 1:
        return -(-(block + 1) // step) * step
    return block + max(block // 4, 1) // 2 * 2 + 1 + 2 * (index % max(block // 4, 1))


def _bounds(function: ast.FunctionDef) -> Iterator[str]:
    """The names that something is compared with, or that are cut into blocks by `tl.cdiv`."""
    for node in ast.walk(function):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("cdiv"):
            parts = node.args[:1]
        yield from (each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name))


# Strides.


def _tensors(strides: Sequence[str]) -> list[list[str]]:
    """The strides of each tensor, outermost first, by their names: `stride_am`, `stride_ak`; `stride_x_row`."""
    groups: dict[str, list[str]] = {}
    for name in strides:
        bare = re.sub(r"_?(stride|str)s?_?", "", name) or name
        head, _, tail = bare.rpartition("_")
        groups.setdefault(head if head and len(tail) < 4 else bare[:-1] or name, []).append(name)
    return list(groups.values())


def _strides(
    group: Sequence[str],
    missing: Sequence[str],
    known: Mapping[str, Any],
    roles: Roles,
    entries: Mapping[str, Entry],
    extent: int,
) -> dict[str, int]:
    """Strides of one tensor: the contiguous one is 1 or small, each next larger than all that lies inside it."""
    units = [name for name in group if name in roles.units or known.get(name) == 1]
    inner = units[0] if units else group[-1] if len(group) > 1 else None
    found: dict[str, int] = {}
    reach = 1
    for name in [*([inner] if inner else []), *(each for each in reversed(group) if each != inner)]:
        if name not in missing:
            reach = max(reach, known.get(name, 1) * extent if type(known.get(name)) is int else reach)
            continue
        entry = entries[name]
        step = entry.divisibility if isinstance(entry, Argument) else 1
        value = 1 if name in roles.units else _INNER if name == inner and reach == 1 else max(reach, extent) + 3
        value = -(-value // step) * step if step > 1 else value | 1
        found[name] = value
        reach = value * extent
    return found


# The grid.


def _grid(
    function: ast.FunctionDef, sizes: Mapping[str, int], known: Mapping[str, Any], roles: Roles
) -> tuple[int, ...]:
    """Programs for every block of the sizes that no loop goes through; two along each axis where there are several."""
    axes = {
        node.args[0].value
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("program_id")
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, int)
    }
    rank = max(axes, default=0) + 1
    if rank > 1:
        return (2,) * rank
    looped = {name for loop in _loops(function) for name in loop}
    blocks = _blocks(known, roles)
    counts = [-(-size // _block_of(name, blocks)) for name, size in sizes.items() if name not in looped]
    return (min(max(math.prod(counts), 2), _MOST_PROGRAMS),)


def _loops(function: ast.FunctionDef) -> Iterator[set[str]]:
    """The names in the bounds of loops."""
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            yield {each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name)}
