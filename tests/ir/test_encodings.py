"""Layout encodings as text: what is written reads back as the same object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.ir.attribute_parser import AttributeParser
from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, SliceEncoding
from mltriton.layouts.text import EncodingTextError, build_encoding, encoding_text

powers = st.sampled_from([1, 2, 4, 8])
pairs = st.tuples(powers, powers)
orders = st.sampled_from([(0, 1), (1, 0)])


def per_thread(
    size: tuple[int, int], threads: tuple[int, int], warps: tuple[int, int], order: tuple[int, int]
) -> Encoding:
    """Upstream's form: the size per warp follows."""
    return BlockedEncoding((size[0] * threads[0], size[1] * threads[1]), warps, order, size, threads)


encodings: st.SearchStrategy[Encoding] = st.recursive(
    st.builds(BlockedEncoding, pairs, pairs, orders) | st.builds(per_thread, pairs, pairs, pairs, orders),
    lambda parent: (
        st.builds(SliceEncoding, st.integers(0, 1), parent)
        | st.builds(DotOperandEncoding, st.integers(0, 1), parent, st.sampled_from([0, 2]))
    ),
    max_leaves=3,
)


@given(encodings)
def test_text_reads_back(encoding: Encoding) -> None:
    text = encoding_text(encoding)
    assert AttributeParser(text).encoding() is encoding
    assert AttributeParser(text.replace("#ttg.", "#triton_gpu.")).encoding() is encoding


def test_upstreams_per_thread_form_gives_the_size_per_warp() -> None:
    text = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    encoding = AttributeParser(text).encoding()
    assert isinstance(encoding, BlockedEncoding)
    assert encoding.size_per_warp == (8, 16)
    assert encoding_text(encoding) == text


DPAS = {
    "repeatCount": 8,
    "systolicDepth": 8,
    "executionSize": 16,
    "opsPerChan": 2,
    "threadsPerWarp": 16,
    "warpsPerCTA": (1, 1),
    "repCluster": (4, 4),
}
BLOCK = {
    "warpsPerCTA": (1, 1),
    "instrShape": (16, 16),
    "numBlocks": 1,
    "order": (1, 0),
    "kWidth": 2,
    "threadsPerWarp": 16,
}


@pytest.mark.parametrize(("name", "fields"), [("ttig.dpas", DPAS), ("ttig.subgroup_2d_block", BLOCK)])
def test_fields_are_printed_where_they_are_set(name: str, fields: dict[str, object]) -> None:
    extra = {"ttig.dpas": {"rowBases": (2, 4, 1)}, "ttig.subgroup_2d_block": {"packedRows": 2}}[name]
    usual = {"ttig.dpas": {"rowBases": (1, 2, 4)}, "ttig.subgroup_2d_block": {"packedRows": 1}}[name]
    plain = build_encoding(name, fields)  # type: ignore[arg-type]
    assert build_encoding(name, {**fields, **usual}) is plain  # type: ignore[arg-type]
    other = build_encoding(name, {**fields, **extra})  # type: ignore[arg-type]
    [field] = extra
    assert field not in encoding_text(plain)
    assert field in encoding_text(other)
    assert AttributeParser(encoding_text(other)).encoding() is other


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("ttg.mma", {}, "unknown encoding #ttg.mma"),
        ("ttg.blocked", {"sizePerWarp": (4,), "warpsPerCTA": (4,)}, "order must be a list of integers"),
        ("ttg.slice", {"dim": (1,)}, "dim must be an integer"),
        ("ttg.dot_op", {"opIdx": 0, "parent": 3}, "parent must be an encoding"),
        ("ttg.blocked", {"CTAsPerCGA": (2, 1)}, "clusters of blocks are not supported"),
        ("ttig.dpas", {**DPAS, "rowBases": (1, 2, 2)}, r"rowBases must have each of \[1, 2, 4\] once"),
        ("ttig.dpas", {**DPAS, "rowBases": (2, 1)}, r"rowBases must have each of \[1, 2, 4\] once"),
        ("ttig.subgroup_2d_block", {**BLOCK, "packedRows": 3}, "packedRows must be a power of two"),
        ("ttig.subgroup_2d_block", {**BLOCK, "instrShape": (64, 8)}, "instrShape must have at most 32 rows"),
        ("ttig.subgroup_2d_block", {**BLOCK, "numBlocks": 64}, "rows of instrShape, numBlocks times, must have"),
        ("ttig.subgroup_2d_block", {**BLOCK, "packedRows": 32}, "packedRows must be a power of two that divides"),
    ],
)
def test_wrong_fields_are_named(name: str, fields: dict[str, object], message: str) -> None:
    with pytest.raises(EncodingTextError, match=message):
        build_encoding(name, fields)  # type: ignore[arg-type]
