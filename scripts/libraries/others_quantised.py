"""torchao: products of small integers and of 8-bit floats with scales, quantisation in blocks, sparse blocks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from others import Operation, constant
from torch import Tensor, int8, rand, randint, randn

E4M3 = torch.float8_e4m3fn


def _call(module: str, name: str, *after: Any) -> Callable[..., Any]:
    return lambda *inputs: getattr(import_module(f"torchao.{module}"), name)(*inputs, *after)


def _floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function gives, as floats."""

    def run(*inputs: Any) -> Any:
        made = function(*inputs)
        return tuple(x.float() for x in made) if isinstance(made, tuple) else made.float()

    return run


def _by_config(name: str) -> Callable[..., Any]:
    """One of the kernels that `int_matmul` would tune, in one configuration."""

    def run(*inputs: Tensor) -> Tensor:
        module, config = import_module("torchao.kernel.intmm_triton"), import_module("triton").Config
        sizes = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}
        out = torch.empty(inputs[0].shape[0], inputs[1].shape[1], dtype=inputs[2].dtype if inputs[2:] else torch.int32)
        return getattr(module, name)(*inputs, out, config(sizes, num_stages=2, num_warps=4))

    return run


def _scaled(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor | float = 1.0) -> Tensor:
    return (a.double() @ b.double() * rows * columns).float()


def _act_quant(x: Tensor) -> tuple[Tensor, Tensor]:
    blocks = x.view(*x.shape[:-1], -1, 128)
    scale = blocks.abs().amax(-1, keepdim=True) / 448
    return (blocks / scale).to(E4M3).view(x.shape).float(), scale[..., 0]


def _tiles(x: Tensor) -> Tensor:
    return x.view(x.shape[0] // 128, 128, -1, 128)


def _weight_quant(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = _tiles(x).abs().amax((1, 3), keepdim=True) / 448
    return (_tiles(x) / scale).to(E4M3).view(x.shape).float(), scale[:, 0, :, 0]


def _weight_dequant(x: Tensor, scale: Tensor) -> Tensor:
    return (_tiles(x.float()) * scale[:, None, :, None]).view(x.shape)


def _block_product(a: Tensor, rows: Tensor, b: Tensor, tiles: Tensor) -> Tensor:
    left = a.float() * rows.repeat_interleave(128, 1)
    return left @ _weight_dequant(b, tiles).T


def _mx_dequantised(values: Tensor, scales: Tensor) -> Tensor:
    return values.float() * torch.exp2(scales.float() - 127).repeat_interleave(32, -1)


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    a, b = randint(-128, 128, (130, 192), dtype=int8), randint(-128, 128, (192, 96), dtype=int8)
    blocks, training = "kernel.blockwise_quantization", "prototype.blockwise_fp8_training.kernels"
    x, weight = constant(randn(64, 256), randn(256, 384))
    left, rows = _act_quant(x)
    right, tiles = _weight_quant(weight.T.contiguous())
    products = constant(left.to(E4M3), rows, right.to(E4M3), tiles)
    sparse = (torch.kron((rand(8, 6) < 0.4).float(), torch.ones(16, 16)) * randn(128, 96)).to_sparse_bsr((16, 16))
    return {
        "torchao: int_matmul": (_by_config("int_matmul_kernel"), lambda a, b: a.int() @ b.int(), (a, b)),
        "torchao: int_scaled_matmul": (
            _by_config("int_scaled_matmul_kernel"),
            _scaled,
            constant(a, b, rand(130, 1)),
        ),
        "torchao: scaled_int8_mm": (
            _call("prototype.quantized_training.int8_mm", "scaled_int8_mm_cuda"),
            _scaled,
            constant(a, b, rand(130, 1), rand(96)),
        ),
        "torchao: fp8_blockwise_act_quant": (_floats(_call(blocks, "fp8_blockwise_act_quant")), _act_quant, (x,)),
        "torchao: fp8_blockwise_weight_quant": (
            _floats(_call(blocks, "fp8_blockwise_weight_quant")),
            _weight_quant,
            (weight,),
        ),
        "torchao: fp8_blockwise_weight_dequant": (
            _floats(_call(blocks, "fp8_blockwise_weight_dequant")),
            _weight_dequant,
            products[2:],
        ),
        "torchao: blockwise_fp8_gemm": (_floats(_call(blocks, "blockwise_fp8_gemm")), _block_product, products, 5e-3),
        **{
            f"torchao: triton_fp8_blockwise_{name}": (
                _floats(_call(training, f"triton_fp8_blockwise_{name}")),
                _floats(_call(training, f"torch_blockwise_scale_{theirs}")),
                (weight,),
            )
            for name, theirs in (("act_quant_lhs", "act_quant_lhs"), ("act_quant_rhs", "act_quant_rhs"))
        },
        "torchao: triton_mxfp8_dequant_dim0": (
            _call("prototype.mx_formats.kernels", "triton_mxfp8_dequant_dim0", torch.float32),
            _mx_dequantised,
            constant(randn(128, 256).to(E4M3), randint(120, 134, (128, 8), dtype=torch.uint8)),
        ),
        "torchao: bsr_dense_addmm": (
            lambda c, d: _call("kernel.bsr_triton_ops", "bsr_dense_addmm")(c, sparse, d),
            lambda c, d: c + sparse.to_dense() @ d,
            constant(randn(128, 64), randn(96, 64)),
            5e-3,
        ),
    }
