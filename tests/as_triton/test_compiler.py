"""Upstream's compile interface: sources, what a compiled kernel is, backends."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.as_triton import backends
from mltriton.as_triton.compiler import ASTSource, IRSource, compile, mangle_type, native_specialize_impl
from mltriton.as_triton.utilities import find_paths_if, get_iterable_path, set_iterable_path
from mltriton.errors import ArgumentError, CompilationError, OptionError, SignatureError, TargetError
from mltriton.runtime.asynchronous import AsyncCompileMode
from mltriton.runtime.driver import GPUTarget, driver
from mltriton.runtime.specialization import MockTensor

CPU = GPUTarget("cpu", "", 32)
SIGNATURE = {"x": "*fp32", "out": "*fp32", "n": "i32", "scale": "fp32", "BLOCK": "constexpr"}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))


@triton.jit
def scaled(x, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * scale, i < n)


def source(**given):
    return ASTSource(scaled, SIGNATURE, given.pop("constexprs", {"BLOCK": 128}), **given)


def launch(kernel, x, *, enter=None, leave=None, **other):
    kernel._init_handles()
    out = np.zeros_like(x)
    handles = (0, kernel.function, kernel.packed_metadata, "told", enter, leave)
    arguments = {"x": x, "out": out, "n": x.size, "scale": 2.5, "BLOCK": 128} | other
    kernel.run(-(-x.size // 128), 1, 1, *handles, *arguments.values())
    return arguments["out"]


X = np.random.default_rng(0).standard_normal(1000).astype(np.float32)


@pytest.mark.parametrize("constexprs", [{"BLOCK": 128}, {(4,): 128}, {(4,): tl.constexpr(128)}])
def test_a_source_is_compiled_and_run(constexprs):
    options = {"num_warps": 2, "num_stages": 1, "debug": True, "sanitize_overflow": False, "enable_fp_fusion": True}
    kernel = compile(
        source(constexprs=constexprs, attrs={(0,): [["tt.divisibility", 16]]}), target=CPU, options=options
    )
    np.testing.assert_allclose(launch(kernel, X), X * np.float32(2.5), rtol=1e-6)
    assert kernel.src.signature == SIGNATURE
    assert kernel.src.constants == {"BLOCK": 128}
    assert (kernel.metadata.name, kernel.metadata.num_warps, kernel.packed_metadata[0]) == ("scaled", 2, 2)
    assert len(bytes.fromhex(kernel.hash)) == 32
    assert {"ttir", "ttgir", "llir"} <= {name for name in ("ttir", "ttgir", "llir", "cubin") if name in kernel.asm}
    assert kernel.asm["ttir"] == kernel.asm["tt"]
    assert kernel.asm.get("cubin") is None


def test_an_argument_that_was_not_promised():
    kernel = compile(source(attrs={(0,): [["tt.divisibility", 16]]}))
    with pytest.raises(ArgumentError, match="x is not what x was compiled for"):
        launch(kernel, np.zeros(1001, np.float32)[1:])
    with pytest.raises(ArgumentError, match="BLOCK was compiled in as 128"):
        launch(kernel, X, BLOCK=64)
    with pytest.raises(ArgumentError, match="out is not what out was compiled for"):
        launch(kernel, X, out=np.zeros(1000, np.int32))


def test_hooks_of_a_run():
    seen = []
    launch(compile(source()), X, enter=lambda told: seen.append(("enter", told)), leave=lambda told: seen.append(told))
    assert seen == [("enter", "told"), "told"]
    kernel = compile(source())
    assert kernel.launch_metadata((8,), 0, X) is None
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.launch_enter_hook = print
        assert kernel.launch_metadata((8,), 0, X).get()["name"] == "scaled"
        triton.knobs.runtime.launch_enter_hook = None


def test_a_compiled_kernel_goes_to_another_process():
    """As Inductor sends it: without what belongs to this process, and with the kernel's function taken away."""
    mine = triton.jit(scaled.fn)
    kernel = compile(ASTSource(mine, SIGNATURE, {"BLOCK": 128}))
    launch(kernel, X)
    mine.fn = mine.__globals__ = mine.used_global_vals = mine._hash_lock = None
    state = pickle.dumps({**kernel.__dict__, "module": None, "function": None, "run": None})
    other = type(kernel).__new__(type(kernel))
    other.__dict__.update(pickle.loads(state))
    np.testing.assert_allclose(launch(other, X), X * np.float32(2.5), rtol=1e-6)
    fn = other.src.fn
    assert fn.arg_names == list(SIGNATURE)
    assert [parameter.num for parameter in fn.params if parameter.is_constexpr] == [4]
    assert fn.src == scaled.src


