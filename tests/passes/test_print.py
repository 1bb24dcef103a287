"""`tl.device_print` of blocks that differ in shape: the same lines at every level, on every target, natively too."""

from __future__ import annotations

import io

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import Options, run
from mltriton.passes.levels import verify_level


@triton.jit
def show(x_ptr, out_ptr, n):
    i, j = tl.arange(0, 32), tl.arange(0, 64)
    rows = tl.load(x_ptr + i)
    block = tl.load(x_ptr + i[:, None] * 64 + j[None, :])
    columns = tl.load(x_ptr + j)
    tl.device_print("sum ", tl.sum(block, 1), n, block.to(tl.int32), columns)
    tl.device_print("rows ", rows, columns)
    tl.device_print("numbers ", n, 2.5)
    tl.store(out_ptr + i[:, None] * 64 + j[None, :], block + rows[:, None])


X = np.arange(32 * 64, dtype=np.float32)


def expected() -> list[str]:
    """What `show` prints."""
    block = X.reshape(32, 64)
    lines = [f" idx ({i:2}) sum: (operand 0) {row.sum():f}" for i, row in enumerate(block)]
    lines += [" idx () sum: (operand 1) 7"]
    lines += [f" idx ({i:2}, {j:2}) sum: (operand 2) {int(block[i, j])}" for i in range(32) for j in range(64)]
    lines += [f" idx ({j:2}) sum: (operand 3) {X[j]:f}" for j in range(64)]
    lines += [f" idx ({i:2}) rows: (operand 0) {X[i]:f}" for i in range(32)]
    lines += [f" idx ({j:2}) rows: (operand 1) {X[j]:f}" for j in range(64)]
    lines += [" idx () numbers: (operand 0) 7", " idx () numbers: (operand 1) 2.500000"]
    return [f"pid (0, 0, 0){line}" for line in lines]


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("target", ["generic", "cpu"])
def test_every_level_prints_the_same(target, warps):
    kernel = triton.compile(show, "*fp32, *fp32, i32", target=target, num_warps=warps)
    for level, module in kernel.job.modules():
        verify_level(module)
        out, written = np.zeros_like(X), io.StringIO()
        run(module, [X, out, 7], (1,), options=Options(output=written))
        np.testing.assert_array_equal(out.reshape(32, 64), X.reshape(32, 64) + X[:32, None])
        assert written.getvalue().splitlines() == expected(), level


def test_the_machine_code_prints_the_same(capfd):
    out = np.zeros_like(X)
    show[(1,)](X, out, 7)
    assert capfd.readouterr().out.splitlines() == expected()
