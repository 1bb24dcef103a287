"""What Xe does with each descriptor of a migrated kernel: whether it is on the 2D block path, or why not.

Level: ttg. Compiles the new kernel for `xe:pvc` with the types and constants of some inputs and reads the layouts that
its accesses were given, as `mltriton compile --remarks` does. Where nobody said what the arguments are, blocks, strides
and types are what such kernels are launched with, not the small odd ones that a proof needs; each note names them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mltriton.analysis.block_io import BlockAccess
from mltriton.dialects import ttig
from mltriton.errors import SourceLocation, TritonError
from mltriton.frontend.syntax import parsed
from mltriton.tools.inference.roles import Roles
from mltriton.tools.migrate.prove.trial import Input, job_of, short
from mltriton.tools.migrate.report.lines import Lines
from mltriton.tools.migrate.result import Note, Result
from mltriton.tools.remarks import Remark, access_remarks, is_block_access

TARGET = "xe:pvc"
_BLOCK, _EXTENT = 64, 128
_COMPILES = 4


@dataclass(frozen=True)
class DescriptorNote:
    """A call of make_tensor_descriptor by its line in the new text, and what was found of it."""

    line: int
    text: str
    detail: str = ""


def analyse(fn: Any, inputs: Sequence[Input], roles: Roles, text: str, file: str) -> list[DescriptorNote]:
    """A note on each descriptor that the kernel makes with one of the inputs. `file` is how locations name the text."""
    found: dict[int, DescriptorNote] = {}
    where = _Where(text, file)
    for given in inputs[:_COMPILES]:
        choices = [given]
        if given.signature is None:
            choices = [_typical(given, roles, np.float16), _typical(given, roles, None), given]
        for chosen in choices:
            try:
                found = {**_of_input(fn, chosen, where), **found}
                break
            except TritonError as error:
                failure = DescriptorNote(0, f"not known: the kernel does not compile for {TARGET}", short(error))
                found |= {} if chosen is not choices[-1] or found else {0: failure}
    return [found[line] for line in sorted(found)]


def _typical(given: Input, roles: Roles, kind: Any) -> Input:
    """The same flags with larger blocks, strides and rows that are multiples of 16 bytes, and arrays of that kind."""
    values = dict(given.values)
    chosen = roles.flags | set(roles.texts) | roles.floats
    for name, value in given.values.items():
        if roles.pointers.get(name) == "numbers":
            values[name] = value if kind is None else value.astype(kind)
        elif name in roles.blocks:
            values[name] = _BLOCK
        elif type(value) is int and name not in chosen and (name in roles.strides - roles.units or value > _FEW):
            values[name] = _EXTENT
    return replace(given, values=values)


_FEW = 8  # what is not above it counts heads, levels or warps


def _of_input(fn: Any, given: Input, where: _Where) -> dict[int, DescriptorNote]:
    job = job_of(fn, given, TARGET)
    accesses: dict[int, dict[str, str]] = {}  # what is said of each, and why it is no block access
    for access, remark in access_remarks(job.module("ttg"), layouts=False):
        # A prefetch belongs to a load that is there as well.
        for line in where.made(access) if not isinstance(access.op, ttig.Prefetch) else ():
            accesses.setdefault(line, {})[_text(access, remark)] = "" if is_block_access(access) else _reason(remark)
    return {
        line: DescriptorNote(line, _verdict(list(texts.values())), f"{'; '.join(texts)} ({_said(given)})")
        for line, texts in accesses.items()
    }


class _Where:
    """Where a text makes and uses descriptors."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.names = _names(text)
        self._used: dict[tuple[int, int], str] = {}
        for node in ast.walk(parsed(text)):
            match node:
                case ast.Call(func=ast.Attribute(attr="load" | "store", value=ast.Name(id=name))):
                    self._used[node.lineno, node.col_offset] = name
                case _:
                    pass

    def made(self, access: BlockAccess) -> set[int]:
        """The lines that make what an access goes through."""
        return {line for maker in access.makers if (line := self._of(maker.loc.in_source)) is not None}

    def _of(self, location: SourceLocation | None) -> int | None:
        if location is None or location.file != self.file:
            return None
        if location.line in self.names:
            return location.line
        # A load that transposes makes a pointer of its own: the descriptor is the last of its name before.
        name = self._used.get((location.line, location.column or 0))
        return max(
            (line for line, known in self.names.items() if known == name and line <= location.line), default=None
        )


def _text(access: BlockAccess, remark: Remark) -> str:
    where = f" at line {remark.location.line}" if remark.location is not None else ""
    hint = f". {remark.hint.removesuffix('.')}" if remark.hint else ""
    return f"{remark.what}{where}: {remark.how}{hint}"


_LONGEST = 80  # characters of a reason


def _reason(remark: Remark) -> str:
    """Why an access does not move blocks, in a few words."""
    how = remark.how.rpartition("since ")[2].partition(";")[0].partition(". ")[0]
    return how if len(how) <= _LONGEST else how[: _LONGEST - 3].rsplit(" ", 1)[0] + " ..."


def _verdict(reasons: Sequence[str]) -> str:
    """One line on the accesses through a descriptor; a reason is empty for one that moves blocks."""
    off = [reason for reason in reasons if reason]
    if not off:
        return "on the 2D block path"
    if len(off) == len(reasons):
        return f"not on the 2D block path: {off[0]}"
    return f"on the 2D block path but for {len(off)} of {len(reasons)} accesses: {off[0]}"


def _said(given: Input) -> str:
    """What the kernel was compiled with."""
    if given.signature is not None:
        return f"compiled for {TARGET} with {given.signature}"
    types = dict.fromkeys(str(value.dtype) for value in given.values.values() if hasattr(value, "dtype"))
    numbers = (f"{name}={value}" for name, value in given.values.items() if not hasattr(value, "dtype"))
    return f"compiled for {TARGET} with arrays of {', '.join(types)}; {', '.join(numbers)}"


def with_descriptors(result: Result, notes: Sequence[DescriptorNote]) -> list[Note]:
    """The notes of a result in which what the compiler found takes the place of what the text shows."""
    names, lines = _names(result.text), Lines(result)
    known = {note.line: note for note in notes if note.line in names}
    found = [
        Note(lines.old(line), "performance", f"`{names[line]}`: {note.text}", line, note.detail)
        for line, note in known.items()
    ]
    kept = [note for note in result.notes if note.kind != "performance" or lines.new(note.line) not in known]
    return [*kept, *found]


def _names(text: str) -> dict[int, str]:
    """The variables that descriptors are assigned to, by the line of the call."""
    found: dict[int, str] = {}
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("make_tensor_descriptor"):
            found.setdefault(node.lineno, "make_tensor_descriptor(...)")
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("make_tensor_descriptor"):
                    found[call.lineno] = ast.unparse(node.targets[0])
    return found
