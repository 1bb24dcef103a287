"""Shared memory that one thread keeps in scratch memory: every level and machine code agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mltriton.tools.verify import verify_kernel

from . import shared_kernels

WARPS = [1, 2, 4, 8]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def agree(kernel: Any, warps: int, **args: Any) -> None:
    result = verify_kernel(kernel, args=args, grid=(1,), target="cpu", num_warps=warps, uninitialised=True)
    assert result.ok, str(result)


@pytest.mark.parametrize("warps", WARPS)
def test_blocks_that_overwrite_what_was_read(warps: int) -> None:
    x = floats(warps, 3, 16, 16)
    agree(shared_kernels.swap, warps, x=x, y=np.zeros_like(x), N=16)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("warps", WARPS)
def test_dots_that_add_to_shared_memory(warps: int, steps: int) -> None:
    a = floats(warps, 16, 16) * 0.25
    agree(shared_kernels.sums_in_place, warps, a=a, b=floats(16, 16) * 0.25, c=np.zeros_like(a), n=steps, M=16)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("warps", WARPS)
def test_scalars_booleans_and_narrow_types(warps: int, steps: int) -> None:
    x = floats(warps, 16) + np.linspace(-2, 2, warps)[:, None].astype("f")
    agree(shared_kernels.small_things, warps, x=x, out=np.zeros_like(x), n=steps, N=16)


@pytest.mark.parametrize("sign", [-5, 5])
@pytest.mark.parametrize("warps", WARPS)
def test_pointers_across_barriers(warps: int, sign: int) -> None:
    x, y = floats(16), floats(32)
    x[0] = sign
    agree(shared_kernels.chosen_pointers, warps, x=x, y=y, out=np.zeros((warps, 16), "f"), N=16)
