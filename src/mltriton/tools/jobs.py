"""The jobs of the demo and the benchmarks: a kernel of the library, random inputs, the other libraries' way to do it.

Takes sizes, a dtype and a seed; gives inputs that are never zero, our call, the reference in float64 and the
contenders to time beside it. numpy takes part where it has the dtype, torch where it is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from mltriton import kernels
from mltriton.kernels.arrays import empty
from mltriton.kernels.attention import launch_on
from mltriton.kernels.attention_paged import form_on, paged_attention_launches
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_gpu import tile_on
from mltriton.kernels.launch import Launch
from mltriton.kernels.normalization import choose_rows, layer_norm_launch, softmax_launch
from mltriton.records import NamedTuple
from mltriton.tools.side_by_side import OURS

Array = Any
Float64 = np.ndarray[Any, np.dtype[np.float64]]
EPS = 1e-5


class Where(NamedTuple):
    """What a job's launches run on (None: where arrays lie), and torch's name of where arrays lie."""

    target: str | None = None
    device: str = "cpu"


HERE = Where()

# Bound of the scaled error by dtype: a thousand roundings for f32 sums, two of the result for the 16-bit floats.
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclass(frozen=True)
class Job:
    """One kernel on one problem. `contenders` do the same work; `compute` does it in float64 with numpy.

    `tolerance` bounds max |ours - reference| / max |reference|. `work` counts floating-point operations or bytes, as
    `unit` says. `make_launch` gives a launch of our kernel and the array that it fills.
    """

    name: str
    problem: str
    contenders: Mapping[str, Callable[[], Array]]
    compute: Callable[[], Float64]
    make_launch: Callable[[], tuple[Launch, Array]]
    tolerance: float
    work: float
    unit: str = "GFLOP/s"

    @cached_property
    def reference(self) -> Float64:
        """The right result."""
        return self.compute()

    def error(self, result: Array) -> float:
        """The scaled error of a result."""
        return float(np.max(np.abs(to_float64(result) - self.reference)) / np.max(np.abs(self.reference)))


def has_torch() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def to_float64(x: Array) -> Float64:
    """A numpy float64 copy of an array of either kind."""
    return np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x.double().cpu().numpy()


def random(shape: tuple[int, ...], dtype: str, seed: int, device: str = "cpu") -> Array:
    """Normally distributed values: a numpy array, or a torch tensor where torch is installed (needed for bfloat16)."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    if not has_torch():
        return values.astype(dtype)
    import torch

    values = torch.from_numpy(values)  # pyright: ignore[reportUnknownMemberType]
    return values.to(device, getattr(torch, dtype))


def gemm(m: int, n: int, k: int, dtype: str = "float32", seed: int = 0, where: Where = HERE) -> Job:
    """C = A B; inputs scaled so that C is about 1."""
    a, b = (random(shape, dtype, seed + i, where.device) for i, shape in enumerate(((m, k), (k, n))))
    b = b / math.sqrt(k)
    contenders: dict[str, Callable[[], Array]] = {OURS: lambda: kernels.matmul(a, b)}
    if dtype == "float32" and where.device == "cpu":
        a_numpy, b_numpy = np.asarray(a), np.asarray(b)
        contenders["numpy"] = lambda: a_numpy @ b_numpy
    if has_torch():
        import torch

        contenders["torch"] = lambda: torch.mm(a, b)

    def launch() -> tuple[Launch, Array]:
        c = empty((m, n), a)
        tile, warps = tile_on(where.target, m, n, a, 1)
        return matmul_launch(a[None], b[None], c[None], tile=tile).on(where.target, warps), c

    return Job(
        name=f"gemm {dtype}",
        problem=f"{m}x{n}x{k}",
        contenders=contenders,
        compute=lambda: to_float64(a) @ to_float64(b),
        make_launch=launch,
        tolerance=TOLERANCE[dtype],
        work=2.0 * m * n * k,
    )


