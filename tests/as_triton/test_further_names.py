"""Names of upstream that programs meet seldom: they are there, and do what they say."""

from __future__ import annotations

import json
import pickle
from importlib import import_module

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.as_triton import names
from mltriton.errors import (
    ArgumentError,
    AssemblyError,
    DescriptorError,
    OutOfResources,
    TargetError,
    TypeMismatchError,
)
from mltriton.tools import ragged_tma

from .test_import import python

IMPORTS = """
import triton, triton.language as tl
from triton.testing import do_bench_cudagraph, do_bench_cudagraph_proton, do_bench_proton, nvsmi, set_gpu_clock
from triton.runtime.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from triton.runtime.cache import CacheManager, FileCacheManager, get_cache_manager, get_dump_manager
from triton.runtime.cache import get_override_manager, make_so_cache_key, triton_key
from triton.runtime._allocation import NullAllocator, _allocator
from triton.runtime._async_compile import AsyncCompileMode, FutureKernel
from triton._utils import apply_with_path, canonicalize_ptr_dtype, get_primitive_bitwidth, is_namedtuple
from triton.backends.compiler import Language
from triton.tools.ragged_tma import atomic_add_ragged, create_ragged_descriptor, load_ragged, store_ragged
from triton.tools.link import link
from triton.language.extra.cuda.libdevice import tanh
from triton.language.extra.cuda.gdc import gdc_wait
from triton.language.extra.cuda.utils import globaltimer, num_threads, num_warps, smid
from triton.language.extra import hip, intel
import triton.language.extra.hip.libdevice as of_hip
from triton.language.extra.intel import libdevice as of_intel
assert tanh is of_hip.tanh is of_intel.tanh is tl.extra.libdevice.tanh and gdc_wait is tl.extra.cuda.gdc_wait
assert triton.compiler.compiler.triton_key() and triton.compiler.errors.CompilationError is CompilationError
assert triton.backends.compiler.GPUTarget and triton.backends.driver.DriverBase
assert isinstance(_allocator.get(), NullAllocator)
assert not tl.target_info.is_cuda() and not tl.target_info.cuda_capability_geq(9, 0)
assert not tl.target_info.is_hip_cdna4() and tl.target_info.current_target().backend == "cpu"
found = []
apply_with_path((1, (2, 3)), lambda path, item: found.append((path, item)))
assert found == [((0,), 1), ((1, 0), 2), ((1, 1), 3)]
assert canonicalize_ptr_dtype("float32", True) == "*kfp32" and get_primitive_bitwidth("bf16") == 16
assert 0 < do_bench_cudagraph(lambda: None, rep=1) < 100 and 0 < do_bench_proton(lambda: None, 1, 1) < 100
with set_gpu_clock() as (tflops, gbps):
    assert tflops > 0 and gbps > 0
manager = get_cache_manager("key")
assert manager.get_file("a.so") is None and manager.lock_path.startswith(manager.cache_dir)
class Own(FileCacheManager):
    pass
import sys
from triton import knobs
sys.modules["own"], Own.__module__ = sys.modules["__main__"], "own"
with knobs.cache.scope():
    knobs.cache.manager_class = Own
    assert type(get_cache_manager("key")) is Own is knobs.cache.manager_class
assert type(get_cache_manager("key")) is FileCacheManager
assert knobs.language.fp32_default is None and knobs.language.default_fp_fusion
assert knobs.build.cc is None or knobs.build.cc
path = manager.put(b"12", "a.so")
assert get_cache_manager("key").get_file("a.so") == path and open(path, "rb").read() == b"12"
manager.put_group("a.json", {"a.so": path, "gone": path + "x"})
assert manager.get_group("a.json") == {"a.so": path} and manager.get_group("b.json") is None
print("all there")
"""


def test_imports(tmp_path):
    assert "all there" in python("-c", f"import mltriton.as_triton\n{IMPORTS}", MLTRITON_CACHE_DIR=str(tmp_path))


@triton.jit
def _twice(x):
    return x * 2


@triton.jit
def scaled(x, o, n, factor, KIND: tl.constexpr, f: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, f(tl.load(x + i, i < n).to(KIND) * factor), i < n)


