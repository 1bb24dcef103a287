"""What every layout answers for itself: its text, its cut between warps, its linear layout, its pieces.

Level: ttg to llvm. `LayoutAttr` is the base of all, `Encoding` of those of tensors, `MatrixEncoding` of results of
matrix instructions, `MessageEncoding` of what block accesses move, `SharedEncoding` of blocks in shared memory. A class
with a `mnemonic` can be written and read from where it is defined on: nothing else has to know of it. Guarantees:
immutable, interned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from mltriton.ir.attributes import Attribute
from mltriton.layouts.fields import Fields, Shape
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.layouts.encodings import DotOperandEncoding
    from mltriton.layouts.linear import LinearLayout

KNOWN: dict[str, type[LayoutAttr]] = {}  # the classes that can be read, by mnemonic


class NoLanesError(ValueError):
    """The encoding says which warp owns an element, but not which lane."""


class LayoutAttr(Attribute):
    """Base of layouts. `mnemonic` is the name in text, `alias` what a module's alias for it starts with."""

    __slots__ = ()

    if TYPE_CHECKING:
        mnemonic: ClassVar[str]
        alias: ClassVar[str]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "mnemonic" in vars(cls):
            KNOWN[cls.mnemonic] = cls

    def fields(self) -> Fields:
        """The fields to write."""
        raise NotImplementedError

    @classmethod
    def build(cls, fields: Fields) -> LayoutAttr:
        """The layout with the fields read. Raises `EncodingTextError`."""
        raise NotImplementedError

    @property
    def alias_base(self) -> str:
        """The name that a module's alias starts with: `blocked`, `slice`, `dot0`."""
        return self.alias

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """The linear layout of a tensor of `shape` (`hardware.linear_layout` remembers it). Raises `NoLanesError`."""
        raise NoLanesError(f"{type(self).__name__} has no lanes")


class SharedEncoding(LayoutAttr):
    """Base of layouts of shared memory: `linear_layout` takes the input "offset", which counts elements, to the last
    dimensions of a block; others are buffers, one after the other. A window of a block has the layout of the whole.
    """

    __slots__ = ()

    def turned(self) -> SharedEncoding:
        """The layout of the transposed view of a matrix."""
        raise NotImplementedError


class Encoding(LayoutAttr):
    """Base of encodings of tensors."""

    __slots__ = ()

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        """How a tensor of `shape` is cut between warps, dimension by dimension."""
        raise NotImplementedError

    def per_warp_shape(self, shape: Shape) -> Shape:
        """The shape of one warp's part of a tensor of `shape`."""
        return tuple(min(cut.size, extent) for cut, extent in zip(self.cut(shape), shape, strict=True))

    @property
    def warps(self) -> int:
        """The warps that share tensors of the encoding."""
        raise NotImplementedError

    def extent(self, dim: int) -> int:
        """A size of a dimension that shows all of the encoding's own structure along it."""
        raise NotImplementedError

    def natural_shape(self, rank: int) -> Shape:
        """The smallest tensor that shows all of the encoding's own structure."""
        return tuple(self.extent(dim) for dim in range(rank))

    def lane_tile(self, rank: int) -> Shape:
        """The tile in which one warp's part is cut into pieces, where lanes matter. Raises `NoLanesError`."""
        raise NotImplementedError

    def piece(self, box: Shape) -> Encoding:
        """The encoding of a box of elements inside one warp: this one's, with only what lies in the box. It depends on
        the box and not on the tensor.
        """
        raise NotImplementedError

    def word_bytes(self, element_bytes: int) -> int:
        """The bytes of a block that lie side by side in one lane: those of its words, at least of one element."""
        return element_bytes

    # What an operand of a dot asks of the encoding of the result.

    def operand_layout(self, operand: DotOperandEncoding, shape: Shape) -> LinearLayout:
        """The linear layout of an operand. Raises `NoLanesError`."""
        self._no_operands()

    def operand_extent(self, operand: DotOperandEncoding, dim: int) -> int:
        """`extent` of an operand."""
        return self.extent(dim)

    def operand_tile(self, operand: DotOperandEncoding) -> Shape:
        """Rows and columns of `lane_tile` of an operand. Raises `NoLanesError`."""
        self._no_operands()

    def operand_piece(self, operand: DotOperandEncoding, box: Shape) -> Encoding:
        """`piece` of an operand, by the parent of the result. Raises `NoLanesError`."""
        self._no_operands()

    def operand_in_shared(
        self, operand: DotOperandEncoding, shape: Shape, element_bytes: int, order: Shape
    ) -> SharedEncoding | None:
        """How an operand of `shape` lies best in shared memory, whose fastest dimension is `order[0]`; None where no
        order is better.
        """
        return None

    def operand_word_bytes(self, operand: DotOperandEncoding, element_bytes: int) -> int:
        """`word_bytes` of an operand."""
        return element_bytes

    def _no_operands(self) -> NoReturn:
        raise NoLanesError("an operand of a dot has lanes where the result is that of a matrix instruction")


class MatrixEncoding(Encoding):
    """Base of encodings of the results of matrix instructions: their operands have lanes. Warps have tiles of it."""

    __slots__ = ()

    if TYPE_CHECKING:
        warps_per_cta: Shape

    @property
    def tile(self) -> Shape:
        """Rows and columns (after batches) of the result that a warp has next to each other."""
        raise NotImplementedError

    @property
    def warps(self) -> int:
        return math.prod(self.warps_per_cta)

    def extent(self, dim: int) -> int:
        return self.tile[dim] * self.warps_per_cta[dim]

    def k_width(self, element_bytes: int) -> int:
        """The `k_width` of operands of the instruction whose elements have so many bytes; 0 where it says nothing."""
        return 0

    @property
    def together(self) -> int:
        """How many warps the instruction keeps busy at a time."""
        return 1

    def takes_lines(self, index: int) -> bool:
        """Whether operand `index` must have K along its lines where it is read from shared memory."""
        return False

    def row_orders(self) -> Sequence[Self]:
        """The same with the rows of an instruction in other orders, where the instruction does not know them."""
        return ()


class MessageEncoding(Encoding):
    """Base of encodings of what one access of the hardware moves as a block: `tile` at a time; `order` lists
    dimensions, fastest in memory first.
    """

    __slots__ = ()

    @property
    def tile(self) -> Shape:
        """Rows and columns (after batches) of one access."""
        raise NotImplementedError

    @property
    def fastest(self) -> int:
        """The dimension along which elements are neighbours."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """What one access moves, in words: `2 blocks of 8x16`."""
        raise NotImplementedError


class Cut(NamedTuple):
    """One dimension cut between warps: warp w has the `size` elements from ((w // stride) % warps) * size on, modulo
    the extent.

    Where warps * size exceeds the extent, several warps hold the same part.
    """

    size: int
    warps: int
    stride: int

    def parts(self, extent: int) -> int:
        """Number of different parts of a dimension of `extent` elements."""
        return max(1, min(self.warps, extent // self.size))


def cuts(sizes: Shape, warps: Shape, order: Shape) -> tuple[Cut, ...]:
    """Parts of these sizes; warps are numbered along the first dimension of `order` first."""
    strides = [1] * len(order)
    stride = 1
    for dim in order:
        strides[dim] = stride
        stride *= warps[dim]
    return tuple(Cut(*part) for part in zip(sizes, warps, strides, strict=True))


def last_first(rank: int) -> Shape:
    """The order of dimensions in which the last one is the fastest."""
    return tuple(reversed(range(rank)))