def attention(
    batch: int,
    heads: int,
    sequence: int,
    dim: int,
    causal: bool,
    dtype: str = "float32",
    seed: int = 0,
    where: Where = HERE,
) -> Job:
    """FlashAttention forward; causal attention counts as half the work."""
    q, k, v = (random((batch, heads, sequence, dim), dtype, seed + i, where.device) for i in range(3))
    contenders: dict[str, Callable[[], Array]] = {OURS: lambda: kernels.flash_attention(q, k, v, causal=causal)}
    if dtype == "float32" and where.device == "cpu":
        q_numpy, k_numpy, v_numpy = (np.asarray(x) for x in (q, k, v))
        contenders["numpy"] = lambda: _attention(q_numpy, k_numpy, v_numpy, causal)
    if has_torch():
        from torch.nn.functional import scaled_dot_product_attention

        contenders["torch"] = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)

    def launch() -> tuple[Launch, Array]:
        o = empty(q.shape, q)
        return launch_on(where.target, q, k, v, o, causal), o

    return Job(
        name=f"{'causal ' if causal else ''}attention {dtype}",
        problem=f"{batch}x{heads}x{sequence}x{dim}",
        contenders=contenders,
        compute=lambda: _attention(to_float64(q), to_float64(k), to_float64(v), causal),
        make_launch=launch,
        tolerance=TOLERANCE[dtype],
        work=4.0 * batch * heads * sequence * sequence * dim * (0.5 if causal else 1.0),
    )


