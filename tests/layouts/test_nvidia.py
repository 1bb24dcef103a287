"""Layouts of NVIDIA's matrix instructions and of shared memory: the formulas of the PTX documentation, by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from mltriton.errors import BackendError
from mltriton.ir.attribute_parser import AttributeParser
from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.encodings import DotOperandEncoding, Encoding, NoLanesError, SliceEncoding
from mltriton.layouts.fields import EncodingTextError
from mltriton.layouts.hardware import linear_layout
from mltriton.layouts.nvidia import NvidiaMmaEncoding
from mltriton.layouts.nvidia import mma_sync as make_sync
from mltriton.layouts.nvidia import wgmma as make_wgmma
from mltriton.layouts.shared import NvmmaSharedEncoding, SwizzledSharedEncoding
from mltriton.layouts.text import build_encoding, encoding_text
from mltriton.targets.base import DotSize, ResultPerWarp
from mltriton.targets.simt.swizzles import swizzle_of

Place = Callable[[int, int], tuple[int, int]]  # from register i and lane n to row and column


def mma_sync(warps: tuple[int, ...], share: tuple[int, ...]) -> NvidiaMmaEncoding:
    return make_sync(DotSize(16, 8, 16), ResultPerWarp(share, warps, 32))


def wgmma(warps: tuple[int, ...], share: tuple[int, ...]) -> NvidiaMmaEncoding:
    return make_wgmma(DotSize(64, 256, 16, warps=4), ResultPerWarp(share, warps, 32))


ONE = NvidiaMmaEncoding(2, (1, 1), (16, 8))


def a(width: int) -> Encoding:
    return DotOperandEncoding(0, ONE, width)


def b(width: int) -> Encoding:
    return DotOperandEncoding(1, ONE, width)


# "Matrix Fragments for mma.m16n8k8, k16 and k32": groupID = laneid >> 2, threadID_in_group = laneid % 4.
FRAGMENTS: dict[str, tuple[Encoding, tuple[int, int], Place]] = {
    "accumulators": (ONE, (16, 8), lambda i, n: (n // 4 + (8 if i >= 2 else 0), n % 4 * 2 + (i & 1))),
    "A of halves": (
        a(2),
        (16, 16),
        lambda i, n: (n // 4 + (0 if i in (0, 1, 4, 5) else 8), n % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)),
    ),
    "B of halves": (b(2), (16, 8), lambda i, n: (n % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), n // 4)),
    "A of tf32": (a(1), (16, 8), lambda i, n: (n // 4 + (0 if i in (0, 2) else 8), n % 4 + (4 if i >= 2 else 0))),
    "B of tf32": (b(1), (8, 8), lambda i, n: (n % 4 + 4 * i, n // 4)),
    "A of bytes": (
        a(4),
        (16, 32),
        lambda i, n: (n // 4 + (0 if i < 4 or 8 <= i < 12 else 8), n % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)),
    ),
    "B of bytes": (b(4), (32, 8), lambda i, n: (n % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), n // 4)),
}


@pytest.mark.parametrize(("encoding", "shape", "place"), FRAGMENTS.values(), ids=FRAGMENTS)
def test_fragments_of_mma(encoding: Encoding, shape: tuple[int, int], place: Place) -> None:
    layout = linear_layout(encoding, shape)
    assert (layout.count("lane"), layout.count("register")) == (32, shape[0] * shape[1] // 32)
    for lane, register in product(range(32), range(layout.count("register"))):
        assert layout.at(lane=lane, register=register) == place(register, lane)


@pytest.mark.parametrize("columns", [8, 64, 256])
def test_accumulators_of_wgmma(columns: int) -> None:
    """D of m64nNk16: warp w has rows 16 w to 16 w + 15, register i column 8 (i / 4) + 2 (lane % 4) + i % 2."""
    layout = linear_layout(wgmma((4, 1), (16, columns)), (64, columns))
    for warp, lane, i in product(range(4), range(32), range(columns // 2)):
        wanted = 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2
        assert layout.at(warp=warp, lane=lane, register=i) == wanted


def test_left_operand_of_wgmma_in_registers() -> None:
    layout = linear_layout(DotOperandEncoding(0, wgmma((4, 1), (16, 64)), 2), (64, 32))
    for warp, lane, i in product(range(4), range(32), range(16)):
        row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
        column = 2 * (lane % 4) + i % 2 + 8 * (i // 4 % 2) + 16 * (i // 8)
        assert layout.at(warp=warp, lane=lane, register=i) == (row, column)


def test_a_result_of_wgmma_is_a_left_operand_as_it_is() -> None:
    """Registers d[8 s] to d[8 s + 7] of 16 columns are the left operand of step s."""
    result = wgmma((4, 1), (16, 64))
    assert linear_layout(result, (64, 64)) == linear_layout(DotOperandEncoding(0, result, 2), (64, 64))


def test_wgmma_takes_no_right_operand_from_registers() -> None:
    with pytest.raises(NoLanesError, match="reads it from shared memory"):
        linear_layout(DotOperandEncoding(1, wgmma((4, 1), (16, 64)), 2), (16, 64))
    with pytest.raises(NoLanesError, match="no lanes without its kWidth"):
        linear_layout(DotOperandEncoding(1, ONE), (16, 8))


def test_warps_and_clusters() -> None:
    """Version 2 numbers warps along columns first, version 3 along rows; a cluster belongs to one warp."""
    two = mma_sync((2, 2), (32, 16))
    assert two.cut((64, 32)) == ((32, 2, 2), (16, 2, 1))
    layout = linear_layout(two, (64, 32))
    assert layout.vectors("warp") == ((0, 16), (32, 0))
    assert layout.vectors("register") == ((0, 1), (8, 0), (0, 8), (16, 0))
    three = wgmma((8, 2), (16, 128))
    assert linear_layout(three, (128, 256)).vectors("warp") == ((16, 0), (32, 0), (64, 0), (0, 128))
    left = linear_layout(DotOperandEncoding(0, two, 2), (64, 32))
    assert left.vectors("warp") == ((0, 0), (32, 0))
    right = linear_layout(DotOperandEncoding(1, two, 2), (32, 32))
    assert right.vectors("warp") == ((0, 16), (0, 0))


def test_without_a_cluster_registers_repeat_as_upstream_does() -> None:
    """Upstream's text has no repCluster: instructions repeat over the tensor, columns first."""
    text = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>"
    encoding = AttributeParser(text).encoding()
    assert encoding_text(encoding) == text
    layout = linear_layout(encoding, (64, 16))
    assert layout.vectors("register") == ((0, 1), (8, 0), (0, 8), (32, 0))
    assert layout.vectors("warp") == ((16, 0),)


