"""Attention of one new query per sequence over a cache of keys and values in pages (PagedAttention, Kwon et al.,
arXiv:2309.06180), with long sequences split over programs (Flash-Decoding).

Level: user. Checks the arrays, chooses sizes and launches the kernels of `attention_paged_kernels.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mltriton as triton
from mltriton.kernels.arrays import (
    Array,
    addresses,
    empty,
    item_size,
    require_arrays,
    require_no_gradient,
    strides_of,
)
from mltriton.kernels.attention import scale_of
from mltriton.kernels.attention_blocks import block_dim
from mltriton.kernels.attention_paged_blocks import (
    REST,
    paged_attention_blocks_kernel,
    paged_attention_blocks_warps_kernel,
)
from mltriton.kernels.attention_paged_checks import check_options, check_pages, check_shapes
from mltriton.kernels.attention_paged_kernels import (
    combine_splits_kernel,
    paged_attention_kernel,
    paged_attention_warps_kernel,
)
from mltriton.kernels.attention_paged_tiles import paged_attention_tiles_kernel
from mltriton.kernels.calls import again, is_known, key_of, remember
from mltriton.kernels.gemm_tiles import MANY
from mltriton.kernels.launch import Launch, block_limits, family_of_warps, target_of
from mltriton.records import NamedTuple
from mltriton.runtime.native.launcher import num_threads
from mltriton.runtime.specialization import ON_HOST, device_of

if TYPE_CHECKING:
    from mltriton.runtime.jit import JITFunction
    from mltriton.targets.base import BlockIO

SHORTEST_SPLIT = 512  # keys for which a program of their own pays; on a CPU half of them
LONG_ROW = 512  # bytes of a key, of which a step then has few that do not come in rectangles
LEAST_BLOCK = 4  # keys of a block that pays: two are read faster with an address for each
WORD = 4  # bytes; a block of a matrix starts at a multiple of them
PROGRAMS = 256  # as many fill a GPU
TILE_PROGRAMS = 512  # as many run at once, four on a multiprocessor: of more some come when most are done
STEP = 64  # keys of one step, read by blocks
WARPS = {True: 8, False: 4}  # of a program that reads blocks, by form
# Bytes of a program's block of queries [heads, dim], and of one block of keys, that leave registers for all else.
QUERY_BYTES = 2048
KEY_BYTES = {2: 16384, 4: 8192}
TILE_WARPS = 2
TILE_STAGES = 2  # 713 us of 64 x 8192 keys on an H100; 720 with 3, 734 with 1
TILE_BYTES = 8192  # of the keys of one step that warps share
PIECE = 4  # rectangles of values that are put together at most


class Form(NamedTuple):
    """Which kernel, the heads of keys that a program does together, and the keys of one step.

    `block`: keys that lie in one page, as rows of a rectangle, where hardware reads such; 1 where keys have an address
    each (of 4 or 8, values alone are rectangles). Then `heads` counts the heads of queries that a program does for one
    head of keys. None for the kernels of a CPU, and where warps share `tiles`, that have an address for each key: then
    `heads` is of queries, too, and there is one form for both.
    """

    warp_level: bool
    heads: int
    keys: int
    block: int | None = None
    tiles: bool = False


class Matrix(NamedTuple):
    """A cache as one matrix: rows in all; from page to page and from head to head; columns from head to head; and
    elements from row to row and inside a row. Of a cache that is none, with elements in place of rows.
    """

    rows: int
    page_rows: int
    head_rows: int
    head_columns: int
    stride: int
    element: int = 1


def matrix_of(cache: Array) -> Matrix | None:
    """A cache [pages, page_size, kv_heads, dim] as a matrix that starts where the cache does and in which each page of
    a head is a rectangle; None where its strides make none.
    """
    pages, page, heads, dim = cache.shape
    per_page, stride, per_head, per_element = strides_of(cache)
    if (dim > 1 and per_element != 1) or stride < dim or per_page % stride or min(per_page, per_head) < 0:
        return None
    head_rows, head_columns = divmod(per_head, stride)
    if (heads - 1) * head_columns + dim > stride:
        return None
    rows = (pages - 1) * (per_page // stride) + (heads - 1) * head_rows + page
    return Matrix(rows, per_page // stride, head_rows, head_columns, stride)


def has_blocks(cache: Array, limits: BlockIO) -> bool:
    """Whether the pages of a cache can be loaded as blocks of a matrix."""
    matrix, size = matrix_of(cache), item_size(cache)
    if matrix is None or matrix.stride * size < limits.max_row_bytes or matrix.head_columns * size % WORD:
        return False
    alignment = limits.host_alignment if device_of(cache) == ON_HOST else limits.base_alignment
    return matrix.stride * size % limits.pitch_multiple == 0 and addresses([cache])[0] % alignment == 0


def paged_attention(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    seq_lens: Array,
    sm_scale: float | None = None,
    warp_level: bool = True,
    *,
    alibi_slopes: Array | None = None,
    soft_cap: float | None = None,
    splits: int | None = None,
    target: str | None = None,
) -> Array:
    """softmax(q k^T * sm_scale) v for one query per head and sequence, over keys and values that lie in pages.

    q [sequences, heads, dim]; k_cache and v_cache [pages, page_size, kv_heads, dim], any strides; f16, bf16 or f32;
    block_table [sequences, max_pages] int32: the pages of a sequence in order; seq_lens [sequences] int32: its number
    of keys (0 gives zeros). `kv_heads` divides `heads`. `sm_scale` is 1 / sqrt(dim) when None. Scores are limited to
    `soft_cap * tanh(score / soft_cap)`, then `alibi_slopes` [heads] f32 times (key - last key) is added. `warp_level`
    chooses the form of the kernel, where a target has two; `splits` into how many stretches of keys a sequence is cut
    (chosen when None); `target` is what it runs on ("xe:pvc", say), None where the arrays lie. Table entries and slots
    behind a sequence's last key are never looked at; others are checked where they lie in main memory (a GPU would have
    to be waited for).
    Returns [sequences, heads, dim], contiguous, of q's kind and dtype. Raises `ArgumentError` for arrays that do not
    fit.
    """
    arrays = q, k_cache, v_cache, block_table, seq_lens, alibi_slopes
    key = key_of(paged_attention, arrays, sm_scale, warp_level, soft_cap, splits, target)
    if is_known(key) and device_of(q) == ON_HOST:
        check_pages(k_cache, block_table, seq_lens)
    if (made := again(key, arrays)) is not None:
        return made[0]
    require_arrays(q=q, k_cache=k_cache, v_cache=v_cache)
    check_shapes(q, k_cache, v_cache, block_table, seq_lens)
    check_options(q, alibi_slopes, soft_cap, splits)
    require_no_gradient("paged_attention", q, k_cache, v_cache, alibi_slopes)
    o = empty(q.shape, q)
    if 0 in o.shape:
        return o
    target = target_of(target, q)
    if device_of(q) == ON_HOST:
        check_pages(k_cache, block_table, seq_lens)
    form = form_on(target, q, k_cache, v_cache, warp_level)
    cut = choose_splits(q, k_cache, block_table, form) if splits is None else splits
    launches = [
        launch.on(target)
        for launch in paged_attention_launches(
            q, k_cache, v_cache, block_table, seq_lens, o, sm_scale, alibi_slopes, soft_cap, form, cut
        )
    ]
    for launch in launches:
        launch.run()
    if target is None or (form.tiles and device_of(q) != ON_HOST):  # Others depend on addresses.
        parts = launches[-1].arguments[:2] if len(launches) > 1 else ()
        remember(key, arrays, (o,), parts, launches)
    return o


def form_on(target: str | None, q: Array, k_cache: Array, v_cache: Array, warp_level: bool) -> Form:
    """Sizes for a target; for the CPU where it is None."""
    limits = block_limits(target)
    if limits is not None:
        return choose_block_form(q, k_cache, v_cache, warp_level, limits)
    if family_of_warps(target):
        group = q.shape[1] // k_cache.shape[2]
        keys = max(REST.value, min(STEP, TILE_BYTES // (block_dim(q.shape[2]) * item_size(q))))
        return Form(warp_level, max(REST.value, triton.next_power_of_2(group)), keys, tiles=True)
    return choose_form(k_cache, warp_level)


def choose_form(k_cache: Array, warp_level: bool) -> Form:
    """Sizes for a CPU: the heads of one key lie next to each other, and memory is read fastest in one stretch, so that
    a program does up to eight heads together: twice as fast as one head for each on 16 cores.
    """
    return Form(warp_level, heads=math.gcd(k_cache.shape[2], 8), keys=128)


def choose_block_form(q: Array, k_cache: Array, v_cache: Array, warp_level: bool, limits: BlockIO) -> Form:
    """Sizes for a target with block loads: as many heads and keys as registers hold, and the largest blocks into which
    pages can be cut.
    """
    group, dim = q.shape[1] // k_cache.shape[2], block_dim(q.shape[2])
    keys = max(REST.value, min(STEP, KEY_BYTES[item_size(q)] // (dim * item_size(q))))
    block = math.gcd(k_cache.shape[1], keys)
    if not has_blocks(k_cache, limits):
        block = min(block, REST.value // 2)
    if block < LEAST_BLOCK or not has_blocks(v_cache, limits):
        block = 1
    room = QUERY_BYTES
    if block < REST.value:  # Addresses take registers, and so do values that are put together.
        room //= 2
        keys = REST.value if dim * item_size(q) >= LONG_ROW else keys
    heads = min(8, triton.next_power_of_2(group), room // (dim * item_size(q)))
    return Form(warp_level, heads, keys, block)


def choose_splits(q: Array, k_cache: Array, block_table: Array, form: Form) -> int:
    """Enough stretches for every thread to have something to do, none shorter than `SHORTEST_SPLIT` says. Measured on 2
    and 16 cores: where many share the memory, some are slower than others, and wait for the last one's last program.
    """
    programs = q.shape[0] * programs_of(q, k_cache, form)
    longest = block_table.shape[1] * k_cache.shape[1]
    on_gpu = TILE_PROGRAMS if form.tiles else PROGRAMS if form.block is not None else 0
    threads = num_threads()
    at_once = on_gpu or (16 if threads >= MANY else 2) * threads
    wanted = triton.cdiv(at_once, programs)
    return max(1, min(wanted, longest // (SHORTEST_SPLIT if on_gpu else SHORTEST_SPLIT // 2)))


def programs_of(q: Array, k_cache: Array, form: Form) -> int:
    """Programs of one sequence and one split."""
    kv_heads = k_cache.shape[2]
    if form.tiles:
        return kv_heads
    return kv_heads // form.heads if form.block is None else kv_heads * triton.cdiv(q.shape[1] // kv_heads, form.heads)


def paged_attention_launches(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    seq_lens: Array,
    o: Array,
    sm_scale: float | None = None,
    alibi_slopes: Array | None = None,
    soft_cap: float | None = None,
    form: Form | None = None,
    splits: int = 1,
) -> list[Launch]:
    """The launches that compute o [sequences, heads, dim], contiguous: attention over each split and, where there are
    several, the sum of what they found.
    """
    sequences, heads, dim = q.shape
    page = k_cache.shape[1]
    form = form or choose_form(k_cache, warp_level=True)
    longest = max(1, block_table.shape[1] * page)
    per_split = triton.cdiv(triton.cdiv(longest, splits), form.keys) * form.keys
    splits = triton.cdiv(longest, per_split)
    parts = empty((splits, sequences, heads, dim), q, "float32") if splits > 1 else o
    lse = empty((splits, sequences, heads), q, "float32") if splits > 1 else None
    shared = (q, k_cache, v_cache, block_table, seq_lens, alibi_slopes, parts, lse, scale_of(dim, sm_scale), soft_cap)
    tables = (strides_of(block_table), *strides_of(seq_lens), (heads * dim, dim), heads)
    launch = _by_tiles if form.tiles else _by_addresses if form.block is None else _by_blocks
    kernel, caches, counts, constants = launch(q, k_cache, v_cache, form)
    constants |= {"PAGE": page, "BD": block_dim(q.shape[2]), "DIM": dim}
    attend = Launch(
        kernel,
        (programs_of(q, k_cache, form), sequences, splits),
        (*shared, strides_of(q), *caches, *tables, *counts, per_split),
        constants,
    )
    if lse is None:
        return [attend]
    combined = (parts, lse, o, heads * dim, dim, heads, splits, dim)
    blocks = {"BS": triton.next_power_of_2(splits), "BD": block_dim(q.shape[2])}
    return [attend, Launch(combine_splits_kernel, (heads, sequences), combined, blocks)]


# A kernel, where the caches lie, what it counts besides, and block sizes.
Parts = tuple["JITFunction", tuple[tuple[int, ...], ...], tuple[int, ...], dict[str, Any]]


def _by_addresses(q: Array, k_cache: Array, v_cache: Array, form: Form) -> Parts:
    kernel = paged_attention_warps_kernel if form.warp_level else paged_attention_kernel
    group = q.shape[1] // k_cache.shape[2]
    constants = {"HEADS": form.heads, "BG": triton.next_power_of_2(group), "BN": form.keys}
    if form.warp_level:
        constants["num_warps"] = 1  # One thread would do the work of all, with sums for each of them.
    return kernel, (strides_of(k_cache), strides_of(v_cache)), (group,), constants


def _by_tiles(q: Array, k_cache: Array, v_cache: Array, form: Form) -> Parts:
    constants = {"GROUP": q.shape[1] // k_cache.shape[2], "BG": form.heads, "BN": form.keys}
    constants |= {"num_warps": TILE_WARPS, "num_stages": TILE_STAGES}
    return paged_attention_tiles_kernel, (strides_of(k_cache), strides_of(v_cache)), (), constants


def _by_blocks(q: Array, k_cache: Array, v_cache: Array, form: Form) -> Parts:
    kernel = paged_attention_blocks_warps_kernel if form.warp_level else paged_attention_blocks_kernel
    assert form.block is not None
    piece = piece_of(form, form.block)
    keys, values = _cache_of(k_cache, form.block >= REST.value), _cache_of(v_cache, form.block > 1)
    constants = {
        "GROUP": q.shape[1] // k_cache.shape[2], "BG": form.heads, "BLOCK": form.block,
        "BN": piece, "PIECES": form.keys // piece,
        "K": tuple(keys[3:]), "V": tuple(values[3:]), "num_warps": WARPS[form.warp_level],
    }  # fmt: skip
    return kernel, (keys[:3], values[:3]), (), constants


def piece_of(form: Form, block: int) -> int:
    """Keys of a step that are multiplied at a time: a block, or several that are put together; of keys with an address
    each what one product takes, or all that the warps of a workgroup share.
    """
    if block >= REST.value:
        return block
    if not form.warp_level:
        return form.keys
    return max(REST.value, min(form.keys, block * PIECE)) if block > 1 else REST.value


def _cache_of(cache: Array, by_blocks: bool) -> Matrix:
    """Where keys or values lie, for the kernel: in rows of a matrix, or in elements."""
    found = matrix_of(cache) if by_blocks else None
    if found is not None:
        return found
    per_page, stride, per_head, per_element = strides_of(cache)
    return Matrix(cache.shape[0], per_page, per_head, 0, stride, per_element)
