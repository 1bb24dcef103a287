"""conch: normalisation, activation, rotation, caches, attention over pages, quantisation, products, vision."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from others import Operation, constant
from torch import Tensor, int32, rand, randint, randn


def _op(module: str, name: str, *after: Any, **options: Any) -> Callable[..., Any]:
    """One of conch's operations, with further arguments `after` the tensors."""
    return lambda *inputs: getattr(import_module(f"conch.ops.{module}"), name)(*inputs, *after, **options)


def _theirs(module: str, name: str, *after: Any, **options: Any) -> Callable[..., Any]:
    """One of conch's references in torch."""
    return lambda *inputs: getattr(import_module(f"conch.reference.{module}"), name)(*inputs, *after, **options)


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def _halves(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return function(left) * right

    return run


def _rows(cache: Tensor, table: Tensor, length: int) -> Tensor:
    return cache[table].flatten(0, 1)[:length]


def _one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of queries, heads, width over keys; causal from the end."""
    repeated = [x.repeat_interleave(q.shape[1] // x.shape[1], 1).transpose(0, 1) for x in (k, v)]
    scores = q.transpose(0, 1) @ repeated[0].mT / q.shape[-1] ** 0.5
    late = torch.ones(scores.shape[-2:]).tril(k.shape[0] - q.shape[0]) == 0
    return (scores.masked_fill(late, float("-inf")).softmax(-1) @ repeated[1]).transpose(0, 1)


def _paged(q: Tensor, keys: Tensor, values: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    rows = [(_rows(keys, t, n), _rows(values, t, n)) for t, n in zip(table, lengths.tolist(), strict=True)]
    return torch.cat([_one(q[i : i + 1], k, v) for i, (k, v) in enumerate(rows)])


def _varlen(q: Tensor, keys: Tensor, values: Tensor, starts: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    parts = q.tensor_split(starts[1:-1].long())
    rows = zip(parts, table, lengths.tolist(), strict=True)
    return torch.cat([_one(part, _rows(keys, t, n), _rows(values, t, n)) for part, t, n in rows])


def _cached(out: Any) -> Any:
    """What an operation leaves in its third and fourth argument."""

    def run(*inputs: Any) -> Any:
        out(*inputs)
        return inputs[2:4]

    return run


def _put(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> None:
    keys.flatten(0, 1)[slots] = key
    values.flatten(0, 1)[slots] = value


def _voxels(function: Callable[..., Any]) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """Counts of points in every filled voxel, by the voxel: which comes first is left to atomics."""

    def run(points: Tensor) -> tuple[Tensor, ...]:
        made = import_module("conch.ops.vision.voxelization").VoxelizationParameter
        return function(points, made((0.0, 0.0, 0.0), (8.0, 8.0, 2.0), (1.0, 1.0, 1.0), 5))

    return run


def _dense_counts(points: Tensor, parameter: Any) -> tuple[Tensor, ...]:
    count, _, places, inside = import_module("conch.ops.vision.voxelization").generate_voxels(points, parameter)
    x, y, z = places[: int(count), :3].long().T
    return (torch.zeros(2, 8, 8).index_put_((z, y, x), inside[: int(count)].float()),)


def _counts(points: Tensor, _: Any) -> tuple[Tensor, ...]:
    x, y, z = points[:, :3].long().T
    return (torch.zeros(2, 8, 8).index_put_((z, y, x), torch.ones(len(points)), accumulate=True).clamp(max=5),)


def _weights4(x: Tensor, packed: Tensor, scales: Tensor) -> Tensor:
    bits = (packed[:, None] >> (4 * torch.arange(8, dtype=int32))[None, :, None]) & 15
    return x @ ((bits.flatten(0, 1) - 8) * scales.repeat_interleave(128, 0))


def _there_and_back(kind: str) -> Operation:
    def ours(x: Tensor) -> Tensor:
        module = import_module("conch.ops.quantization.bitsandbytes.functional")
        packed, state = module.quantize_4bit(x, quant_type=kind)
        return module.dequantize_4bit(packed, state, quant_type=kind)

    levels = {
        "fp4": [0, 0.0052083333, 2 / 3, 1, 1 / 3, 0.5, 1 / 6, 0.25],
        "nf4": [
            *(-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803),
            *(0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1),
        ],
    }[kind]
    both = torch.tensor(levels if kind == "nf4" else levels + [-level for level in levels])

    def reference(x: Tensor) -> Tensor:
        blocks = x.view(-1, 64)
        most = blocks.abs().max(-1, keepdim=True).values
        nearest = ((blocks / most)[..., None] - both).abs().argmin(-1)
        return (both[nearest] * most).view(x.shape)

    return ours, reference, constant(randn(8192))


def _vision() -> dict[str, Operation]:
    corners = 50 * rand(200, 2)
    boxes = torch.cat([corners, corners + 5 + 10 * rand(200, 2)], 1)
    cells = torch.stack([randint(0, n, (40,)) for n in (8, 8, 2, 2)], 1).unique(dim=0)
    lengths = randint(1, 9, (len(cells),))
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)[:-1]])
    places = cells.repeat_interleave(lengths, 0)
    features, sizes = randn(int(lengths.sum()), 80), (2, 2, 8, 8)
    intervals = (places.to(int32), starts.to(int32), lengths.to(int32))
    return {
        "conch: nms": (_op("vision.nms", "nms", 0.3), _theirs("vision.nms", "nms", 0.3), constant(boxes, rand(200))),
        "conch: bev_pool": (
            _op("vision.bev_pool", "bev_pool", *sizes),
            _theirs("vision.bev_pool", "bev_pool_pytorch", *sizes),
            constant(features, *intervals),
        ),
        "conch: bev_pool_backward": (
            _op("vision.bev_pool", "bev_pool_backward"),
            _theirs("vision.bev_pool", "bev_pool_backward_pytorch"),
            constant(randn(2, 2, 8, 8, 80), *intervals),
        ),
        "conch: voxels": (
            _voxels(_dense_counts),
            _voxels(_counts),
            constant(torch.cat([rand(300, 3) * torch.tensor([8, 8, 2]), rand(300, 1)], 1)),
        ),
    }


def _attention() -> dict[str, Operation]:
    keys, values = randn(40, 32, 2, 64), randn(40, 32, 2, 64)
    table = torch.randperm(40)[:30].view(3, 10).to(int32)
    lengths, starts = torch.tensor([300, 33, 129], dtype=int32), torch.tensor([0, 300, 333, 462], dtype=int32)

    def varlen(q: Tensor, k: Tensor, v: Tensor, starts: Tensor, table: Tensor, lengths: Tensor) -> Any:
        function = import_module("conch.ops.attention.varlen_attention").varlen_attention
        return function(q, k, v, starts, 300, lengths, 300, table, causal=True)

    return {
        "conch: paged_attention": (
            _op("attention.paged_attention", "paged_attention"),
            _paged,
            constant(randn(3, 8, 64), keys, values, table, lengths),
            5e-3,
        ),
        "conch: varlen_attention": (
            varlen,
            _varlen,
            constant(randn(462, 8, 64), keys, values, starts, table, lengths),
            5e-3,
        ),
        "conch: reshape_and_cache": (
            _cached(_op("vllm.reshape_and_cache", "reshape_and_cache")),
            _cached(_put),
            constant(randn(20, 2, 64), randn(20, 2, 64), keys, values, torch.randperm(40 * 32)[:20]),
        ),
    }


def _products() -> dict[str, Operation]:
    a, b = randint(-128, 128, (70, 256), dtype=torch.int8), randint(-128, 128, (256, 96), dtype=torch.int8)
    packed = randint(-(2**31), 2**31 - 1, (32, 96), dtype=int32)
    rows, columns = rand(70, 1), rand(1, 96)
    return {
        "conch: scaled_gemm": (
            _op("quantization.gemm", "scaled_gemm", torch.float32),
            lambda a, b, x, y: (a.double() @ b.double() * x * y).float(),
            constant(a, b, rows, columns),
        ),
        "conch: mixed_precision_gemm": (
            _op("quantization.gemm", "mixed_precision_gemm", None, 4, 8, 128),
            _weights4,
            constant(randn(70, 256), packed, rand(2, 96)),
            5e-3,
        ),
        "conch: scaled_fp8_quant": (
            lambda x, s: _op("quantization.fp8", "scaled_fp8_quant")(x, s)[0].float(),
            lambda x, s: (x * s.reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn).float(),
            constant(9 * randn(33, 200), torch.tensor([0.05])),
        ),
        "conch: scaled_int8_quant": (
            lambda x, s: _op("quantization.int8", "scaled_int8_quant")(x, s)[0],
            lambda x, s: (x * s.reciprocal()).clamp(-128, 127).to(torch.int8),
            constant(9 * randn(33, 200), torch.tensor([0.05])),
        ),
        "conch: quantize_4bit, fp4": _there_and_back("fp4"),
        "conch: quantize_4bit, nf4": _there_and_back("nf4"),
    }


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    x, weight = constant(randn(33, 1000), randn(1000))
    angles = torch.outer(torch.arange(64).float(), 1e4 ** (-torch.arange(32) / 32))
    table = torch.cat([angles.cos(), angles.sin()], -1)
    turned = (randint(0, 64, (20,)), randn(20, 8 * 64), randn(20, 2 * 64))
    return {
        "conch: silu_and_mul": (_op("activation.silu_and_mul", "silu_and_mul"), _halves(F.silu), (x,)),
        "conch: gelu_tanh_and_mul": (
            _op("activation.gelu_tanh_and_mul", "gelu_tanh_and_mul"),
            _halves(lambda x: F.gelu(x, approximate="tanh")),
            (x,),
        ),
        "conch: rms_norm": (_op("normalization.rms_norm", "rms_norm", 1e-6), _rms, (x, weight)),
        "conch: fused_add_rms_norm": (
            _op("normalization.rms_norm", "fused_add_rms_norm", 1e-6),
            lambda x, r, w: (_rms(x + r, w), x + r),
            (x, *constant(randn(33, 1000)), weight),
        ),
        "conch: gemma_rms_norm": (
            _op("normalization.gemma_rms_norm", "gemma_rms_norm", 1e-6),
            lambda x, w: _rms(x, 1 + w),
            (x, weight),
        ),
        "conch: rotary_embedding": (
            lambda p, q, k, table: _op("embedding.rotary_embedding", "rotary_embedding")(p, q, k, 64, table),
            lambda p, q, k, table: _theirs("embedding.rotary_embedding", "rotary_embedding", 64, 64)(p, q, k, table),
            constant(*turned, table),
        ),
        **_attention(),
        **_products(),
        **_vision(),
    }
