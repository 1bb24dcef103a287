"""Launches on GPUs through a driver that is none: what kernels are given, where arrays go, what is said of failures."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mltriton.errors import (
    DeviceAssertionError,
    DeviceError,
    GridError,
    LaunchError,
    OutOfResources,
    PerformanceWarning,
)
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.slots import Slot
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.launch import CudaKernel
from mltriton.targets.nvidia.tensor_maps import TensorMap

from .conftest import Fake

F32 = np.dtype(np.float32)


def double(grid: tuple[int, ...], x: int, y: int, n: int) -> None:
    """y = 2 x, of `n` f32."""
    source, target = (np.ctypeslib.as_array((ctypes.c_float * n).from_address(array)) for array in (x, y))
    target[:] = 2 * source


def ignore(grid: tuple[int, ...], *values: Any) -> None:
    pass


def slots(*arrays: Any) -> list[Slot]:
    return [Slot("tensor", array.ctypes.data, array) for array in arrays]


def test_arrays_of_main_memory_are_copied(fake: Fake) -> None:
    library = fake(double=double)
    x, y = np.arange(7, dtype=np.float32), np.zeros(7, np.float32)
    kernel = CudaKernel(b"double(ptr, ptr, i32)", "double", threads=128, shared=64)
    specs = [ParamSpec.tensor(F32), ParamSpec.tensor(F32), ParamSpec.integer("i32")]
    with pytest.warns(PerformanceWarning, match="arrays of kernel double lie in main memory") as told:
        assert kernel.launcher(specs)(3, 2, 1, x, y, 7) is None
    assert told[0].filename == __file__
    assert (y == 2 * x).all()
    [(_, sizes, stream, context, values)] = library.launches
    assert sizes == (3, 2, 1, 128, 1, 1, 64)
    assert (stream, context) == (None, driver.device(0).context)
    assert values[2] == 7
    assert not {x.ctypes.data, y.ctypes.data} & {*values}
    assert library.contexts == [0]
    assert not library.allocated
    kernel.run((1, 1, 1), [*slots(x, y), Slot("i32", 7)])  # without a second warning


def test_every_kind_of_number(fake: Fake) -> None:
    library = fake(kinds=ignore)
    kernel = CudaKernel(b"kinds(i1, i8, u16, i32, i64, u64, f32, f64)", "kinds", threads=32)
    specs = [
        ParamSpec.boolean(),
        *(ParamSpec.integer(kind, annotated=True) for kind in ("i8", "u16", "i32", "i64", "u64")),
        *map(ParamSpec.floating, ("f32", "f64")),
    ]
    values = [True, -3, 65535, -(2**31), -(2**63), 2**64 - 1, 1.5, -1e300]
    for launch in (kernel.launcher(specs), kernel._native(driver.device(0), specs)):
        assert launch(1, 1, 1, *values) is None
        assert library.launches.pop()[-1] == values
        assert launch(1, 1, 1, *values[:-1], 3) is NotImplemented
        assert launch(1, 1, 1, *values[:-1]) is NotImplemented
        assert launch(1, 0, 1, *values) is None
        assert not library.launches


def test_the_native_launcher(fake: Fake) -> None:
    """Tensors that torch describes, here those of main memory, constants, and a thread that has no context."""
    torch = pytest.importorskip("torch")
    library = fake(devices=2, double=double)
    x, y = torch.arange(5, dtype=torch.float32), torch.zeros(5)
    kernel = CudaKernel(b"double(ptr, ptr, i32)", "double", threads=64, shared=1024)
    tensor = ParamSpec.tensor(torch_dtype=torch.float32)
    specs = [tensor, ParamSpec.constant("mode"), tensor, ParamSpec.integer("i32")]
    launch = kernel._native(driver.device(1), specs)
    library.calls.clear()
    assert launch(2, 3, 4, x, "mode", y, 5) is None
    assert y.tolist() == [0, 2, 4, 6, 8]
    context = driver.device(1).context
    expected = (2, 3, 4, 64, 1, 1, 1024), None, context, [x.data_ptr(), y.data_ptr(), 5]
    assert library.launches == [("double", *expected)]
    assert library.calls == ["cuCtxGetCurrent", "cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"]
    library.contexts.append(context)
    library.calls.clear()
    assert launch(2, 3, 4, x, "mode", y, 5) is None
    assert library.calls == ["cuCtxGetCurrent", "cuLaunchKernel"]
    assert launch(2, 3, 4, x.double(), "mode", y, 5) is NotImplemented
    assert launch(2, 3, 4, x.numpy(), "other", y, 5) is NotImplemented


def test_attributes_of_a_launch(fake: Fake) -> None:
    library = fake(kinds=ignore)
    kernel = CudaKernel(b"kinds(i32)", "kinds", threads=64, shared=1024, attributes=(6, 2))
    specs = [ParamSpec.integer("i32")]
    assert kernel._native(driver.device(0), specs)(2, 3, 4, 5) is None
    kernel.run((2, 3, 4), [Slot("i32", 5)])
    context = driver.device(0).context
    assert library.launches == [("kinds", (2, 3, 4, 64, 1, 1, 1024), None, context, [5])] * 2
    assert library.attributes == [(6, 1), (2, 1)] * 2
    assert "cuLaunchKernel" not in library.calls


def moved(rows: int, width: int) -> TensorMap:
    """f16 of `rows` and `width` (parameters), each row as long as twice the width, moved by 3 rows."""
    times = ((1, (rows,)),), ((1, (width,)),)
    return TensorMap(
        0,
        2,
        ((12, (width,)), (32, ())),
        (times[1], times[0]),
        (((4, (width,)),),),
        (64, 32),
        128,
        (width,),
        (times[0],),
    )


@pytest.mark.filterwarnings("ignore:the arrays of kernel:mltriton.errors.PerformanceWarning")
@pytest.mark.parametrize("is_native", [True, False])
def test_tensor_maps(fake: Fake, is_native: bool) -> None:
    """Made of a launch's arguments; where one cannot be, the kernel that does without is launched."""
    torch = pytest.importorskip("torch")
    library = fake(take=ignore, plain=ignore)
    maps = (moved(1, 2), replace(moved(2, 2), apart=(3,)), TensorMap(0, 1, (), (((50, ()),),), (), (32,), 0))
    kernel = CudaKernel(b"take(ptr, i32, i64, ptr, map, map, map)", "take", threads=32, maps=maps)
    kernel.otherwise = lambda: CudaKernel(b"plain(ptr, i32, i64, ptr)", "plain", threads=32)
    specs = [ParamSpec.tensor(torch_dtype=torch.float16), ParamSpec.integer("i32")]
    specs += [ParamSpec.integer("i64", annotated=True), ParamSpec.tensor(torch_dtype=torch.float16)]
    x, y = (torch.zeros(4096, dtype=torch.float16) for _ in range(2))

    def launch(rows: int, width: int, other: Any = y) -> Any:
        if is_native:
            return kernel._native(driver.device(0), specs)(1, 1, 1, x, rows, width, other)
        return kernel.launcher(specs)(1, 1, 1, x, rows, width, other)

    assert launch(7, 40) is None
    start, *values = library.launches.pop()[-1]
    assert values[:2] + values[3:] == [7, 40, 0, 1, 2]
    base = start + 12 * 40 + 32
    assert library.maps == [
        (base, (40, 7), (160,), (64, 32), 1, 3),
        (base, (40, 40), (160,), (64, 32), 1, 3),
        (start, (50,), (), (32,), 0, 0),
    ]
    for rows, width in ((7, 41), (0, 40), (-7, 40), (7, 0), (7, -40), (7, 1 << 38)):
        assert launch(rows, width) is None
        name, *_, values = library.launches.pop()
        assert (name, values[1:3]) == ("plain", [rows, width])
    assert launch(7, 40, x) is None  # one array where two are needed
    assert library.launches.pop()[0] == "plain"
    kernel.otherwise = None
    with pytest.raises(LaunchError, match="arrays of kernel take cannot be described"):
        launch(7, 41)