@dataclass(frozen=True)
class PagedProblem:
    """One new query for each sequence of `lens` keys; `caches` of keys and values, whose pages `table` lists.

    `on_device`: the table and the lengths as the kernel takes them.
    """

    lens: Sequence[int]
    q: Array
    caches: tuple[Array, Array]
    table: Array
    on_device: tuple[Array, Array]

    def keys_and_values(self, sequence: int, caches: Sequence[Array], table: Array) -> list[Array]:
        """Those of a sequence, gathered: [kv_heads, keys, dim] each."""
        length, (_, page, kv_heads, dim) = self.lens[sequence], caches[0].shape
        taken = [cache[table[sequence, : -(-length // page)]] for cache in caches]
        return [x.reshape(-1, kv_heads, dim)[:length].swapaxes(0, 1) for x in taken]

    def with_torch(self) -> Array:
        """Keys and values gathered, then torch's attention."""
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        result, kv_heads = torch.empty_like(self.q), self.caches[0].shape[2]
        for sequence, q in enumerate(self.q):
            k, v = (x[None] for x in self.keys_and_values(sequence, self.caches, self.on_device[0]))
            # The heads that share keys as queries of one head: torch is much slower with `enable_gqa`.
            shared = q.reshape(1, kv_heads, -1, q.shape[-1])
            result[sequence] = scaled_dot_product_attention(shared, k, v).reshape(q.shape)
        return result

    def exactly(self) -> Float64:
        """The result in float64."""
        wide_q, wide_caches = to_float64(self.q), [to_float64(cache) for cache in self.caches]
        result = np.empty_like(wide_q)
        for sequence, q in enumerate(wide_q):
            gathered = self.keys_and_values(sequence, wide_caches, self.table)
            k, v = (np.repeat(x, len(q) // len(x), 0) for x in gathered)
            result[sequence] = _attention(q[:, None], k, v, causal=False)[:, 0]
        return result


def _paged_problem(
    lens: Sequence[int], heads: int, kv_heads: int, dim: int, dtype: str, page: int, seed: int, device: str
) -> PagedProblem:
    most = -(-max(lens) // page)
    shape = (len(lens) * most, page, kv_heads, dim)
    q = random((len(lens), heads, dim), dtype, seed, device)
    keys, values = empty(shape, q), empty(shape, q)
    for number, cache in enumerate((keys, values), 1):
        cache[...] = random(shape, dtype, seed + number, device)
    table = np.random.default_rng(seed).permutation(shape[0]).astype(np.int32).reshape(len(lens), most)
    used: Array = np.array(lens, np.int32)
    on_device: tuple[Array, Array] = table, used
    if has_torch():
        import torch

        on_device = torch.from_numpy(table).to(device), torch.from_numpy(used).to(device)  # pyright: ignore[reportUnknownMemberType]
    return PagedProblem(lens, q, (keys, values), table, on_device)


def paged_attention(
    lens: Sequence[int],
    heads: int,
    kv_heads: int,
    dim: int,
    warp_level: bool,
    dtype: str = "float32",
    page: int = 16,
    seed: int = 0,
    where: Where = HERE,
) -> Job:
    """One new query for each of some sequences of `lens` keys, whose pages lie in any order."""
    problem = _paged_problem(lens, heads, kv_heads, dim, dtype, page, seed, where.device)
    given = problem.q, *problem.caches, *problem.on_device

    def launch() -> tuple[Launch, Array]:
        o = empty(problem.q.shape, problem.q)
        form = form_on(where.target, problem.q, *problem.caches, warp_level)
        return paged_attention_launches(*given, o, form=form)[0].on(where.target), o

    contenders: dict[str, Callable[[], Array]] = {OURS: lambda: kernels.paged_attention(*given, warp_level=warp_level)}
    if has_torch():
        contenders["torch"] = problem.with_torch
    return Job(
        name=f"paged attention by {'warps' if warp_level else 'workgroups'} {dtype}",
        problem=f"{len(lens)}x{heads}/{kv_heads}x{max(lens)}x{dim}",
        contenders=contenders,
        compute=problem.exactly,
        make_launch=launch,
        tolerance=TOLERANCE[dtype],
        work=2.0 * sum(lens) * kv_heads * dim * problem.caches[0].itemsize,
        unit="GB/s",
    )


def softmax(rows: int, columns: int, dtype: str = "float32", seed: int = 0, where: Where = HERE) -> Job:
    """Softmax over rows."""
    x = random((rows, columns), dtype, seed, where.device)
    contenders: dict[str, Callable[[], Array]] = {OURS: lambda: kernels.softmax(x)}
    if dtype == "float32" and where.device == "cpu":
        x_numpy = np.asarray(x)
        contenders["numpy"] = lambda: _softmax(x_numpy)
    if has_torch():
        import torch

        contenders["torch"] = lambda: torch.softmax(x, -1)

    def launch() -> tuple[Launch, Array]:
        y, blocks = empty(x.shape, x), choose_rows(x, where.target)
        return softmax_launch(x, y, blocks.longest, blocks.piece).on(where.target, blocks.warps), y

    return Job(
        name=f"softmax {dtype}",
        problem=f"{rows}x{columns}",
        contenders=contenders,
        compute=lambda: _softmax(to_float64(x)),
        make_launch=launch,
        tolerance=TOLERANCE[dtype],
        work=2.0 * rows * columns * (4 if dtype == "float32" else 2),
        unit="GB/s",
    )


def layer_norm(rows: int, columns: int, dtype: str = "float32", seed: int = 0, where: Where = HERE) -> Job:
    """Layer normalisation over rows."""
    x = random((rows, columns), dtype, seed, where.device)
    weight, bias = (random((columns,), dtype, seed + i, where.device) for i in (1, 2))
    contenders: dict[str, Callable[[], Array]] = {OURS: lambda: kernels.layer_norm(x, weight, bias, EPS)}
    if dtype == "float32" and where.device == "cpu":
        x_numpy, weight_numpy, bias_numpy = (np.asarray(array) for array in (x, weight, bias))
        contenders["numpy"] = lambda: _layer_norm(x_numpy, weight_numpy, bias_numpy)
    if has_torch():
        from torch.nn.functional import layer_norm as torch_layer_norm

        contenders["torch"] = lambda: torch_layer_norm(x, (columns,), weight, bias, EPS)

    def launch() -> tuple[Launch, Array]:
        y, blocks = empty(x.shape, x), choose_rows(x, where.target)
        launch = layer_norm_launch(x, weight, bias, y, EPS, blocks.longest, blocks.piece)
        return launch.on(where.target, blocks.warps), y

    return Job(
        name=f"layer norm {dtype}",
        problem=f"{rows}x{columns}",
        contenders=contenders,
        compute=lambda: _layer_norm(to_float64(x), to_float64(weight), to_float64(bias)),
        make_launch=launch,
        tolerance=TOLERANCE[dtype],
        work=2.0 * rows * columns * (4 if dtype == "float32" else 2),
        unit="GB/s",
    )


def _attention(q: Array, k: Array, v: Array, causal: bool) -> Any:
    scores: Any = q @ k.swapaxes(-1, -2) * q.dtype.type(1 / math.sqrt(q.shape[-1]))
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -math.inf
    return _softmax(scores) @ v


def _softmax(x: Array) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Array, weight: Array, bias: Array) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(EPS)) * weight + bias
