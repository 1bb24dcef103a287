"""Triton's own library of kernels, triton_kernels (as published for TokenSpeed): routing, products of experts, mxfp.

Which blocks a product has is given here, since the library chooses them for an NVIDIA or AMD GPU by its name.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch
from others import Operation, constant
from torch import Tensor, randint, randn

PACKAGES = ("tokenspeed-triton-kernels==1.0.0.post20260510",)
AS_CUDA = "all"
ROWS, EXPERTS, CHOSEN = 70, 8, 2


def _module(name: str) -> Any:
    return import_module(f"triton_kernels.{name}")


def _chosen(x: Tensor) -> tuple[Tensor, ...]:
    found = _module("topk").topk(x, 4)
    counts, rows, columns = (
        getattr(found.mask_metadata, name) for name in ("col_sum", "row_sorted_indx", "col_sorted_indx")
    )
    return found.vals, found.indx.float(), counts.float(), rows.float(), columns.float()


def _chosen_by_sorting(x: Tensor) -> tuple[Tensor, ...]:
    values, places = x.topk(4, -1)
    columns = places.flatten().argsort(stable=True)
    counts = torch.bincount(places.flatten(), minlength=x.shape[1])
    return values.softmax(-1), places.float(), counts.float(), columns.argsort().float(), columns.float()


def _compacted(values: Tensor, places: Tensor, bits: Tensor) -> Any:
    return tuple(x.float() for x in _module("compaction").compaction(values, places, bits))


def _compacted_by_loops(values: Tensor, places: Tensor, bits: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.full_like(values, -1), torch.full(places.shape, -1.0)
    for row in range(len(values)):
        kept = [i for i, place in enumerate(places[row].tolist()) if int(bits[row, 0]) >> place & 1]
        for to, x in zip(made, (values, places), strict=True):
            to[row, : len(kept)] = x[row, kept].to(to.dtype)
    return made


def _gated(x: Tensor, limit: float | None = 1.5) -> Tensor:
    """SwiGLU of neighbouring columns: a gate, and a factor to which 1 is added."""
    gate, factor = x.float()[..., ::2].clamp(max=limit), x.float()[..., 1::2].clamp(-limit if limit else None, limit)
    return gate * torch.sigmoid(gate) * (factor + 1)


def _gate(x: Tensor) -> Tensor:
    swiglu = _module("swiglu")
    return swiglu.swiglu(x, 1.0, swiglu.PrecisionConfig(limit=1.5))


def _reduced(x: Tensor, kept: Tensor, axis: int) -> Tensor:
    return _module("reduce").reduce(x, axis, mask=kept)[0]


def _there_and_back(x: Tensor, kind: torch.dtype) -> Tensor:
    mxfp = _module("numerics_details.mxfp")
    return mxfp.upcast_from_mxfp(*mxfp.downcast_to_mxfp(x, kind, axis=1), torch.float32, axis=1)


def _there_and_back_by_torch(x: Tensor, kind: torch.dtype) -> Tensor:
    mxfp = _module("numerics_details.mxfp")
    return mxfp.upcast_from_mxfp_torch(*mxfp.downcast_to_mxfp_torch(x, kind, axis=1), torch.float32, axis=1)


def _product(a: Tensor, b: Tensor, bias: Tensor | None, *, is_persistent: bool = False, **how: Any) -> Tensor:
    flags = _module("matmul_details.opt_flags")
    with flags.scoped_opt_flags(flags.OptFlags(32, 64, 64, 4, 2, 8, 1, None, 1, is_persistent, 0, 1, None, 1, {})):
        return _module("matmul").matmul(a, b, bias, **how).float()


def _routed(logits: Tensor) -> tuple[Any, Tensor]:
    """Where the rows of each expert begin, and which choices are its: a row has `CHOSEN` in turn."""
    chosen = _module("topk").topk(logits, CHOSEN).mask_metadata
    ragged = _module("tensor").make_ragged_tensor_metadata(chosen.col_sum, ROWS * CHOSEN)
    return ragged, chosen.col_sorted_indx


def _experts(x: Tensor, logits: Tensor, w: Tensor, bias: Tensor, kind: torch.dtype | None = None, **how: Any) -> Tensor:
    """The rows that experts take, through the expert and SwiGLU, in the order of experts; `kind` is that of weights."""
    matmul, (ragged, choices) = _module("matmul"), _routed(logits)
    act = matmul.FusedActivation(
        matmul.FnSpecs("swiglu", _module("swiglu").swiglu_fn, ("alpha", "limit"), reduction_n=2), (1.0, 1.5)
    )
    config = matmul.PrecisionConfig()
    if kind is not None:
        w, scales = _module("numerics_details.mxfp").downcast_to_mxfp(w, kind, axis=1)
        config = matmul.PrecisionConfig(b_mx_scale=scales, b_microblock_size=32, out_dtype=torch.bfloat16)
    rows = {"a_ragged_metadata": ragged, "gather_indx": choices // CHOSEN, "precision_config": config}
    return _product(x, w, bias, fused_activation=act, **rows, **how)


def _experts_by_loops(x: Tensor, logits: Tensor, w: Tensor, bias: Tensor, kind: torch.dtype | None = None) -> Tensor:
    if kind is not None:
        w = _there_and_back_by_torch(w, kind)
    experts = logits.topk(CHOSEN, -1).indices.flatten()
    choices = experts.argsort(stable=True).tolist()
    made = [x[i // CHOSEN].float() @ w[experts[i]].float() + bias[experts[i]] for i in choices]
    return _gated(torch.stack(made))


def _back(y: Tensor, logits: Tensor, w: Tensor) -> Tensor:
    """Rows in the order of experts through the expert, and each to its place."""
    ragged, choices = _routed(logits)
    return _product(y, w, None, a_ragged_metadata=ragged, scatter_indx=choices)


def _back_by_loops(y: Tensor, logits: Tensor, w: Tensor) -> Tensor:
    experts = logits.topk(CHOSEN, -1).indices.flatten()
    choices, made = experts.argsort(stable=True).tolist(), torch.zeros(len(y), w.shape[2])
    for row, i in zip(y, choices, strict=True):
        made[i] = row.float() @ w[experts[i]].float()
    return made


def _dense(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return a.float() @ b.float() + bias


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    half, kinds = torch.bfloat16, {"mxfp4": torch.uint8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    places = torch.stack([torch.randperm(32)[:8] for _ in range(40)]).int()
    dense = constant(randn(100, 160).to(half), randn(160, 96).to(half), randn(96))
    experts = (randn(ROWS, 96).to(half), randn(ROWS, EXPERTS), randn(EXPERTS, 96, 256).to(half), randn(EXPERTS, 256))
    wide = constant(randn(96, 160) * torch.exp2(randint(-6, 6, (96, 160)).float()))
    return {
        "topk and where its rows are": (_chosen, _chosen_by_sorting, constant(randn(37, 32))),
        "compaction": (
            _compacted,
            _compacted_by_loops,
            constant(randn(40, 8), places, randint(0, 2**31 - 1, (40, 1)).int()),
        ),
        "swiglu": (_gate, _gated, constant(randn(100, 260))),
        "reduce, masked": (
            partial(_reduced, axis=0),
            lambda x, kept: (x * kept).sum(0),
            (randn(8, 70, 132), randint(0, 2, (8, 70, 132)).to(torch.int8)),
        ),
        **{
            f"{name} and back": (
                partial(_there_and_back, kind=kind),
                partial(_there_and_back_by_torch, kind=kind),
                wide,
            )
            for name, kind in kinds.items()
        },
        "matmul": (_product, _dense, dense, 5e-3),
        "matmul, persistent": (partial(_product, is_persistent=True), _dense, dense, 5e-3),
        "matmul, batched": (
            lambda a, b: _product(a, b, None),
            lambda a, b: a.float() @ b.float(),
            constant(randn(3, 40, 160), randn(3, 160, 96)),
        ),
        "experts, gathered, swiglu": (_experts, _experts_by_loops, constant(*experts), 1e-2),
        "experts, persistent": (partial(_experts, is_persistent=True), _experts_by_loops, constant(*experts), 1e-2),
        **{
            f"experts, {name} weights": (
                partial(_experts, kind=kind),
                partial(_experts_by_loops, kind=kind),
                constant(*experts),
                1e-2,
            )
            for name, kind in kinds.items()
        },
        "experts, scattered": (
            _back,
            _back_by_loops,
            constant(randn(ROWS * CHOSEN, 128).to(half), experts[1], randn(EXPERTS, 128, 64).to(half)),
            1e-2,
        ),
    }
