"""Every kernel of the library, at every level, on the example that it brings for `mltriton verify`."""

from __future__ import annotations

import pytest

from levels import check_levels

KERNELS = [
    "gemm:matmul_pointer_kernel",
    "gemm:matmul_block_pointer_kernel",
    "gemm:matmul_descriptor_kernel",
    "attention:attention_kernel",
    "normalization:softmax_kernel",
    "normalization:softmax_long_kernel",
    "normalization:layer_norm_kernel",
    "normalization:layer_norm_long_kernel",
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_levels_agree_on_a_gpu_s_sizes(kernel: str) -> None:
    check_levels(f"mltriton.kernels.{kernel}", target="generic")
