"""Call frames of linked code: whether the unwinder may be told of them.

Level: `binary`. The unwinder reads the records of `.eh_frame` when it is told of them, and trusts what they say; an
object from a damaged file must not end the process. Takes the section after its relocation; guarantees that records
which are accepted lie in it, that each refers to a record of the form that LLVM writes, and to code of the object.
Source: Linux Standard Base, core specification 5.0, section 10.6 (exception frames).
"""

from __future__ import annotations

import struct

_U32 = struct.Struct("<I")
# A common record after its length and its 0: version 1, and that it says how addresses are written ("zR").
_COMMON = b"\x01zR\0"
# An address relative to its field, and a size, by how addresses are written: in 4 or in 8 bytes.
_ADDRESSES = {0x1B: struct.Struct("<iI"), 0x1C: struct.Struct("<qQ")}


def are_sound(frames: bytes, place: int, code: range) -> bool:
    """Whether the records in `frames`, at address `place`, are whole and are of addresses in `code`."""
    known: dict[int, struct.Struct] = {}
    position = 0
    try:
        while position < len(frames):
            [length] = _U32.unpack_from(frames, position)
            if length == 0:
                return True
            start, end = position + _U32.size, position + _U32.size + length
            if end > len(frames) or length < 2 * _U32.size:
                return False
            [identity] = _U32.unpack_from(frames, start)
            if identity == 0:
                known[position] = _addresses(frames[start + _U32.size : end])
            else:
                at = start + _U32.size
                distance, size = known[start - identity].unpack_from(frames, at)
                first = place + at + distance
                if first not in code or first + size > code.stop:
                    return False
            position = end
    except (struct.error, LookupError, ValueError):
        return False
    return True


def _addresses(common: bytes) -> struct.Struct:
    """How the records of a common one, given after its identity, write addresses: LLVM has three short numbers behind
    the form's name, and then one byte that says it. LookupError for others.
    """
    *numbers, length, encoding = common[len(_COMMON) : len(_COMMON) + 5]
    if not common.startswith(_COMMON) or max(numbers) >= 0x80 or length != 1:
        raise LookupError
    return _ADDRESSES[encoding]
