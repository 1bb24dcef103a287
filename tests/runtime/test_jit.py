"""Launches: specialisation, what is compiled once, what is noticed, what is refused."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, ConstexprError, DeviceError, GridError, OptionError, TargetError
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


def make_add():
    @triton.jit
    def add(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        tl.store(o_ptr + i, tl.load(x_ptr + i, m) + tl.load(y_ptr + i, m), m)

    return add


def aligned(size, dtype=np.float32, offset=0):
    """An array whose address is `offset` bytes past a multiple of 64."""
    itemsize = np.dtype(dtype).itemsize
    buffer = np.zeros(size * itemsize + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    return buffer[start : start + size * itemsize].view(dtype)


def arrays(n=50, dtype=np.float32):
    x, y, out = (aligned(n, dtype) for _ in range(3))
    x[:] = np.arange(n)
    y[:] = 1
    return x, y, out


def test_a_launch_computes():
    add, (x, y, out) = make_add(), arrays()
    compiled = add[(triton.cdiv(50, 16),)](x, y, out, 50, BLOCK=16, target="executor")
    np.testing.assert_array_equal(out, x + y)
    assert compiled.metadata.name == "add"
    assert compiled.metadata.scratch_bytes == 128


def entries_of(compiled):
    return {name: str(entry) for name, entry in compiled.job.entries.items()}


def test_arguments_are_specialised():
    add, (x, y, out) = make_add(), arrays()
    compiled = add[(4,)](x, y[1:], out, 48, BLOCK=16, target="executor")
    assert entries_of(compiled) == {
        "x_ptr": "*fp32:16",
        "y_ptr": "*fp32",
        "o_ptr": "*fp32:16",
        "n": "i32:16",
        "BLOCK": "16",
    }
    assert entries_of(add[(1,)](x, y, out, 1, BLOCK=16, target="executor"))["n"] == "1"
    assert entries_of(add[(1,)](x, y, out, 7, BLOCK=16, target="executor"))["n"] == "i32"
    assert entries_of(add[(1,)](x, y, out, 2**40, BLOCK=16, target="executor"))["n"] == "i64:16"
    assert entries_of(add[(1,)](x, y, out, 2**63, BLOCK=16, target="executor"))["n"] == "u64:16"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(np.float64, "fp64"), (np.float16, "fp16"), (np.int8, "i8"), (np.int64, "i64"), (np.uint16, "u16"), (bool, "i1")],
)
def test_dtypes_of_arrays(dtype, name):
    @triton.jit
    def copy(x, out, n):
        tl.store(out, tl.load(x))

    compiled = copy.warmup(aligned(4, dtype), aligned(4, dtype), 4, grid=(1,), target="executor")
    assert entries_of(compiled)["x"] == f"*{name}:16"


def test_kinds_of_arguments():
    @triton.jit
    def kinds(out, flag, scale, nothing, text, dtype):
        if nothing is None and text == "add":
            tl.store(out, (flag.to(tl.float32) + scale).to(dtype))

    out = aligned(1)
    compiled = kinds[(1,)](out, True, 0.5, None, "add", tl.float32, target="executor")
    assert out[0] == 1.5
    assert list(entries_of(compiled).values()) == ["*fp32:16", "i1", "fp32", "None", "'add'", "tl.float32"]


def test_tuples_are_taken_apart(executor):
    @triton.jit
    def nested(out, pair, empty, SHAPE: tl.constexpr):
        x, (scale, one) = pair
        tl.static_assert(len(empty) == 0)
        tl.store(out, tl.load(x) * scale + one + SHAPE[1])

    x, out = aligned(1), aligned(1)
    x[0] = 3
    for _ in range(2):
        compiled = nested[(1,)](out, (x, (20, 1)), (), SHAPE=(4, 5), target="executor")
        assert out[0] == 66
        out[0] = 0
    assert entries_of(compiled) == {
        "out": "*fp32:16",
        "pair.0": "*fp32:16",
        "pair.1.0": "i32",
        "pair.1.1": "1",
        "SHAPE": "(4, 5)",
    }
    assert compiled.metadata.written == ("out",)
    nested[(1,)](out, (x, (20, 2)), (), SHAPE=(4, 5), target="executor")
    assert out[0] == 67
    with pytest.raises(triton.CompilationError, match="number of values does not fit"):
        nested[(1,)](out, (x, (20,)), (), SHAPE=(4, 5), target="executor")


def test_annotations_choose_the_type_of_numbers():
    @triton.jit
    def typed(out, a: tl.int64, b: "i8", c: tl.float64):  # noqa: UP037, F821
        tl.store(out, (a + b).to(tl.float64) + c)

    compiled = typed.warmup(aligned(1, np.float64), 1, 1, 1.0, grid=(1,), target="executor")
    assert list(entries_of(compiled).values()) == ["*fp64:16", "i64", "i8", "fp64"]


def test_do_not_specialize():
    @triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x", 2])
    def plain(out, x, m, n):
        tl.store(out, tl.load(x) + m + n)

    compiled = plain.warmup(aligned(1), aligned(1), 16, 1, grid=(1,), target="executor")
    assert list(entries_of(compiled).values()) == ["*fp32:16", "*fp32", "i32", "i32"]


def test_equal_launches_compile_once(executor):
    add, (x, y, out) = make_add(), arrays()
    for n in (50, 49, 33):
        add[(4,)](x, y, out, n, BLOCK=16, target="executor")
    assert (executor.assembled, executor.loads) == (1, 1)
    add[(4,)](x, y, out, 48, BLOCK=16, target="executor")
    assert executor.assembled == 2
    add[(4,)](x, y, out, 50, BLOCK=32, target="executor")
    assert executor.assembled == 3
    add[(4,)](x, y, out, 50, BLOCK=16, num_warps=8, target="executor")
    assert executor.assembled == 4


def test_a_constant_is_told_apart_by_its_type(executor):
    @triton.jit
    def shows(out, VALUE: tl.constexpr):
        tl.store(out, 2.0 if isinstance(VALUE, bool) else 1.0)

    out = aligned(1)
    for value, expected in ((1, 1), (True, 2), (1, 1), (True, 2)):
        shows[(1,)](out, VALUE=value, target="executor")
        assert out[0] == expected


def test_another_process_finds_it_on_disk(executor):
    x, y, out = arrays()
    first = make_add()[(4,)](x, y, out, 50, BLOCK=16, target="executor")
    again = make_add()[(4,)](x, y, out, 50, BLOCK=16, target="executor")
    assert not first.metadata.from_cache
    assert again.metadata.from_cache
    assert again.asm["llvm"] == first.asm["llvm"]
    assert again.metadata.written == first.metadata.written == ("o_ptr",)
    assert executor.assembled == 1


def test_a_corrupt_entry_is_compiled_again(executor, tmp_path):
    x, y, out = arrays()
    make_add()[(4,)](x, y, out, 50, BLOCK=16, target="executor")
    (entry,) = (tmp_path / "cache").rglob("*.entry")
    entry.write_bytes(entry.read_bytes()[:-10])
    make_add()[(4,)](x, y, out, 50, BLOCK=16, target="executor")
    assert executor.assembled == 2


def kernel_from(path: Path, text: str):
    path.write_text(text)
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace


SOURCE = """
import mltriton as triton
import mltriton.language as tl

