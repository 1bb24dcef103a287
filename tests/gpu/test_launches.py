"""Launches on a real GPU: arguments of every kind, streams, graphs, several devices, errors, prints and assertions."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import BackendError, DeviceAssertionError, DeviceError, GridError, OutOfResources
from mltriton.targets.nvidia import driver
from mltriton.testing import do_bench
from mltriton.tools.tensor_descriptor import TensorDescriptor

torch = pytest.importorskip("torch")


@triton.jit
def scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


def check(x, y, **options) -> None:
    n = x.numel()
    scaled[(triton.cdiv(n, 256),)](x, y, n, 2.0, BLOCK=256, **options)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize("n", [1, 255, 256, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_tensors(n: int, dtype: str) -> None:
    x = torch.randn(n, device="cuda", dtype=getattr(torch, dtype))
    for _ in range(3):  # by the slow way, then by machine code
        check(x, torch.empty_like(x))


def test_views_and_parameters() -> None:
    x = torch.randn(1000, device="cuda")
    check(x[3:], torch.empty(997, device="cuda"))
    check(x[4:], torch.empty(996, device="cuda"))
    check(torch.nn.Parameter(x, requires_grad=False), torch.empty_like(x))


@triton.jit
def numbers(out, a: tl.int8, b: tl.uint16, c, d, e, f: tl.float64, yes):
    """Each number's value, in f64."""
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f)
    tl.store(out + 6, yes.to(tl.float64))


def test_numbers() -> None:
    out = torch.zeros(7, device="cuda", dtype=torch.float64)
    values = (-3, 65000, -(2**31), 2**40, 0.5, 1e300, True)
    for _ in range(2):
        numbers[(1,)](out, *values)
        assert out.tolist() == list(map(float, values))
        out.zero_()


@triton.jit
def through_descriptor(source, target, pair):
    block = source.load([2, 4])
    target.store([0, 0], block * pair[0] + pair[1])


def test_descriptors_and_tuples() -> None:
    x, y = torch.randn(20, 40, device="cuda"), torch.zeros(8, 16, device="cuda")
    arguments = TensorDescriptor.from_tensor(x, [8, 16]), TensorDescriptor.from_tensor(y, [8, 16]), (3, 4)
    for _ in range(2):
        through_descriptor[(1,)](*arguments)
        torch.testing.assert_close(y, x[2:10, 4:20] * 3 + 4)
        y.zero_()


@triton.jit
def clipped(x, y, columns, COLUMNS: tl.constexpr):
    rows, along = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    source = tl.make_tensor_descriptor(x, [64, columns], [64, 1], [64, 64])
    block = source.load([0, 0])
    tl.make_tensor_descriptor(y, [50, columns], [64, 1], [64, 64]).store([0, 0], block)
    tl.store(y + (64 + rows) * 64 + along, block, mask=along < COLUMNS)
    tl.store(y + (128 + rows) * 64 + along, block, mask=(along < columns) & (rows < 7))


@pytest.mark.parametrize("columns", [1, 5, 8, 13, 16, 33, 64])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_what_lies_beside_columns_is_left_alone(dtype: str, columns: int) -> None:
    """Whatever engine stores them."""
    x = torch.randint(1, 99, (64, 64), device="cuda").to(getattr(torch, dtype))
    y, wanted = (torch.zeros(192, 64, device="cuda", dtype=x.dtype) for _ in range(2))
    for first, rows in ((0, 50), (64, 64), (128, 7)):
        wanted[first : first + rows, :columns] = x[:rows, :columns]
    for _ in range(2):
        clipped[(1,)](x, y, columns, columns, tensor_maps="all")
        assert torch.equal(y, wanted)
        y.zero_()


def test_arrays_of_main_memory() -> None:
    x = np.arange(1000, dtype=np.float32)
    y = np.zeros_like(x)
    scaled[(4,)](x, y, 1000, 2.0, BLOCK=256, target="cuda")
    np.testing.assert_array_equal(y, 2 * x)


