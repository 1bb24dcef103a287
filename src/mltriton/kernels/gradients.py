# pyright: basic
# torch's own types are incomplete here.
"""How torch differentiates functions of the library: a table of them, and one `torch.autograd.Function`.

Level: user. The only module of the library that needs torch: functions that get a tensor that requires a gradient hand
themselves over by `recorded` (`arrays.py`). Guarantees: results are those of the same call without gradients; they can
be differentiated once; what a row of the table cannot differentiate is an `ArgumentError` of the call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from mltriton import kernels
from mltriton.kernels.arrays import require_no_gradient
from mltriton.kernels.epilogues import FUNCTIONS, Function, function_of
from mltriton.records import NamedTuple

Tensor = torch.Tensor
Named = dict[str, Any]


class Rule(NamedTuple):
    """A function's gradients.

    `forward(**arrays, **options)` gives the `results`, of which the first is the function's own; None where they are as
    many as `forward` makes. `backward(*gradients of these, wanted=names of arrays, **kept, **options)` gives gradients
    of arrays by name. Between them are kept the arrays and results of these names, None for all arrays. `refuse` raises
    an error for arrays and options without a gradient.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Named]
    keeps: tuple[str, ...] | None
    results: tuple[str, ...] | None = ("result",)
    refuse: Callable[..., None] | None = None


class Recorded(torch.autograd.Function):
    """A call of a rule's function, which torch records."""

    @staticmethod
    def forward(
        ctx: Any, rule: Rule, names: tuple[str, ...], options: Named, *arrays: Tensor | None
    ) -> tuple[Tensor, ...]:
        known = dict(zip(names, arrays, strict=True))
        made = rule.forward(**known, **options)
        made = tuple(made) if isinstance(made, tuple | list) else (made,)
        if rule.results is not None:
            known |= dict(zip(rule.results, made, strict=True))
            ctx.mark_non_differentiable(*made[1:])
        ctx.rule, ctx.names, ctx.options = rule, names, options
        ctx.kept = names if rule.keeps is None else rule.keeps
        ctx.save_for_backward(*map(known.get, ctx.kept))
        ctx.set_materialize_grads(False)
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(gradient is None for gradient in gradients):
            return (None,) * len(ctx.needs_input_grad)
        wanted = [name for name, needed in zip(ctx.names, ctx.needs_input_grad[3:], strict=True) if needed]
        kept = dict(zip(ctx.kept, ctx.saved_tensors, strict=True))
        taken = gradients if ctx.rule.results is None else gradients[:1]
        # Sums have gradients without rows of their own: copies of them here are calls that are known.
        taken = [dy.contiguous() if dy is not None and 0 in dy.stride() else dy for dy in taken]
        found = ctx.rule.backward(*taken, wanted=wanted, **kept, **ctx.options)
        return None, None, None, *map(found.get, ctx.names)


def record(function: str, arrays: Mapping[str, Tensor | None], options: Named) -> Any:
    """What the function of that name makes of arrays and options, for torch to differentiate."""
    rule = RULES[function]
    if rule.refuse is not None:
        rule.refuse(function, **arrays, **options)
    made = Recorded.apply(rule, tuple(arrays), options, *arrays.values())
    return list(made) if rule.results is None else made[0]


def _softmax(dy: Tensor, result: Tensor, target: str | None, **_: Any) -> Named:
    return {"x": kernels.softmax_backward(dy, result, target=target)}


def _layer_norm(dy: Tensor, x: Tensor, weight: Tensor, eps: float, target: str | None, **_: Any) -> Named:
    found = kernels.layer_norm_backward(dy, x, weight, eps, target=target)
    return dict(zip(("x", "weight", "bias"), found, strict=True))


def _rms_norm(dy: Tensor, x: Tensor, weight: Tensor, eps: float, target: str | None, **_: Any) -> Named:
    return dict(zip(("x", "weight"), kernels.rms_norm_backward(dy, x, weight, eps, target=target), strict=True))


def _rope(dy: Tensor, cos: Tensor, sin: Tensor, inverse: bool, target: str | None, **_: Any) -> Named:
    return {"x": kernels.rope(dy, cos, sin, inverse=not inverse, target=target)}


def _cross_entropy(dloss: Tensor, logits: Tensor, labels: Tensor, wanted: Any, **options: Any) -> Named:
    return {"logits": kernels.cross_entropy_backward(dloss, logits, labels, **options)}


def _attention(do: Tensor, result: Tensor, wanted: Any, **given: Any) -> Named:
    return dict(zip(("q", "k", "v"), kernels.flash_attention_backward(do, o=result, **given), strict=True))


def _packed_attention(do: Tensor, result: Tensor, wanted: Any, **given: Any) -> Named:
    found = kernels.flash_attention_varlen_backward(do, o=result, **given)
    return dict(zip(("q", "k", "v"), found, strict=True))