def test_a_program_in_a_file(tmp_path):
    path = tmp_path / "scaled.ttir"
    path.write_text(compile(source()).asm["ttir"])
    kernel = compile(str(path), target=CPU)
    out = np.zeros_like(X)
    kernel[(8,)](X, out, 1000, 2.5)
    np.testing.assert_allclose(out, X * np.float32(2.5), rtol=1e-6)
    assert compile(IRSource(path)).hash == kernel.hash
    path.write_text("module {}")
    with pytest.raises(SignatureError, match="a program has one public function"):
        compile(str(path))


def test_mistakes():
    with pytest.raises(SignatureError, match="the constexpr BLOCK of scaled has no value"):
        compile(source(constexprs={}))
    with pytest.raises(OptionError, match="there is no option 'num_wraps'"):
        compile(source(), options={"num_wraps": 4})
    with pytest.raises(TargetError, match="there is no backend for 'hip': mltriton stands in for triton"):
        compile(source(), target=GPUTarget("hip", "gfx942", 64))
    with pytest.raises(CompilationError):
        compile(ASTSource(scaled, SIGNATURE | {"x": "*fp33"}, {"BLOCK": 128}))


def test_positions_are_those_of_the_kernels_parameters():
    given = ASTSource(scaled, dict(reversed(SIGNATURE.items())), {(4,): 128}, {(1,): [["tt.divisibility", 16]]})
    kernel = compile(given)
    assert list(given.entries()) == list(SIGNATURE)
    np.testing.assert_allclose(launch(kernel, X), X * np.float32(2.5), rtol=1e-6)
    with pytest.raises(SignatureError, match="scaled has no parameter 'y'"):
        ASTSource(scaled, SIGNATURE | {"y": "i32"})


def test_attributes_of_a_kernel():
    assert scaled.src.startswith("def scaled(x, out, n, scale, BLOCK: tl.constexpr):\n    i = ")
    assert scaled.raw_src[0] == "@triton.jit\n"
    assert isinstance(scaled, triton.runtime.jit.KernelInterface)
    assert scaled.__globals__ is globals()
    assert scaled.repr(scaled) == "scaled"
    assert triton.jit(repr=lambda fn: f"{fn.__name__}_2")(scaled.fn).repr(scaled) == "scaled_2"
    mine = triton.jit(scaled.fn)
    mine[(1,)](X, np.zeros_like(X), 1000, 1.0, BLOCK=1024)
    (compiled,) = mine.device_caches[0][0].values()
    assert compiled.name == "scaled"
    mine._unsafe_update_src(mine.src.replace("* scale", "+ scale"))
    mine[(1,)](X, out := np.zeros_like(X), 1000, 1.0, BLOCK=1024)
    np.testing.assert_array_equal(out, X + 1)


def test_a_kernel_made_of_text_says_where_it_is_from():
    """As triton_kernels makes kernels: a text of its own, the names that another kernel sees, that kernel's place."""
    factor = tl.constexpr(3)

    @triton.jit
    def template(x, out):
        tl.store(out, tl.load(x) * factor)

    assert template.get_capture_scope()["factor"] is factor and "scaled" in template.get_capture_scope()

    def empty():
        pass

    function: Any = FunctionType(empty.__code__, template.get_capture_scope())
    function.__signature__ = signature(template.fn)
    made = triton.jit(function)
    text = "def made(x, out):\n    tl.store(out, tl.load(x) * factor + "
    made._unsafe_update_src(text + "1)\n")
    made[(1,)](X, out := np.zeros_like(X))
    assert out[0] == X[0] * 3 + 1
    made.raw_src, made.file_name = list(template.raw_src), "other.py"
    made.starting_line_number = template.starting_line_number
    assert (made.def_file_line_number, made.def_file_col_number) == (template.starting_line_number, 0)
    made.def_file_line_number = template.def_file_line_number
    assert made.def_file_line_number == template.starting_line_number + 1 and made.raw_src == template.raw_src
    made._unsafe_update_src(text + "nothing)\n")
    with pytest.raises(CompilationError, match=f"other.py:{template.starting_line_number + 1}:"):
        made[(1,)](X, X)


