"""What the library cannot differentiate refuses tensors that require a gradient, where torch records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mltriton as triton
from mltriton import kernels
from mltriton.errors import ArgumentError
from mltriton.kernels import grouped_gemm, matmul, paged_attention, split_k_matmul

torch = pytest.importorskip("torch")

X = torch.linspace(-1, 1, 16).reshape(4, 4)
PAGE = torch.zeros((1, 1), dtype=torch.int32)


@triton.jit
def own(x):
    return x * 2


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "activation": lambda x: matmul(X, x, activation=own),
    "prologue": lambda x: split_k_matmul(X, X, 2, bias=x[0], prologue=own),
    "group": lambda x: grouped_gemm([X], [x], activation=own)[0],
    "cos": lambda x: kernels.rope(X[None], x[:1, :2], X[:1, :2]),
    "cross_entropy_with_gradient": lambda x: kernels.cross_entropy_with_gradient(x, PAGE[0, 0].expand(4))[1],
    "lse": lambda x: kernels.flash_attention_with_lse(x[None, None], X[None, None], X[None, None])[1],
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
