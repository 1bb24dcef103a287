"""Layout encodings as text: `#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>`.

Level: ttg and warp. One `Spelling` a class, in `SPELLINGS`, gives the name, the alias that a module uses for it, the
fields to write and how to build the encoding from the fields read. Guarantees: what is written reads back as the same
object. Fields that upstream writes and that mean one block per cluster are read and dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, Shape, SliceEncoding
from mltriton.layouts.explicit import LinearEncoding
from mltriton.layouts.xe import DpasEncoding, Subgroup2DBlockEncoding

Field = int | Shape | tuple[Shape, ...] | Encoding
Fields = Mapping[str, Field]


class EncodingTextError(ValueError):
    """Fields that do not make an encoding; the parser adds the place."""


@dataclass(frozen=True)
class Spelling:
    """How one class of encodings is written: `#name<{fields}>`, with alias base name `alias`."""

    name: str
    alias: Callable[[Encoding], str]
    fields: Callable[..., Fields]
    build: Callable[[Fields], Encoding]


def _blocked_fields(encoding: BlockedEncoding) -> Fields:
    sizes: Fields = {"sizePerWarp": encoding.size_per_warp}
    if encoding.size_per_thread is not None and encoding.threads_per_warp is not None:
        sizes = {"sizePerThread": encoding.size_per_thread, "threadsPerWarp": encoding.threads_per_warp}
    return {**sizes, "warpsPerCTA": encoding.warps_per_cta, "order": encoding.order}


def _build_blocked(fields: Fields) -> Encoding:
    warps, order = _shape(fields, "warpsPerCTA"), _shape(fields, "order")
    if "sizePerThread" not in fields:
        sizes = _shape(fields, "sizePerWarp")
        _check_ranks(order, sizes, warps)
        return BlockedEncoding(sizes, warps, order)
    size, threads = _shape(fields, "sizePerThread"), _shape(fields, "threadsPerWarp")
    _check_ranks(order, size, threads, warps)
    return BlockedEncoding(tuple(map(math.prod, zip(size, threads, strict=True))), warps, order, size, threads)


def _check_ranks(order: Shape, *sizes: Shape) -> None:
    if sorted(order) != list(range(len(order))):
        raise EncodingTextError("order must list every dimension once")
    if any(len(size) != len(order) or min(size, default=1) < 1 for size in sizes):
        raise EncodingTextError(f"every list must have {len(order)} sizes from 1 on, as order has dimensions")


def _slice_fields(encoding: SliceEncoding) -> Fields:
    return {"dim": encoding.dim, "parent": encoding.parent}


def _build_slice(fields: Fields) -> Encoding:
    return SliceEncoding(_integer(fields, "dim"), _parent(fields))


def _dot_fields(encoding: DotOperandEncoding) -> Fields:
    width: Fields = {"kWidth": encoding.k_width} if encoding.k_width else {}
    return {"opIdx": encoding.op_idx, "parent": encoding.parent, **width}


def _build_dot(fields: Fields) -> Encoding:
    return DotOperandEncoding(_integer(fields, "opIdx"), _parent(fields), _integer({"kWidth": 0, **fields}, "kWidth"))


def _dot_alias(encoding: Encoding) -> str:
    return f"dot{encoding.op_idx}" if isinstance(encoding, DotOperandEncoding) else "dot"


def _dpas_fields(encoding: DpasEncoding) -> Fields:
    return {
        "repeatCount": encoding.repeat_count,
        "systolicDepth": encoding.systolic_depth,
        "executionSize": encoding.execution_size,
        "opsPerChan": encoding.ops_per_channel,
        "threadsPerWarp": encoding.threads_per_warp,
        "warpsPerCTA": encoding.warps_per_cta,
        "repCluster": encoding.rep_cluster,
        **({} if encoding.row_bases is None else {"rowBases": encoding.row_bases}),
    }


def _build_dpas(fields: Fields) -> Encoding:
    """Upstream also writes the shapes of the operands (A, B, C), which follow from the rest."""
    numbers = ("repeatCount", "systolicDepth", "executionSize", "opsPerChan", "threadsPerWarp")
    shapes = ("warpsPerCTA", "repCluster")
    made = DpasEncoding(*(_integer(fields, name) for name in numbers), *(_shape(fields, name) for name in shapes))
    if "rowBases" not in fields:
        return made
    bases = _shape(fields, "rowBases")
    if sorted(bases) != list(made.rows):
        raise EncodingTextError(f"rowBases must have each of {list(made.rows)} once")
    return made if bases == made.rows else made.replaced(row_bases=bases)


def _2d_block_fields(encoding: Subgroup2DBlockEncoding) -> Fields:
    size: Fields = {} if encoding.size_per_warp is None else {"sizePerWarp": encoding.size_per_warp}
    packed: Fields = {} if encoding.packed_rows == 1 else {"packedRows": encoding.packed_rows}
    return {
        "warpsPerCTA": encoding.warps_per_cta,
        "instrShape": encoding.block,
        "numBlocks": encoding.blocks,
        "order": encoding.order,
        "kWidth": encoding.element_bytes,
        "threadsPerWarp": encoding.threads_per_warp,
        **size,
        **packed,
    }


def _build_2d_block(fields: Fields) -> Encoding:
    packed = _integer({"packedRows": 1, **fields}, "packedRows")
    if packed < 1 or packed & (packed - 1) or _shape(fields, "instrShape")[0] % packed:
        raise EncodingTextError("packedRows must be a power of two that divides the rows of instrShape")
    return Subgroup2DBlockEncoding(
        _shape(fields, "warpsPerCTA"),
        _shape(fields, "instrShape"),
        _integer(fields, "numBlocks"),
        _shape(fields, "order"),
        _integer(fields, "kWidth"),
        _integer(fields, "threadsPerWarp"),
        _shape(fields, "sizePerWarp") if "sizePerWarp" in fields else None,
        packed,
    )


def _linear_fields(encoding: LinearEncoding) -> Fields:
    return {"register": encoding.register, "lane": encoding.lane, "warp": encoding.warp, "block": ()}


def _build_linear(fields: Fields) -> Encoding:
    if _bases({"block": (), **fields}, "block"):
        raise EncodingTextError("block must be []: clusters of blocks are not supported")
    bases = [_bases(fields, name) for name in ("register", "lane", "warp")]
    ranks = {len(vector) for vectors in bases for vector in vectors}
    if len(ranks) != 1:
        raise EncodingTextError("the bases must have one length, the rank of the tensor")
    if any(x & (x - 1) for vectors in bases for vector in vectors for x in vector):
        raise EncodingTextError("a basis must have 0 or a power of two for each dimension")
    return LinearEncoding(ranks.pop(), *bases)


SPELLINGS: dict[type[Encoding], Spelling] = {
    BlockedEncoding: Spelling("ttg.blocked", lambda _: "blocked", _blocked_fields, _build_blocked),
    SliceEncoding: Spelling("ttg.slice", lambda _: "slice", _slice_fields, _build_slice),
    DotOperandEncoding: Spelling("ttg.dot_op", _dot_alias, _dot_fields, _build_dot),
    LinearEncoding: Spelling("ttg.linear", lambda _: "linear", _linear_fields, _build_linear),
    DpasEncoding: Spelling("ttig.dpas", lambda _: "dpas", _dpas_fields, _build_dpas),
    Subgroup2DBlockEncoding: Spelling("ttig.subgroup_2d_block", lambda _: "block", _2d_block_fields, _build_2d_block),
}


def encoding_text(encoding: Encoding, nested: Callable[[Encoding], str] | None = None) -> str:
    """The text of an encoding; `nested` writes the encodings inside it (with aliases, say)."""
    spelling = SPELLINGS[type(encoding)]
    inner = nested or encoding_text
    fields = (f"{name} = {_field_text(value, inner)}" for name, value in spelling.fields(encoding).items())
    return f"#{spelling.name}<{{{', '.join(fields)}}}>"


def alias_base(encoding: Encoding) -> str:
    """The name that a module's alias for the encoding starts with: `blocked`, `slice`, `dot0`."""
    return SPELLINGS[type(encoding)].alias(encoding)