PIECES = {
    "result": (mma_sync((2, 2), (64, 64)), (16, 8)),
    "left": (DotOperandEncoding(0, mma_sync((2, 2), (64, 64)), 2), (16, 16)),
    "right": (DotOperandEncoding(1, mma_sync((2, 2), (64, 64)), 2), (16, 16)),
    "result of wgmma": (wgmma((4, 1), (16, 64)), (16, 64)),
}


@pytest.mark.parametrize(("encoding", "tile"), PIECES.values(), ids=PIECES)
def test_pieces(encoding: Encoding, tile: tuple[int, int]) -> None:
    assert encoding.lane_tile(2) == tile
    whole, part = linear_layout(encoding, (128, 128)), linear_layout(encoding.piece(tile), tile)
    held = {whole.at(register=r, lane=5) for r in range(whole.count("register"))}
    assert {part.at(register=r, lane=5) for r in range(part.count("register"))} <= held


def test_slices() -> None:
    """A row of a result is in four lanes, a column in eight."""
    rows = linear_layout(SliceEncoding(1, ONE), (16,))
    assert (rows.vectors("register"), rows.vectors("lane")) == (((8,),), ((0,), (0,), (1,), (2,), (4,)))
    columns = linear_layout(SliceEncoding(0, ONE), (8,))
    assert (columns.vectors("register"), columns.vectors("lane")) == (((1,),), ((2,), (4,), (0,), (0,), (0,)))


def test_blocked_with_lanes() -> None:
    text = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    layout = linear_layout(AttributeParser(text).encoding(), (64, 32))
    for warp, lane, i in product(range(4), range(32), range(16)):
        wanted = 8 * warp + lane // 4 + 32 * (i // 8), 4 * (lane % 4) + i % 4 + 16 * (i // 4 % 2)
        assert layout.at(warp=warp, lane=lane, register=i) == wanted


# Shared memory: "Swizzling modes". The groups of 16 bytes of row r of so many bytes, in the order of memory.
SWIZZLED = {
    128: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    64: ["0123", "0123", "1032", "1032", "2301", "2301", "3210", "3210"],
    32: ["01", "01", "01", "01", "10", "10", "10", "10"],
    0: ["0"] * 8,
}


def shared(text: str) -> SharedEncoding:
    found = AttributeParser(text).attribute()
    assert isinstance(found, SharedEncoding)
    assert encoding_text(found) == text
    return found


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("swizzle", SWIZZLED)
def test_what_tensor_copies_leave(swizzle: int, transposed: bool) -> None:
    """Rows of `swizzle` bytes below each other, then those of the next columns."""
    text = f"#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {str(transposed).lower()}, "
    groups = SWIZZLED[swizzle]
    width, rows = 8 * len(groups[0]), 32
    shape = (2 * width, rows) if transposed else (rows, 2 * width)
    layout = linear_layout(shared(f"{text}elementBitWidth = 16}}>"), shape)
    for part, row, group, element in product(range(2), range(rows), range(len(groups[0])), range(8)):
        offset = part * rows * width + row * width + group * 8 + element
        wanted = (row, part * width + 8 * int(groups[row % 8][group]) + element)
        assert layout.at(offset=offset) == (wanted[::-1] if transposed else wanted)


