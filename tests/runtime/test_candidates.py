"""Configurations that give one program are compiled and timed once, by whichever executor; and those that fail."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import mltriton as triton
import mltriton.compiler.build
import mltriton.language as tl
from mltriton.errors import AssertionFailed, AutotuneError, DeviceError, PerformanceWarning
from mltriton.runtime.asynchronous import AsyncCompileMode
from mltriton.targets import target as targets
from mltriton.tools.tensor_descriptor import TensorDescriptor

SIZES = (16, 32, 64)
EVERYTHING = [
    triton.Config({"BLOCK": size}, num_warps=warps, num_stages=stages)
    for size in SIZES
    for warps in (1, 4)
    for stages in (2, 3, 4)
]


@triton.autotune(EVERYTHING, key=["n"], rep=2, warmup=0)
@triton.heuristics({"TWICE": lambda args: args["BLOCK"] * 2})
@triton.jit
def add_one(x, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + TWICE // (2 * BLOCK), i < n)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of this test's own, and kernels that nobody has launched."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))
    yield
    add_one.cache.clear()
    add_one.executor = None
    add_one.base_fn.drop_if_stale()
    for known in (add_one.base_fn._compiled, add_one.base_fn._programs, add_one.base_fn.shapes):
        known.clear()


@pytest.fixture
def built(monkeypatch):
    """The constants of every kernel that is compiled in this process."""
    jobs, build = [], mltriton.compiler.build.built
    monkeypatch.setattr(
        mltriton.compiler.build, "built", lambda job, key: (jobs.append(job.constants), build(job, key))[1]
    )
    return jobs


def launch(kernel, n=50, **options):
    x = np.zeros(n, np.float32)
    compiled = kernel[grid](x, n, **options)
    assert (x >= 1).all() and (x == x[0]).all()
    return compiled


def test_what_makes_no_difference_is_compiled_and_timed_once(built):
    launch(add_one)
    assert sorted(job["BLOCK"] for job in built) == [*SIZES]
    assert len(add_one.configs_timings) == len(EVERYTHING)
    assert len(set(add_one.configs_timings.values())) == len(SIZES)
    assert launch(add_one).metadata.num_warps == add_one.best_config.num_warps
    assert len(built) == len(SIZES)


def test_a_kernel_says_how_it_was_asked_for(built):
    kernel = add_one.base_fn
    x = np.zeros(16, np.float32)
    compiled = [kernel.warmup(x, 16, 16, 32, num_warps=warps, num_stages=5) for warps in (8, 4, 2, 8)]
    assert [each.metadata.num_warps for each in compiled] == [8, 4, 2, 8]
    assert [each.packed_metadata[0] for each in compiled] == [8, 4, 2, 8]
    assert all(each.metadata.num_stages == 5 and each.job.options.num_stages == 5 for each in compiled)
    assert len({each.hash for each in compiled}) == 1
    assert len(built) == 1
    assert compiled[0] is compiled[3]
    assert "ttg.num-warps" in compiled[2].asm["tt"]


@triton.jit
def tells(out, n, BLOCK: tl.constexpr, num_warps: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), n + num_warps)


@triton.jit(warp_level=True)
def warps(out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), n + tl.warp_id())


WARPS = [triton.Config({"BLOCK": 16}, num_warps=number, num_stages=stages) for number in (1, 2, 4) for stages in (1, 2)]


@pytest.mark.parametrize("kernel", [tells, warps], ids=["parameter", "warp-level"])
def test_what_makes_a_difference_is_compiled_for_each(kernel, built):
    tuned = triton.autotune(WARPS, key=[], rep=1, warmup=0)(kernel)
    tuned[(1,)](np.zeros(16, np.int32), 3)
    assert len(built) == 3
    assert len(set(tuned.configs_timings.values())) <= 3


def test_a_grid_and_a_hook_tell_configurations_apart():
    seen = []
    hooked = [triton.Config({"BLOCK": 16}, pre_hook=lambda args: seen.append(args["num_warps"])) for _ in range(2)]
    fn = add_one.fn
    x = np.zeros(64, np.float32)
    timed = []

    def stopwatch(run, quantiles):
        timed.append(run())
        return list(timed[-1:]) * 3

    triton.autotune([*EVERYTHING[:2], *hooked], key=[], do_bench=stopwatch)(fn)[(1,)](x, 16)
    assert len(timed) == 3
    assert len(seen) >= 2
    timed.clear()
    triton.autotune(EVERYTHING[:6], key=[], do_bench=stopwatch)(fn)[lambda meta: (meta["num_warps"],)](x, 16)
    assert len(timed) == 2


class HomeMade(Executor):
    """One that does the work when it is given, with futures of its own."""

    def __init__(self):
        self.count = 0

    def submit(self, fn, /, *args, **kwargs):
        self.count += 1
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def processes():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))


@pytest.mark.parametrize(
    ("make", "here"),
    [(lambda: ThreadPoolExecutor(3), True), (HomeMade, True), (processes, False)],
    ids=["threads", "home-made", "processes"],
)
def test_any_executor_compiles(make, here, built):
    with make() as executor:
        add_one.executor = executor
        launch(add_one)
    assert len(built) == (len(SIZES) if here else 0)
    assert add_one.best_config in EVERYTHING
    assert not add_one.failures


def test_the_executor_of_the_mode_and_of_the_knob():
    for number, executor in enumerate((HomeMade(), HomeMade())):
        if number:
            with triton.knobs.autotuning.scope():
                triton.knobs.autotuning.executor = executor
                launch(add_one, 51)
            assert triton.knobs.autotuning.executor is None
        else:
            with AsyncCompileMode(executor):
                launch(add_one)
        assert executor.count == (0 if number else len(SIZES))  # They are known then.


def test_what_an_executor_cannot_do_is_done_here(built):
    @triton.autotune(EVERYTHING, key=[], rep=1, warmup=0)
    @triton.jit
    def local(x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, 1.0, i < n)

    with processes() as local.executor, pytest.warns(PerformanceWarning, match="local is compiled here, and not by"):
        local[(1,)](np.zeros(16, np.float32), 16)
    assert len(built) == len(SIZES)


def test_processes_that_begin_anew_find_the_kernel_of_a_program(tmp_path):
    (program := tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import multiprocessing
        import warnings
        from concurrent.futures import ProcessPoolExecutor
        import numpy as np
        import mltriton as triton
        import mltriton.language as tl

        @triton.autotune([triton.Config({"BLOCK": size}) for size in (16, 32)], key=[], rep=1, warmup=0)
        @triton.jit
        def fill(x, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x + i, 1.0, i < n)

        if __name__ == "__main__":
            warnings.simplefilter("error")
            import mltriton.compiler
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fill.executor:
                fill[(1,)](x := np.zeros(16, np.float32), 16)
            import sys
            print(x.sum(), "mltriton.compiler.build" in sys.modules)
    """)
    )
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout.split() == ["16.0", "False"], found.stderr


