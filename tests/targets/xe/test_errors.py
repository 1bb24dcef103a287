"""Bad input for Xe: each mistake is a named error that says what was expected, what was found and what to do."""

from __future__ import annotations

import inspect
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
import xe_modules as modules
from mltriton.compiler.options import CountError
from mltriton.errors import (
    BackendError,
    DeviceError,
    OptionError,
    OutOfResources,
    SharedMemoryError,
    TargetError,
    TritonError,
)
from mltriton.runtime.slots import Slot
from mltriton.targets.xe import driver
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.launch import XeKernel
from mltriton.targets.xe.ocloc import build_options
from mltriton.targets.xe.spirv.emission import Code, emit


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def multiply(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    tl.store(c + places, tl.dot(tl.load(a + places), tl.load(b + places)))


@triton.jit
def flatten(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    block = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(y + tl.arange(0, N * N), tl.reshape(block, (N * N,)))


def message_of(error: TritonError) -> tuple[str, str | None, str | None, str | None]:
    return error.message, error.expected, error.found, error.hint


RESHAPE = inspect.getsourcelines(flatten.fn)[1] + 4  # where the warps exchange elements
VECTOR, F64_MATRICES = "*fp32:16, i32, 64", "*fp64:16, *fp64:16, *fp64:16, 32"
XE = "one of xe:pvc, xe:bmg, xe:lnl, xe:ptl"
MODES = "A program may have 64 with 128 registers and 32 with 256 registers: choose a smaller num_warps."
COMPILED: dict[str, tuple[Any, str, dict[str, Any], type[TritonError], tuple[str | None, ...]]]
COMPILED = {
    "an unknown device": (
        *(double, VECTOR, {"target": "xe:foo"}, TargetError),
        ("unknown target 'xe:foo'", XE, "xe:foo", None),
    ),
    "a device almost right": (
        *(double, VECTOR, {"target": "xe:pcv"}, TargetError),
        ("unknown target 'xe:pcv'", XE, "xe:pcv", "Did you mean xe:pvc?"),
    ),
    "too many warps": (
        *(double, VECTOR, {"target": "xe:bmg", "num_warps": 128}, TargetError),
        ("too many warps for 128 registers each on bmg", "at most 64 warps", "128", MODES),
    ),
    "too many warps for the registers that are asked for": (
        *(double, VECTOR, {"target": "xe:pvc", "num_warps": 64, "grf_mode": "256"}, TargetError),
        ("too many warps for 256 registers each on pvc", "at most 32 warps", "64", MODES),
    ),
    "an unknown number of registers": (
        *(double, VECTOR, {"target": "xe:pvc", "grf_mode": "512"}, OptionError),
        ("there is no grf_mode '512'", "one of default, auto, 128, small, 256, large", None, None),
    ),
    "an odd number of warps": (
        *(double, VECTOR, {"target": "xe:pvc", "num_warps": 12}, CountError),
        ("num_warps must be a power of two", "8 or 16", "12", None),
    ),
    "a dot of f64": (
        *(multiply, F64_MATRICES, {"target": "xe:lnl"}, TargetError),
        (
            *("the target xe:lnl has no dot of f64 elements", "f16, bf16, f32, i8", "f64"),
            "Convert the operands, as with .to(tl.float32).",
        ),
    ),
    "too much shared memory": (
        *(flatten, "*fp32:16, *fp32:16, 256", {"target": "xe:ptl", "num_warps": 8}, SharedMemoryError),
        (
            *("the kernel needs more shared memory than ptl has", "at most 131072 bytes", "262144 bytes"),
            f"Warps exchange elements through it: take smaller blocks. It holds\n    262144 bytes at line {RESHAPE}",
        ),
    ),
}


@pytest.mark.parametrize("case", COMPILED)
def test_what_cannot_be_compiled(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As users compile, who check nothing between passes."""
    monkeypatch.delenv("MLTRITON_VERIFY_PASSES", raising=False)
    kernel, signature, options, kind, expected = COMPILED[case]
    with pytest.raises(kind) as caught:
        triton.compile(kernel, signature, **options)
    assert type(caught.value) is kind
    assert message_of(caught.value) == expected


def test_fp8_is_multiplied_by_conversion() -> None:
    signature = "*fp8e5:16, *fp8e5:16, *fp32:16, 32"
    levels = triton.compile(multiply, signature, target="xe:bmg").asm
    assert re.search(r"tt\.dot .*f16.* \* .*f16", levels["intrinsic"])


def test_without_ocloc_there_are_no_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLTRITON_OCLOC", "/nowhere/ocloc")
    compiled = triton.compile(double, VECTOR, target="xe:pvc")
    for ask in (lambda: compiled.asm["isa"], lambda: compiled.image("native"), lambda: compiled.n_regs):
        with pytest.raises(TargetError, match="Intel's offline compiler ocloc is not installed") as caught:
            ask()
        assert caught.value.found == "MLTRITON_OCLOC names /nowhere/ocloc, no program"
        assert "make setup-xe" in (caught.value.hint or "")
    assert compiled.image("spirv")


def test_a_mode_allows_so_many_warps() -> None:
    pvc = device("pvc")
    with pytest.raises(TargetError) as caught:
        build_options(pvc, 64, 256)
    assert message_of(caught.value) == ("too many warps for 256 registers each on pvc", "at most 32 warps", "64", MODES)
    assert build_options(pvc, 64, 128) == "-cl-intel-128-GRF-per-thread"
    assert build_options(pvc, 32, 128) == "-cl-intel-enable-auto-large-GRF-mode"
    assert build_options(pvc, 32, 128, fixed=True) == "-cl-intel-128-GRF-per-thread"
    assert build_options(pvc, 32, 256) == "-cl-intel-256-GRF-per-thread"
    assert build_options(pvc, 32, 128, Code.SIMD) == "-vc-codegen"
    assert build_options(pvc, 8, 256, Code.SIMD) == "-vc-codegen -doubleGRF"


@pytest.mark.usefixtures("needs_ocloc")
def test_the_mode_that_is_expected_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of 32 x 64 a warp needs 256 registers: nobody compiles it with 128 first."""
    from mltriton.targets.xe import ocloc

    tried: list[int | None] = []
    compile_native = ocloc.compile_native

    def spy(*arguments: Any, registers: int | None = 128, **options: Any) -> Any:
        tried.append(registers)
        return compile_native(*arguments, registers=registers, **options)

    monkeypatch.setattr(ocloc, "compile_native", spy)
    compiled = triton.compile(multiply, "*fp16:16, *fp16:16, *fp32:16, 64", target="xe:pvc", num_warps=1)
    assert (compiled.n_regs, compiled.n_spills >= 0) == (256, True)
    assert tried == [256]
    tried.clear()
    signature = "*fp16:16, *fp16:16, *fp32:16, 64"
    fixed = triton.compile(multiply, signature, target="xe:pvc", num_warps=1, grf_mode="128")
    assert fixed.n_regs == 128
    assert fixed.n_spills > compiled.n_spills
    assert triton.compile(double, VECTOR, target="xe:pvc", grf_mode="large").n_regs == 256
    assert tried == [128, 256]
    tried.clear()
    small = triton.compile(double, VECTOR, target="xe:pvc")
    assert (small.n_regs, small.n_spills) == (128, 0)
    assert tried == [128]


# The device.


def fake(**attributes: Any) -> Any:
    """A SYCL queue of a device with other attributes."""
    device_ = SimpleNamespace(name="a GPU", max_work_group_size=1024, **attributes)
    return SimpleNamespace(sycl_device=Hashable(device_), sycl_context=object())


class Hashable:
    """An object with the attributes of another one."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


def test_options_reach_the_build_on_a_gpu(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpctl import program

    given: list[str] = []

    def build(sycl: Any, image: bytes, options: str) -> Any:
        given.append(options)
        return SimpleNamespace(has_sycl_kernel=lambda name: True, get_sycl_kernel=lambda name: None)

    monkeypatch.setattr(program, "create_program_from_spirv", build)
    gpu = Queue(fake(sub_group_sizes=[16, 32]), emulated=False)
    XeKernel(gpu, lambda *_: b"module", "k", 16, options="-cl-intel-256-GRF-per-thread")
    XeKernel(Queue(fake(sub_group_sizes=[16]), emulated=True), lambda *_: b"module", "k", 16, options="-cl-any")
    assert given == ["-cl-intel-256-GRF-per-thread", ""]


def test_which_device_runs_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Intel GPU through Level Zero, else through OpenCL; a GPU of somebody else's is passed over."""
    vendors: dict[str, str] = {}

    class MissingError(Exception):
        pass

    def make(name: str, property: str) -> Any:
        if name not in vendors:
            raise MissingError
        return SimpleNamespace(sycl_device=SimpleNamespace(name=name, vendor=vendors[name]), property=property)

    dpctl = SimpleNamespace(SyclQueue=make, SyclQueueCreationError=MissingError, get_devices=lambda: [*vendors])
    monkeypatch.setattr(driver, "is_installed", lambda: True)
    monkeypatch.setattr(driver, "import_module", lambda name: dpctl)
    choose = driver.queue.__wrapped__
    with pytest.raises(DeviceError, match="there is no device for kernels for Xe") as caught:
        choose()
    assert caught.value.expected == "level_zero:gpu or opencl:gpu or opencl:cpu"
    for name, vendor, chosen in (
        ("opencl:cpu", "Intel(R) Corporation", "opencl:cpu"),
        ("opencl:gpu", "Other", "opencl:cpu"),
        ("opencl:gpu", "Intel(R) Corporation", "opencl:gpu"),
        ("level_zero:gpu", "Intel(R) Corporation", "level_zero:gpu"),
    ):
        vendors[name] = vendor
        found = choose()
        assert (found.name, found.emulated, found.sycl.property) == (chosen, chosen == "opencl:cpu", "in_order")


def test_a_device_with_other_warps() -> None:
    gpu = Queue(fake(sub_group_sizes=[8, 32]), emulated=False)
    with pytest.raises(DeviceError) as caught:
        XeKernel(gpu, lambda *_: b"", "k", 16)
    hint = "Kernels for Xe need a GPU of one of the targets' devices."
    assert message_of(caught.value) == ("a GPU has no warps of 16 lanes", "16", "8, 32", hint)


def test_a_driver_without_an_extension(queue: Queue) -> None:
    """Intel's runtime for CPUs lacks the block accesses that an emulated kernel does without."""
    if not queue.emulated:
        pytest.skip("a GPU takes the module")
    with pytest.raises(BackendError, match="rejects the module") as caught:
        queue.kernel(emit(modules.block_load(modules.xe.BLOCK_LOAD, (2, 16, 8, 1)).module.text), "load")
    assert "6228" in (caught.value.found or "")
    assert re.search(r"The module uses .*SPV_INTEL_2d_block_io.*: a newer driver may know", caught.value.hint or "")


def test_too_little_memory(queue: Queue) -> None:
    with pytest.raises(OutOfResources, match="has no memory for the arrays of the launch") as caught:
        queue.shared(1 << 50)
    assert message_of(caught.value)[2:] == (f"{1 << 50} bytes", "Use smaller arrays, or fewer at a time.")


def test_more_lanes_than_a_device_has() -> None:
    gpu = Queue(fake(sub_group_sizes=[16]), emulated=False)
    with pytest.raises(OutOfResources) as caught:
        gpu.submit(None, [], (1, 1, 1), 2048)
    hint = "A program has num_warps times the lanes of a warp: choose a smaller num_warps."
    expected = ("a program has more lanes than the device", "at most 1024 lanes", "2048", hint)
    assert message_of(caught.value) == expected


# Arrays.


class Tensor:
    """Stands for one of torch's on a GPU: memory of the queue's device."""

    def __init__(self, queue: Queue, values: Any, place: int = 0) -> None:
        import torch

        self.dtype = torch.float32
        self.device = torch.device("xpu", place)
        self.memory = queue.shared(values.nbytes)
        self.values = np.frombuffer(self.memory.tobytes(), np.float32)
        self.memory.copy_from_host(values.view(np.uint8))

    def data_ptr(self) -> int:
        return self.memory._pointer

    def is_neg(self) -> bool:
        return False

    @property
    def numbers(self) -> Any:
        return np.frombuffer(self.memory.copy_to_host(), np.float32)


@pytest.fixture
def torch_queue(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch as if it worked on a queue of its own (`sycl`), with the devices for which it was `asked`."""
    dpctl, torch = pytest.importorskip("dpctl"), pytest.importorskip("torch")
    sycl = dpctl.SyclQueue(queue.sycl.sycl_context, queue.sycl.sycl_device, property="in_order")
    asked: list[str] = []

    def current_stream(place: str) -> Any:
        asked.append(place)
        return SimpleNamespace(sycl_queue=sycl.addressof_ref())

    monkeypatch.setattr(torch.xpu, "current_stream", current_stream)
    return SimpleNamespace(sycl=sycl, asked=asked)


def test_tensors_on_the_gpu_are_used_where_they_lie(queue: Queue, torch_queue: Any) -> None:
    values = np.arange(100, dtype=np.float32)
    tensor = Tensor(queue, values)
    for times in (2, 4):
        double[(2,)](tensor, 77, BLOCK=64, target="xe:pvc")
        torch_queue.sycl.wait()
        np.testing.assert_array_equal(tensor.numbers, np.where(np.arange(100) < 77, times * values, values))
    assert driver.queue_of_torch("xpu:0") is driver.queue_of_torch("xpu:0") is not queue
    assert set(torch_queue.asked) == {"xpu:0"}


def test_arrays_on_several_devices(queue: Queue, torch_queue: Any) -> None:
    values = np.ones(32 * 32, np.float32)
    here, there = Tensor(queue, values), Tensor(queue, values, place=1)
    for arrays, found in (((here, values, here), "xpu:0, b on cpu"), ((here, there, here), "xpu:0, b on xpu:1")):
        with pytest.raises(DeviceError) as caught:
            multiply[(1,)](*arrays, N=32, target="xe:pvc")
        assert message_of(caught.value) == (
            "the arrays of a launch lie on several devices",
            "all on one device",
            f"a on {found}, c on xpu:0",
            "Move them with .to(device).",
        )


def test_a_tensor_on_the_gpu_without_a_target(queue: Queue, torch_queue: Any) -> None:
    with pytest.raises(DeviceError, match="x lies on the device xpu, and the kernel runs on cpu") as caught:
        double[(1,)](Tensor(queue, np.ones(64, np.float32)), 64, BLOCK=64)
    assert caught.value.hint == "Say which GPU it is with target=, such as \"xe:pvc\", or move it with x.to('cpu')."


def test_torch_without_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(xpu=SimpleNamespace()))
    with pytest.raises(DeviceError, match="torch does not say on which queue it uses xpu:0") as caught:
        driver.queue_of_torch("xpu:0")
    assert caught.value.hint == "torch 2.5 and newer tell it; older ones need arrays in main memory."


def test_an_array_of_unknown_size(queue: Queue) -> None:
    kernel = triton.compile(double, VECTOR, target="xe:pvc").loaded
    with pytest.raises(triton.errors.ArgumentError) as caught:
        kernel.run((1, 1, 1), [Slot("tensor", 64, object()), Slot("i32", 4)])
    message = "an argument is of a kind that cannot be copied to the device"
    assert message_of(caught.value) == (message, "numpy arrays or torch tensors", "object", None)
