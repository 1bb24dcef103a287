"""`mltriton.knobs` and the variables behind it: what they change in kernels, and knobs that there are not."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import NameNotFoundError, OptionError
from mltriton.runtime.config import ConfigError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


FACTOR = 2.0


def test_global_numbers_where_they_are_allowed(monkeypatch):
    @triton.jit
    def kernel(out):
        tl.store(out, FACTOR)

    out = np.zeros(1, np.float32)
    with pytest.raises(NameNotFoundError, match="FACTOR, which is not a constexpr"):
        kernel[(1,)](out)
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.allow_non_constexpr_globals = True
        for value in (2.0, 3.0):  # A changed one is compiled for anew.
            monkeypatch.setitem(globals(), "FACTOR", value)
            kernel[(1,)](out)
            assert out[0] == value


def test_the_usual_precision_of_dots(monkeypatch):
    @triton.jit
    def kernel(x, out):
        i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out + i, tl.dot(tl.load(x + i), tl.load(x + i)))

    with triton.knobs.language.scope():
        for asked in ("tf32x3", "ieee", None):
            triton.knobs.language.fp32_default = asked
            text = triton.compile(kernel, "*fp32, *fp32", target="generic").asm["tt"]
            assert ("inputPrecision = tf32x3" in text) == (asked == "tf32x3"), text
        monkeypatch.setenv("TRITON_F32_DEFAULT", "fp8")
        with pytest.raises(ConfigError, match="one of ieee, tf32, tf32x3"):
            triton.compile(kernel, "*fp32, *fp32", target="generic")


def test_unknown_knobs():
    assert getattr(triton.knobs.runtime, "kernel_load_middle_hook", "default") == "default"
    assert not hasattr(triton.knobs.runtime, "nothing")
    with pytest.raises(OptionError, match="there is no knob"):
        _ = triton.knobs.runtime.nothing


@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, at, at < n)


def test_hooks_of_loading():
    told = []

    def begins(module, function, name, metadata_group, hash):
        told.append(("start", module, name, hash))

    def ends(module, function, name, metadata_group, hash):
        told.append(("end", module is not None, name, hash))

    with triton.knobs.runtime.scope():
        triton.knobs.runtime.kernel_load_start_hook = begins
        triton.knobs.runtime.kernel_load_end_hook.add(ends)
        for _ in range(2):  # The second launch loads nothing.
            compiled = fill[(1,)](np.zeros(16, np.int32), 16, BLOCK=16)
    assert told == [("start", None, "fill", compiled.hash), ("end", True, "fill", compiled.hash)]
    fill[(1,)](np.zeros(32, np.int32), 32, BLOCK=32)  # The hooks are gone.
    assert len(told) == 2
    assert not triton.knobs.runtime.kernel_load_end_hook


def test_the_listener_of_autotuning():
    told = []
    configs = [triton.Config({"BLOCK": size}) for size in (16, 32)]
    times = iter([3.0, 2.0])

    def tuned():
        decorate = triton.autotune(
            configs, ["n"], cache_results=True, do_bench=lambda run, quantiles: [next(times)] * 3
        )
        return decorate(fill)

    with triton.knobs.autotuning.scope():
        triton.knobs.autotuning.listener = lambda **found: told.append(found)
        for kernel in (tuned(), tuned()):  # The second one finds the choice of the first.
            for _ in range(2):
                kernel[lambda named: (triton.cdiv(64, named["BLOCK"]),)](np.zeros(64, np.int32), 64)
    first, second = told
    assert first.keys() == {"fn", "key", "best_config", "configs_timings", "duration", "cache_hit"}
    assert first["fn"] is fill
    assert first["key"] == (64, "int32")
    assert first["best_config"] is configs[1]
    assert first["configs_timings"] == {configs[0]: (3.0,) * 3, configs[1]: (2.0,) * 3}
    assert first["duration"] > 0
    assert not first["cache_hit"]
    assert second == {**first, "duration": None, "cache_hit": True}
    assert triton.knobs.autotuning.listener is None


@pytest.mark.parametrize("asked", [{}, {"enable_fp_fusion": False}], ids=str)
def test_hooks_of_compiling_are_told_of_fusion(asked):
    told = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = lambda **found: told.append(found)
        fill[(1,)](np.zeros(64, np.int32), 64, BLOCK=64, **asked)
    (found,) = told
    expected = asked.get("enable_fp_fusion", True)
    assert found["compile"]["enable_fp_fusion"] is expected
    assert f"enable_fp_fusion={expected}" in found["repr"]


@triton.constexpr_function
def doubled(x):
    return 2 * x


@triton.jit
def store_doubled(out):
    tl.store(out, doubled(21))


def test_the_text_of_functions_that_run_when_compiling():
    key, kernels_key, text = doubled.cache_key, store_doubled.cache_key, doubled.src
    doubled.hash = "kept"
    doubled._unsafe_update_src(text.replace("2 *", "3 *"))
    store_doubled.hash = None  # As upstream asks of the caller.
    try:
        assert doubled.hash is None
        assert "3 * x" in doubled.src
        assert doubled.cache_key != key
        assert store_doubled.cache_key != kernels_key
        out = np.zeros(1, np.int32)
        store_doubled[(1,)](out)
        assert out[0] == doubled(21) == 42  # What is called stays the function.
    finally:
        doubled._unsafe_update_src(None)
        store_doubled.hash = None
    assert (doubled.cache_key, store_doubled.cache_key, doubled.src) == (key, kernels_key, text)
