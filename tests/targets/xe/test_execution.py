"""Kernels for Xe: run (emulated on the CPU) against numpy and the layouts, and what Intel's compiler makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xe_modules as modules
from mltriton.errors import BackendError, DeviceError, LaunchError, OutOfResources
from mltriton.layouts.encodings import DotOperandEncoding
from mltriton.layouts.hardware import linear_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.runtime.native.params import ParamSpec
from mltriton.targets.llvm.types import F32, F64, GLOBAL_PTR, I8, I16, I32, I64, VOID, Type
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe import driver, isa, opencl
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.emulation import emulate, image_of
from mltriton.targets.xe.launch import XeKernel
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding
from mltriton.targets.xe.ocloc import compile_native, compile_without_spills, disassemble
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.emission import emit

PVC, BMG = device("pvc"), device("bmg")
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def load(queue: Queue, kernel: Function, name: str, warps: int = 1) -> XeKernel:
    image = image_of(kernel, PVC) if queue.emulated else emit(kernel.module.text)
    return XeKernel(queue, lambda *_: image, name, 16 * warps)


def launch(kernel: XeKernel, grid: tuple[int, int, int], *arguments: Any) -> None:
    specs = [
        ParamSpec.tensor(argument.dtype) if isinstance(argument, np.ndarray) else ParamSpec.integer("i32")
        for argument in arguments
    ]
    assert kernel.launcher(specs)(*grid, *arguments) is None


def aligned(array: Array, pitch: int | None = None) -> Array:
    """A copy at an address that block accesses take, its rows `pitch` bytes apart."""
    pitch = pitch or array.shape[1] * array.itemsize
    memory = np.zeros(array.shape[0] * pitch + 64, np.uint8)
    start = -memory.ctypes.data % 64
    rows = memory[start : start + array.shape[0] * pitch].view(array.dtype)
    view = np.lib.stride_tricks.as_strided(rows, array.shape, (pitch, array.itemsize))
    view[...] = array
    return view


def test_vadd(queue: Queue) -> None:
    kernel = load(queue, modules.vadd(), "vadd", warps=4)
    for n in (1, 64, 1003):
        x, y = RNG.standard_normal((2, n)).astype(np.float32)
        z = np.full(n + 5, 3, np.float32)
        launch(kernel, (-(-n // 64), 1, 1), x, y, z, n)
        np.testing.assert_array_equal(z, np.append(x + y, [3] * 5).astype(np.float32))


def test_gemm(queue: Queue) -> None:
    kernel = load(queue, modules.gemm(), "gemm", warps=4)
    # Odd rows and a pitch of 16 bytes' multiple; out of bounds reads are 0 and writes are dropped.
    for m, n, k in ((64, 128, 32), (100, 200, 80), (65, 136, 40)):
        a, b = aligned(RNG.standard_normal((m, k)).astype(np.float16)), RNG.standard_normal((k, n)).astype(np.float16)
        b, c = aligned(b), aligned(np.full((m, n), -7, np.float32))
        launch(kernel, (-(-n // 128), -(-m // 64), 1), a, b, c, m, n, k)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5 * k)


# Block accesses against the layouts.

LOADS = [
    (xe.BLOCK_LOAD, (1, 32, 8, 2)),
    (xe.BLOCK_LOAD, (1, 64, 4, 1)),
    (xe.BLOCK_LOAD, (2, 16, 32, 2)),
    (xe.BLOCK_LOAD, (2, 8, 8, 4)),
    (xe.BLOCK_LOAD, (2, 32, 4, 1)),
    (xe.BLOCK_LOAD, (4, 16, 4, 1)),
    (xe.BLOCK_LOAD, (4, 8, 8, 2)),
    (xe.BLOCK_LOAD, (8, 4, 8, 1)),
]
STORES = [(1, 32, 8, 1), (2, 16, 8, 1), (2, 32, 2, 1), (4, 16, 8, 1), (8, 8, 4, 1)]


def places(block: tuple[int, int, int, int]) -> LinearLayout:
    size, width, height, count = block
    encoding = Subgroup2DBlockEncoding((1, 1), (height, width), count, (1, 0), size)
    return linear_layout(encoding, (height, width * count))


def held_by_lanes(layout: LinearLayout, matrix: Array) -> Array:
    """[lane, register] of a matrix."""
    registers, lanes = (2 ** len(layout.bases[layout.inputs.index(name)]) for name in ("register", "lane"))
    at = [[coordinates(layout, register, lane) for register in range(registers)] for lane in range(lanes)]
    rows, columns = np.moveaxis(np.array(at), -1, 0)
    return matrix[rows, columns]


def coordinates(layout: LinearLayout, register: int, lane: int) -> tuple[int, int]:
    row = column = 0
    for name, index in (("register", register), ("lane", lane)):
        for bit, basis in enumerate(layout.bases[layout.inputs.index(name)]):
            if index >> bit & 1:
                row, column = row ^ basis[0], column ^ basis[1]
    return row, column


def window(surface: Array, x: int, y: int, width: int, height: int) -> Array:
    """What is seen at (x, y); 0 outside."""
    padded = np.zeros((height, width), surface.dtype)
    rows = [(i, y + i) for i in range(height) if 0 <= y + i < surface.shape[0]]
    columns = [(j, x + j) for j in range(width) if 0 <= x + j < surface.shape[1]]
    for i, row in rows:
        for j, column in columns:
            padded[i, j] = surface[row, column]
    return padded


def random_surface(size: int, rows: int = 37, columns: int = 160) -> Array:
    numbers = RNG.integers(1, 2 ** (8 * size), (rows, columns), dtype=np.uint64, endpoint=False)
    return aligned(numbers.astype(f"u{size}"))


def corners(block: tuple[int, int, int, int]) -> Iterator[tuple[int, int]]:
    """Inside, over the right and lower edge, over the upper and left edge."""
    step = max(1, 4 // block[0])
    yield from ((4 * step, 3), (160 - 4 * step, 33), (-4 * step, -2))


@pytest.mark.parametrize(("builtin", "block"), LOADS, ids=lambda value: getattr(value, "name", str(value)))
def test_loads(queue: Queue, builtin: xe.Builtin, block: tuple[int, int, int, int]) -> None:
    size, width, height, count = block
    surface, layout = random_surface(size), places(block)
    kernel = load(queue, modules.block_load(builtin, block), "load")
    for x, y in corners(block):
        out = np.zeros((16, 1024), np.uint8)
        launch(kernel, (1, 1, 1), surface, 160 * size, 37, 160 * size, x, y, out)
        expected = held_by_lanes(layout, window(surface, x, y, width * count, height))
        np.testing.assert_array_equal(out.view(f"u{size}")[:, : expected.shape[1]], expected)


@pytest.mark.parametrize("block", STORES, ids=str)
def test_stores(queue: Queue, block: tuple[int, int, int, int]) -> None:
    size, width, height, _ = block
    kernel = load(queue, modules.block_store(block), "store")
    matrix = random_surface(size, height, width)
    for x, y in corners(block):
        surface = random_surface(size)
        source = np.zeros((16, 1024), np.uint8)
        held = held_by_lanes(places(block), matrix)
        source.view(f"u{size}")[:, : held.shape[1]] = held
        expected = surface.copy()
        for i, j in np.ndindex(height, width):
            if 0 <= y + i < 37 and 0 <= x + j < 160:
                expected[y + i, x + j] = matrix[i, j]
        launch(kernel, (1, 1, 1), surface, 160 * size, 37, 160 * size, x, y, source)
        np.testing.assert_array_equal(surface, expected)


@pytest.mark.parametrize(("size", "block"), [(1, (1, 16, 32, 4)), (1, (1, 8, 8, 1)), (2, (2, 16, 16, 2))], ids=str)
def test_vnni_is_the_right_operand_of_a_product(queue: Queue, size: int, block: tuple[int, int, int, int]) -> None:
    _, width, height, count = block
    surface = random_surface(size)
    kernel = load(queue, modules.block_load(xe.BLOCK_LOAD_VNNI, block), "load")
    out = np.zeros((16, 1024), np.uint8)
    launch(kernel, (1, 1, 1), surface, 160 * size, 37, 160 * size, 8, 2, out)
    seen, group = window(surface, 8, 2, width * count, height), 4 // size
    for lane in range(16) if width == 16 else range(0):
        # A lane has a column of each block, from top to bottom.
        expected = np.concatenate([seen[:, width * i + lane] for i in range(count)])
        np.testing.assert_array_equal(out.view(f"u{size}")[lane, : height * count], expected)
    if width < 16:
        # Lanes of one row of groups after the other.
        groups = seen.reshape(height // group, group, width).swapaxes(1, 2).reshape(-1, 16, group)
        expected = groups.swapaxes(0, 1).reshape(16, -1)
        np.testing.assert_array_equal(out.view(f"u{size}")[:, : expected.shape[1]], expected)


@pytest.mark.parametrize("block", [(4, 8, 16, 1), (4, 4, 32, 1), (8, 4, 8, 1)], ids=str)
def test_transposing_loads_give_a_lane_a_row(queue: Queue, block: tuple[int, int, int, int]) -> None:
    size, width, height, _ = block
    surface = random_surface(size)
    kernel = load(queue, modules.block_load(xe.BLOCK_LOAD_TRANSPOSE, block), "load")
    out = np.zeros((16, 1024), np.uint8)
    launch(kernel, (1, 1, 1), surface, 160 * size, 37, 160 * size, 4, 30, out)
    transposed = window(surface, 4, 30, width, height).T.reshape(-1, 16).T
    np.testing.assert_array_equal(out.view(f"u{size}")[:, : transposed.shape[1]], transposed)


@pytest.mark.parametrize(
    ("width", "pitch", "x", "offset"),
    [(60, 320, 4, 0), (320, 312, 4, 0), (320, 324, 4, 0), (322, 336, 4, 0), (320, 320, 3, 0), (320, 320, 4, 8)],
)
def test_surfaces_outside_of_the_limits_give_nothing_of_use(
    queue: Queue, width: int, pitch: int, x: int, offset: int
) -> None:
    surface = random_surface(2)
    base = surface.reshape(-1)[offset // 2 :]
    kernel = load(queue, modules.block_load(xe.BLOCK_LOAD, (2, 16, 8, 1)), "load")
    out = np.zeros((16, 1024), np.uint8)
    launch(kernel, (1, 1, 1), base, width, 37, pitch, x, 0, out)
    assert (out[:, :16] == 0xFF).all()
    kernel = load(queue, modules.block_store((2, 16, 8, 1)), "store")
    before = surface.copy()
    launch(kernel, (1, 1, 1), base, width, 37, pitch, x, 0, out)
    np.testing.assert_array_equal(surface, before)


# Matrix products against the layouts.


def to_bf16(values: Array) -> Array:
    """bf16 as its bits."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def random_of(dtype: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Bits as a lane holds them, and the numbers in f64."""
    values = RNG.standard_normal(shape)
    match dtype:
        case "f16":
            return values.astype(np.float16), values.astype(np.float16).astype(np.float64)
        case "bf16":
            return to_bf16(values), from_bf16(to_bf16(values)).astype(np.float64)
        case "tf32":
            rounded = (values.astype(np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32)
            return rounded, rounded.astype(np.float64)
        case "f32":
            return values.astype(np.float32), values.astype(np.float32).astype(np.float64)
        case _:
            kind = np.dtype({"s8": np.int8, "u8": np.uint8, "i32": np.int32}[dtype])
            limits = np.iinfo(kind)
            numbers = RNG.integers(max(limits.min, -(2**20)), min(limits.max, 2**20), shape, endpoint=True)
            return numbers.astype(kind), numbers.astype(np.float64)


PRODUCTS = [(dtypes, 8) for dtypes in xe.DPAS_TABLE] + [
    (("f16", "f16", "f32"), 1),
    (("bf16", "bf16", "f32"), 4),
    (("tf32", "tf32", "f32"), 2),
    (("s8", "s8", "i32"), 2),
]


@pytest.mark.parametrize(("dtypes", "rows"), PRODUCTS, ids=str)
def test_products(queue: Queue, dtypes: tuple[str, str, str], rows: int) -> None:
    made = xe.DPAS_TABLE[dtypes]
    dpas = DpasEncoding(rows, 8, 16, made.k // 8, 16, (1, 1), (1, 1))
    (a, a64), (b, b64), (c, c64) = (
        random_of(dtype, shape) for dtype, shape in zip(dtypes, ((rows, made.k), (made.k, 16), (rows, 16)), strict=True)
    )
    left = held_by_lanes(linear_layout(DotOperandEncoding(0, dpas), a.shape), a)
    right = held_by_lanes(linear_layout(DotOperandEncoding(1, dpas), b.shape), b)
    sums = held_by_lanes(linear_layout(dpas, c.shape), c).copy()
    kernel = load(queue, modules.product(dtypes, rows), "product")
    launch(kernel, (1, 1, 1), left.copy(), right.copy(), sums)
    result = from_bf16(sums.T) if dtypes[2] == "bf16" else sums.T
    tolerance = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "i32": 0}[dtypes[2]]
    np.testing.assert_allclose(result, c64 + a64 @ b64, rtol=tolerance, atol=4 * tolerance)


def test_accesses_under_a_condition(queue: Queue) -> None:
    kernel = load(queue, modules.lanes(), "lanes")
    source, out = np.arange(100, 105, dtype=np.int32), np.zeros(32, np.int32)
    launch(kernel, (1, 1, 1), source, out, 5)
    np.testing.assert_array_equal(out, [*source, *[7] * 11, *[0] * 5, *range(5, 16)])


@pytest.mark.parametrize(
    "builtin", [xe.ROUND_TO_TF32.of("float"), xe.FLOATS_TO_BF16[1]], ids=lambda builtin: builtin.name
)
def test_rounding(queue: Queue, builtin: xe.Builtin) -> None:
    """To the nearest, ties to even; infinities and NaN stay what they are."""
    _, f = modules.kernel("rounding", [("x", GLOBAL_PTR), ("y", GLOBAL_PTR)])
    lane = f.cast("zext", xe.GET_SUB_GROUP_LOCAL_ID.call(f), I64)
    result = builtin.call(f, f.load(F32, f.gep(f.parameters[0], lane, F32)))
    f.store(result, f.gep(f.parameters[1], lane, result.type))
    f.ret()
    kept = 16 if builtin is xe.FLOATS_TO_BF16[1] else 13
    # Ties, just above and below them, an overflow of the mantissa, the smallest and the largest numbers.
    half = 1 << kept - 1
    bits = [0x3F800000 + n for n in (0, half, half + 1, half - 1, 3 * half, 3 * half - 1, (1 << 23) - 1)]
    bits += [0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x80000000, 1, half, 0xC0490FDB, 0x00800000 - 1]
    x = np.array([*bits, 0x7FC00000], np.uint32)
    y = np.zeros(16, np.uint32 if kept == 13 else np.uint16)
    launch(load(queue, f, "rounding"), (1, 1, 1), x.view(np.float32), y)
    wide = x.astype(np.uint64)
    expected = (wide + (1 << kept - 1) - 1 + (wide >> kept & 1)) >> kept << kept
    result = y.astype(np.uint64) << (0 if kept == 13 else 16)
    np.testing.assert_array_equal(result[:-1], expected[:-1])
    assert result[-1] & 0x7F800000 == 0x7F800000
    assert result[-1] & 0x007FFFFF


def test_bf16_becomes_f32(queue: Queue) -> None:
    _, f = modules.kernel("widening", [("x", GLOBAL_PTR), ("y", GLOBAL_PTR)])
    lane = f.cast("zext", xe.GET_SUB_GROUP_LOCAL_ID.call(f), I64)
    wide = xe.BF16_TO_FLOAT.call(f, f.load(I16, f.gep(f.parameters[0], lane, I16)))
    f.store(wide, f.gep(f.parameters[1], lane, F32))
    f.ret()
    x, y = to_bf16(RNG.standard_normal(16)), np.zeros(16, np.float32)
    launch(load(queue, f, "widening"), (1, 1, 1), x, y)
    np.testing.assert_array_equal(y, from_bf16(x))


# What cannot be emulated.


def test_a_block_outside_of_the_limits_is_an_error() -> None:
    with pytest.raises(BackendError, match="a block is outside of the limits of pvc") as caught:
        emulate(modules.block_load(xe.BLOCK_LOAD, (2, 16, 64, 1)), PVC)
    assert caught.value.found == "64 rows of 16 bits in a load"


def test_a_shape_that_is_not_constant_is_an_error() -> None:
    _, f = modules.kernel("load", [("base", GLOBAL_PTR), ("size", I32)])
    base, size = f.parameters
    xe.BLOCK_LOAD.call(f, 2, size, 8, 1, base, size, size, size, modules.place(f, size, size), f.alloca(I8, 1024))
    with pytest.raises(BackendError, match="the shape of a __spirv_Subgroup2DBlockLoadINTEL is not known"):
        emulate(f, PVC)


def test_intrinsics_of_intels_compiler_cannot_be_emulated() -> None:
    with pytest.raises(BackendError, match=r"llvm\.genx\.something cannot be emulated"):
        _, f = modules.kernel("something", [])
        f.declared_call("llvm.genx.something", VOID)
        emulate(f, PVC)


# The driver.


def test_the_runtime_is_found_by_its_own_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    if opencl.library() is None:
        pytest.skip("intel-opencl-rt is not installed")
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    opencl.register()
    (description,) = (tmp_path / "opencl-vendors").iterdir()
    assert description.read_text().strip() == str(opencl.library())
    monkeypatch.setenv("OCL_ICD_VENDORS", "chosen")
    opencl.register()
    assert opencl.os.environ["OCL_ICD_VENDORS"] == "chosen"


def test_no_dpctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "is_installed", lambda: False)
    with pytest.raises(DeviceError, match="dpctl is not installed") as caught:
        driver.queue.__wrapped__()
    assert caught.value.hint == "pip install 'mltriton[xe]' installs what runs kernels for Xe."


