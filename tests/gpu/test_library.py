"""The kernel library on torch's CUDA tensors against torch in float64: forward and backward, odd sizes, strides.

Kept small enough to run under compute-sanitizer as well (`scripts/test_gpu.py`).
"""

from __future__ import annotations

import math

import pytest

from mltriton import kernels
from mltriton.kernels.launch import target_of
from mltriton.kernels.losses import cross_entropy_launch
from mltriton.kernels.normalization_backward import choose_backward_rows, norm_backward_launches

torch = pytest.importorskip("torch")

# Half a unit in the last place of the result, by dtype; twice that and some for sums in f32.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-22, "float64": 2.0**-50}
FLOATS = ["float32", "float16", "bfloat16"]


def random(*shape: int, dtype: str = "float32", scale: float = 1.0):
    return (torch.randn(*shape, device="cuda", dtype=torch.float64) * scale).to(getattr(torch, dtype))


def assert_close(found, expected, *, sums: float = 1.0, dtype: str | None = None) -> None:
    """Every element within `sums` times 16 roundings of the greatest."""
    name = dtype or str(found.dtype).removeprefix("torch.")
    assert found.shape == expected.shape and found.is_cuda
    assert torch.isfinite(found).all()
    error = (found.double() - expected.double()).abs().max().item()
    bound = 16 * sums * ROUNDING[name] * max(1.0, expected.abs().max().item())
    assert error <= bound, f"{error:.3g} > {bound:.3g}"


@pytest.mark.parametrize("shape", [(3, 7), (5, 1000), (2, 3, 513), (2, 40_000)])
@pytest.mark.parametrize("dtype", [*FLOATS, "float64"])
def test_softmax(shape: tuple[int, ...], dtype: str) -> None:
    x = random(*shape, dtype=dtype)
    assert_close(kernels.softmax(x), torch.softmax(x.double(), -1))


@pytest.mark.parametrize("shape", [(3, 7), (5, 1000), (2, 3, 513), (2, 40_000)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(shape: tuple[int, ...], dtype: str) -> None:
    x = random(*shape, dtype=dtype)
    weight, bias = random(shape[-1], dtype=dtype), random(shape[-1], dtype=dtype)
    expected = torch.nn.functional.layer_norm(x.double(), shape[-1:], weight.double(), bias.double())
    assert_close(kernels.layer_norm(x, weight, bias), expected)


@pytest.mark.parametrize("shape", [(100, 72), (700, 1000), (2, 3, 513), (300, 4097), (5, 40_000)], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, "float64"])
def test_gradients_of_rows(shape: tuple[int, ...], dtype: str) -> None:
    """Of softmax and both norms, whose sums over rows are the same each time."""
    x, dy, weight = random(*shape, dtype=dtype), random(*shape, dtype=dtype), random(shape[-1], dtype=dtype)
    wide = [tensor.to(torch.float64, copy=True) for tensor in (x, weight, torch.zeros_like(weight))]
    for tensor in wide:
        tensor.requires_grad_()
    by_torch = torch.nn.functional.rms_norm(wide[0], shape[-1:], wide[1], 1e-6)
    assert_close(kernels.rms_norm(x, weight), by_torch)
    exact = torch.autograd.grad(by_torch, wide[:2], dy.double())
    by_torch = torch.nn.functional.layer_norm(wide[0], shape[-1:], *wide[1:])
    exact += torch.autograd.grad(by_torch, wide, dy.double())
    found = (*kernels.rms_norm_backward(dy, x, weight), *kernels.layer_norm_backward(dy, x, weight))
    again = (*kernels.rms_norm_backward(dy, x, weight), *kernels.layer_norm_backward(dy, x, weight))
    for one, other, expected in zip(found, again, exact, strict=True):
        assert_close(one, expected, sums=4)
        assert torch.equal(one, other)
    y = torch.softmax(x, -1)
    assert_close(kernels.softmax_backward(dy, y), y.double() * (dy - (y.double() * dy).sum(-1, keepdim=True)))


@pytest.mark.parametrize("shape", [(5, 3, 16), (2, 33, 20, 24), (7, 40, 128)], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, "float64"])
def test_rope(shape: tuple[int, ...], dtype: str) -> None:
    x, angles = random(*shape, dtype=dtype), random(shape[-3], shape[-1] // 2, dtype="float64")
    kind = torch.float64 if dtype == "float64" else torch.float32
    cos, sin = angles.cos().to(kind), angles.sin().to(kind)
    first, second = x.double().chunk(2, -1)
    c, s = cos.double()[:, None], sin.double()[:, None]
    turned = torch.cat([first * c - second * s, second * c + first * s], -1)
    assert_close(kernels.rope(x, cos, sin), turned)
    assert_close(kernels.rope(turned.to(x.dtype), cos, sin, inverse=True), x, sums=2)


@pytest.mark.parametrize("shape", [(100, 72), (2, 3, 513), (257, 4097), (37, 20_000), (3, 128_256)], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, "float64"])
def test_cross_entropy(shape: tuple[int, ...], dtype: str) -> None:
    """Labels that are ignored, and one that is no column, which is told by its loss."""
    logits, dloss = random(*shape, dtype=dtype), random(*shape[:-1], dtype=dtype)
    labels = torch.randint(shape[-1], shape[:-1], device="cuda")
    labels[..., 0] = -100
    wide = logits.to(torch.float64, copy=True).requires_grad_()
    expected = torch.nn.functional.cross_entropy(wide.flatten(0, -2), labels.flatten(), reduction="none")
    loss, gradient = kernels.cross_entropy_with_gradient(logits, labels)
    assert_close(loss, expected.view(labels.shape))
    assert torch.equal(loss, kernels.cross_entropy(logits, labels))
    assert_close(gradient, torch.autograd.grad(expected.sum(), wide, retain_graph=True)[0])
    exact = torch.autograd.grad(expected, wide, dloss.double().flatten())[0]
    assert_close(kernels.cross_entropy_backward(dloss, logits, labels), exact)
    labels[..., -1] = shape[-1]
    assert kernels.cross_entropy(logits, labels)[..., -1].isnan().all()