@pytest.fixture
def hooked(monkeypatch, tmp_path):
    """What a hook is told of compilations, in a cache of this test's own."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    told = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = lambda **said: told.append(said["compile"])
        yield told


def test_preload_is_the_launch_of_another_process(hooked):
    x = np.arange(100, dtype=np.float32)
    o = np.zeros_like(x)
    arguments = (x, o, 100, 2.5, tl.float32, _twice)
    first = scaled[(4,)](*arguments, B=32)
    assert first is not None and np.array_equal(o, x * 5)
    data = hooked[0]["specialization_data"]
    assert json.loads(data)["name"] == "scaled"
    scaled._compiled.clear()
    scaled._programs.clear()
    kernel = scaled.preload(data)
    assert kernel.hash == first.hash
    o[:] = 0
    assert scaled[(4,)](*arguments, B=32) is not None and np.array_equal(o, x * 5)
    assert len(hooked) == 1, "the launch compiles nothing"
    scaled[(4,)](*arguments, B=64)
    assert len(hooked) == 2


def test_preload_refuses_what_is_not_its_own(hooked):
    x = np.zeros(8, np.float32)
    scaled[(1,)](x, x, 8, 1.0, tl.float32, _twice, B=8)
    data = json.loads(hooked[0]["specialization_data"])
    for wrong in ("{", "[]", json.dumps(data | {"name": "other"}), json.dumps(data | {"entries": {"x": {}}})):
        with pytest.raises(ArgumentError):
            scaled.preload(wrong)


def test_a_constant_that_cannot_be_said(hooked):
    @triton.jit
    def inner(x):
        return x

    x = np.zeros(8, np.float32)
    scaled[(1,)](x, x, 8, 1.0, tl.float32, inner, B=8)
    assert hooked[0]["specialization_data"] is None


@triton.jit
def move(source, copied, summed, start, size, row, column, D: tl.constexpr):
    coords = (row, column) if D is None else (1, row, column)
    ragged: tl.constexpr = 0 if D is None else D
    block = ragged_tma.load_ragged(source, start, size, coords, ragged)
    ragged_tma.store_ragged(copied, start, size, coords, block * 2, ragged)
    ragged_tma.atomic_add_ragged(summed, start, size, coords, block, ragged)


@pytest.mark.parametrize(("start", "size", "row"), [(5, 11, 8), (0, 3, 0), (36, 9, 0), (7, 0, 0), (3, 20, -4)])
@pytest.mark.parametrize("dim", [None, 1, -2])
def test_ragged_slices(start, size, row, dim):
    shape, block = ((40, 16), (8, 16)) if dim is None else ((3, 40, 16), (1, 8, 16))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    copied, summed = np.full_like(x, 7), np.ones_like(x)
    described = [ragged_tma.create_ragged_descriptor(array, block, dim or 0) for array in (x, copied, summed)]
    move[(1,)](*described, start, size, row, 0, D=dim)
    first, last = max(start + row, start), max(start, min(start + row + 8, start + size, 40))
    rows = slice(first, last)
    place = rows if dim is None else (1, rows)
    wanted, sums = np.full_like(x, 7), np.ones_like(x)
    wanted[place] = 2 * x[place]
    sums[place] += x[place]
    assert np.array_equal(copied, wanted) and np.array_equal(summed, sums)


def test_a_ragged_dimension_is_not_the_last():
    with pytest.raises(DescriptorError, match="ragged"):
        ragged_tma.create_ragged_descriptor(np.zeros((4, 16), np.float32), (4, 16), 1)


@triton.jit
def asks(o):
    tl.store(o, 9 if tl.target_info.cuda_capability_geq(9, 0) else 8)


def test_the_capability_is_that_of_the_target():
    for target, constant in (("cpu", " 8 :"), ("cuda:80", " 8 :"), ("cuda:90", " 9 :")):
        assert f"constant{constant}" in triton.compile(asks, "*i32", target=target).asm["tt"]


@triton.jit
def asks_for_threads(o, CLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    i = tl.arange(0, tl.extra.cuda.num_threads())
    tl.store(o + i, i)
    tl.store(o + 1000, 70 + tl.extra.cuda.num_warps())
    if CLOCK:
        tl.store(o, (tl.extra.hip.globaltimer() + tl.extra.intel.smid()).to(tl.int32))
    tl.extra.cuda.gdc_launch_dependents()


def test_threads_are_those_of_the_machine():
    for target, warps, threads, count in (("cpu", 8, 1, 1), ("cuda:90", 8, 256, 8), ("xe:pvc", 4, 64, 2)):
        text = triton.compile(asks_for_threads, "*i32, False", target=target, num_warps=warps).asm["tt"]
        assert f"constant {70 + count} :" in text and f"-> tensor<{threads}x!tt.ptr<i32>>" in text
    assert "%globaltimer" in triton.compile(asks_for_threads, "*i32, True", target="cuda:90").asm["ptx"]
    with pytest.raises(AssemblyError, match="globaltimer"):
        triton.compile(asks_for_threads, "*i32, True", target="cpu")


def test_new_empty():
    wrapped = triton.reinterpret(np.zeros((2, 3), np.uint16), tl.bfloat16)
    made = wrapped.new_empty((4, 5))
    assert made.shape == (4, 5) and made.dtype is tl.bfloat16 and made.base.dtype == np.uint16


def test_every_name_of_the_table_is_there():
    for module, table in names.MADE.items():
        for name, place in table.items():
            home, _, own = place.partition(":")
            found = import_module(home)
            assert not name or hasattr(found, own or name), f"{module}.{name}"
    for place in names.SAME.values():
        import_module(place)


@tl.core.extern
def my_power(x, y, _semantic=None):
    kinds = {
        (tl.core.dtype("fp32"), tl.core.dtype("fp32")): ("__nv_powf", tl.core.dtype("fp32")),
        (tl.core.dtype("fp64"), tl.core.dtype("fp64")): ("__nv_pow", tl.core.dtype("fp64")),
    }
    return tl.core.extern_elementwise("", "", [x, y], kinds, is_pure=True, _semantic=_semantic)


@tl.core.extern
def nobodys(x, _semantic=None):
    return tl.core.extern_elementwise("", "", [x], {(tl.float32,): ("__nv_nothing", tl.float32)}, is_pure=True)


@triton.jit
def powers(x, y, o, f: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if f is None:
        tl.store(o + i[:, None] * N + i[None, :], my_power(tl.load(x + i)[:, None], tl.load(y + i)[None, :]))
    else:
        tl.store(o + i, f(tl.load(x + i)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_by_their_symbols(dtype):
    x, y = np.random.default_rng(0).uniform(0.5, 2, (2, 8)).astype(dtype)
    o = np.zeros((8, 8), dtype)
    powers[(1,)](x, y, o, None, N=8)
    np.testing.assert_allclose(o, x[:, None].astype(np.float64) ** y[None, :], rtol=1e-6)
    with pytest.raises(TargetError, match="__nv_nothing"):
        powers[(1,)](x.astype(np.float32), y, o, nobodys, N=8)
    with pytest.raises(TypeMismatchError, match="dtypes"):
        powers[(1,)](x.astype(np.float16), y.astype(np.float16), o, None, N=8)


@triton.jit
def by_methods(x, o):
    o.atomic_store(x.atomic_load() + 1)


def test_atomic_accesses_are_methods_of_pointers():
    x, o = np.full(1, 41, np.int32), np.zeros(1, np.int32)
    by_methods[(1,)](x, o)
    assert o[0] == 42


def test_out_of_resources_is_made_as_upstreams():
    error = OutOfResources(70000, 65536, "shared memory")
    assert "out of resource: shared memory, Required: 70000, Hardware limit: 65536" in str(error)
    assert isinstance(pickle.loads(pickle.dumps(error)), OutOfResources)


def test_knobs_of_other_machines_are_there():
    with triton.knobs.amd.scope():
        assert triton.knobs.amd.use_buffer_ops is True and triton.knobs.amd.use_async_copy is False
        triton.knobs.amd.use_async_copy = True
        assert triton.knobs.amd.use_async_copy is True
    assert triton.knobs.amd.use_async_copy is False and triton.knobs.proton.disable is False
