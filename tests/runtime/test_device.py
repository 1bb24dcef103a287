"""What programs ask of the runtime by upstream's names: the driver, hooks, reinterpreted arrays, an allocator."""

from __future__ import annotations

import gc
import os
import weakref

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, DeviceError, OptionError
from mltriton.runtime import allocation, hooks, jit
from mltriton.runtime.driver import Driver
from mltriton.targets.cpu.registers import used
from mltriton.testing import do_bench


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))
    triton.runtime.driver.set_active(Driver())  # the CPU's, where there is a GPU, too
    yield
    triton.runtime.driver.reset_active()
    hooks.enter.set(None)
    hooks.leave.set(None)
    jit.HOOKS.clear()


def make_softmax(**options):
    @triton.jit(**options)
    def softmax(out, x, x_step, out_step, rows, columns, BLOCK: tl.constexpr):
        for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
            i = tl.arange(0, BLOCK)
            values = tl.load(x + row * x_step + i, i < columns, other=-float("inf"))
            powers = tl.exp(values - tl.max(values, 0))
            tl.store(out + row * out_step + i, powers / tl.sum(powers, 0), i < columns)

    return softmax


def softmax_of(x):
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("warps", [1, 8, 32])
def test_a_grid_made_of_the_occupancy(warps):
    """As the tutorial on fused softmax does it."""
    active = triton.runtime.driver.active
    properties = active.utils.get_device_properties(active.get_current_device())
    x = np.random.default_rng(0).normal(size=(100, 77)).astype(np.float32)
    out = np.zeros_like(x)
    softmax = make_softmax()
    arguments = (out, x, 77, 77, 100, 77)
    kernel = softmax.warmup(*arguments, BLOCK=128, num_warps=warps, grid=(1,))
    kernel._init_handles()
    occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * warps)
    occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(properties["multiprocessor_count"] * occupancy, 100)
    assert 100 >= programs >= min(100, properties["multiprocessor_count"])
    softmax[(programs,)](*arguments, BLOCK=128, num_warps=warps)
    np.testing.assert_allclose(out, softmax_of(x), rtol=2e-6)


def test_the_device():
    active = triton.runtime.driver.active
    target = active.get_current_target()
    assert (target.backend, target.warp_size) == ("cpu", 1)
    assert triton.compile(make_softmax(), "*fp32, *fp32, i32, i32, i32, i32, 64", target=f"cpu:{target.arch}")
    assert active.get_current_stream(active.get_current_device()) == 0
    assert active.get_benchmarker() is do_bench
    cache = active.get_empty_cache_for_benchmark()
    active.clear_cache(cache)
    assert not cache[::4096].any()
    active.set_current_device(0)
    with pytest.raises(DeviceError, match="there is no device 1"):
        active.utils.get_device_properties(1)


def test_the_device_as_torch_sees_it():
    torch = pytest.importorskip("torch")
    active = triton.runtime.driver.active
    assert active.get_active_torch_device() == torch.device("cpu")
    active.get_device_interface().synchronize()


def test_registers_are_counted():
    kernel = triton.compile(make_softmax(), "*fp32, *fp32, i32, i32, i32, i32, 64", target="cpu:avx512")
    assert 1 <= kernel.n_regs <= 32
    assert kernel.n_spills >= 0
    text = "subq $136, %rsp\n vaddps %zmm3, %zmm17, %ymm3\n movss %xmm0, 8(%rsp)"
    assert used(text, is_x86=True) == (3, 34)
    assert used("sub sp, sp, #64\n fadd v1.4s, v2.4s, v30.4s\n ldr d1, [x0]", is_x86=False) == (3, 16)
    assert used("ret", is_x86=True) == (1, 0)


def launch(kernel, **options):
    x = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    out = np.zeros_like(x)
    kernel[(3,)](out, x, 5, 5, 3, 5, BLOCK=8, **options)
    np.testing.assert_allclose(out, softmax_of(x), rtol=2e-6)


def test_launch_hooks():
    def describe(grid, metadata, arguments):
        return {"flops": 2 * arguments["rows"] * grid[0], "title": metadata.name}

    seen = []
    softmax, plain = make_softmax(launch_metadata=describe), make_softmax()
    knobs = triton.knobs.runtime
    launch(softmax)
    knobs.launch_enter_hook.add(enter := lambda metadata: seen.append(("enter", metadata.get())))
    knobs.launch_enter_hook.add(lambda metadata: seen.append("second"))
    knobs.launch_exit_hook.add(lambda metadata: seen.append("last"))
    knobs.launch_exit_hook.add(lambda metadata: seen.append("exit"))
    launch(softmax)
    known = {"name": "softmax", "function": None, "stream": 0}
    assert seen == [("enter", known | {"flops": 18, "title": "softmax"}), "second", "exit", "last"]
    seen.clear()
    knobs.launch_enter_hook.remove(enter)
    knobs.launch_exit_hook = None
    launch(plain)
    assert seen == ["second"]
    knobs.launch_enter_hook = lambda metadata: seen.append(metadata.get())
    seen.clear()
    launch(plain)
    assert seen == [known]
    knobs.launch_enter_hook = None
    assert not jit.HOOKS
    launch(softmax)
    assert seen == [known]


def test_pre_run_hooks_of_a_kernel_that_is_gone():
    kernel, other = make_softmax(), make_softmax()
    kernel.add_pre_run_hook(lambda *args, own=kernel, **kwargs: None)  # a cycle: the hook names its kernel
    assert len(jit.HOOKS) == 1
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
    assert not jit.HOOKS
    launch(other)


