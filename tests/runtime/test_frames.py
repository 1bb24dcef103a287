"""Call frames of objects: which the unwinder may be told of."""

from __future__ import annotations

import struct

import pytest

from mltriton.runtime.native.frames import are_sound

COMMON = bytes.fromhex("14000000 00000000 017a5200 01781001 1b0c0708 90010000")
PLACE = 0x10000
CODE = range(0x8000, 0x8100)


def record(first: int, size: int, distance: int = 0) -> bytes:
    """The frame of code from `first` on, `distance` bytes behind the common record."""
    at = len(COMMON) + distance
    field = PLACE + at + 8
    return struct.pack("<IIiI", 16, at + 4, first - field, size) + bytes(4)


def test_what_is_whole() -> None:
    frames = COMMON + record(0x8000, 16) + record(0x80F0, 16, 20)
    assert are_sound(frames, PLACE, CODE)
    assert are_sound(frames + bytes(4), PLACE, CODE)
    assert are_sound(b"", PLACE, CODE)


@pytest.mark.parametrize(
    "frames",
    [
        COMMON + record(0x7FFF, 16),
        COMMON + record(0x80F0, 17),
        COMMON + record(0x8000, 16)[:-1],
        record(0x8000, 16),
        COMMON.replace(b"\x1b", b"\x03") + record(0x8000, 16),
        COMMON.replace(b"zR", b"zP") + record(0x8000, 16),
        COMMON[:12],
        b"\x04\0\0\0" + bytes(4),
        b"\xff\xff\xff\xff" + bytes(60),
    ],
)
def test_what_is_damaged(frames: bytes) -> None:
    assert not are_sound(frames, PLACE, CODE)


def test_no_flipped_byte_ends_in_an_exception() -> None:
    frames = COMMON + record(0x8000, 16)
    for place in range(len(frames)):
        for bit in range(8):
            damaged = bytearray(frames)
            damaged[place] ^= 1 << bit
            assert are_sound(bytes(damaged), PLACE, CODE) in (True, False)
