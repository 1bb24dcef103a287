"""The jobs of the demo and the benchmarks: a kernel of the library, random inputs, the other libraries' way to do it.

Takes sizes and a seed; gives inputs that are never zero, our call, the reference in float64 and the contenders to
time beside it. torch takes part where it is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from mltriton import kernels

Array = Any


@dataclass(frozen=True)
class Job:
    """One kernel on one problem. `contenders` do the same work; `reference` computes it in float64 with numpy.

    `tolerance` bounds max |ours - reference| / max(1, max |reference|). `work`: floating-point operations or bytes,
    as `unit` says.
    """

    name: str
    problem: str
    contenders: Mapping[str, Callable[[], Array]]
    reference: Callable[[], np.ndarray[Any, Any]]
    tolerance: float
    work: float
    unit: str = "GFLOP/s"

    def error(self) -> float:
        """The scaled error of our result."""
        ours = to_float64(self.contenders["mltriton"]())
        expected = self.reference()
        return float(np.max(np.abs(ours - expected)) / max(1.0, float(np.max(np.abs(expected)))))


def has_torch() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def to_float64(x: Array) -> np.ndarray[Any, Any]:
    """A numpy float64 copy of an array of either kind."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) else x.double().numpy()


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Normally distributed values: a numpy array, or a torch tensor where torch is installed (needed for bfloat16)."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    if not has_torch():
        return values.astype(dtype)
    import torch

    return torch.from_numpy(values).to(getattr(torch, dtype))


TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}


def gemm(m: int, n: int, k: int, dtype: str = "float32", seed: int = 0) -> Job:
    """C = A B; inputs scaled so that C is about 1."""
    a, b = random((m, k), dtype, seed), random((k, n), dtype, seed + 1)
    b = b / math.sqrt(k)
    contenders: dict[str, Callable[[], Array]] = {"mltriton": lambda: kernels.matmul(a, b)}
    if dtype == "float32":
        a_numpy, b_numpy = (np.asarray(x) for x in (a, b))
        contenders["numpy"] = lambda: a_numpy @ b_numpy
    if has_torch():
        import torch

        contenders["torch"] = lambda: torch.mm(a, b)
    return Job(
        f"gemm {dtype}",
        f"{m}x{n}x{k}",
        contenders,
        lambda: to_float64(a) @ to_float64(b),
        TOLERANCE[dtype],
        2.0 * m * n * k,
    )


def attention(
    batch: int, heads: int, sequence: int, dim: int, causal: bool, dtype: str = "float32", seed: int = 0
) -> Job:
    """FlashAttention forward."""
    q, k, v = (random((batch, heads, sequence, dim), dtype, seed + i) for i in range(3))
    contenders: dict[str, Callable[[], Array]] = {"mltriton": lambda: kernels.flash_attention(q, k, v, causal=causal)}
    if has_torch():
        from torch.nn.functional import scaled_dot_product_attention

        contenders["torch"] = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)
    else:
        contenders["numpy"] = lambda: _attention(q, k, v, causal)
    problem = f"{batch}x{heads}x{sequence}x{dim}{' causal' if causal else ''}"
    work = 4.0 * batch * heads * sequence * sequence * dim * (0.5 if causal else 1.0)
    return Job(
        f"attention {dtype}",
        problem,
        contenders,
        lambda: _attention(to_float64(q), to_float64(k), to_float64(v), causal),
        TOLERANCE[dtype],
        work,
    )


def _attention(
    q: np.ndarray[Any, Any], k: np.ndarray[Any, Any], v: np.ndarray[Any, Any], causal: bool
) -> np.ndarray[Any, Any]:
    scores = q @ k.swapaxes(-1, -2) / np.asarray(math.sqrt(q.shape[-1]), q.dtype)
    if causal:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -np.inf)
    return _softmax(scores) @ v


def softmax(rows: int, columns: int, dtype: str = "float32", seed: int = 0) -> Job:
    """Softmax over rows."""
    x = random((rows, columns), dtype, seed)
    contenders: dict[str, Callable[[], Array]] = {"mltriton": lambda: kernels.softmax(x)}
    if has_torch():
        import torch

        contenders["torch"] = lambda: torch.softmax(x, -1)
    else:
        contenders["numpy"] = lambda: _softmax(x)
    size = 2.0 * rows * columns * (4 if dtype == "float32" else 2)
    name, problem = f"softmax {dtype}", f"{rows}x{columns}"
    return Job(name, problem, contenders, lambda: _softmax(to_float64(x)), TOLERANCE[dtype], size, "GB/s")


def _softmax(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(rows: int, columns: int, dtype: str = "float32", seed: int = 0) -> Job:
    """Layer normalisation over rows."""
    x, weight, bias = (
        random(shape, dtype, seed + i) for i, shape in enumerate([(rows, columns), (columns,), (columns,)])
    )
    contenders: dict[str, Callable[[], Array]] = {"mltriton": lambda: kernels.layer_norm(x, weight, bias)}
    if has_torch():
        from torch.nn.functional import layer_norm as torch_layer_norm

        contenders["torch"] = lambda: torch_layer_norm(x, (columns,), weight, bias)
    else:
        contenders["numpy"] = lambda: _layer_norm(x, weight, bias)
    size = 2.0 * rows * columns * (4 if dtype == "float32" else 2)
    name, problem = f"layer norm {dtype}", f"{rows}x{columns}"
    reference = lambda: _layer_norm(to_float64(x), to_float64(weight), to_float64(bias))  # noqa: E731
    return Job(name, problem, contenders, reference, 5 * TOLERANCE[dtype], size, "GB/s")


def _layer_norm(
    x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.asarray(1e-5, x.dtype)) * weight + bias
