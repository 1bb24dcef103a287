"""Random numbers: Philox's published test vectors, an independent implementation, and the distributions."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, TypeMismatchError

from .tracing import Trace, compute

# Random123's known answers for philox4x32-10: counter, key, result.
KNOWN = [
    ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    words = [np.full(2, word, np.uint32) for word in (*counter, *key)]
    found = compute(lambda *words: tl.philox_impl(*words), *words)
    assert tuple(int(word[0]) for word in found) == expected
    seed = np.full(2, key[0] | key[1] << 32, np.uint64)
    found = compute(lambda seed, *words: tl.philox(seed, *words), seed, *words[:4])
    assert tuple(int(word[1]) for word in found) == expected


def philox(bits: int, counter: list[int], key: list[int]) -> list[int]:
    """Philox4x{bits}-10 on Python integers."""
    mask = (1 << bits) - 1
    a, b = (0xD2511F53, 0xCD9E8D57) if bits == 32 else (0xD2E7470EE14C6C93, 0xCA5A826395121157)
    weyl = (0x9E3779B9, 0xBB67AE85) if bits == 32 else (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
    for _ in range(10):
        x, y = a * counter[0], b * counter[2]
        counter = [(y >> bits) ^ counter[1] ^ key[0], y & mask, (x >> bits) ^ counter[3] ^ key[1], x & mask]
        key = [(k + w) & mask for k, w in zip(key, weyl, strict=True)]
    return counter


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_seed_and_offset(kind):
    offset = np.array([0, 1, 12345, 2**31 - 1, 2**33 + 7 if kind is np.int64 else 9, 2, 3, 4], kind)
    seed = 0x123456789
    found = compute(lambda offset: tl.randint4x(seed, offset), offset)
    for i, place in enumerate(offset.tolist()):
        expected = philox(32, [place & 0xFFFFFFFF, place >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
        assert [int(word[i]) for word in found] == expected
    assert compute(lambda offset: tl.randint(seed, offset), offset).tolist() == found[0].tolist()


def test_64_bit_counters():
    counter = [np.array([1, 2**40 + 3], np.uint64) * np.uint64(i + 1) for i in range(4)]
    found = compute(lambda *counter: tl.philox(99, *counter), *counter)
    for i in range(2):
        assert [int(word[i]) for word in found] == philox(64, [int(c[i]) for c in counter], [99, 0])


def test_uniform_numbers():
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**30, 3, 12345678], np.uint32)
    found = compute(lambda x: tl.uint_to_uniform_float(x), words)
    signed = words.view(np.int32)
    expected = np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)
    np.testing.assert_array_equal(found, expected)
    assert found.max() < 1 and found.min() == 0


def test_distributions():
    offset = np.arange(4096, dtype=np.int32)
    uniform = compute(lambda offset: tl.rand(7, offset), offset)
    assert (
        uniform.min() >= 0
        and uniform.max() < 1
        and abs(uniform.mean() - 0.5) < 0.02
        and abs(uniform.var() - 1 / 12) < 0.005
    )
    normal = compute(lambda offset: tl.randn4x(7, offset), offset)
    for part in normal:
        assert abs(part.mean()) < 0.06 and abs(part.std() - 1) < 0.04
    np.testing.assert_array_equal(compute(lambda offset: tl.randn(7, offset), offset), normal[0])
    first = compute(lambda offset: tl.rand4x(7, offset), offset)[0]
    np.testing.assert_array_equal(first, uniform)


def test_misuse(kernel: Trace):
    offset = tl.arange(0, 8)
    with pytest.raises(TypeMismatchError, match="a seed must be an integer"):
        tl.rand(1.5, offset)
    with pytest.raises(TypeMismatchError, match="32 or 64 bits"):
        tl.philox(1, *[offset.to(tl.int16)] * 4)
    with pytest.raises(TypeMismatchError, match="unsigned counters"):
        tl.philox_impl(*[offset] * 6)
    with pytest.raises(TypeMismatchError, match="integers of 32 or 64 bits"):
        tl.uint_to_uniform_float(offset.to(tl.float32))
    with pytest.raises(ConstexprError, match="the number of rounds"):
        tl.rand(1, offset, tl.program_id(0))