@pytest.mark.parametrize("shape", [(100, 72), (257, 4096), (5, 70_000)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_in_place(shape: tuple[int, int], dtype: str) -> None:
    """Loops that load ahead what they overwrite: of cross entropy the logits, of a norm whose rows are blocks dy."""
    x, dy, weight = random(*shape, dtype=dtype), random(*shape, dtype=dtype), random(shape[-1], dtype=dtype)
    labels, loss = torch.randint(shape[-1], shape[:1], device="cuda"), torch.empty(shape[0], device="cuda")
    _, gradient = kernels.cross_entropy_with_gradient(x, labels)
    logits, target = x.clone(), target_of(None, x)
    cross_entropy_launch(logits, labels, loss, logits, target=target).on(target).run()
    assert torch.equal(logits, gradient)
    blocks = choose_backward_rows(x, target)
    if shape[-1] <= blocks.block:
        dx, *_ = kernels.layer_norm_backward(dy, x, weight)
        parts, sums = torch.empty(2, blocks.programs, shape[-1], device="cuda"), torch.empty_like(x[:2])
        for launch in norm_backward_launches(dy, dy, sums, parts, x, weight, 1e-5, blocks):
            launch.on(target).run()
        assert torch.equal(dy, dx)


@pytest.mark.parametrize("shape", [(16, 16, 16), (100, 72, 200), (257, 130, 65), (1, 300, 77), (64, 1, 50)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, scale=k**-0.5)
    expected = a.double() @ b.double()
    assert_close(kernels.matmul(a, b), expected)
    assert_close(kernels.matmul(a, b.T.contiguous().T), expected)
    assert_close(kernels.matmul(a.T.contiguous().T, b), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_matmul_of_bytes(dtype: str) -> None:
    a, b = (torch.randint(0, 100, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((70, 90), (90, 50)))
    assert torch.equal(kernels.matmul(a, b, out_dtype="int32").long().cpu(), a.long().cpu() @ b.long().cpu())


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_matmul_of_bytes_along_memory(dtype: str) -> None:
    a, b = (torch.randint(0, 100, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((300, 208), (500, 208)))
    assert torch.equal(kernels.matmul(a, b.T, out_dtype="int32").long().cpu(), a.long().cpu() @ b.T.long().cpu())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_matmul_of_small_floats_along_memory(dtype: str) -> None:
    """Groups of warps keep some 13 bits of the largest product where they add up fp8."""
    a, b = random(3000, 208, dtype=dtype), random(4000, 208, dtype=dtype)
    found = kernels.matmul(a, b.T, out_dtype="float32")
    assert_close(found, a.double() @ b.double().T, sums=4096)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_matmul_of_small_floats(dtype: str) -> None:
    a, b = random(70, 96, dtype=dtype), random(96, 50, dtype=dtype)
    found = kernels.matmul(a, b, out_dtype="float32")
    assert_close(found, a.double() @ b.double(), sums=96**0.5)


def test_matmul_with_everything_around() -> None:
    a, b, add = random(100, 72, dtype="float16"), random(72, 130, dtype="float16"), random(100, 130)
    bias = random(130, dtype="float16")
    found = kernels.matmul(a, b, bias=bias, add=add, activation="relu", prologue="relu", out_dtype="float32")
    expected = (a.double().relu() @ b.double() + bias.double() + add.double()).relu()
    assert_close(found, expected, sums=4)


def test_shared_sums() -> None:
    a, b = random(60, 1000, dtype="float16"), random(1000, 70, dtype="float16", scale=1000**-0.5)
    expected = a.double() @ b.double()
    assert_close(kernels.split_k_matmul(a, b, 4), expected)
    assert_close(kernels.stream_k_matmul(a, b), expected)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(16, 512, 8192), (1, 1000, 3000), (32, 200, 520), (256, 256, 8192), (512, 512, 512), (70, 30, 4100)],
)
@pytest.mark.parametrize("order", ["rr", "rc"])
def test_few_blocks(m: int, n: int, k: int, order: str) -> None:
    """Products of few rows, and of few blocks whose sums are shared out; a second call repeats the launches."""
    for _ in range(2):
        a, b = random(m, k, dtype="float16"), random(k, n, dtype="float16", scale=k**-0.5)
        if order == "rc":
            b = b.T.contiguous().T
        assert_close(kernels.matmul(a, b), a.double() @ b.double())


@pytest.mark.parametrize("size", [(2000, 3000, 200), (3000, 3072, 200)])
@pytest.mark.parametrize("orders", ["rr", "rc", "cr"])
def test_programs_that_compute_several_blocks(orders: str, size: tuple[int, int, int]) -> None:
    """Rows and columns that no block divides, of more blocks than there are multiprocessors."""
    m, n, k = size
    a, b = random(m, k, dtype="float16"), random(k, n, dtype="float16", scale=k**-0.5)
    a, b = (x.T.contiguous().T if order == "c" else x for x, order in zip((a, b), orders, strict=True))
    assert_close(kernels.matmul(a, b), a.double() @ b.double())


GROUPS = [
    [(100, 72, 60), (33, 20, 200), (16, 16, 16)],
    [(128, 256, 64), (70, 256, 192)],
    [(128, 256, 64), (70, 256, 192), (8, 256, 8)] * 3,
    [(33, 20, 200), (16, 16, 16)] * 3,
]


@pytest.mark.parametrize("sizes", GROUPS)
def test_grouped_gemm(sizes: list[tuple[int, int, int]]) -> None:
    """Twice, of arrays elsewhere, and of one that begins at no multiple of 16 bytes."""
    for shift in (0, 0, 1):
        a = [random(m * k + shift, dtype="float16")[shift:].view(m, k) for m, _, k in sizes]
        b = [random(k, n, dtype="float16", scale=0.1) for _, n, k in sizes]
        for x, y, found in zip(a, b, kernels.grouped_gemm(a, b), strict=True):
            assert_close(found, x.double() @ y.double())


def attention(q, k, v, causal: bool):
    """In float64, with keys shared by groups of heads."""
    k, v = (x.double().repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q.double() @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -math.inf)
    return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize(("sequence", "dim"), [(128, 64), (100, 128), (77, 40), (65, 256)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_attention(sequence: int, dim: int, causal: bool, dtype: str) -> None:
    q, k, v = (random(2, heads, sequence, dim, dtype=dtype) for heads in (4, 2, 2))
    assert_close(kernels.flash_attention(q, k, v, causal), attention(q, k, v, causal), sums=4)


@pytest.mark.parametrize(("heads", "sequence", "dim"), [(80, 1300, 64), (70, 1000, 128), (4, 300, 64)])
@pytest.mark.parametrize("window", [None, 1, 100, 640])
def test_causal_attention_in_turns(heads: int, sequence: int, dim: int, window: int | None) -> None:
    """Programs that compute blocks in turn, of which there is an odd number; sliding windows."""
    q, k, v = (random(1, heads, sequence, dim, dtype="float16") for _ in range(3))
    seen = torch.ones(sequence, sequence, dtype=torch.bool, device="cuda").tril()
    if window is not None:
        seen &= torch.ones_like(seen).triu(1 - window)
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=seen)
    assert_close(kernels.flash_attention(q, k, v, causal=True, window=window), expected, sums=4)


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 100)])
def test_packed_sequences_in_turns(dim: int, causal: bool, window: int | None) -> None:
    lengths = (300, 1, 0, 517, 128)
    ends = torch.tensor((0, *lengths), device="cuda").cumsum(0).to(torch.int32)
    q, k, v = leaves = [random(sum(lengths), heads, dim, dtype="float16").requires_grad_() for heads in (4, 2, 2)]
    found = kernels.flash_attention_varlen(q, k, v, ends, ends, max(lengths), causal, window=window)
    do = random(*q.shape, dtype="float16")
    gradients = torch.autograd.grad(found, leaves, do)
    first = 0
    for length in filter(None, lengths):
        rows = slice(first, first + length)
        parts = [x[rows].detach().double().requires_grad_() for x in leaves]
        own = [x[None].transpose(1, 2) for x in parts]
        own[1:] = [x.repeat_interleave(2, 1) for x in own[1:]]
        seen = torch.ones(length, length, dtype=torch.bool, device="cuda")
        seen = seen.tril() if causal else seen
        seen = seen.triu(1 - window) if window is not None else seen
        expected = torch.nn.functional.scaled_dot_product_attention(*own, attn_mask=seen)
        expected = expected[0].transpose(0, 1)
        assert_close(found[rows].detach(), expected.detach(), sums=4)
        for gradient, wanted in zip(gradients, torch.autograd.grad(expected, parts, do[rows].double()), strict=True):
            assert_close(gradient[rows], wanted, sums=8)
        first += length


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # torch's own backward pass, in a thread of its own
@pytest.mark.parametrize(("sequence", "dim"), [(100, 64), (65, 128)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_of_attention(sequence: int, dim: int, causal: bool, dtype: str) -> None:
    q, k, v = (random(1, heads, sequence, dim, dtype=dtype).requires_grad_() for heads in (4, 2, 2))
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    do = random(1, 4, sequence, dim, dtype=dtype)
    kernels.flash_attention(q, k, v, causal).backward(do)
    attention(*wide, causal).backward(do.double())
    for x, expected in zip((q, k, v), wide, strict=True):
        assert_close(x.grad, expected.grad, sums=8)


@pytest.mark.parametrize("warp_level", [False, True])
@pytest.mark.parametrize("page", [1, 16])
@pytest.mark.parametrize("splits", [None, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_paged_attention(warp_level: bool, page: int, splits: int | None, dtype: str) -> None:
    lens, heads, kv_heads, dim = (70, 1, 300), 8, 2, 64
    most = -(-max(lens) // page)
    q = random(len(lens), heads, dim, dtype=dtype)
    caches = [random(len(lens) * most, page, kv_heads, dim, dtype=dtype) for _ in range(2)]
    table = torch.randperm(len(lens) * most, device="cuda").to(torch.int32).view(len(lens), most)
    used = torch.tensor(lens, device="cuda", dtype=torch.int32)
    found = kernels.paged_attention(q, *caches, table, used, warp_level=warp_level, splits=splits)
    for row, length in enumerate(lens):
        k, v = (cache[table[row].long()].reshape(1, -1, kv_heads, dim)[:, :length].transpose(1, 2) for cache in caches)
        assert_close(found[row][None], attention(q[row][None, :, None], k, v, causal=False)[:, :, 0], sums=4)


def test_graphs() -> None:
    """Launches of the library, splits and their sums among them, go into a CUDA graph."""
    lens, page, kv_heads, dim = (700, 33), 16, 2, 64
    q = random(len(lens), 8, dim, dtype="float16")
    caches = [random(88, page, kv_heads, dim, dtype="float16") for _ in range(2)]
    table = torch.arange(88, device="cuda", dtype=torch.int32).view(2, 44)
    used = torch.tensor(lens, device="cuda", dtype=torch.int32)

    def work():
        return kernels.softmax(kernels.paged_attention(q, *caches, table, used, splits=3))

    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = work()
    for _ in range(2):
        q.copy_(random(*q.shape, dtype="float16"))
        graph.replay()
        assert torch.equal(found, work())


def turned(x):
    """`rope` by torch, by the angles of the test below."""
    angles = torch.arange(x.shape[-3] * x.shape[-1] // 2, device="cuda").reshape(x.shape[-3], 1, -1).to(x.dtype) / 10
    first, second = x.chunk(2, -1)
    return torch.cat((first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()), -1)


def by_rope(x):
    angles = torch.arange(x.shape[-3] * x.shape[-1] // 2, device="cuda").reshape(x.shape[-3], -1).double() / 10
    return kernels.rope(x, angles.cos().float(), angles.sin().float())


FUNCTIONS = {  # of the library, of torch, and shapes
    "softmax": (kernels.softmax, lambda x: torch.softmax(x, -1), [(33, 100)]),
    "layer_norm": (
        kernels.layer_norm, lambda x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
        [(33, 200), (200,), (200,)],
    ),
    "rms_norm": (
        kernels.rms_norm, lambda x, w: torch.nn.functional.rms_norm(x, w.shape, w, 1e-6), [(33, 200), (200,)],
    ),
    "rope": (by_rope, turned, [(2, 5, 3, 64)]),
    "cross_entropy": (
        lambda x: kernels.cross_entropy(x, torch.arange(33, device="cuda")),
        lambda x: torch.nn.functional.cross_entropy(x, torch.arange(33, device="cuda"), reduction="none"), [(33, 1000)],
    ),
    "matmul": (
        lambda a, b, c: kernels.matmul(a, b, bias=c, activation="gelu"),
        lambda a, b, c: torch.nn.functional.gelu(a @ b + c), [(2, 70, 96), (96, 80), (80,)],
    ),
    "grouped_gemm": (
        lambda *x: torch.cat(kernels.grouped_gemm(x[:2], x[2:])), lambda *x: torch.cat((x[0] @ x[2], x[1] @ x[3])),
        [(70, 64), (40, 96), (64, 80), (96, 80)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_torch_differentiates(name: str, dtype: str) -> None:
    """Leaves are parameters, as a module's weights are."""
    ours, by_torch, shapes = FUNCTIONS[name]
    leaves = [torch.nn.Parameter(random(*shape, dtype=dtype)) for shape in shapes]
    wide = [x.detach().double().requires_grad_() for x in leaves]
    expected = by_torch(*wide)
    found = ours(*leaves)
    assert_close(found.detach(), expected.detach(), sums=4, dtype=dtype)
    dy = random(*expected.shape).to(found.dtype)
    exact = torch.autograd.grad(expected, wide, dy.double())
    for gradient, other in zip(torch.autograd.grad(found, leaves, dy), exact, strict=True):
        assert_close(gradient, other, sums=4)
