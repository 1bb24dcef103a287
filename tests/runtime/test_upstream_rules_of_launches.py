"""What upstream's programs may ask of the runtime: keys, hooks, pruning, compiling ahead."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import knobs
from mltriton.errors import OptionError
from mltriton.runtime.asynchronous import AsyncCompileMode


@triton.jit
def inner(x):
    return x + 1


@triton.jit
def outer(out, x):
    tl.store(out, inner(x))


def test_a_hash_of_none_says_that_a_function_was_given_another_text():
    key, text = outer.cache_key, inner.src
    out = np.zeros(1, np.int32)
    outer[(1,)](out, 5)
    assert out[0] == 6
    inner._unsafe_update_src(text)
    outer.hash = None
    assert outer.cache_key == key
    try:
        inner._unsafe_update_src(text.replace("+ 1", "+ 2"))
        outer.hash = None
        assert outer.cache_key != key
        outer[(1,)](out, 5)
        assert out[0] == 7
    finally:
        inner._unsafe_update_src(text)
        outer.hash = None


@triton.jit
def copy(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n), at < n)


def tuned(**rules):
    configs = [triton.Config({"BLOCK": 1 << size}) for size in range(4, 10)]
    return triton.autotune(configs, ["n"], prune_configs_by=rules, do_bench=lambda run, quantiles: [run() or 1.0] * 3)(
        copy
    )


def launched(kernel):
    x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    kernel[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](out, x, n=256)
    np.testing.assert_array_equal(out, x)


def test_pruning_sees_arguments_as_they_were_given_and_a_share_of_what_it_left():
    seen, estimated = [], []

    def early(configs, named, **keywords):
        seen.append((set(named), set(keywords)))
        return configs[:4]

    def estimate(BLOCK, **_):
        estimated.append(BLOCK)
        return BLOCK

    timed = []
    kernel = tuned(early_config_prune=early, perf_model=estimate, top_k=0.5)
    kernel.fn.add_pre_run_hook(lambda *_args, **keywords: timed.append(keywords["BLOCK"]))
    launched(kernel)
    kernel.fn.pre_run_hooks.set(None)
    assert seen == [({"out", "x"}, {"n"})]
    assert estimated == [16, 32, 64, 128]
    assert set(timed) == {16, 32}


def test_pruning_must_leave_one():
    with pytest.raises(OptionError, match="No valid autotuner configs after pruning"):
        launched(tuned(early_config_prune=lambda configs, named, **_: []))


def test_compile_hooks_are_told_whether_it_is_a_warmup():
    @triton.jit
    def kernel(out):
        tl.store(out, 1)

    told = []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **asked: told.append(asked["compile"]["is_warmup"])
        kernel.warmup(np.zeros(1, np.int32), grid=(1,))
        kernel[(1,)](np.zeros(1, np.int64))
    assert told == [True, False]


def test_specialization_data_of_another_kernel_is_a_runtime_error():
    told = []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **asked: told.append(asked["compile"]["specialization_data"])
        copy.warmup(np.zeros(16, np.uint8), np.zeros(16, np.uint8), 16, 16, grid=(1,))
    with pytest.raises(RuntimeError, match="Specialization data is for copy"):
        outer.preload(told[0])


class Later(Executor):
    """Runs nothing before it is told to."""

    def __init__(self):
        self.left = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.left.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future


def test_warmups_of_one_program_are_submitted_once():
    @triton.jit
    def kernel(out, VALUE: tl.constexpr):
        tl.store(out, VALUE)

    later, out = Later(), np.zeros(1, np.int32)
    with AsyncCompileMode(later):
        first = [kernel.warmup(out, value, grid=(1,)) for value in (1, 2, 1)]
        assert len(later.left) == 2
        assert first[0] is first[2]
        for run in later.left:
            run()
    kernel[(1,)](out, 2)
    assert out[0] == 2