def build_encoding(name: str, fields: Fields) -> Encoding:
    """The encoding of that name (`ttg.blocked`; upstream's older `triton_gpu.blocked` too) with the fields read.

    Raises `EncodingTextError`.
    """
    for spelling in SPELLINGS.values():
        if spelling.name == name.replace("triton_gpu.", "ttg."):
            return spelling.build(_without_clusters(fields))
    known = ", ".join(spelling.name for spelling in SPELLINGS.values())
    raise EncodingTextError(f"unknown encoding #{name} (known: {known})")


def is_encoding_name(name: str) -> bool:
    """Whether `ttg.blocked` names an encoding."""
    return any(spelling.name == name.replace("triton_gpu.", "ttg.") for spelling in SPELLINGS.values())


def _without_clusters(fields: Fields) -> Fields:
    for name in ("CTAsPerCGA", "CTASplitNum"):
        if math.prod(_shape({name: (), **fields}, name)) != 1:
            raise EncodingTextError(f"{name} must be 1 in every dimension: clusters of blocks are not supported")
    return {name: value for name, value in fields.items() if name not in ("CTAsPerCGA", "CTASplitNum", "CTAOrder")}


def _field_text(value: Field, nested: Callable[[Encoding], str]) -> str:
    if isinstance(value, Encoding):
        return nested(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_field_text(item, nested) for item in value)}]"
    return str(value)


def _shape(fields: Fields, name: str) -> Shape:
    value = fields.get(name)
    if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
        raise EncodingTextError(f"{name} must be a list of integers")
    return cast(Shape, value)


def _bases(fields: Fields, name: str) -> tuple[Shape, ...]:
    value = fields.get(name)
    if not isinstance(value, tuple) or not all(isinstance(item, tuple) for item in value):
        raise EncodingTextError(f"{name} must be a list of bases, such as [[0, 1], [0, 2]]")
    return cast("tuple[Shape, ...]", value)


def _integer(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int):
        raise EncodingTextError(f"{name} must be an integer")
    return value


def _parent(fields: Fields) -> Encoding:
    value = fields.get("parent")
    if not isinstance(value, Encoding):
        raise EncodingTextError("parent must be an encoding")
    return value