@pytest.mark.parametrize("is_native", [True, False])
def test_rows_that_are_stored_end_at_16_bytes(fake: Fake, is_native: bool) -> None:
    """The engine would write past the end of others, which it may load."""
    torch = pytest.importorskip("torch")
    library = fake(take=ignore, plain=ignore)
    x, specs = torch.zeros(4096, dtype=torch.float16), [ParamSpec.tensor(torch_dtype=torch.float16)]
    specs += [ParamSpec.integer("i32"), ParamSpec.integer("i64", annotated=True)]
    for stored, width, name in ((True, 40, "take"), (True, 44, "plain"), (False, 44, "take")):
        maps = (replace(moved(1, 2), stored=stored),)
        kernel = CudaKernel(b"take(ptr, i32, i64, map)", "take", threads=32, maps=maps)
        kernel.otherwise = lambda: CudaKernel(b"plain(ptr, i32, i64)", "plain", threads=32)
        launch = kernel._native(driver.device(0), specs) if is_native else kernel.launcher(specs)
        assert launch(1, 1, 1, x, 7, width) is None
        assert library.launches.pop()[0] == name


@pytest.mark.parametrize("is_native", [True, False])
def test_launches_of_one_round(fake: Fake, is_native: bool) -> None:
    """More programs than multiprocessors, and at most two for each, are those of another kernel, which is made once."""
    torch = pytest.importorskip("torch")
    library = fake(alone=ignore, beside=ignore)
    count = driver.device(0).attribute(driver.Attribute.MULTIPROCESSORS)
    kernel, made = CudaKernel(b"alone(ptr, i32)", "alone", threads=96, beside=2), list[CudaKernel]()

    def in_one_round() -> CudaKernel:
        made.append(CudaKernel(b"beside(ptr, i32)", "beside", threads=64))
        return made[-1]

    kernel.in_one_round = in_one_round
    x, specs = torch.zeros(16), [ParamSpec.tensor(torch_dtype=torch.float32), ParamSpec.integer("i32")]
    launch = kernel._native(driver.device(0), specs) if is_native else kernel.launcher(specs)
    grids = [(1, 1, 1), (count, 1, 1), (count + 1, 1, 1), (count, 1, 2), (2 * count + 1, 1, 1), (count, 3, 1)]
    for grid, name in zip(grids, ("alone", "alone", "beside", "beside", "alone", "alone"), strict=True):
        assert launch(*grid, x, 5) is None
        found, sizes, *_, values = library.launches.pop()
        assert (found, sizes[:4], values[1]) == (name, (*grid, 96 if name == "alone" else 64), 5)
    assert len(made) <= (1 if is_native else 2)
    assert launch(0, 1, 1, x, 5) is None
    assert not library.launches


