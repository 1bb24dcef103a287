"""Shared memory of blocks on their way to global memory, which an engine copies.

Level: ttg to warp. Changes nothing. Where each warp hands its own rows to the engine (`store-by-warps`), long rows go
in pieces through the same memory, and slots for what is copied ahead have the room.
"""

from __future__ import annotations

from mltriton.ir.types import TensorType, byte_width

PIECE_BYTES = 256  # of a row


def piece_columns(columns: int, element_bytes: int) -> int:
    """Columns of a piece of rows of so many."""
    most = PIECE_BYTES // element_bytes
    return most if columns > most and columns % most == 0 else columns


def piece_of(block: TensorType) -> TensorType:
    """What is in shared memory at a time of a block of whole rows."""
    *outer, columns = block.shape
    return block.with_shape((*outer, piece_columns(columns, byte_width(block.element))))
