"""tl.device_print and tl.device_assert on Xe, in both forms of code: the same lines and errors as on the CPU."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import DeviceAssertionError
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.ocloc import compile_native
from mltriton.targets.xe.spirv.emission import Code
from spirv_validation import validate

TARGET = "xe:pvc"
RNG = np.random.default_rng(3)


@triton.jit
def show(x, n, half, ROWS: tl.constexpr, COLUMNS: tl.constexpr, HEX: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    block = tl.load(x + rows * COLUMNS + columns, mask=columns < n, other=0)
    tl.device_print("100% of the block", block, hex=HEX)
    tl.device_print("several", tl.program_id(0), half, tl.max(block.to(tl.float32), 1))
    tl.device_print("mask, pointers", block > 1, x)
    tl.device_print("only text")


@pytest.mark.parametrize(
    ("dtype", "hex_", "warps", "form"),
    [
        ("f2", False, 4, "simt"),
        ("f8", False, 2, "simt"),
        ("i4", True, 2, "simt"),
        ("u1", False, 1, "simt"),
        ("f2", False, 4, "simd"),
        ("f8", False, 1, "simd"),
        ("i4", True, 2, "simd"),
        ("u1", False, 1, "simd"),
    ],
)
def test_prints_as_on_the_cpu(queue: Queue, dtype: str, hex_: bool, warps: int, form: str, capfd: Any) -> None:
    x = RNG.integers(-5 if dtype[0] != "u" else 0, 9, (4, 16)).astype(dtype)
    lines: list[list[str]] = []
    for target, codegen in (("cpu", {}), (TARGET, {"codegen": form})):
        show[(2, 1, 2)](x, 13, 0.5, ROWS=4, COLUMNS=16, HEX=hex_, num_warps=warps, target=target, **codegen)
        shown = capfd.readouterr().out.splitlines()
        address = f"0x{x.ctypes.data:016x}"
        lines.append([line for line in shown if "operand 1) 0x" not in line])
        assert target != "cpu" or sum(line.endswith(address) for line in shown) == 4
        assert sum("operand 1) 0x" in line for line in shown) == 4
    # The lanes of a warp print in any order.
    assert len(lines[0]) == 4 * (64 + 1 + 1 + 4 + 64 + 1)
    assert sorted(lines[1]) == sorted(lines[0])


@triton.jit
def show_matrix(x, y, n, B: tl.constexpr):
    block = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B]).load([0, 0])
    tl.device_print("sum", tl.sum(block))
    tl.make_tensor_descriptor(y, [n, n], [n, 1], [B, B]).store([0, 0], block)


@pytest.mark.filterwarnings("ignore::mltriton.errors.PerformanceWarning")
def test_prints_beside_functions_that_move_elements(queue: Queue, capfd: Any) -> None:
    """LLVM takes calls of printf to be the module's last function's, which the kernel is; 17 columns are no block's."""
    x = RNG.integers(0, 9, (17, 17)).astype(np.float32)
    y = np.zeros_like(x)
    show_matrix[(1,)](x, y, 17, B=16, num_warps=1, target=TARGET)
    assert f"sum: {x[:16, :16].sum():f}" in capfd.readouterr().out
    np.testing.assert_array_equal(y[:16, :16], x[:16, :16])


@triton.jit(debug=True)
def checked(x, y, n, BLOCK: tl.constexpr, SUM: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    if SUM:
        value += tl.sum(value, 0)
    tl.device_assert(value < 1000, "too large")
    tl.device_assert(tl.program_id(0) < 3, "too far")
    tl.store(y + tl.where(value < 1000, i, -(1 << 30)), value, mask=i < n)


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("form", ["simt", "simd"])
def test_a_failed_assertion_is_an_error_once(queue: Queue, sums: bool, warps: int, form: str) -> None:
    """Without a barrier the warp ends: what comes after would write anywhere."""
    x, y = np.ones(192, np.int32), np.zeros(192, np.int32)

    def launch(programs: int) -> None:
        checked[(programs,)](x, y, x.size, BLOCK=64, SUM=sums, num_warps=warps, target=TARGET, codegen=form)

    launch(3)
    np.testing.assert_array_equal(y, 65 if sums else 1)
    line = inspect.getsourcelines(checked.fn)[1] + 6
    if not sums:
        x[64 + 37] = 1000
        with pytest.raises(DeviceAssertionError, match=r"too large \(program \(1, 0, 0\), element \d+\)") as caught:
            launch(3)
        assert (caught.value.file, caught.value.line) == (__file__, line)
        x[64 + 37] = 1
    with pytest.raises(DeviceAssertionError, match=r"too far \(program \(3, 0, 0\), element 0\)") as caught:
        launch(4)
    assert caught.value.line == line + 1
    launch(3)


@triton.jit(debug=True)
def first(x, BLOCK: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, BLOCK)) != 7, "seven")


@pytest.mark.parametrize("form", ["simt", "simd"])
def test_the_element_is_that_of_the_block(queue: Queue, form: str) -> None:
    for place in (0, 5, 31, 63):
        x = np.zeros(64, np.int32)
        x[place] = 7
        if form == "simd":  # A warp's program tells the first of all.
            x[place:] = 7
        with pytest.raises(DeviceAssertionError, match=rf"seven \(program \(\d, \d, \d\), element {place}\)"):
            first[(5, 2, 2)](x, BLOCK=64, num_warps=1, target=TARGET, codegen=form)


KERNELS = ((show, "*fp32:16, i32, fp32, 4, 16, False"), (checked, "*i32:16, *i32:16, i32, 64, True"))


@pytest.mark.usefixtures("needs_ocloc", "needs_validator")
@pytest.mark.parametrize(("kernel", "signature"), KERNELS)
def test_intels_compiler_takes_both(kernel: Any, signature: str) -> None:
    image = triton.compile(kernel, signature, target=TARGET, num_warps=4).image("spirv")
    assert validate(image)
    assert compile_native(image, device("pvc")).kernels[kernel.__name__].registers == 128


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("kernel", "signature"), KERNELS)
@pytest.mark.parametrize("name", ["pvc", "bmg"])
def test_intels_vector_compiler_takes_both(kernel: Any, signature: str, name: str) -> None:
    """Each line's text is in the binary, for a driver that finds it by what the kernel writes into printf's buffer."""
    compiled = triton.compile(kernel, signature, target=f"xe:{name}", num_warps=4, codegen="simd")
    native = compile_native(compiled.image("spirv"), device(name), code=Code.SIMD)
    assert native.kernels[kernel.__name__].spilled == 0
    prints = kernel is show
    assert (b"printf_buffer" in native.binary, b"100%% of the block: %f\n\0" in native.binary) == (prints, prints)