@pytest.mark.parametrize("is_native", [True, False])
def test_programs_that_take_turns(fake: Fake, is_native: bool) -> None:
    """As few along x as need no more rounds, where there are no others; the last parameter is what is asked for."""
    torch = pytest.importorskip("torch")
    library = fake(turns=ignore)
    count = driver.device(0).attribute(driver.Attribute.MULTIPROCESSORS)
    kernel = CudaKernel(b"turns(ptr, i32, i32)", "turns", threads=96, takes_turns=True)
    x, specs = torch.zeros(16), [ParamSpec.tensor(torch_dtype=torch.float32), ParamSpec.integer("i32")]
    launch = kernel._native(driver.device(0), specs) if is_native else kernel.launcher(specs)
    grids = [(1, 1, 1), (count, 1, 1), (count + 2, 1, 1), (3 * count, 1, 1), (3 * count, 2, 1), (5, 1, count)]
    for grid, along_x in zip(grids, (1, count, count // 2 + 1, count, 3 * count, 5), strict=True):
        assert launch(*grid, x, 7) is None
        _, sizes, *_, values = library.launches.pop()
        assert (sizes[:4], values[1:]) == ((along_x, *grid[1:], 96), [7, grid[0]])


def test_tensors_of_another_gpu(fake: Fake) -> None:
    """A launcher takes tensors of one GPU: not of another one, and none of main memory."""
    torch = pytest.importorskip("torch")
    library = fake(devices=2, take=ignore)
    kernel = CudaKernel(b"take(ptr)", "take", threads=32)
    for place in ("cuda:0", "cuda:1"):
        spec = ParamSpec.tensor(F32, torch.float32, device=place)
        for launch in (kernel.launcher([spec]), kernel._native(driver.device(0), [spec])):
            assert launch(1, 1, 1, torch.zeros(3)) is NotImplemented
            assert launch(1, 1, 1, np.zeros(3, np.float32)) is NotImplemented
    assert not library.launches


def test_streams(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    library = fake(devices=2, take=ignore)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0x500 + device, raising=False)
    kernel = CudaKernel(b"take(i32)", "take", threads=32)
    spec = ParamSpec.integer("i32")
    for index in (0, 1):
        assert kernel._native(driver.device(index), [spec])(1, 1, 1, 5) is None
        assert library.launches.pop()[2] == 0x500 + index
    kernel.run((1, 1, 1), [Slot("i32", 5)])
    assert library.launches.pop()[2] == 0x500
    assert "cuStreamSynchronize" not in library.calls


def test_errors_of_launches(fake: Fake) -> None:
    library = fake(take=ignore)
    kernel = CudaKernel(b"take(i32)", "take", threads=32)
    launches = kernel.launcher([ParamSpec.integer("i32")]), kernel._native(driver.device(0), [ParamSpec.integer("i32")])
    library.failing["cuLaunchKernel"] = 701
    for launch in launches:
        with pytest.raises(OutOfResources, match="kernel take needs more registers or threads") as caught:
            launch(1, 1, 1, 5)
        assert caught.value.file == __file__
    library.failing["cuLaunchKernel"] = 1
    for launch in launches:
        with pytest.raises(GridError, match="more programs than CUDA starts") as caught:
            launch(1, 65536, 1, 5)
        assert caught.value.file == __file__
    assert library.contexts == [0]


def test_a_lost_gpu(fake: Fake) -> None:
    library = fake(take=ignore)
    library.failing["cuStreamSynchronize"] = 700
    kernel = CudaKernel(b"take(ptr)", "take", threads=32)
    with pytest.raises(DeviceError, match="accessed memory that is not there") as caught:
        kernel.run((1, 1, 1), slots(np.zeros(3)))
    assert "kernel take" in str(caught.value)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(caught.value)


def test_a_gpu_that_was_lost_before(fake: Fake) -> None:
    """Every call says so from then on; the error is still one of the kernel's."""
    library = fake(take=ignore)
    kernel = CudaKernel(b"take(i32)", "take", threads=32)
    launches = kernel.launcher([ParamSpec.integer("i32")]), kernel._native(driver.device(0), [ParamSpec.integer("i32")])
    for name in ("cuCtxPushCurrent", "cuLaunchKernel", "cuStreamSynchronize", "cuCtxPopCurrent"):
        library.failing[name] = 719
    for launch in launches:
        with pytest.raises(DeviceError, match="kernel take, or a kernel before it on the stream, was ended by the GPU"):
            launch(1, 1, 1, 5)


def fail_in_program_5(grid: tuple[int, ...], n: int, record: int) -> None:
    if n == 5:
        (ctypes.c_int64 * 3).from_address(record)[:] = (2, 5, 9)


def test_assertions(fake: Fake) -> None:
    library = fake(fail=fail_in_program_5)
    known = [("first", None, 0, 0, False), ("n is not 5", __file__, 7, 4, False)]
    kernel = CudaKernel(b"fail(i32, ptr)", "fail", threads=32, assertions=known)
    native = kernel._waiting(driver.device(0), kernel._native(driver.device(0), [ParamSpec.integer("i32")]))
    for launch in (kernel.launcher([ParamSpec.integer("i32")]), native):
        assert launch(4, 2, 1, 6) is None
        with pytest.raises(DeviceAssertionError, match=r"n is not 5 \(program \(1, 1, 0\), element 9\)") as caught:
            launch(4, 2, 1, 5)
        assert caught.value.line == 7
        assert launch(4, 2, 1, 6) is None
    library.capturing = True
    library.calls.clear()
    assert native(4, 2, 1, 5) is None
    assert "cuStreamSynchronize" not in library.calls