FACTOR = tl.constexpr({factor})

@triton.jit
def scaled(x):
    return x * {inner}

@triton.jit
def kernel(out):
    tl.store(out, scaled(1.0) * FACTOR)
"""


@pytest.mark.parametrize("change", [{"factor": 3}, {"inner": 5}])
def test_the_cache_key_covers_constants_and_called_functions(executor, tmp_path, change):
    out = aligned(1)
    text = {"factor": 2, "inner": 4}
    kernel_from(tmp_path / "a.py", SOURCE.format(**text))["kernel"][(1,)](out, target="executor")
    assert out[0] == 8
    text |= change
    kernel_from(tmp_path / "b.py", SOURCE.format(**text))["kernel"][(1,)](out, target="executor")
    assert out[0] == text["factor"] * text["inner"]
    assert executor.assembled == 2
    kernel_from(tmp_path / "c.py", SOURCE.format(**text))["kernel"][(1,)](out, target="executor")
    assert executor.assembled == 2


def test_a_changed_global_is_noticed(tmp_path):
    out = aligned(1)
    namespace = kernel_from(tmp_path / "a.py", SOURCE.format(factor=2, inner=4))
    kernel = namespace["kernel"]
    kernel[(1,)](out, target="executor")
    namespace["FACTOR"] = tl.constexpr(10)
    kernel[(1,)](out, target="executor")
    assert out[0] == 40


def test_a_changed_function_is_noticed(tmp_path):
    out = aligned(1)
    namespace = kernel_from(tmp_path / "a.py", SOURCE.format(factor=2, inner=4))
    kernel, key = namespace["kernel"], namespace["kernel"].cache_key
    kernel[(1,)](out, target="executor")
    namespace["scaled"] = kernel_from(tmp_path / "b.py", SOURCE.format(factor=2, inner=7))["scaled"]
    kernel[(1,)](out, target="executor")
    assert out[0] == 14
    assert kernel.cache_key != key


def enough(meta):
    return (meta["n"] // meta["BLOCK"] + 1,)


@pytest.mark.parametrize("grid", [(4,), [4], 4, (np.int64(4), 1), (2, 2), (1, 2, 2), enough])
def test_grids(grid):
    @triton.jit
    def count(out, n, BLOCK: tl.constexpr):
        tl.atomic_add(out, 1)

    out = aligned(1, np.int32)
    count[grid](out, 50, BLOCK=16, target="executor")
    assert out[0] == 4


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (4, -1), (2.5,), "4", None, lambda meta: (-1,), (2**31,)])
def test_grids_that_are_none(grid):
    add, (x, y, out) = make_add(), arrays()
    with pytest.raises(GridError) as raised:
        add[grid](x, y, out, 50, BLOCK=16, target="executor")
    assert raised.value.file == __file__


def test_keywords_in_any_order_and_defaults():
    @triton.jit
    def weighted(out, x, WEIGHT: tl.constexpr = 3, offset=2):
        tl.store(out, tl.load(x) * WEIGHT + offset)

    x, out = aligned(1), aligned(1)
    x[0] = 10
    for arguments, keywords, expected in [
        ((out, x), {}, 32),
        ((out,), {"x": x}, 32),
        ((), {"x": x, "out": out, "offset": 5}, 35),
        ((out, x, 4), {"offset": 1}, 41),
        ((out,), {"WEIGHT": 5, "x": x}, 52),
    ]:
        for _ in range(2):
            out[0] = 0
            weighted[(1,)](*arguments, **keywords, target="executor")
            assert out[0] == expected


def test_an_option_that_is_a_parameter_too():
    @triton.jit
    def warps(out, num_warps: tl.constexpr):
        tl.store(out, num_warps)

    out = aligned(1)
    assert warps[(1,)](out, target="executor").metadata.num_warps == 4
    assert out[0] == 4
    assert warps[(1,)](out, num_warps=8, target="executor").metadata.num_warps == 8
    assert out[0] == 8


def test_options_of_other_machines_are_taken():
    add, (x, y, out) = make_add(), arrays()
    add[(4,)](x, y, out, 50, BLOCK=16, num_stages=2, waves_per_eu=2, maxnreg=128, target="executor")
    np.testing.assert_array_equal(out, x + y)


X = aligned(16)

# What is passed in place of (x, x, x, 1, BLOCK=16), the error, a part of its message.
LAUNCH_MISTAKES = {
    "missing": ((X, X, X), {}, ArgumentError, "no value for n, BLOCK"),
    "too many": ((X, X, X, 1, 16, 5), {}, ArgumentError, "takes 5 arguments and got 6"),
    "unknown": ((X, X, X, 1), {"BLOK": 16}, ArgumentError, "Did you mean BLOCK?"),
    "twice": ((X, X, X, 1), {"n": 2, "BLOCK": 16}, ArgumentError, "two values for n"),
    "type": ((X, X, object(), 1, 16), {}, ArgumentError, "the argument o_ptr is of a type"),
    "dtype": ((np.zeros(1, complex), X, X, 1, 16), {}, ArgumentError, "complex128"),
    "constexpr array": ((X, X, X, 1, X), {}, ArgumentError, "BLOCK is a tl.constexpr"),
    "constexpr list": ((X, X, X, 1, [16]), {}, ArgumentError, "BLOCK is a tl.constexpr"),
    "too large": ((X, X, X, 2**64, 16), {}, ArgumentError, "does not fit in 64 bits"),
    "target": ((X, X, X, 1, 16), {"target": "gpu"}, TargetError, "unknown target 'gpu'"),
    "number of a target": ((X, X, X, 1, 16), {"target": 3}, TargetError, "a target is named by a text"),
    "num_warps": ((X, X, X, 1, 16), {"num_warps": 3}, OptionError, "power of two"),
}


@pytest.mark.parametrize("kind", LAUNCH_MISTAKES)
def test_mistakes_in_launches(kind):
    arguments, keywords, error_class, message = LAUNCH_MISTAKES[kind]
    add = make_add()
    with pytest.raises(error_class) as raised:
        add[(1,)](*arguments, **{"target": "executor"} | keywords)
    assert message in str(raised.value)
    assert raised.value.file == __file__
    assert "add[(1,)](*arguments" in raised.value.render()


def test_a_kernel_is_no_function():
    with pytest.raises(ArgumentError, match="Launch it over a grid"):
        make_add()(X, X, X, 1, 16)


def test_an_array_on_another_device():
    class Elsewhere:
        dtype = "float32"
        device = "cuda"

        def data_ptr(self):
            return 0

    with pytest.raises(DeviceError, match=r"y_ptr lies on the device cuda.*executor"):
        x = aligned(16)
        make_add()[(1,)](x, Elsewhere(), x, 1, BLOCK=16, target="executor")


def test_arrays_that_the_launcher_does_not_know(executor):
    class Foreign:
        """An array of another library: a dtype and an address."""

        dtype = "float32"

        def __init__(self, array):
            self.array = array

        def data_ptr(self):
            return self.array.ctypes.data

    x, y, out = map(Foreign, arrays())
    compiled = make_add()[(2, 3)](x, y, out, 50, BLOCK=16, target="executor")
    loaded = compiled.loaded
    assert loaded.slots == [x.data_ptr(), y.data_ptr(), out.data_ptr(), 50]
    assert loaded.launches == [(2, 3, 1)]


def test_a_read_only_array_that_the_kernel_only_reads():
    add, (x, y, out) = make_add(), arrays()
    x.flags.writeable = False
    add[(4,)](x, y, out, 50, BLOCK=16, target="executor")
    np.testing.assert_array_equal(out, x + y)
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="writes to o_ptr, which is a read-only array"):
        add[(4,)](x, y, out, 50, BLOCK=16, target="executor")


def test_warmup_compiles_without_launching(executor):
    add = make_add()
    compiled = add.warmup(np.float32, tl.float32, np.dtype("float32"), 64, BLOCK=16, grid=(1,), target="executor")
    assert entries_of(compiled)["o_ptr"] == "*fp32:16"
    assert executor.loads == 0
    x, y, out = arrays(64)
    assert add[(4,)](x, y, out, 64, BLOCK=16, target="executor") is compiled


def test_what_a_kernel_says_of_itself():
    add = make_add()
    assert add.arg_names == ["x_ptr", "y_ptr", "o_ptr", "n", "BLOCK"]
    assert add.constexprs == [4]
    assert add.__name__ == "add"
    assert "make_add" in repr(add)
    assert add.fn.__name__ == "add"


def test_a_constexpr_object_is_its_value(executor):
    add, (x, y, out) = make_add(), arrays()
    for _ in range(2):
        add[(4,)](x, y, out, 50, BLOCK=tl.constexpr(16), target="executor")
        np.testing.assert_array_equal(out, x + y)
    assert executor.assembled == 1


def test_compile_takes_signatures(executor):
    add = make_add()
    by_text = triton.compile(add, "*fp32:16, *fp32:16, *fp32:16, i32, 16", target="executor")
    by_dict = triton.compile(
        add, {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "o_ptr": "*fp32:16", "n": "i32"}, {"BLOCK": 16}, "executor"
    )
    partly = triton.compile(add, "*fp32:16, *fp32:16, *fp32:16, i32", {"BLOCK": 16}, target="executor")
    assert by_text.metadata.hash == by_dict.metadata.hash == partly.metadata.hash
    assert list(by_text.asm) == ["tt", "ttg", "warp", "intrinsic", "llvm", "asm"]
    assert "tt.func public @add" in by_text.asm["tt"]
    assert "nothing" not in by_text.asm
    with pytest.raises(KeyError):
        by_text.asm["nothing"]


def test_compile_refuses():
    add = make_add()
    with pytest.raises(ConstexprError, match=r"BLOCK of add is a tl.constexpr"):
        triton.compile(add, "*fp32, *fp32, *fp32, i32, i32", target="executor")
    with pytest.raises(triton.CompilationError, match="says nothing of the parameter BLOCK"):
        triton.compile(add, {"x_ptr": "*fp32", "y_ptr": "*fp32", "o_ptr": "*fp32", "n": "i32"}, target="executor")
    with pytest.raises(triton.CompilationError, match="has no parameter 'BLOK'"):
        triton.compile(add, "*fp32, *fp32, *fp32, i32", {"BLOK": 16}, target="executor")
    with pytest.raises(OptionError, match="no option 'warps'"):
        triton.compile(add, "*fp32, *fp32, *fp32, i32, 16", target="executor", warps=3)
    with pytest.raises(triton.CompilationError, match="is no kernel"):
        triton.compile(len, "i32")


def test_levels_are_dumped_when_asked_for(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MLTRITON_DUMP", "tt")
    triton.compile(make_add(), "*fp32, *fp32, *fp32, i32, 16", target="executor")
    shown = capsys.readouterr().err
    assert shown.startswith("// add: tt\nmodule")
    assert shown.count("// add:") == 1
    monkeypatch.setenv("MLTRITON_DUMP", "all")
    monkeypatch.setenv("MLTRITON_DUMP_DIR", str(tmp_path / "dump"))
    triton.compile(make_add(), "*fp32, *fp32, *fp32, i32, 32", target="executor")
    assert sorted(file.name for file in (tmp_path / "dump").iterdir()) == sorted(
        f"add.{level}" for level in ("tt", "ttg", "warp", "intrinsic", "llvm", "asm")
    )


def test_a_torch_tensor_without_memory_on_the_cpu():
    torch = pytest.importorskip("torch")
    add, (x, y, _) = make_add(), arrays()
    with pytest.raises(DeviceError, match="o_ptr lies on the device meta"):
        add[(4,)](x, y, torch.empty(50, device="meta"), 50, BLOCK=16, target="executor")
    out = torch.empty(50)
    add[(4,)](torch.from_numpy(x), y, out, 50, BLOCK=16, target="executor")
    assert torch.equal(out, torch.from_numpy(x + y))


def test_threads_compile_once(executor):
    add = make_add()
    outs = [aligned(50) for _ in range(8)]
    x, y, _ = arrays()

    def launch(out):
        add[(4,)](x, y, out, 50, BLOCK=16, target="executor")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(launch, outs))
    for out in outs:
        np.testing.assert_array_equal(out, x + y)
    assert executor.assembled == 1


@pytest.mark.parametrize("grid", [0, (0,), (3, 0), [1, 1, 0], lambda meta: (0,), lambda meta: (meta["n"] - 50, 2)])
def test_a_grid_without_programs_runs_nothing(grid):
    add, (x, y, out) = make_add(), arrays()
    for _ in range(2):
        compiled = add[grid](x, y, out, 50, BLOCK=16, target="executor")
        assert not out.any() and compiled.metadata.name == "add"
    compiled[grid if not callable(grid) else 0](x, y, out, 50)
    assert not out.any()
    with pytest.raises(ArgumentError):
        add[grid](x, y, BLOCK=16, target="executor", n=50)


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [("stream", 7, None), ("cluster_dims", (2, 1, 1), (1, 1, 1)), ("launch_cluster", True, False), ("maxnreg", 0, 64)],
)
def test_options_that_ask_for_what_is_not_there(name, value, taken):
    add, (x, y, out) = make_add(), arrays()
    for _ in range(2):
        add[(4,)](x, y, out, 50, BLOCK=16, target="executor", **{name: taken})
        np.testing.assert_array_equal(out, x + y)
        with pytest.raises(OptionError, match=name):
            add.warmup(x, y, out, 50, BLOCK=16, target="cuda:90", **{name: value})
        if name != "maxnreg":  # which only NVIDIA's GPUs have
            with pytest.raises(OptionError, match=name):
                add[(4,)](x, y, out, 50, BLOCK=16, target="executor", **{name: value})
