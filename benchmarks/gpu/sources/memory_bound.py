"""Kernels that are as fast as memory, and functions of tensors around them: one text for mltriton and for upstream."""

import triton
import triton.language as tl

LARGEST_ROW = 32768


def warps_of(columns):
    """Sixteen numbers a lane; of long rows more, so that registers of a multiprocessor hold two programs."""
    return min(16, max(4, triton.next_power_of_2(columns) // 512))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


def add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, x / (1 - p), 0.0), mask=at < n)


def dropout(x, out, p, seed):
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=1024)
    return out


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=inside)
    tl.store(out_ptr + j[:, None] * rows + i[None, :], tl.trans(x), mask=tl.trans(inside))


def transpose(x, out):
    rows, columns = x.shape
    block, warps = (128, 8) if x.element_size() == 2 else (64, 4)
    grid = (triton.cdiv(columns, block), triton.cdiv(rows, block))
    transpose_kernel[grid](x, out, rows, columns, BLOCK=block, num_warps=warps)
    return out


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + at, e / tl.sum(e, axis=0), mask=at < columns)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, x.stride(0), columns, BLOCK=block, num_warps=warps_of(columns))
    return out


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(w_ptr + at, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + at, mask=inside).to(tl.float32)
    tl.store(out_ptr + row * stride + at, centred * rstd * w + b, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, w, b, out, mean, rstd, eps):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](
        x, w, b, out, mean, rstd, x.stride(0), columns, eps, BLOCK=block, num_warps=warps_of(columns)
    )
    return out


