"""Functions of the library without a backward pass refuse tensors that require a gradient, where torch records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mltriton import kernels
from mltriton.errors import ArgumentError
from mltriton.kernels import grouped_gemm, layer_norm, matmul, paged_attention, softmax, split_k_matmul, stream_k_matmul

torch = pytest.importorskip("torch")

X = torch.linspace(-1, 1, 16).reshape(4, 4)
PAGE = torch.zeros((1, 1), dtype=torch.int32)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: matmul(X, x),
    "matmul-bias": lambda x: matmul(X, X, bias=x[0]),
    "matmul-add": lambda x: matmul(X, X, add=x),
    "split_k_matmul": lambda x: split_k_matmul(x, X, 2),
    "stream_k_matmul": lambda x: stream_k_matmul(x, X, 2),
    "grouped_gemm": lambda x: grouped_gemm([X, X], [X, x])[1],
    "softmax": softmax,
    "layer_norm": lambda x: layer_norm(X, x[0], X[0]),
    "rms_norm": lambda x: kernels.rms_norm(X, x[0]),
    "rope": lambda x: kernels.rope(x[None], X[:1, :2], X[:1, :2]),
    "cross_entropy": lambda x: kernels.cross_entropy(x, PAGE[0, 0].expand(4)),
    "softmax_backward": lambda x: kernels.softmax_backward(X, x),
    "rms_norm_backward": lambda x: kernels.rms_norm_backward(X, X, x[0])[0],
    "paged_attention": lambda x: paged_attention(X[None], X[None, :, None], x[None, :, None], PAGE, PAGE[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gradient_is_refused(name: str) -> None:
    weight = X.clone().requires_grad_()
    with pytest.raises(ArgumentError, match="cannot be differentiated"):
        FUNCTIONS[name](weight)
    with torch.no_grad():
        assert torch.equal(FUNCTIONS[name](weight), FUNCTIONS[name](X))
