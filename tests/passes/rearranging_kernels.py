"""A kernel that rearranges a block and combines it along an axis: each shape operation before each combination."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def offsets(SHAPE: tl.constexpr):
    """The row-major offsets of a block of one to four dimensions."""
    places = tl.arange(0, SHAPE[-1])
    if len(SHAPE) == 2:
        places = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + places[None, :]
    elif len(SHAPE) == 3:
        rows = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + tl.arange(0, SHAPE[1])[None, :]
        places = rows[:, :, None] * SHAPE[2] + places[None, None, :]
    elif len(SHAPE) == 4:
        rows = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + tl.arange(0, SHAPE[1])[None, :]
        rows = rows[:, :, None] * SHAPE[2] + tl.arange(0, SHAPE[2])[None, None, :]
        places = rows[:, :, :, None] * SHAPE[3] + places[None, None, None, :]
    return places


@triton.jit
def first(a, b):
    return a


@triton.jit
def rearranged(
    x, out, SHAPE: tl.constexpr, MOVE: tl.constexpr, TO: tl.constexpr, END: tl.constexpr, AXIS: tl.constexpr
):
    v = tl.load(x + offsets(SHAPE))
    if MOVE == "reshape":
        v = tl.reshape(v, TO)
    elif MOVE == "permute":
        v = tl.permute(v, TO)
    elif MOVE == "flip":
        v = tl.flip(v, TO)
    elif MOVE == "sort":
        v = tl.sort(v)
    elif MOVE == "topk":
        v = tl.topk(v, TO)
    elif MOVE == "join":
        v = tl.join(v, v + 3)
    elif MOVE == "interleave":
        v = tl.interleave(v, v + 3)
    elif MOVE == "cat":
        v = tl.cat(v, v + 3, can_reorder=True)
    elif MOVE == "split":
        a, b = tl.split(v)
        v = a * 2 + b
    elif MOVE == "gather":
        v = tl.gather(v, offsets(SHAPE) * 3 % SHAPE[TO], axis=TO)
    elif MOVE == "broadcast":
        v = tl.broadcast_to(v[None], TO)
    if END == "sum":
        v = tl.sum(v, axis=AXIS)
    elif END == "sum_keep":
        v = tl.sum(v, axis=AXIS, keep_dims=True)
    elif END == "max":
        v = tl.max(v, axis=AXIS)
    elif END == "argmax":
        v = tl.argmax(v, axis=AXIS)
    elif END == "argmin":
        v = tl.argmin(v, axis=AXIS)
    elif END == "cumsum":
        v = tl.cumsum(v, axis=AXIS)
    elif END == "scan":
        v = tl.associative_scan(v, AXIS, first, reverse=True)
    elif END == "sort":
        v = tl.sort(v)
    elif END == "reduce_twice":
        v = v - tl.max(v, axis=AXIS, keep_dims=True)
        v = tl.sum(v, axis=AXIS)
    if len(v.shape) == 0:
        tl.store(out, v)
    else:
        tl.store(out + offsets(v.shape), v)
