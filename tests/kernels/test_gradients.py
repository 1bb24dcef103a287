"""Functions of the library that torch differentiates: gradients against differences of the same function in float64,
and against torch's own functions where a kernel computes in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mltriton import kernels

torch = pytest.importorskip("torch")

LABELS = torch.tensor([[2, 0, -100], [4, 1, 3]])
ANGLES = torch.linspace(0, 3, 12, dtype=torch.float64).reshape(3, 4)


def product(function: Callable[..., Any] = kernels.matmul, **options: Any) -> Callable[..., Any]:
    return lambda a, b, bias=None, add=None: function(a, b, bias=bias, add=add, **options)


# A function of tensors of these shapes.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]]]] = {
    "softmax": (kernels.softmax, [(2, 3, 5)]),
    "layer_norm": (lambda x, w, b: kernels.layer_norm(x, w, b, 1e-3), [(2, 3, 5), (5,), (5,)]),
    "rms_norm": (lambda x, w: kernels.rms_norm(x, w, 1e-3), [(4, 7), (7,)]),
    "rope": (lambda x: kernels.rope(x, ANGLES.cos(), ANGLES.sin()), [(2, 3, 2, 8)]),
    "cross_entropy": (lambda x: kernels.cross_entropy(x, LABELS), [(2, 3, 5)]),
    "matmul": (kernels.matmul, [(3, 4), (4, 5)]),
    "matmul of batches": (kernels.matmul, [(2, 1, 3, 4), (2, 4, 5)]),
    "matmul by a matrix": (product(), [(2, 3, 4), (4, 5), (5,), (2, 1, 5)]),
    "split_k_matmul": (product(kernels.split_k_matmul, splits=2, activation="silu"), [(3, 40), (40, 5), (5,)]),
    "stream_k_matmul": (product(kernels.stream_k_matmul, prologue="exp"), [(3, 40), (40, 5)]),
    "grouped_gemm": (lambda *x: kernels.grouped_gemm(x[:2], x[2:]), [(3, 4), (2, 6), (4, 5), (6, 2)]),
    "grouped_gemm, silu": (lambda a, b: kernels.grouped_gemm([a], [b], activation="silu"), [(3, 4), (4, 5)]),
    "matmul, gelu": (product(activation="gelu", prologue="silu"), [(3, 4), (4, 5), (5,), (1, 5)]),
    "matmul, gelu_tanh": (product(activation="gelu_tanh", prologue="exp"), [(3, 4), (4, 5)]),
}


def random(*shapes: tuple[int, ...], dtype: Any = torch.float64) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_differences(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    arguments = random(*shapes)
    assert torch.autograd.gradcheck(function, arguments)
    with torch.no_grad():
        plain = function(*arguments)
    recorded = function(*arguments)
    for one, other in zip(*([x] if isinstance(x, torch.Tensor) else x for x in (recorded, plain)), strict=True):
        assert one.requires_grad
        assert not other.requires_grad
        assert torch.equal(one, other)


def test_one_result_of_a_group() -> None:
    arguments = random((3, 4), (2, 6), (4, 5), (6, 2))
    made = kernels.grouped_gemm(arguments[:2], arguments[2:])
    made[1].sum().backward()
    assert not arguments[0].grad.any()
    torch.testing.assert_close(arguments[1].grad, arguments[3].sum(1).expand(2, 6))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_network_of_parameters(dtype: Any) -> None:
    """Weights are parameters; only what needs a gradient gets one; relu, whose gradient no difference shows."""
    x, weight, bias, scale = random((2, 6, 8), (8, 12), (12,), (12,), dtype=dtype)
    leaves = [torch.nn.Parameter(t.detach().clone()) for t in (weight, bias, scale)]
    x = x.detach()

    def loss(matmul: Any, rms_norm: Any, softmax: Any, weight: Any, bias: Any, scale: Any) -> Any:
        hidden = rms_norm(matmul(x.to(weight.dtype), weight, bias), scale)
        return (softmax(hidden) * torch.arange(12)).square().sum()

    ours = loss(
        lambda a, b, c: kernels.matmul(a, b, bias=c, activation="relu"), kernels.rms_norm, kernels.softmax, *leaves
    )
    ours.backward()
    wide = [t.detach().double().requires_grad_() for t in leaves]
    by_torch = lambda a, b, c: torch.relu(a @ b + c)  # noqa: E731
    norm = lambda y, w: torch.nn.functional.rms_norm(y, w.shape, w, 1e-6)  # noqa: E731
    loss(by_torch, norm, lambda y: torch.softmax(y, -1), *wide).backward()
    for leaf, exact in zip(leaves, wide, strict=True):
        assert leaf.grad is not None
        assert leaf.grad.dtype == dtype
        error = (leaf.grad.double() - exact.grad).abs().max() / exact.grad.abs().max()
        assert error < (2e-2 if dtype == torch.float16 else 1e-5)


def test_bytes_have_no_gradient_but_what_is_added_has() -> None:
    a, b = (torch.randint(-5, 5, shape, dtype=torch.int8) for shape in ((3, 4), (4, 5)))
    bias = torch.zeros(5, requires_grad=True)
    kernels.matmul(a, b, bias=bias, out_dtype="float32").sum().backward()
    assert bias.grad is not None
    assert bias.grad.tolist() == [3.0] * 5


def test_functions_are_differentiated_once() -> None:
    (x,) = random((4, 5))
    (first,) = torch.autograd.grad(kernels.softmax(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
