"""`autotune`, `Config`, `heuristics`: which configuration is chosen, and what happens to the arguments meanwhile."""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, AssertionFailed, OptionError
from mltriton.runtime.native import launcher
from mltriton.targets import target as targets

from . import executor_target


@pytest.fixture(autouse=True)
def executor(monkeypatch, tmp_path):
    """The target `executor`, and a cache of this test's own."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setitem(targets.FAMILIES, executor_target.NAME, ())
    monkeypatch.setitem(sys.modules, "mltriton.targets.executor.target", executor_target)
    targets.find_target.cache_clear()
    yield targets.find_target(executor_target.NAME)
    targets.find_target.cache_clear()


class Stopwatch:
    """A measurement that runs each configuration once and reports the time that the test says."""

    def __init__(self, *milliseconds):
        self.milliseconds = list(milliseconds)
        self.runs = 0

    def __call__(self, run, quantiles):
        run()
        self.runs += 1
        return [self.milliseconds[(self.runs - 1) % len(self.milliseconds)]] * len(quantiles)


CONFIGS = [triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16}, num_warps=2), triton.Config({"BLOCK": 32})]


def make(stopwatch, configs=CONFIGS, **options):
    @triton.autotune(configs, key=["n"], do_bench=stopwatch, **options)
    @triton.jit
    def add_one(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)

    return add_one


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_the_fastest_is_chosen_once_for_each_key():
    stopwatch = Stopwatch(3, 1, 2)
    kernel = make(stopwatch)
    x = np.zeros(50, np.float32)
    compiled = kernel[grid](x, 50, target="executor")
    assert stopwatch.runs == 3
    assert kernel.best_config is CONFIGS[1]
    assert compiled.metadata.num_warps == 2
    np.testing.assert_array_equal(x, 4)  # three timed runs and the launch
    kernel[grid](x, 50, target="executor")
    assert stopwatch.runs == 3
    kernel[grid](x, 40, target="executor")
    assert stopwatch.runs == 6
    kernel[grid](np.zeros(50, np.int32), 40, target="executor")
    assert stopwatch.runs == 9


def test_arguments_are_restored_between_runs():
    kernel = make(Stopwatch(3, 1, 2), restore_value=["x"])
    x = np.full(50, 7, np.float32)
    kernel[grid](x, 50, target="executor")
    np.testing.assert_array_equal(x, 8)


def test_arguments_are_reset_between_runs():
    kernel = make(Stopwatch(3, 1, 2), reset_to_zero=["x"])
    x = np.full(50, 7, np.float32)
    kernel[grid](x, 50, target="executor")
    np.testing.assert_array_equal(x, 1)


def test_hooks():
    seen = []
    configs = [triton.Config({"BLOCK": 8}, pre_hook=lambda args: seen.append(("config", args["BLOCK"], args["n"])))]
    configs.append(triton.Config({"BLOCK": 16}))
    kernel = make(
        Stopwatch(1, 2),
        configs,
        pre_hook=lambda args: seen.append(("pre", args["n"])),
        post_hook=lambda args, exception: seen.append(("post", exception)),
    )
    kernel[grid](np.zeros(50, np.float32), 50, target="executor")
    timed = [("pre", 50), ("post", None)]
    compiled = ("config", 8, 50)  # It may change what is compiled.
    assert seen == [compiled, ("config", 8, 50), *timed, *timed, ("config", 8, 50)]


def test_configurations_are_pruned():
    def even_only(configs, named_args, **kwargs):
        assert named_args["n"] == 50
        return [config for config in configs if config.kwargs["BLOCK"] != 8]

    stopwatch = Stopwatch(2, 1)
    kernel = make(stopwatch, prune_configs_by={"early_config_prune": even_only})
    kernel[grid](np.zeros(50, np.float32), 50, target="executor")
    assert stopwatch.runs == 2
    assert kernel.best_config is CONFIGS[2]

    modelled = make(
        stopwatch := Stopwatch(1, 2), prune_configs_by={"perf_model": lambda BLOCK, **rest: -BLOCK, "top_k": 2}
    )
    modelled[grid](np.zeros(50, np.float32), 50, target="executor")
    assert stopwatch.runs == 2
    assert modelled.best_config is CONFIGS[2]


def test_one_configuration_is_not_timed():
    kernel = make(stopwatch := Stopwatch(1), CONFIGS[:1])
    kernel[grid](np.zeros(50, np.float32), 50, target="executor")
    assert stopwatch.runs == 0


def test_an_unusable_configuration_is_left_out():
    @triton.autotune(CONFIGS, key=["n"], do_bench=Stopwatch(1))
    @triton.jit
    def picky(x, n, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK == 32, "only 32")
        tl.store(x, n)

    picky[(1,)](np.zeros(1, np.float32), 5, target="executor")
    assert picky.best_config is CONFIGS[2]


def test_the_error_of_the_last_one_when_none_is_usable():
    @triton.autotune(CONFIGS, key=["n"], do_bench=Stopwatch(1))
    @triton.jit
    def impossible(x, n, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK == 64, "only 64")

    with pytest.raises(AssertionFailed, match="only 64"):
        impossible[(1,)](np.zeros(1, np.float32), 5, target="executor")


def test_the_choice_is_kept_on_disk():
    for runs in (3, 0):
        kernel = make(stopwatch := Stopwatch(3, 2, 1), cache_results=True)
        kernel[grid](np.zeros(50, np.float32), 50, target="executor")
        assert stopwatch.runs == runs
        assert kernel.best_config is CONFIGS[2]


@pytest.fixture
def threads():
    """Sets the number of threads, and puts it back."""
    yield launcher.set_num_threads
    launcher.set_num_threads(None)


def test_another_number_of_threads_chooses_anew(threads):
    stopwatch = Stopwatch(3, 2, 1, 1, 2, 3)
    kernel = make(stopwatch, cache_results=True)

    def launch(kernel):
        kernel[grid](np.zeros(50, np.float32), 50, target="executor")
        return kernel.best_config

    chosen = []
    for count in (1, 2, 1, 2):
        threads(count)
        chosen.append(launch(kernel))
    assert chosen == [CONFIGS[2], CONFIGS[0], CONFIGS[2], CONFIGS[0]] and stopwatch.runs == 6
    again = make(stopwatch, cache_results=True)
    assert launch(again) is CONFIGS[0] and stopwatch.runs == 6  # That of two threads, from disk.
    threads(3)
    launch(again)
    assert stopwatch.runs == 9


def test_a_choice_of_another_processor_is_not_taken_from_disk(executor, monkeypatch):
    for fingerprint, runs in (("1", 3), ("2", 3), ("1", 0)):
        monkeypatch.setattr(executor, "fingerprint", fingerprint)
        kernel = make(stopwatch := Stopwatch(3, 2, 1), cache_results=True)
        kernel[grid](np.zeros(50, np.float32), 50, target="executor")
        assert stopwatch.runs == runs


def test_a_choice_of_another_gpu_is_not_taken(monkeypatch):
    from mltriton.runtime import tuned_machine

    class OnGpu:
        dtype = np.dtype(np.float32)

        def __init__(self, number):
            self.device = SimpleNamespace(type="cuda", index=number)

    names = ["NVIDIA H100", "NVIDIA H200", "NVIDIA H100"]
    monkeypatch.setattr("mltriton.targets.nvidia.driver.device", lambda number: SimpleNamespace(name=names[number]))
    machines = [tuned_machine.machine_of({"n": 3, "x": OnGpu(number)}) for number in range(3)]
    assert len(set(machines)) == 3
    texts = [tuned_machine.identity(machine, "executor") for machine in machines]
    assert texts[0] == texts[2] != texts[1] and "H200" in texts[1]
    on_cpu = tuned_machine.machine_of({"x": np.zeros(3)})
    assert on_cpu == launcher.num_threads()


def test_the_choice_is_printed_when_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("MLTRITON_PRINT_AUTOTUNING", "1")
    make(Stopwatch(3, 1, 2))[grid](np.zeros(50, np.float32), 50, target="executor")
    assert "add_one" in (shown := capsys.readouterr().err)
    assert "BLOCK: 16, num_warps: 2" in shown


def test_the_real_stopwatch_measures():
    kernel = make(None, warmup=1, rep=1)
    kernel[grid](np.zeros(50, np.float32), 50, target="executor")
    assert kernel.best_config in CONFIGS
    assert all(0 < times[0] < 1000 for times in kernel.configs_timings.values())


def test_mistakes():
    with pytest.raises(OptionError, match="reset_to_zero of autotune names 'm'"):
        triton.autotune(CONFIGS, key=["m"], reset_to_zero=["m"])(make(Stopwatch(1)).fn)
    with pytest.raises(OptionError, match="takes no ir_override"):
        triton.Config({}, ir_override="program.ttir")
    assert triton.Config({}, maxnreg=64).all_kwargs()["maxnreg"] == 64
    with pytest.raises(OptionError, match="no rule 'top'"):
        make(Stopwatch(1), prune_configs_by={"top": 1})
    with pytest.raises(OptionError, match="left no configuration"):
        make(Stopwatch(1), prune_configs_by={"early_config_prune": lambda *_, **__: []})[grid](np.zeros(4), 4)
    with pytest.raises(ArgumentError, match="both give a value for BLOCK") as raised:
        make(Stopwatch(1))[grid](np.zeros(4), 4, BLOCK=8)
    assert raised.value.file == __file__


def test_a_key_that_is_no_parameter_has_no_say():
    kernel = triton.autotune(CONFIGS, key=["n", "m"], do_bench=Stopwatch(1, 2, 3))(make(Stopwatch(1)).fn)
    kernel[grid](np.zeros(50, np.float32), 50, target="executor")
    assert kernel.keys == ["n", "m"]
    assert len(kernel.cache) == 1


def test_subclasses_of_other_packages():
    """They replace `run` and the hooks, read upstream's attributes and put choices into the cache."""

    class Remembering(triton.runtime.autotuner.Autotuner):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            assert not self.user_defined_pre_hook and not self.user_defined_post_hook
            self.resets, self.runs, before = [], 0, self.pre_hook
            self.pre_hook = lambda named, reset_only=False: (self.resets.append(reset_only), before(named, reset_only))

        def run(self, *args, **kwargs):
            self.runs += 1
            assert (self.early_config_prune, self.perf_model, self.configs_top_k) == (None, None, 1.0)
            return super().run(*args, **kwargs)

    fn = make(Stopwatch(1)).fn
    kernel = Remembering(fn, fn.arg_names, CONFIGS, ["n"], ["x"], None, do_bench=Stopwatch(3, 2, 1))
    x = np.ones(50, np.float32)
    kernel[grid](x, 50, target="executor")
    assert kernel.runs == 1
    assert kernel.resets[-1] is True and False in kernel.resets
    ((key, config),) = kernel.cache.items()
    assert (key, config) == ((50, "float32"), CONFIGS[2])
    kernel.cache[(40, "float32")] = CONFIGS[0]
    kernel[grid](x[:40].copy(), 40, target="executor")
    assert kernel.best_config is CONFIGS[0]