def test_backends():
    backend = backends.make_backend(CPU)
    options = backend.parse_options({"num_warps": 2, "nonsense": 1}).__dict__
    assert (options["num_warps"], options["debug"], "nonsense" in options) == (2, False, False)
    assert backend.hash() == backends.make_backend(CPU).hash()
    assert (backend.parse_attr("D"), backend.parse_attr("")) == ([["tt.divisibility", 16]], [])
    assert isinstance(driver.active, backends.backends["cpu"].driver)
    other = backends.backends["cpu"].driver()
    driver.set_active(other)
    assert triton.runtime.driver.active is other
    driver.reset_active()
    assert triton.runtime.driver.active is driver.default


def test_types_of_arguments():
    backend = backends.CPUBackend
    array = np.zeros(4, np.float32)
    expected = [("*fp32", "D"), ("i32", "D"), ("i32", ""), ("constexpr", 1), ("i64", "D"), ("constexpr", None)]
    assert [native_specialize_impl(backend, value) for value in (array, 16, 7, 1, 1 << 40, None)] == expected
    assert native_specialize_impl(backend, (array, 3), align=False) == (("*fp32", "i32"), ("", ""))
    assert native_specialize_impl(backend, 1, specialize_value=False) == ("i32", "")
    assert (mangle_type(True), mangle_type(2.5), mangle_type(1)) == ("i1", "fp32", "i32")
    paths = find_paths_if((1, ("D", 2), "D"), lambda _, item: item == "D")
    assert paths == [(1, 0), (2,)]
    assert get_iterable_path((1, ("D", 2), "D"), paths[0]) == "D"
    set_iterable_path(items := [1, [2, 3]], (1, 0), 5)
    assert items == [1, [5, 3]]


def test_compiling_ahead_in_an_executor():
    mine = triton.jit(scaled.fn)
    with ThreadPoolExecutor(2) as executor, AsyncCompileMode(executor):
        kernels = [mine.warmup(np.float32, np.float32, 1000, 2.5, BLOCK=size, grid=(1,)) for size in (64, 128)]
    assert [kernel.result().src.constants["BLOCK"] for kernel in kernels] == [64, 128]
    with pytest.raises(CompilationError), ThreadPoolExecutor(1) as executor, AsyncCompileMode(executor):
        mine.warmup(np.float32, np.float32, 1000, 2.5, BLOCK=100, grid=(1,))
    with ThreadPoolExecutor(1) as executor, AsyncCompileMode(executor, ignore_errors=True):
        failing = mine.warmup(np.float32, np.float32, 1000, 2.5, BLOCK=100, grid=(1,))
    assert failing.result(ignore_errors=True) is None


def test_a_mock_tensor_stands_for_a_tensor():
    torch = pytest.importorskip("torch")
    mock = MockTensor.wrap_dtype(torch.float32)
    assert mangle_type(mock) == "*fp32"
    assert MockTensor(torch.float16, (2, 3, 4)).stride() == (12, 4, 1)


def test_dtypes_by_name():
    assert tl.dtype("fp32") is tl.float32 and tl.dtype(name="bf16") is tl.bfloat16
    assert tl.dtype("fp32").is_fp32()
    assert tl.core.dtype.is_dtype("int8") and not tl.core.dtype.is_dtype("int9")
    assert tl.core.constexpr_type(3) == tl.constexpr(3).type


def test_a_gpu_is_asked_as_upstream_asks_it(monkeypatch, tmp_path):
    from mltriton.as_triton.throughput import nvsmi

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        nvsmi(["clocks.max.sm"])
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n[ $3 = --query-gpu=clocks.max.sm,temperature.gpu ] && echo 1980, 40\n")
    program.chmod(0o755)
    assert nvsmi(["clocks.max.sm", "temperature.gpu"]) == [1980, 40]


def test_what_a_machine_can_do_at_most(monkeypatch):
    from mltriton.as_triton import throughput

    monkeypatch.setattr(throughput, "BYTES", 1 << 20)
    throughput.get_dram_gbps.cache_clear()
    assert throughput.get_dram_gbps() > 0
    throughput.get_dram_gbps.cache_clear()
    single, double = (throughput.get_max_simd_tflops(dtype, 1e6) for dtype in (np.dtype("float32"), "fp64"))
    assert single == 2 * double > 0
    assert throughput.get_max_tensorcore_tflops("torch.bfloat16", 1e6) >= single
    with pytest.raises(TargetError, match="nothing is known of the speed of fp7"):
        throughput.get_max_simd_tflops("fp7")
    assert (
        throughput.cuda_memcheck(target_size=3)(test_a_source_is_compiled_and_run) is test_a_source_is_compiled_and_run
    )