def test_pinned_memory() -> None:
    """The GPU reads and writes it where it is, beside arrays of its own."""
    x, y = torch.randn(1000).pin_memory(), torch.empty(1000, device="cuda")
    for _ in range(2):
        scaled[(4,)](x, y, 1000, 2.0, BLOCK=256)
        assert torch.equal(y.cpu(), 2 * x)
    scaled[(4,)](y, x, 1000, 2.0, BLOCK=256)
    torch.cuda.synchronize()
    assert torch.equal(x, 2 * y.cpu())
    for other in (torch.randn(1000), np.ones(1000, np.float32)):
        with pytest.raises(DeviceError, match="several devices"):
            scaled[(4,)](other, y, 1000, 2.0, BLOCK=256)


def test_arrays_of_other_libraries() -> None:
    """By the CUDA array interface and by DLPack, of tensors that hide behind them."""

    class Interface:
        def __init__(self, tensor) -> None:
            self.tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__

    class Exchanged:
        def __init__(self, tensor) -> None:
            self.tensor = tensor

        def __dlpack__(self, **how):
            return self.tensor.__dlpack__(**how)

    x = torch.randn(500, device="cuda")
    for kind in (Interface, Exchanged):
        y = torch.empty_like(x)
        scaled[(2,)](kind(x), kind(y), 500, 2.0, BLOCK=256)
        torch.cuda.synchronize()
        assert torch.equal(y, 2 * x)


def test_streams() -> None:
    """A launch waits for what its stream does before, and other streams do not wait for it."""
    stream = torch.cuda.Stream()
    x, y = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    check(x, y)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(3.0)
        scaled[(4096,)](x, y, 1 << 20, 2.0, BLOCK=256)
        assert not stream.query()
        assert driver.stream_function()(0) == stream.cuda_stream
    stream.synchronize()
    assert (y == 6).all()


