"""Scans, sorting, histograms, gathers, embeddings, losses, convolutions, sparse rows, loops and debug helpers."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl

torch = pytest.importorskip("torch")


@triton.jit
def first_order_op(fl, xl, fr, xr):
    f = fr * fl
    x = fr * xl + xr
    return f, x


@triton.jit
def linear_recurrence_kernel(
    f_ptr, x_ptr, y_ptr, T, C, REVERSE: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr
):
    t = tl.arange(0, BLOCK_T)
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    mask = (t[:, None] < T) & (c[None, :] < C)
    offsets = t[:, None] * C + c[None, :]
    f = tl.load(f_ptr + offsets, mask=mask, other=1.0)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    _, y = tl.associative_scan((f, x), axis=0, combine_fn=first_order_op, reverse=REVERSE)
    tl.store(y_ptr + offsets, y, mask=mask)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [1, 50, 64])
def test_linear_recurrence(reverse: bool, steps: int):
    f, x = torch.rand(steps, 21), torch.randn(steps, 21)
    y = torch.empty_like(x)
    linear_recurrence_kernel[(2,)](f, x, y, steps, 21, reverse, BLOCK_T=64, BLOCK_C=16)
    state, expected = torch.zeros(21).double(), torch.empty(steps, 21).double()
    for t in reversed(range(steps)) if reverse else range(steps):
        state = expected[t] = f[t].double() * state + x[t]
    torch.testing.assert_close(y.double(), expected, atol=1e-5, rtol=1e-5)


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """The running sum of a row longer than a block: each chunk starts from the sum before it."""
    row = tl.program_id(0)
    carry = tl.zeros((1,), dtype=y_ptr.dtype.element_ty)
    for start in tl.range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + i, mask=i < N, other=0).to(carry.dtype)
        tl.store(y_ptr + row * N + i, tl.cumsum(x, axis=0) + carry, mask=i < N)
        carry += tl.sum(x, axis=0)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_cumsum_in_chunks(dtype: str):
    x = (torch.randn(3, 1000) * 10).to(getattr(torch, dtype))
    y = torch.empty_like(x)
    cumsum_kernel[(3,)](x, y, 1000, BLOCK=128)
    torch.testing.assert_close(y.double(), x.double().cumsum(1), atol=2e-3, rtol=1e-6)


@triton.jit
def router_kernel(logits_ptr, id_ptr, weight_ptr, E, K: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_T: tl.constexpr):
    """Top-k experts of each token, by k rounds of argmax; the weights are softmaxed over the chosen ones."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    e = tl.arange(0, BLOCK_E)
    logits = tl.load(logits_ptr + t[:, None] * E + e[None, :], mask=e[None, :] < E, other=float("-inf"))
    total = tl.zeros([BLOCK_T], tl.float32)
    top = tl.max(logits, 1)
    for k in tl.static_range(K):
        value, index = tl.max(logits, 1, return_indices=True)
        weight = tl.exp(value - top)
        total += weight
        tl.store(id_ptr + t * K + k, index)
        tl.store(weight_ptr + t * K + k, weight)
        logits = tl.where(e[None, :] == index[:, None], float("-inf"), logits)
    tl.debug_barrier()
    for k in tl.static_range(K):
        tl.store(weight_ptr + t * K + k, tl.load(weight_ptr + t * K + k) / total)


def test_top_k_router():
    logits = torch.randn(32, 60)
    ids, weights = torch.empty(32, 4, dtype=torch.int64), torch.empty(32, 4)
    router_kernel[(4,)](logits, ids, weights, 60, K=4, BLOCK_E=64, BLOCK_T=8)
    values, expected = logits.topk(4)
    assert torch.equal(ids, expected)
    torch.testing.assert_close(weights.double(), values.double().softmax(1), atol=1e-6, rtol=1e-5)