def backward_of(columns):
    """Rows that a program has at once, its warps, and how many programs a multiprocessor has."""
    if columns <= 1024:
        return 4, 8, 2
    warps = warps_of(columns)
    return 1, warps, {4: 3, 8: 2}.get(warps, 1)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, rows, columns,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    """Rows in turn, with a program's own sums of dw and db; w is loaded again with each row where registers are few."""
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)[None, :]
    if not AGAIN:
        w = tl.load(w_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(program * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (at < columns)
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        hat = tl.where(inside, (x - tl.load(mean_ptr + row, mask=row < rows, other=0.0)) * rstd, 0.0)
        if AGAIN:
            w = tl.load(w_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        wdy = w * dy
        c1 = tl.sum(hat * wdy, axis=1)[:, None] / columns
        c2 = tl.sum(wdy, axis=1)[:, None] / columns
        tl.store(dx_ptr + row * columns + at, (wdy - (hat * c1 + c2)) * rstd, mask=inside)
        dw += dy * hat
        db += dy
    at = tl.arange(0, BLOCK)
    tl.store(dw_ptr + program * columns + at, tl.sum(dw, axis=0), mask=at < columns)
    tl.store(db_ptr + program * columns + at, tl.sum(db, axis=0), mask=at < columns)


@triton.jit
def sum_parts_kernel(dws_ptr, dbs_ptr, dw_ptr, db_ptr, parts, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Some columns of what programs added up, all parts at once: of dw, and by other programs of db."""
    of_dw = tl.program_id(1) == 0
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS)[:, None]
    inside = (part < parts) & (at < columns)[None, :]
    found = tl.load(tl.where(of_dw, dws_ptr, dbs_ptr) + part * columns + at[None, :], mask=inside, other=0.0)
    tl.store(tl.where(of_dw, dw_ptr, db_ptr) + at, tl.sum(found, axis=0), mask=at < columns)


def layer_norm_backward(dx, dy, dw, db, dw_parts, db_parts, x, w, mean, rstd):
    """dw_parts and db_parts have a row for each program."""
    rows, columns = x.shape
    block, parts = triton.next_power_of_2(columns), dw_parts.shape[0]
    at_once, warps, _ = backward_of(columns)
    layer_norm_backward_kernel[(parts,)](
        dx, dy, dw_parts, db_parts, x, w, mean, rstd, rows, columns,
        ROWS=at_once, BLOCK=block, AGAIN=columns * x.element_size() > 32768, num_warps=warps,
    )  # fmt: skip
    together = 16 if columns < 8192 else 32
    sum_parts_kernel[(triton.cdiv(columns, together), 2)](
        dw_parts, db_parts, dw, db, parts, columns, PARTS=triton.next_power_of_2(parts), BLOCK=together
    )
    return dx


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + at, mask=at < columns).to(tl.float32)
    tl.store(out_ptr + row * stride + at, x * scale * w, mask=at < columns)


def rms_norm(x, w, out, eps):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    rms_norm_kernel[(rows,)](x, w, out, x.stride(0), columns, eps, BLOCK=block, num_warps=warps_of(columns))
    return out


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, groups, HALF: tl.constexpr, HEADS: tl.constexpr):
    """A group of one position's heads [heads, 2 * HALF], turned by its angles, which the next group takes, too."""
    position = tl.program_id(0) // groups
    head = tl.program_id(0) % groups * HEADS + tl.arange(0, HEADS)
    at = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + position * HALF + at)[None, :]
    sin = tl.load(sin_ptr + position * HALF + at)[None, :]
    first = (position * heads + head[:, None]) * (2 * HALF) + at[None, :]
    inside = head[:, None] < heads
    x = tl.load(x_ptr + first, mask=inside).to(tl.float32)
    y = tl.load(x_ptr + first + HALF, mask=inside).to(tl.float32)
    tl.store(out_ptr + first, x * cos - y * sin, mask=inside)
    tl.store(out_ptr + first + HALF, y * cos + x * sin, mask=inside)


def rope(x, cos, sin, out):
    positions, heads, dim = x.shape
    groups = triton.cdiv(heads, 16)
    rope_kernel[(positions * groups,)](x, cos, sin, out, heads, groups, HALF=dim // 2, HEADS=16)
    return out


@triton.jit
def cross_entropy_kernel(logits_ptr, labels_ptr, loss_ptr, gradient_ptr, stride, columns, BLOCK: tl.constexpr):
    """The loss of one row, and its gradient, which leaves the second-level cache to rows that are read again."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    largest = -float("inf")
    total = 0.0
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    norm = largest + tl.log(total)
    tl.store(loss_ptr + row, norm - tl.load(logits_ptr + row * stride + label).to(tl.float32))
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < columns).to(tl.float32)
        gradient = tl.exp(x - norm) - tl.where(at == label, 1.0, 0.0)
        tl.store(gradient_ptr + row * stride + at, gradient, mask=at < columns, cache_modifier=".cs")


@triton.jit
def cross_entropy_by_lanes_kernel(
    logits_ptr, labels_ptr, loss_ptr, gradient_ptr, stride, columns, BLOCK: tl.constexpr
):  # fmt: skip
    """The same of a row that a multiprocessor has to itself: until its end nobody waits for others, since each element
    of a block has a maximum and a sum of its own.
    """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    picked = tl.load(logits_ptr + row * stride + label).to(tl.float32)
    LOG2_E: tl.constexpr = 1.4426950408889634
    largest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32) * LOG2_E
        new = tl.maximum(largest, x)
        total = total * tl.exp2(largest - new) + tl.exp2(x - new)
        largest = new
    most = tl.max(largest, axis=0)
    norm = most + tl.log2(tl.sum(total * tl.exp2(largest - most), axis=0))
    tl.store(loss_ptr + row, norm / LOG2_E - picked)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < columns).to(tl.float32)
        gradient = tl.exp2(x * LOG2_E - norm)
        if (label >= first) & (label < first + BLOCK):
            gradient -= tl.where(at == label, 1.0, 0.0)
        tl.store(gradient_ptr + row * stride + at, gradient, mask=at < columns, cache_modifier=".cs")


def cross_entropy(logits, labels, loss, gradient):
    rows, columns = logits.shape
    kernel, warps = (cross_entropy_kernel, 16) if columns <= 65536 else (cross_entropy_by_lanes_kernel, 32)
    kernel[(rows,)](
        logits, labels, loss, gradient, logits.stride(0), columns, BLOCK=16384, num_warps=warps, num_stages=1
    )
    return gradient


@triton.jit
def nothing_kernel(a, b, c, d, m, n, k, stride):
    pass


def nothing(a, b, c, d):
    nothing_kernel[(1,)](a, b, c, d, 1024, 2048, 512, 64)


@triton.jit
def nothing_of_tuples_kernel(inputs, outputs, sizes):
    pass


def nothing_of_tuples(inputs, outputs):
    nothing_of_tuples_kernel[(1,)](inputs, outputs, ((1024, 2048), 512, 64))