def test_no_device(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_DEVICES", (("cuda:gpu", False),))
    with pytest.raises(DeviceError, match="there is no device for kernels for Xe") as caught:
        driver.queue.__wrapped__()
    assert caught.value.expected == "cuda:gpu"


def test_a_build_that_fails_shows_its_log(queue: Queue) -> None:
    if not queue.emulated:
        pytest.skip("a GPU takes the module")
    with pytest.raises(BackendError, match="rejects the module") as caught:
        queue.kernel(emit(modules.block_load(xe.BLOCK_LOAD, (2, 16, 8, 1)).module.text), "load")
    assert "apability" in (caught.value.found or "")
    with pytest.raises(BackendError, match="the module has no kernel sub"):
        queue.kernel(emit(modules.vadd().module.text), "sub")


def test_too_many_lanes(queue: Queue) -> None:
    kernel = queue.kernel(emit(modules.vadd().module.text), "vadd")
    with pytest.raises(OutOfResources, match="a program has more lanes than the device"):
        queue.submit(kernel, [], (1, 1, 1), 1 << 20)


def test_a_launch_that_does_not_start(queue: Queue) -> None:
    kernel = queue.kernel(emit(modules.vadd().module.text), "vadd")
    with pytest.raises(LaunchError, match="does not start the kernel"):
        queue.submit(kernel, [], (1, 1, 1), 48)


def test_a_device_that_is_lost(queue: Queue) -> None:
    class Lost:
        sycl_device = queue.sycl.sycl_device

        def submit(self, *arguments: object) -> None: ...

        def wait(self) -> None:
            raise RuntimeError("PI_ERROR_DEVICE_NOT_FOUND")

    with pytest.raises(DeviceError, match="was lost while the kernel ran") as caught:
        Queue(Lost(), emulated=True).wait()
    assert caught.value.found == "PI_ERROR_DEVICE_NOT_FOUND"
    assert caught.value.hint == "It may have gone outside of its arrays, which `mltriton verify` finds."


def test_a_forked_process_is_refused(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_process", 0)
    with pytest.raises(DeviceError, match="SYCL cannot be used in a process forked from one that used it"):
        queue.kernel(b"", "vadd")


SCALARS: list[tuple[str, Type, Any]]
SCALARS = [("i1", I8, True), ("i8", I8, -5), ("u8", I8, 250), ("i16", I16, -3), ("u32", I32, 2**32 - 1)]
SCALARS += [("i64", I64, -(2**40)), ("f64", F64, 0.1), ("i32", I32, np.int32(-7))]
SCALARS += [("f32", F32, 0.1), ("f32", F32, np.float32(0.3))]


@pytest.mark.parametrize(("kind", "type_", "value"), SCALARS, ids=str)
def test_numbers_arrive(queue: Queue, kind: str, type_: Type, value: Any) -> None:
    _, f = modules.kernel("number", [("out", GLOBAL_PTR), ("value", type_)])
    f.store(f.parameters[1], f.parameters[0])
    f.ret()
    dtype = np.dtype("i1" if kind == "i1" else f"{kind[0]}{int(kind[1:]) // 8}")
    numbers = {"i1": ParamSpec.boolean(), "f32": ParamSpec.floating("f32"), "f64": ParamSpec.floating("f64")}
    spec = numbers[kind] if kind in numbers else ParamSpec.integer(kind, annotated=True)
    out = np.zeros(3, dtype)
    start = load(queue, f, "number").launcher([ParamSpec.tensor(dtype), spec])
    assert start(1, 1, 1, out, value) is None
    np.testing.assert_array_equal(out, [dtype.type(value), 0, 0])


def test_emulation_says_so_once(queue: Queue, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(queue, "_said", False)
    queue.announce("xe:pvc")
    queue.announce("xe:bmg")
    assert capsys.readouterr().err.count("kernels for xe:pvc run emulated") == int(queue.emulated)


def test_arrays_that_overlap_do_so_on_the_device(queue: Queue) -> None:
    kernel = load(queue, modules.vadd(), "vadd", warps=4)
    whole = np.arange(300, dtype=np.float32)
    first = whole.copy()
    launch(kernel, (2, 1, 1), whole[:100], whole[3:103], whole[200:], 100)
    np.testing.assert_array_equal(whole[200:], first[:100] + first[3:103])
    np.testing.assert_array_equal(whole[:200], first[:200])


def test_an_argument_that_does_not_pass_is_left_to_others(queue: Queue) -> None:
    start = load(queue, modules.vadd(), "vadd", warps=4).launcher([ParamSpec.tensor(np.dtype(np.float32))] * 3)
    x = np.zeros(4, np.float32)
    assert start(1, 1, 1, x, x, x.astype(np.float64)) is NotImplemented
    assert start(1, 1, 1, x, x) is NotImplemented


# What Intel's compiler makes of the same kernels.


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("target", "most"), [(PVC, 72), (BMG, 63)], ids=["pvc", "bmg"])
def test_gemm_in_instructions(target: Any, most: int) -> None:
    native = compile_without_spills(emit(modules.gemm((8, 4)).module.text), target, 32)
    info = native.kernels["gemm"]
    assert (info.registers, info.spilled, info.scratch, info.lanes) == (256, 0, 0, 16)
    (loop,) = isa.innermost_loops(disassemble(native)["gemm"])
    assert loop.instructions.operations["dpas"] == 32
    assert loop.instructions.messages["load_block2d"] == 3
    assert loop.instructions.messages["prefetch"] == 1
    assert loop.instructions.total <= most


@pytest.mark.usefixtures("needs_ocloc")
def test_too_few_registers_spill() -> None:
    native = compile_native(emit(modules.gemm((8, 4)).module.text), PVC, registers=128)
    assert native.spills
    assert native.kernels["gemm"].spilled > 1000
    assert "spilled" in native.log
