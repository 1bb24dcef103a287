"""Products with one row or one column on Xe: a single row may lie anywhere, one column is a row of the transpose."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.kernels import matmul
from mltriton.kernels.arrays import strides_of, with_apart_rows
from mltriton.kernels.gemm import _launches  # pyright: ignore[reportPrivateUsage]
from mltriton.kernels.products import product_of

from .test_library_isa import compiled

RNG = np.random.default_rng(8)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("shape", "batch"), [((1, 72, 100), ()), ((70, 1, 100), (2,)), ((1, 1, 64), ()), ((64, 1, 1), ())]
)
def test_one_row_or_column(shape: tuple[int, int, int], batch: tuple[int, ...], turned: bool) -> None:
    m, n, k = shape
    a, b = (RNG.standard_normal((*batch, *size)).astype(np.float16) for size in ((m, k), (k, n)))
    a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) if turned else a
    found = matmul(a, b, out_dtype="float32", target="xe:pvc")
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


def test_the_distance_of_a_single_row_is_free() -> None:
    torch = pytest.importorskip("torch")
    for x in (np.arange(300, dtype=np.int8).reshape(3, 1, 100), torch.arange(300).reshape(3, 1, 100)):
        same = with_apart_rows(x)
        assert strides_of(same) == (100, 128, 1)
        assert (same == x).all()


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("shape", "loads", "most"), [((1, 4096, 1000), 3, 52), ((4096, 1, 1000), 9, 66)])
def test_loops_have_block_loads_alone(shape: tuple[int, int, int], loads: int, most: int) -> None:
    m, n, k = shape
    a, b = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16)
    [launch] = _launches(product_of(a, b), "auto", None, "xe:pvc")
    own = {name: value for name, value in launch.constants.items() if name not in ("target", "num_warps")}
    info, [loop] = compiled(launch._replace(constants=own), "pvc", launch.constants["num_warps"])
    assert (info.registers, info.spilled) == (128, 0)
    assert loop.messages["load_block2d"] == loads
    assert set(loop.messages) == {"load_block2d", "prefetch"}
    assert loop.total <= most
