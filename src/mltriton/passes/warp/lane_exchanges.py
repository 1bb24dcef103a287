"""Layout changes between lanes: when a block goes through shared memory, and how it lies there.

Level: ttg to warp, on targets that swizzle shared memory. What `distribute-to-warps` asks of a conversion whose two
encodings say which lane holds which element.
"""

from __future__ import annotations

from typing import cast

from mltriton.ir.types import TensorType, byte_width
from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.conversions import Means, conversion
from mltriton.layouts.encodings import DotOperandEncoding, Encoding, MatrixEncoding
from mltriton.layouts.exchanges import between
from mltriton.layouts.hardware import linear_layout, warp_layout
from mltriton.layouts.lanes import order_of

MANY = 8  # elements of a lane that other lanes want


def encoding_between(source: TensorType, target: TensorType) -> SharedEncoding | None:
    """How a matrix lies in shared memory on its way from one encoding to another: an operand of a product as the
    instruction likes to load it.
    """
    width, before, after = byte_width(source.element), _encoding(source), _encoding(target)
    if isinstance(after, DotOperandEncoding):
        return after.parent.operand_in_shared(after, source.shape, width, order_of(before, source.shape))
    if source.rank == 1:
        return None
    return between(linear_layout(before, source.shape), linear_layout(after, source.shape), width)


def is_spread(source: TensorType, target: TensorType) -> bool:
    """Whether the lanes of a warp want so much of each other that is better exchanged through shared memory."""
    before, after = _encoding(source), _encoding(target)
    if source.rank != 2 or not isinstance(before, MatrixEncoding) or isinstance(after, DotOperandEncoding):
        return False
    how = conversion(*(warp_layout(end, end.per_warp_shape(source.shape)) for end in (before, after)))
    return how.means is Means.SHUFFLE and how.registers >= MANY


def _encoding(block: TensorType) -> Encoding:
    return cast(Encoding, block.encoding)