def _product(
    dc: Tensor, a: Tensor, b: Tensor, bias: Tensor | None, add: Tensor | None, wanted: Collection[str],
    target: str | None, activation: Function | None = None, prologue: Function | None = None, **_: Any,
) -> Named:  # fmt: skip
    """Of c = activation(prologue(a) b + bias + add): what the activation takes is computed again, in what is summed
    in, so that it is never kept.
    """
    found: Named = {}
    if activation is not None:
        inner = kernels.matmul(a, b, bias=bias, add=add, prologue=prologue, out_dtype=_wide(a), target=target)
        dc = _through(activation, inner, dc.to(inner.dtype))
    if "bias" in wanted and bias is not None:
        found["bias"] = dc.sum_to_size(bias.shape).to(bias.dtype)
    if "add" in wanted and add is not None:
        found["add"] = dc.sum_to_size(add.shape).to(add.dtype)
    if "a" in wanted:
        da = kernels.matmul(dc.to(b.dtype), b.mT, target=target).sum_to_size(a.shape)
        found["a"] = da if prologue is None else _through(prologue, a, da)
    if "b" in wanted:
        rows, columns = a, dc.to(a.dtype)
        if b.ndim == 2:  # one long sum in place of many short ones
            rows, columns = rows.reshape(-1, rows.shape[-1]), columns.reshape(-1, columns.shape[-1])
        db = kernels.matmul(rows.mT, columns, prologue=prologue, target=target)
        found["b"] = db.sum_to_size(b.shape)
    return found


def _grouped_forward(activation: Any, out_dtype: Any, target: str | None, **arrays: Tensor) -> list[Tensor]:
    a, b = _halves(arrays)
    return kernels.grouped_gemm(a, b, activation=activation, out_dtype=out_dtype, target=target)


def _grouped(
    *gradients: Tensor | None, wanted: Any, activation: Function | None, out_dtype: Any, target: str | None,
    **arrays: Tensor,
) -> Named:  # fmt: skip
    a, b = _halves(arrays)
    shapes = [(x.shape[0], y.shape[1]) for x, y in zip(a, b, strict=True)]
    dc = [x.new_zeros(shape) if dy is None else dy for dy, x, shape in zip(gradients, a, shapes, strict=True)]
    if activation is not None:
        inner = kernels.grouped_gemm(a, b, out_dtype=_wide(a[0]), target=target)
        dc = [_through(activation, x, dy.to(x.dtype)) for x, dy in zip(inner, dc, strict=True)]
    dc = [dy.to(a[0].dtype) for dy in dc]
    da = kernels.grouped_gemm(dc, [y.mT for y in b], target=target)
    db = kernels.grouped_gemm([x.mT for x in a], dc, target=target)
    return dict(zip(arrays, (*da, *db), strict=True))


def _wide(x: Tensor) -> str:
    """The dtype in which elements like those of `x` are added up."""
    return "float64" if x.dtype == torch.float64 else "float32"


def _halves(arrays: Mapping[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Left and right operands of groups."""
    every = list(arrays.values())
    return every[: len(every) // 2], every[len(every) // 2 :]


# Torch's own functions of a number that products have around them.
OF_TORCH: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": partial(torch.nn.functional.gelu, approximate="tanh"),
    "exp": torch.exp,
}


def _through(function: Function, x: Tensor, dy: Tensor) -> Tensor:
    """The gradient of sum(dy * function(x)) to x."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(OF_TORCH[_name_of(function)](x), x, dy)[0]


def _name_of(function: Function | None) -> str:
    """The name of a function of the table; empty for any other."""
    found = function_of(function, "function")
    return next((name for name, known in FUNCTIONS.items() if known is found), "")


def _refuse_functions(function: str, *, activation: Any = None, prologue: Any = None, **given: Any) -> None:
    """Functions of one's own have no gradient, and numbers of 8 bits cannot hold one."""
    arrays = [x for x in given.values() if isinstance(x, Tensor)]
    for what, around in (("an activation", activation), ("a prologue", prologue)):
        if around is not None and not _name_of(around):
            require_no_gradient(f"{function} with {what} of one's own", *arrays)
    require_no_gradient(f"{function} of 8 bits", *(x for x in arrays if x.dtype.itemsize == 1))


def _refuse_angles(function: str, *, cos: Tensor, sin: Tensor, **_: Any) -> None:
    require_no_gradient(f"{function}, by cos and sin,", cos, sin)


def _products(function: Callable[..., Any]) -> Rule:
    return Rule(function, _product, ("a", "b", "bias", "add"), refuse=_refuse_functions)


RULES: dict[str, Rule] = {
    "softmax": Rule(kernels.softmax, _softmax, ("result",)),
    "layer_norm": Rule(kernels.layer_norm, _layer_norm, ("x", "weight")),
    "rms_norm": Rule(kernels.rms_norm, _rms_norm, ("x", "weight")),
    "rope": Rule(kernels.rope, _rope, ("cos", "sin"), refuse=_refuse_angles),
    "cross_entropy": Rule(kernels.cross_entropy, _cross_entropy, ("logits", "labels")),
    "flash_attention": Rule(
        kernels.flash_attention_with_lse, _attention, ("q", "k", "v", "result", "lse"), ("result", "lse")
    ),
    "flash_attention_varlen": Rule(
        kernels.flash_attention_varlen_with_lse,
        _packed_attention,
        ("q", "k", "v", "query_starts", "key_starts", "result", "lse"),
        ("result", "lse"),
    ),
    "matmul": _products(kernels.matmul),
    "split_k_matmul": _products(kernels.split_k_matmul),
    "stream_k_matmul": _products(kernels.stream_k_matmul),
    "grouped_gemm": Rule(_grouped_forward, _grouped, None, None, _refuse_functions),
}