def test_graphs() -> None:
    x, y = torch.randn(5000, device="cuda"), torch.empty(5000, device="cuda")
    check(x, y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scaled[(20,)](x, y, 5000, 2.0, BLOCK=256)
        scaled[(20,)](y, y, 5000, 2.0, BLOCK=256)
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(y, 4 * x)


def test_threads() -> None:
    """A thread that CUDA does not know yet launches as others do."""
    x = torch.randn(1000, device="cuda")
    results = [torch.empty_like(x) for _ in range(8)]
    threads = [threading.Thread(target=check, args=(x, y)) for y in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert all(torch.equal(y, 2 * x) for y in results)


def test_several_gpus() -> None:
    if driver.count() < 2:
        pytest.skip("there is one GPU")
    for index in (0, 1, 0, 1):
        x = torch.randn(1000, device=f"cuda:{index}")
        check(x, torch.empty_like(x))
    with pytest.raises(DeviceError, match="several devices"):
        scaled[(4,)](torch.ones(9, device="cuda:0"), torch.ones(9, device="cuda:1"), 9, 2.0, BLOCK=16)


def test_ptx_that_the_driver_rejects() -> None:
    with pytest.raises(BackendError) as caught:
        driver.device(0).load(
            b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }\0", "k"
        )
    assert "ptx" in str(caught.value).lower()


def test_ptx_of_the_driver_s_own_compiler() -> None:
    """An empty kernel as text."""
    text = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\0"
    assert driver.device(0).load(text, "k").attribute(0) == 1024  # threads that a program may have


def test_too_much_memory() -> None:
    with pytest.raises(OutOfResources):
        driver.device(0).allocate(1 << 46)  # of its own: memory that is shared lies elsewhere, too


def test_a_grid_that_cuda_does_not_start() -> None:
    x = torch.ones(16, device="cuda")
    with pytest.raises(GridError, match="65535"):
        scaled[(1, 70000)](x, x, 16, 1.0, BLOCK=16)


@triton.jit
def asserting(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.device_assert(value < 100, "a value is too large")
    tl.store(x + at, value + 1, mask=at < n)


def test_assertions() -> None:
    x = torch.arange(60, device="cuda", dtype=torch.int32)
    asserting[(1,)](x, 60, BLOCK=64, debug=True)
    x[7] = 1000
    for _ in range(2):
        with pytest.raises(DeviceAssertionError, match="a value is too large") as caught:
            asserting[(1,)](x, 60, BLOCK=64, debug=True)
        assert "tl.device_assert" in str(caught.value)
        assert caught.value.file == __file__
    x[7] = 0
    asserting[(1,)](x, 60, BLOCK=64, debug=True)
    asserting[(1,)](x, 60, BLOCK=64)


@triton.jit
def printing(x):
    tl.device_print("the value is", tl.load(x + tl.program_id(0)))


def test_prints(capfd: pytest.CaptureFixture[str]) -> None:
    printing[(2,)](torch.tensor([11, 22], device="cuda", dtype=torch.int32))
    torch.cuda.synchronize()
    text = capfd.readouterr().out
    assert "the value is" in text
    assert "11" in text and "22" in text


def in_another_process(text: str, tmp_path: Path) -> str:
    """Run a program whose GPU is lost with it; what it says."""
    lines = ["import torch", "import mltriton as triton", "import mltriton.language as tl", textwrap.dedent(text)]
    file = tmp_path / "program.py"
    file.write_text("\n".join(lines))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


OUTSIDE = """
    @triton.jit
    def outside(x, n):
        tl.store(x + n, 1.0)

    x = torch.zeros(16, device="cuda")
    try:
        outside[(1,)](x, 1 << 40, **OPTIONS)
        outside[(1,)](x, 0)
        torch.cuda.synchronize()
        outside[(1,)](x, 0)
    except triton.errors.LaunchError as error:
        print(type(error).__name__, error)
    except RuntimeError as error:  # torch saw it first
        torch_said = error
        try:
            outside[(1,)](x, 0)
        except triton.errors.LaunchError as error:
            print(type(error).__name__, error)
"""


def test_an_access_outside_of_memory(tmp_path: Path) -> None:
    said = in_another_process(OUTSIDE.replace("OPTIONS", "{}"), tmp_path)
    assert "DeviceError" in said and "kernel outside" in said, said
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said


def test_an_access_outside_of_an_array_while_debugging(tmp_path: Path) -> None:
    said = in_another_process(OUTSIDE.replace("OPTIONS", "{'debug': True}"), tmp_path)
    assert "OutOfBoundsError" in said, said
    assert "tl.store(x + n, 1.0)" in said


def test_do_bench() -> None:
    """Copies of 64 MB take longer than those of 1 MB, and a launch that does nothing the least."""
    sizes = [torch.randn(n, device="cuda") for n in (1 << 18, 1 << 24)]
    times = [do_bench(lambda x=x: check_speed(x), warmup=5, rep=20, return_mode="median") for x in sizes]
    assert 0 < times[0] < times[1]


def check_speed(x) -> None:
    scaled[(triton.cdiv(x.numel(), 1024),)](x, x, x.numel(), 1.0, BLOCK=1024)


@triton.jit
def largest_of_negated(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    block = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(out + i, tl.max(-block, 1))
    tl.store(out + ROWS + i, tl.min(block * -1, 1))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("columns", [8, 32, 128, 512])
def test_extrema_of_negated_integers(dtype: str, columns: int) -> None:
    """Of these ptxas would make VIMNMX3 that loses a sign."""
    x = torch.randint(-100, 101, (4, columns), device="cuda", dtype=getattr(torch, dtype))
    out = torch.empty(2, 4, device="cuda", dtype=x.dtype)
    largest_of_negated[(1,)](x, out, 4, columns, num_warps=1)
    assert torch.equal(out, torch.stack([(-x).amax(1), (-x).amin(1)]))