def test_warmup_compiles_every_configuration():
    compiled = make(Stopwatch(1)).warmup(np.float32, 50, grid=grid, target="executor")
    assert [kernel.job.entries["BLOCK"].value for kernel in compiled] == [8, 16, 32]


def test_a_tuned_kernel_can_be_compiled_ahead_of_time():
    assert triton.compile(make(Stopwatch(1)), "*fp32, i32, 8", target="executor").name == "add_one"


def test_heuristics():
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "TWICE": lambda args: args["BLOCK"] * 2})
    @triton.jit
    def shows(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, TWICE: tl.constexpr):
        tl.store(out, TWICE if EVEN else 0)

    out = np.zeros(1, np.float32)
    for n, expected in ((16, 16), (17, 0)):
        shows[(1,)](out, n, BLOCK=8, target="executor")
        assert out[0] == expected
    assert shows.warmup(np.float32, 16, BLOCK=8, target="executor").job.entries["TWICE"].value == 16


def test_heuristics_below_autotune():
    @triton.autotune(CONFIGS, key=["n"], do_bench=Stopwatch(3, 2, 1))
    @triton.heuristics({"HALF": lambda args: args["BLOCK"] // 2})
    @triton.jit
    def shows(out, n, BLOCK: tl.constexpr, HALF: tl.constexpr):
        tl.store(out, HALF)

    out = np.zeros(1, np.float32)
    shows[(1,)](out, 3, target="executor")
    assert out[0] == 16


def test_configurations_say_what_they_are():
    assert str(CONFIGS[1]) == "BLOCK: 16, num_warps: 2, num_stages: 3, num_ctas: 1"
    assert CONFIGS[1].all_kwargs() == {"BLOCK": 16, "num_warps": 2, "num_stages": 3, "num_ctas": 1}


def test_a_configuration_that_fails_never_ends_the_search(monkeypatch, capsys):
    """Whatever is wrong with it: it does not compile here, or its option is none."""

    @triton.autotune([triton.Config({"BLOCK": size}) for size in (48, 16, 32)], key=["n"])
    @triton.jit
    def fill(out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, 1.0, i < n)

    monkeypatch.setenv("MLTRITON_PRINT_AUTOTUNING", "1")
    out = np.zeros(16, np.float32)
    fill[(1,)](out, 16)
    assert out.all()
    [failed] = fill.failures
    assert failed.kwargs == {"BLOCK": 48}
    assert "power of two" in fill.failures[failed].message
    assert "BLOCK: 48" in (printed := capsys.readouterr().err)
    assert "failed: " in printed
    fill.configs = fill.configs[:1] * 2
    with pytest.raises(triton.CompilationError, match="power of two"):
        fill[(1,)](out, 8)


def test_subclasses_that_search_by_themselves():
    """As FlagGems': upstream's `nargs`, `prune_configs` and `_bench`."""

    class Own(triton.runtime.autotuner.Autotuner):
        def run(self, *args, **kwargs):
            self.nargs = dict(zip(self.arg_names, args, strict=False))
            times = {config: self._bench(*args, config=config, **kwargs) for config in self.prune_configs(kwargs)}
            self.best_config = min(times, key=times.get)
            return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())

    fn = make(Stopwatch(1)).fn
    rules = {"early_config_prune": lambda configs, named, **rest: configs[: named["n"] // 25]}
    kernel = Own(fn, fn.arg_names, CONFIGS, ["n"], None, None, do_bench=Stopwatch(3, 1), prune_configs_by=rules)
    kernel[grid](x := np.zeros(50, np.float32), 50, target="executor")
    assert kernel.best_config is CONFIGS[1]
    np.testing.assert_array_equal(x, 3)
    assert (
        kernel._bench(x, 50, config=triton.Config({"BLOCK": 12}), grid=grid, target="executor") == (float("inf"),) * 3
    )


def test_a_configuration_can_be_changed():
    """As programs do with upstream's; Inductor notes options of its own on one."""
    config = triton.Config({"BLOCK": 64}, num_warps=2)
    assert config.keywords["num_warps"] == 2
    config.num_warps, config.extra_options = 8, {"a": 1}
    assert config.all_kwargs() == {"BLOCK": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 1}
    assert config == triton.Config({"BLOCK": 64}, num_warps=8) and hash(config) == hash(copy.copy(config))
    assert config.extra_options == {"a": 1}