@triton.jit
def argmax_kernel(x_ptr, i_ptr, j_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    tl.store(i_ptr + row, tl.argmax(x, axis=0))
    tl.store(j_ptr + row, tl.argmin(tl.where(cols < N, x, float("inf")), axis=0))


def test_argmax_takes_the_first_of_equals():
    x = torch.randint(0, 5, (40, 77)).float()
    i, j = torch.empty(40, dtype=torch.int32), torch.empty(40, dtype=torch.int64)
    argmax_kernel[(40,)](x, i, j, 77, BLOCK=128)
    first = lambda hit: hit.int().argmax(1)  # noqa: E731
    assert torch.equal(i.long(), first(x == x.amax(1, keepdim=True)))
    assert torch.equal(j, first(x == x.amin(1, keepdim=True)))


@triton.jit
def sort_kernel(x_ptr, y_ptr, top_ptr, N: tl.constexpr, K: tl.constexpr, DESCENDING: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    tl.store(y_ptr + row * N + tl.arange(0, N), tl.sort(x, descending=DESCENDING))
    tl.store(top_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_topk(dtype: str, descending: bool):
    x = (torch.randn(5, 64) * 50).to(getattr(torch, dtype))
    y, top = torch.empty_like(x), torch.empty(5, 8, dtype=x.dtype)
    sort_kernel[(5,)](x, y, top, 64, 8, descending)
    assert torch.equal(y, x.sort(1, descending=descending).values)
    assert torch.equal(top, x.topk(8, 1).values)


@triton.jit
def histogram_kernel(x_ptr, count_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0)
    tl.atomic_add(count_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=mask))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"])
def test_histogram_across_programs(dtype: str):
    x = torch.randint(-300, 300, (700,)).to(getattr(torch, dtype))
    inside = x.long()[(x.long() >= 0) & (x.long() < 256)]
    count = torch.zeros(256, dtype=torch.int32)
    histogram_kernel[(triton.cdiv(700, 256),)](x, count, 700, BINS=256, BLOCK=256)
    assert torch.equal(count.long(), torch.bincount(inside, minlength=256))


@triton.jit
def gather_kernel(x_ptr, i_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    R: tl.constexpr = M if AXIS == 1 else K
    C: tl.constexpr = K if AXIS == 1 else N
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(y_ptr + at, tl.gather(x, tl.load(i_ptr + at), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis: int):
    x = torch.randn(16, 32)
    shape = (64, 32) if axis == 0 else (16, 64)
    index = torch.randint(0, x.shape[axis], shape, dtype=torch.int32)
    y = torch.empty(shape)
    gather_kernel[(1,)](x, index, y, 16, 32, 64, axis)
    assert torch.equal(y, x.gather(axis, index.long()))


@triton.jit
def embedding_kernel(ids_ptr, table_ptr, out_ptr, n, dim, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ids = tl.load(ids_ptr + m, mask=m < n, other=0)
    mask = (m[:, None] < n) & (d[None, :] < dim)
    rows = tl.load(table_ptr + ids[:, None] * dim + d[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + m[:, None] * dim + d[None, :], rows, mask=mask)


@triton.jit
def embedding_backward_kernel(ids_ptr, grad_ptr, table_grad_ptr, dim, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    index = tl.load(ids_ptr + i)
    d = tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + i * dim + d, mask=d < dim)
    tl.atomic_add(table_grad_ptr + index * dim + d, grad, mask=d < dim)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_embedding_forward_and_backward(dtype: str):
    table = torch.randn(50, 72)
    ids = torch.randint(0, 50, (131,), dtype=getattr(torch, dtype))
    out = torch.empty(131, 72)
    embedding_kernel[(triton.cdiv(131, 16), triton.cdiv(72, 64))](ids, table, out, 131, 72, 16, 64)
    assert torch.equal(out, table[ids.long()])
    grad, table_grad = torch.randn(131, 72), torch.zeros(50, 72)
    embedding_backward_kernel[(131,)](ids, grad, table_grad, 72, BLOCK=128)
    expected = torch.zeros(50, 72).double().index_add(0, ids.long(), grad.double())
    torch.testing.assert_close(table_grad.double(), expected, atol=1e-5, rtol=1e-5)


@triton.jit
def cross_entropy_kernel(
    X_ptr, X_stride, Y_ptr, loss_ptr, n_cols, n_non_ignore, ignore_index, label_smoothing: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Online softmax in one pass, then the gradient in place of the logits."""
    program_id = tl.program_id(0).to(tl.int64)
    y = tl.load(Y_ptr + program_id)
    X_ptr += program_id * X_stride
    if y == ignore_index:
        for i in range(0, n_cols, BLOCK_SIZE):
            X_offsets = i + tl.arange(0, BLOCK_SIZE)
            tl.store(X_ptr + X_offsets, 0.0, mask=X_offsets < n_cols)
        return
    loss_ptr += program_id
    m = float("-inf")
    d = 0.0
    ori_X_y = tl.load(X_ptr + y).cast(tl.float32)
    scaled_x_sum = 0.0
    eps = label_smoothing / n_cols
    for i in range(0, n_cols, BLOCK_SIZE):
        X_offsets = i + tl.arange(0, BLOCK_SIZE)
        X_block = tl.load(X_ptr + X_offsets, mask=X_offsets < n_cols, other=float("-inf")).cast(tl.float32)
        block_max = tl.max(X_block)
        if label_smoothing > 0:
            scaled_x_sum += tl.sum(tl.where(X_offsets < n_cols, -eps * X_block, 0.0))
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(X_block - m_new))
        m = m_new
    lse = m + tl.log(d)
    for i in range(0, n_cols, BLOCK_SIZE):
        X_offsets = i + tl.arange(0, BLOCK_SIZE)
        X_block = tl.load(X_ptr + X_offsets, mask=X_offsets < n_cols, other=float("-inf")).cast(tl.float32)
        X_block = tl.exp(X_block - m) / d - eps
        X_block = tl.where(X_offsets != y, X_block, X_block - (1 - label_smoothing))
        tl.store(X_ptr + X_offsets, X_block / n_non_ignore, mask=X_offsets < n_cols)
    tl.debug_barrier()
    loss = lse - ori_X_y
    if label_smoothing > 0:
        smooth_loss = scaled_x_sum + label_smoothing * lse
        loss = loss * (1 - label_smoothing) + smooth_loss
    tl.store(loss_ptr, loss / n_non_ignore)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [333, 4096])
def test_cross_entropy_with_gradient_in_place(smoothing: float, vocabulary: int):
    x, y = torch.randn(20, vocabulary) * 3, torch.randint(0, vocabulary, (20,))
    y[3] = y[11] = -100
    gradient, loss = x.clone(), torch.zeros(20)
    cross_entropy_kernel[(20,)](
        gradient, gradient.stride(-2), y, loss, vocabulary, (y != -100).sum().item(), -100, smoothing, BLOCK_SIZE=512
    )
    wide = x.double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(wide, y, label_smoothing=smoothing)
    expected.backward()
    torch.testing.assert_close(loss.double().sum(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradient.double(), wide.grad, atol=1e-7, rtol=1e-4)


@triton.jit
def conv1d_kernel(x_ptr, w_ptr, b_ptr, y_ptr, C, L, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ACT: tl.constexpr):
    """Depthwise causal convolution; positions before the start are zeros."""
    l = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # noqa: E741
    c = tl.program_id(1)
    base = (tl.program_id(2) * C + c) * L
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    if b_ptr is not None:
        acc += tl.load(b_ptr + c)
    for k in tl.static_range(WIDTH):
        at = l + (k - (WIDTH - 1))
        acc += tl.load(x_ptr + base + at, mask=(at >= 0) & (at < L), other=0.0) * tl.load(w_ptr + c * WIDTH + k)
    if ACT == "silu":
        acc = acc / (1 + tl.exp(-acc))
    tl.store(y_ptr + base + l, acc, mask=l < L)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", [None, "silu"])
def test_causal_conv1d(bias: bool, activation: str | None):
    x, w = torch.randn(2, 5, 150), torch.randn(5, 4)
    b, y = torch.randn(5) if bias else None, torch.empty_like(x)
    conv1d_kernel[(3, 5, 2)](x, w, b, y, 5, 150, WIDTH=4, BLOCK=64, ACT=activation)
    wide = [t.double() if t is not None else None for t in (x, w[:, None], b)]
    expected = torch.nn.functional.conv1d(*wide, padding=3, groups=5)[..., :150]
    expected = torch.nn.functional.silu(expected) if activation else expected
    torch.testing.assert_close(y.double(), expected, atol=1e-5, rtol=1e-5)


@triton.jit
def conv2d_kernel(x_ptr, w_ptr, y_ptr, C, H, W, OUT, KH: tl.constexpr, KW: tl.constexpr, BP: tl.constexpr,
                  BO: tl.constexpr, BC: tl.constexpr):  # fmt: skip
    """Implicit GEMM: pixels by output channels, over input channels and the window."""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.arange(0, BO)
    h, w = p // W, p % W
    acc = tl.zeros((BP, BO), tl.float32)
    for kh in range(KH):
        for kw in range(KW):
            hh = h + kh - KH // 2
            ww = w + kw - KW // 2
            inside = (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W) & (p < H * W)
            for c0 in range(0, C, BC):
                c = c0 + tl.arange(0, BC)
                x = tl.load(x_ptr + c[None, :] * H * W + (hh * W + ww)[:, None],
                            mask=inside[:, None] & (c[None, :] < C), other=0.0)  # fmt: skip
                k = tl.load(w_ptr + ((o[None, :] * C + c[:, None]) * KH + kh) * KW + kw,
                            mask=(o[None, :] < OUT) & (c[:, None] < C), other=0.0)  # fmt: skip
                acc = tl.dot(x, k, acc)
    tl.store(y_ptr + o[None, :] * H * W + p[:, None], acc, mask=(o[None, :] < OUT) & (p[:, None] < H * W))


def test_conv2d_as_implicit_gemm():
    x, w = torch.randn(20, 13, 11), torch.randn(24, 20, 3, 3)
    y = torch.empty(24, 13, 11)
    conv2d_kernel[(triton.cdiv(143, 32),)](x, w, y, 20, 13, 11, 24, 3, 3, BP=32, BO=32, BC=16)
    expected = torch.nn.functional.conv2d(x.double()[None], w.double(), padding=1)[0]
    torch.testing.assert_close(y.double(), expected, atol=1e-4, rtol=1e-4)


@triton.jit
def csr_spmv_kernel(row_ptr, col_ptr, val_ptr, x_ptr, y_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(row_ptr + row)
    end = tl.load(row_ptr + row + 1)
    acc = tl.zeros((BLOCK,), tl.float32)
    while start < end:
        i = start + tl.arange(0, BLOCK)
        mask = i < end
        col = tl.load(col_ptr + i, mask=mask, other=0)
        acc += tl.load(val_ptr + i, mask=mask, other=0.0) * tl.load(x_ptr + col, mask=mask, other=0.0)
        start += BLOCK
    tl.store(y_ptr + row, tl.sum(acc))


def test_sparse_matrix_vector_product():
    dense = torch.randn(30, 90) * (torch.rand(30, 90) < 0.3)
    dense[7] = 0
    x, y = torch.randn(90), torch.empty(30)
    rows, columns = dense.nonzero(as_tuple=True)
    starts = torch.zeros(31, dtype=torch.int64)
    starts[1:] = torch.bincount(rows, minlength=30).cumsum(0)
    csr_spmv_kernel[(30,)](starts, columns, dense[rows, columns], x, y, BLOCK=16)
    torch.testing.assert_close(y.double(), dense.double() @ x.double(), atol=1e-5, rtol=1e-5)


@triton.jit
def collatz_kernel(x_ptr, steps_ptr, n):
    i = tl.program_id(0)
    if i >= n:
        return
    x = tl.load(x_ptr + i)
    steps = 0
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    tl.store(steps_ptr + i, steps)


def test_while_with_branches():
    def reference(x: int) -> int:
        steps = 0
        while x != 1:
            x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
        return steps

    x, steps = torch.arange(1, 100), torch.empty(99, dtype=torch.int32)
    collatz_kernel[(128,)](x, steps, 99)
    assert steps.tolist() == [reference(i) for i in range(1, 100)]


@triton.jit
def volume_kernel(x_ptr, out_ptr, plane_ptr, SX, SY, SZ, BX: tl.constexpr, BY: tl.constexpr, BZ: tl.constexpr):
    x = (tl.program_id(0) * BX + tl.arange(0, BX))[:, None, None]
    y = (tl.program_id(1) * BY + tl.arange(0, BY))[None, :, None]
    z = (tl.program_id(2) * BZ + tl.arange(0, BZ))[None, None, :]
    mask = (x < SX) & (y < SY) & (z < SZ)
    block = tl.load(x_ptr + (x * SY + y) * SZ + z, mask=mask, other=0.0)
    tl.store(out_ptr + (z * SY + y) * SX + x, block * 2, mask=mask)
    plane = tl.sum(block, axis=1)
    xs, zs = tl.program_id(0) * BX + tl.arange(0, BX), tl.program_id(2) * BZ + tl.arange(0, BZ)
    tl.atomic_add(plane_ptr + xs[:, None] * SZ + zs[None, :], plane, mask=(xs[:, None] < SX) & (zs[None, :] < SZ))


def test_blocks_and_grids_of_three_dimensions():
    x = torch.randn(9, 13, 35)
    out, plane = torch.empty(35, 13, 9), torch.zeros(9, 35)
    volume_kernel[(3, 2, 3)](x, out, plane, 9, 13, 35, 4, 8, 16)
    assert torch.equal(out, x.permute(2, 1, 0) * 2)
    torch.testing.assert_close(plane.double(), x.double().sum(1), atol=1e-5, rtol=1e-5)


@triton.jit
def batched_dot_kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    b, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a_ptr + (b[:, None, None] * M + m[None, :, None]) * K + k[None, None, :])
    y = tl.load(b_ptr + (b[:, None, None] * K + k[None, :, None]) * N + n[None, None, :])
    tl.store(c_ptr + (b[:, None, None] * M + m[None, :, None]) * N + n[None, None, :], tl.dot(x, y))


def test_dot_of_three_dimensions():
    a, b, c = torch.randn(4, 16, 32), torch.randn(4, 32, 16), torch.empty(4, 16, 16)
    batched_dot_kernel[(1,)](a, b, c, 4, 16, 16, 32)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), atol=1e-4, rtol=1e-4)


@triton.jit
def checked_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.device_assert(x > 0, "x must be positive")
    if tl.program_id(0) == 0:
        tl.device_print("n", n)
    tl.store(y_ptr + i, tl.log(x), mask=i < n)


def test_device_print_and_assert(capfd: pytest.CaptureFixture[str]):
    x, y = torch.rand(50) + 0.5, torch.empty(50)
    checked_kernel[(1,)](x, y, 50, BLOCK=64)
    torch.testing.assert_close(y.double(), x.double().log(), atol=1e-6, rtol=1e-5)
    assert "n" in capfd.readouterr().out
    x[7] = -1
    with pytest.raises(Exception, match="x must be positive"):
        checked_kernel[(1,)](x, y, 50, BLOCK=64, debug=True)