def test_swizzled_rows() -> None:
    """Element c of row r is at ((c / vec) ^ (r / perPhase % maxPhase)) vec + c % vec; buffers follow each other."""
    encoding = shared("#ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [1, 0]}>")
    layout = linear_layout(encoding, (3, 16, 32))
    assert layout.sizes == (16, 32)
    for row, column in product(range(16), range(32)):
        offset = 32 * row + ((column // 4) ^ (row // 2 % 4)) * 4 + column % 4
        assert layout.at(offset=offset) == (row, column)


def test_swizzled_columns() -> None:
    encoding = shared("#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 8, order = [0, 1]}>")
    layout = linear_layout(encoding, (16, 8))
    for row, column in product(range(16), range(8)):
        assert layout.at(offset=16 * column + ((row // 2) ^ column) * 2 + row % 2) == (row, column)


@pytest.mark.parametrize(
    "encoding", [SwizzledSharedEncoding(4, 2, 4, (1, 0)), NvmmaSharedEncoding(64, False, 16)], ids=["swizzled", "nvmma"]
)
def test_the_transposed_view(encoding: SharedEncoding) -> None:
    """The same offsets, with rows and columns exchanged."""
    plain, turned = linear_layout(encoding, (16, 32)), linear_layout(encoding.turned(), (32, 16))
    assert all(turned.at(offset=offset) == plain.at(offset=offset)[::-1] for offset in range(512))


def test_the_type_of_a_block_in_shared_memory_has_a_layout() -> None:
    text = "!ttg.memdesc<3x128x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, "
    text += "elementBitWidth = 16}>, #ttg.shared_memory, mutable>"
    assert str(AttributeParser(text).type()) == text


MMA = {"versionMajor": 2, "warpsPerCTA": (4, 1), "instrShape": (16, 8)}
WRONG = [
    ("ttg.nvidia_mma", {**MMA, "versionMajor": 4}, "versionMajor must be 2"),
    ("ttg.nvidia_mma", {**MMA, "instrShape": (8, 8)}, r"instrShape of version 2 must be \[16, 8\]"),
    ("ttg.nvidia_mma", {**MMA, "warpsPerCTA": (3, 1)}, "warpsPerCTA must be a list of powers of two"),
    ("ttg.nvidia_mma", {**MMA, "versionMajor": 3}, r"instrShape of version 3 must be \[16 or 32 or 64, N, K\]"),
    (
        "ttg.nvidia_mma",
        {"versionMajor": 3, "warpsPerCTA": (2, 2), "instrShape": (16, 64, 16)},
        "four warps of version 3 lie below each other",
    ),
    ("ttg.swizzled_shared", {"vec": 3, "perPhase": 1, "maxPhase": 1, "order": (1, 0)}, "vec must be a power of two"),
    (
        "ttg.nvmma_shared",
        {"swizzlingByteWidth": 16, "transposed": False, "elementBitWidth": 16},
        "swizzlingByteWidth must be one of 0, 32, 64, 128",
    ),
    (
        "ttg.nvmma_shared",
        {"swizzlingByteWidth": 32, "transposed": 1, "elementBitWidth": 16},
        "transposed must be true or false",
    ),
]


@pytest.mark.parametrize(("name", "fields", "message"), WRONG)
def test_wrong_fields_are_named(name: str, fields: dict[str, object], message: str) -> None:
    with pytest.raises(EncodingTextError, match=message):
        build_encoding(name, fields)


def test_batches() -> None:
    encoding = mma_sync((2, 2, 1), (1, 16, 8))
    assert isinstance(encoding, NvidiaMmaEncoding)
    layout = linear_layout(encoding, (2, 32, 8))
    assert layout.vectors("warp") == ((0, 16, 0), (1, 0, 0))
    assert layout.vectors("register") == ((0, 0, 1), (0, 8, 0))


def test_a_block_of_any_size_fills_its_layout_or_is_refused() -> None:
    """Rows of one piece may be as many as there are; of two pieces the second ones would lie behind 256 rows."""
    encoding = NvmmaSharedEncoding(128, False, 16)
    assert swizzle_of(encoding, (3, 144, 64)).images[0][-1] == 128 * 64
    assert swizzle_of(encoding, (64, 192)).images[1][-1] == 128 * 64
    with pytest.raises(BackendError, match="does not fill"):
        swizzle_of(encoding, (3, 144, 128))
    with pytest.raises(BackendError, match="does not fill"):
        swizzle_of(encoding.turned(), (128, 144))