@triton.autotune(EVERYTHING, key=["n"], rep=1, warmup=0)
@triton.heuristics({"HALF": lambda args: 1 // (args["BLOCK"] - 16)})
@triton.jit
def picky(x, n, BLOCK: tl.constexpr, HALF: tl.constexpr):
    tl.static_assert(BLOCK == 64, "only 64")
    tl.store(x, n + HALF)


def test_one_that_fails_never_ends_the_search(monkeypatch, capsys):
    monkeypatch.setenv("MLTRITON_PRINT_AUTOTUNING", "1")
    picky[(1,)](np.zeros(1, np.int32), 5)
    assert picky.best_config.kwargs == {"BLOCK": 64}
    assert {type(error) for error in picky.failures.values()} == {ZeroDivisionError, AssertionFailed}
    assert len(picky.failures) == 12
    shown = capsys.readouterr().err
    assert "18 configurations" in shown
    assert (
        shown.count("failed: ZeroDivisionError")
        == shown.count("failed: AssertionFailed: static assertion failed: only 64")
        == 6
    )
    assert "5 more that give the same program" in shown


def test_all_that_fail_are_a_named_error():
    configs, picky.configs = picky.configs, picky.configs[:12]
    try:
        with pytest.raises(AutotuneError, match="none of the 12 configurations of picky") as raised:
            picky[(1,)](np.zeros(1, np.int32), 6)
    finally:
        picky.configs = configs
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert (
        "BLOCK: 32, num_warps: 4, num_stages: 2, num_ctas: 1: AssertionFailed: static assertion failed: only 64"
        in str(raised.value)
    )


@triton.jit
def product(a, b, out, n, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(n):
        total += tl.dot(tl.load(a + i * SIZE + j), tl.load(b + i * SIZE + j))
    tl.store(out + i * SIZE + j, tl.softmax(total) + tl.sum(total, 1)[:, None])


@pytest.mark.parametrize("name", ["cpu", "cpu:avx2", "cpu:amx", "cpu:neon"])
def test_options_without_a_use_have_none(name):
    """The program is the same to the letter, whatever their values."""
    values = {"num_warps": (1, 32), "num_stages": (1, 7), "grf_mode": ("128", "256")}
    unused = targets.find_target(name).unused_options
    assert {*unused, "grf_mode"} == values.keys()
    for kernel, signature in ((product, "*fp32,*fp32,*fp32,i32,16"), (add_one.base_fn, "*fp32,i32,16,32")):
        usual = triton.compile(kernel, signature, target=name).asm["llvm"]
        for option in values:
            for value in values[option]:
                assert triton.compile(kernel, signature, target=name, **{option: value}).job.module("intrinsic")
                job = triton.compile(kernel, signature, target=name, **{option: value}).job
                assert job.lowered(job.module("intrinsic")).text == usual


def narrow(args):
    args["block"].block_shape = [args["BLOCK"]]


@triton.autotune([triton.Config({"BLOCK": size}, pre_hook=narrow) for size in SIZES], key=[], rep=2, warmup=0)
@triton.jit
def copy_by_descriptor(block, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK
    tl.store(out + i + tl.arange(0, BLOCK), block.load([i]))


def test_what_hooks_change_is_compiled_at_once(built):
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    block = TensorDescriptor.from_tensor(x, [16])
    copy_by_descriptor.executor = HomeMade()
    copy_by_descriptor[lambda meta: (64 // meta["BLOCK"],)](block, out)
    np.testing.assert_array_equal(out, x)
    assert copy_by_descriptor.executor.count == len(SIZES) == len(built)
    assert not copy_by_descriptor.failures


@triton.jit
def summed(x, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    return total


@triton.jit
def add_sum(x, n, F: tl.constexpr):
    tl.store(x, F(x, n))


def test_stages_have_no_use_without_a_loop():
    """On every target: programs without loops are the same to the letter, and one key stands for them."""
    with_loops = [(product, "*fp32,*fp32,*fp32,i32,16", {}), (add_sum, "*fp32,i32", {"F": summed})]
    for name in ("cuda:90", "xe:pvc"):
        used, texts = set(), set()
        for stages in (1, 2, 7):
            kernel = triton.compile(add_one.base_fn, "*fp32,i32,16,32", target=name, num_stages=stages)
            used.add(kernel.job.used_options)
            texts.add(kernel.job.lowered(kernel.job.module("intrinsic")).text)
        assert len(used) == len(texts) == 1
        for kernel, signature, constants in with_loops:
            jobs = [triton.compile(kernel, signature, constants, name, num_stages=n).job for n in (1, 7)]
            assert jobs[0].used_options != jobs[1].used_options


def test_targets_say_which_options_they_use():
    for name in targets.names():
        target = targets.find_target(name)
        try:
            _ = target.spec
        except DeviceError:  # That of the GPU that is not there.
            continue
        assert (target.spec.workgroup_warps is not None) == ("num_warps" in target.unused_options)
        if target.unused_options:
            assert "prefetch" not in ",".join(target.spec.pipeline).split(",")


def test_a_mistake_is_an_answer_of_the_executor():
    """Executors on other machines write down what is raised there, for every configuration that fails."""
    from mltriton.errors import PowerOfTwoError
    from mltriton.runtime.compile_ahead import Request, fulfil

    @triton.jit
    def odd(x, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), 1.0)

    found = fulfil(Request(odd.plan((1,), (np.zeros(8, np.float32), 6), {}).job))
    assert isinstance(found, PowerOfTwoError) and found.__traceback__ is None
