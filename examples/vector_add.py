"""Adding vectors: a kernel, a launch, numpy arrays and torch tensors. `python examples/vector_add.py`"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements  # the last block hangs over the end
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add(x: Any, y: Any, output: Any) -> None:
    """output = x + y for arrays of one kind, dtype and length."""
    n_elements = output.shape[0]
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)  # noqa: E731 - as Triton's users write it
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)


def main() -> None:
    x, y = np.random.default_rng(0).random((2, 98432), dtype=np.float32)
    output = np.empty_like(x)
    add(x, y, output)
    print(f"numpy: the greatest difference is {np.max(np.abs(output - (x + y)))}")

    if find_spec("torch"):
        import torch

        a, b = torch.rand(98432), torch.rand(98432)
        result = torch.empty_like(a)
        add(a, b, result)
        print(f"torch: the greatest difference is {(result - (a + b)).abs().max()}")


if __name__ == "__main__":
    main()