def test_pre_run_hooks():
    softmax, other, seen = make_softmax(), make_softmax(), []
    held = softmax[(1,)]
    softmax.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[2:], kwargs)))
    launch(softmax)
    launch(other)
    assert seen == [((5, 5, 3, 5), {"BLOCK": 8})]
    x = np.ones((1, 4), np.float32)
    held(x, x, 4, 4, 1, 4, BLOCK=4)
    assert len(seen) == 2


@pytest.mark.parametrize("name", ["launch_entry_hook", "override_machine"])
def test_knobs_that_there_are_not(name):
    with pytest.raises(OptionError, match=f"no knob runtime.{name}") as raised:
        getattr(triton.knobs.runtime, name)
    assert raised.value.file == __file__
    with pytest.raises(OptionError, match="no knob"):
        setattr(triton.knobs.runtime, name, None)
    assert not hasattr(triton.knobs.runtime, name)
    with pytest.raises(ArgumentError, match="a hook is a function"):
        triton.knobs.runtime.launch_enter_hook = 5


def test_knobs_are_environment_variables(monkeypatch):
    monkeypatch.delenv("MLTRITON_PRINT_AUTOTUNING", raising=False)
    with triton.knobs.autotuning.scope():
        assert triton.knobs.autotuning.print is False
        triton.knobs.autotuning.print = True
        assert os.environ["MLTRITON_PRINT_AUTOTUNING"] == "1"
        assert triton.knobs.autotuning.print is True
        del triton.knobs.autotuning.print
        assert triton.knobs.autotuning.print is False
        triton.knobs.autotuning.print = True
    assert "MLTRITON_PRINT_AUTOTUNING" not in os.environ


def test_compile_hooks():
    seen = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = lambda **told: seen.append(("before", told["fn"].name, told["compile"]))
        triton.knobs.runtime.jit_post_compile_hook = lambda **told: seen.append(("after", told["key"]))
        launch(kernel := make_softmax(), num_warps=2)
        launch(kernel, num_warps=2)
    (before, name, compiled), after = seen
    assert (before, name) == ("before", kernel.__qualname__)
    assert compiled["constants"]["BLOCK"] == 8
    assert compiled["signature"]["x"] == "*fp32"
    assert compiled["num_warps"] == 2
    assert after == ("after", compiled["key"])
    assert not jit.COMPILE_HOOKS


@triton.jit
def widen(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n).to(tl.float32), i < n)


def test_numpy_arrays_of_other_dtypes():
    out = np.zeros(5, np.float32)
    numbers = np.array([0x3F80, 0xC000, 0x0000, 0x7F80, 0x4049], np.uint16)
    for _ in range(2):
        widen[(1,)](out, triton.reinterpret(numbers, tl.bfloat16), 5, BLOCK=8)
        np.testing.assert_array_equal(out, (numbers.astype(np.uint32) << 16).view(np.float32))
        out[:] = 0
    widen[(1,)](out, triton.reinterpret(numbers, tl.float16), 5, BLOCK=8)
    np.testing.assert_array_equal(out, numbers.view(np.float16).astype(np.float32))
    widen[(1,)](out, numbers, 5, BLOCK=8)
    np.testing.assert_array_equal(out, numbers.astype(np.float32))
    bits = np.zeros(5, np.uint8)
    widen[(1,)](triton.reinterpret(bits, tl.float8e5), np.array([1, -2, 0, 4, 0.5], np.float32), 5, BLOCK=8)
    assert bits.tolist() == [0x3C, 0xC0, 0, 0x44, 0x38]


def test_torch_tensors_of_other_dtypes():
    torch = pytest.importorskip("torch")
    bits = torch.tensor([0x38, 0xB8, 0x40, 0x30], dtype=torch.uint8)
    out = torch.zeros(4)
    wrapped = triton.reinterpret(bits, tl.float8e4nv)
    assert isinstance(wrapped, triton.TensorWrapper) and wrapped.stride(0) == 1 and wrapped.element_size() == 1
    for _ in range(2):
        widen[(1,)](out, wrapped, 4, BLOCK=4)
        assert out.tolist() == [1, -1, 2, 0.5]
    out.zero_()
    widen[(1,)](out, triton.reinterpret(bits, torch.float8_e4m3fn), 4, BLOCK=4)
    assert out.tolist() == [1, -1, 2, 0.5]
    assert triton.reinterpret(wrapped, tl.uint8) is bits
    copy = wrapped.clone()
    copy.copy_(triton.reinterpret(torch.full((4,), 0x40, dtype=torch.uint8), tl.float8e4nv))
    assert copy.base.tolist() == [0x40] * 4 and bits[0] == 0x38


def test_a_read_only_array_is_not_written():
    bits = np.zeros(4, np.uint8)
    bits.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        widen[(1,)](triton.reinterpret(bits, tl.float8e5), np.ones(4, np.float32), 4, BLOCK=4)


@pytest.mark.parametrize(
    ("tensor", "dtype", "message"),
    [
        ([1, 2], tl.float16, "needs an array"),
        (np.ones(4), "fp16", "needs a dtype"),
        (np.zeros(9, np.uint8)[1:], tl.float16, "does not lie where"),
    ],
)
def test_what_cannot_be_reinterpreted(tensor, dtype, message):
    with pytest.raises(ArgumentError, match=message) as raised:
        triton.reinterpret(tensor, dtype)
    assert raised.value.file == __file__


def test_an_allocator_is_kept():
    def allocate(size, alignment, stream):
        raise AssertionError("no kernel of the CPU needs it")

    triton.set_allocator(allocate)
    assert allocation.allocator() is allocate
    launch(make_softmax())
    triton.set_allocator(None)
    assert allocation.allocator() is None
    with pytest.raises(ArgumentError, match="an allocator is a function"):
        triton.set_allocator(4096)
