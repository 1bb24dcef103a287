"""Which registers of a lane make one LLVM value on Xe: those that an instruction of the matrix engine takes.

Level: intrinsic -> llvm. Guarantees: LLVM vectors have at most 16 elements, all that SPIR-V's arithmetic takes.
"""

from __future__ import annotations

from functools import cache

from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import DotOperandEncoding
from mltriton.targets.llvm.types import Type, vector
from mltriton.targets.simt.lanes import Form, element_name, layout_of
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding

LONGEST_VECTOR = 16  # elements, of LLVM's vectors for SPIR-V


@cache
def form_of(type_: TensorType) -> Form:
    """How a block of that type is held."""
    element = vector(element_name(type_.element), 1)
    registers = layout_of(type_).count("register")
    count, held = _matrix_value(type_.encoding, element) or (1, element)
    if isinstance(type_.encoding, Subgroup2DBlockEncoding) and type_.encoding.packed_rows > 1 and count > registers:
        count, held = registers, held.with_lanes(held.lanes * registers // count)
    if count > registers or held.lanes > LONGEST_VECTOR:
        return Form(1, element, element)
    return Form(count, element, held)


def _matrix_value(encoding: object, element: Type) -> tuple[int, Type] | None:
    """What one instruction of the matrix engine takes: how many registers, in which LLVM value."""
    if element.element.startswith("ptr"):
        return None
    if isinstance(encoding, DpasEncoding):
        rows = encoding.repeat_count * encoding.execution_size // encoding.threads_per_warp
        return rows, element.with_lanes(rows)
    if isinstance(encoding, Subgroup2DBlockEncoding):
        return _block_value(encoding, element)
    if not (isinstance(encoding, DotOperandEncoding) and isinstance(encoding.parent, DpasEncoding)):
        return None
    dpas, bits = encoding.parent, element.bits
    if bits * dpas.ops_per_channel == 16 and encoding.op_idx == 0:
        return dpas.repeat_count, element.with_lanes(dpas.repeat_count)  # What becomes an operand of 16 bits.
    if bits * dpas.ops_per_channel != 32:
        return None
    across = dpas.repeat_count if encoding.op_idx == 0 else dpas.execution_size
    count = dpas.depth * across // dpas.threads_per_warp
    if bits == 32:
        return count, element.with_lanes(count)
    word = 8 * encoding.word_bytes(element.bytes)
    return count, vector(f"i{word}", count * bits // word)


def _block_value(encoding: Subgroup2DBlockEncoding, element: Type) -> tuple[int, Type] | None:
    """What an instruction of the matrix engine takes of a block that was loaded for it."""
    if element.bits == 32:
        return 8, element.with_lanes(8)
    if element.bits not in (8, 16):
        return None
    word = 8 * encoding.word_bytes(element.bytes)
    if word == element.bits == 8 and encoding.block[1] == encoding.threads_per_warp:
        return 8, element.with_lanes(8)
    if word != 32 and encoding.block[1] * element.bits != 256:
        return None
    return 8 * word // element.bits, vector(f"i{word}", 8)
