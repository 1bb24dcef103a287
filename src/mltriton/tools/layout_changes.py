"""`mltriton layout ENCODING --to ENCODING`: what a conversion from one layout to another does, and what it costs.

Level: ttg and warp. Takes two views of one tensor; gives for each index of the result where its element comes from, the
number of elements that stay or go how far, and instructions of a warp. What a target does in cheaper ways of its own
(`TargetSpec.change_cost`) counts, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mltriton.errors import OptionError
from mltriton.ir.types import Type, byte_width
from mltriton.layouts.base import Encoding
from mltriton.layouts.conversions import Conversion, Means, Words, conversion
from mltriton.layouts.encodings import same_cut
from mltriton.layouts.fields import Shape
from mltriton.layouts.text import encoding_text
from mltriton.targets.base import TargetSpec
from mltriton.tools.layout_view import View

Array = np.ndarray[Any, Any]
# How far an element goes, from nowhere to another warp.
WAYS = ("stay", "renamed", "chosen by lane", "shuffled", "through shared memory")
WORD = 4  # bytes of a register of a lane


@dataclass(frozen=True)
class Change:
    """The way of a tensor of `shape` from one encoding to another."""

    source: Encoding
    target: Encoding
    shape: Shape
    element: Type
    spec: TargetSpec | None = None

    @staticmethod
    def between(source: View, target: View, spec: TargetSpec | None = None) -> Change:
        """Of two views. Raises `OptionError` where one is of shared memory, or the shapes differ."""
        if not isinstance(source.encoding, Encoding) or not isinstance(target.encoding, Encoding):
            raise OptionError("a conversion is between layouts of tensors", found=f"{source.title}, {target.title}")
        assert source.element is not None and source.shape == target.shape
        return Change(source.encoding, target.encoding, source.shape, source.element, spec)

    @cached_property
    def how(self) -> Conversion | None:
        """The conversion between the linear layouts; None where an encoding does not state lanes."""
        layouts = [View(encoding, self.shape).layout for encoding in (self.source, self.target)]
        return conversion(*layouts) if None not in layouts else None  # type: ignore[arg-type]

    @property
    def stays_in_warps(self) -> bool:
        """Whether every warp has the same part before and after."""
        return self.how.means < Means.SHARED if self.how else same_cut(self.source, self.target, self.shape)

    def ways(self) -> Array:
        """For each register, lane and warp of the result how its element comes there (an index of `WAYS`)."""
        assert self.how is not None
        fetch = self.how.fetch.table()
        registers, lanes, warps = (self.how.target.count(name) for name in ("register", "lane", "warp"))
        register, lane, warp = np.arange(registers).reshape(-1, 1, 1), np.arange(lanes).reshape(-1, 1), np.arange(warps)
        moved = np.where(fetch[..., 0] == register, 0, 1)
        chosen = (fetch[..., 0] != fetch[:, :1, :, 0]) | (fetch[..., 0] != fetch[:, :, :1, 0])
        moved = np.where(chosen, 2, moved)
        moved = np.where(fetch[..., 1] != lane, 3, moved)
        return np.where(fetch[..., 2] != warp, 4, moved)

    def counts(self) -> dict[str, int]:
        """Registers of a lane by the furthest way that an element in one takes."""
        furthest = self.ways().max(axis=(1, 2))
        return {way: int((furthest == number).sum()) for number, way in enumerate(WAYS)}

    @property
    def cost(self) -> int | None:
        """Instructions of a warp, about; None where lanes are not stated."""
        if self.how is None:
            return None
        width, own = byte_width(self.element), self.spec.change_cost if self.spec is not None else None
        if not self.stays_in_warps:
            return self.how.cost(width)
        if own is None:
            return self.how.cost(width, self.words)
        return own(self.source, self.target, self.source.per_warp_shape(self.shape), width)

    @property
    def words(self) -> Words:
        """Bytes that lie side by side in a lane, before and after."""
        width = byte_width(self.element)
        return Words(self.source.word_bytes(width), self.target.word_bytes(width))

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that the tensor goes through."""
        size = int(np.prod(self.shape)) * byte_width(self.element)
        return 0 if self.stays_in_warps else size

    @property
    def names(self) -> str:
        """Both encodings."""
        return f"{encoding_text(self.source)} to {encoding_text(self.target)}"

    def summary(self) -> str:
        """What it does and costs, in a line."""
        if self.how is None:
            return "nothing moves" if self.stays_in_warps else f"through shared memory, {self.shared_bytes} bytes"
        parts = [f"{count} {way}" for way, count in self.counts().items() if count]
        memory = f", {self.shared_bytes} bytes of shared memory" if self.shared_bytes else ""
        if self.words.source != self.words.target and self.stays_in_warps:
            parts.append(f"words of {self.words.source} bytes to words of {self.words.target}")
        return f"of {self.how.registers} registers {', '.join(parts)}{memory}; about {self.cost} instructions of a warp"


def text_of_change(change: Change) -> str:
    """The conversion as text: both layouts, and what it takes."""
    return "\n".join(_lines(change))


def _lines(change: Change) -> Iterator[str]:
    yield f"a tensor of {'x'.join(map(str, change.shape))}x{change.element}"
    yield f"from {encoding_text(change.source)}"
    yield f"to   {encoding_text(change.target)}"
    yield change.summary()
