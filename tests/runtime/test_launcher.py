"""Guards and slots: an argument that fits is passed on exactly, any other makes the launch `NotImplemented`."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mltriton.runtime.native import launcher, layout, library, portable
from mltriton.runtime.native.params import ParamSpec, encode_table

from .native_kernels import COUNT, copy_slots, make_kernel
from .references import references_kept

OUT = ParamSpec.tensor(np.dtype(np.int64))
F32 = np.dtype(np.float32)


class Probe:
    """A kernel with the parameter under test behind one output array."""

    def __init__(self, spec: ParamSpec) -> None:
        self.out = np.zeros(2, np.int64)
        self.launch = make_kernel(copy_slots(2)).launcher([OUT, spec])

    def accepts(self, argument: Any) -> bool:
        self.out[:] = -7
        result = self.launch(1, 1, 1, self.out, argument)
        ran = int(self.out[0]) == self.out.ctypes.data
        assert result is (None if ran else NotImplemented)
        assert ran or (self.out == -7).all()
        return ran

    def slot(self, argument: Any) -> int:
        assert self.accepts(argument)
        return int(self.out[1])


class Int(int):
    """An int that is not exactly an int."""


NOT_INTEGERS = [
    1.0,
    5.0,
    True,
    False,
    None,
    "5",
    Int(5),
    np.int32(5),
    np.int64(5),
    np.uint8(5),
    np.bool_(True),
    [5],
    5j,
]


@pytest.mark.parametrize(
    ("kind", "annotated", "fits", "differs"),
    [
        ("i32", False, [0, -1, 5, 2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, 2**63, 2**64, 10**30, -(10**30)]),
        (
            "i64",
            False,
            [2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
            [0, -1, 1, 2**31 - 1, -(2**31), 2**63, -(2**63) - 1],
        ),
        ("u64", False, [2**63, 2**64 - 1], [0, -1, 2**63 - 1, 2**64, -(2**63), 10**30]),
        ("i8", True, [-128, -1, 0, 1, 127], [-129, 128, 10**30]),
        ("u8", True, [0, 255], [-1, 256, 2**64]),
        ("i16", True, [-(2**15), 2**15 - 1], [2**15, -(2**15) - 1]),
        ("u16", True, [0, 2**16 - 1], [-1, 2**16]),
        ("i32", True, [-(2**31), -1, 2**31 - 1], [2**31]),
        ("u32", True, [0, 2**32 - 1], [-1, 2**32]),
        ("i64", True, [-(2**63), -1, 0, 1, 2**63 - 1], [2**63, -(2**63) - 1]),
        ("u64", True, [0, 1, 2**63, 2**64 - 1], [-1, 2**64, -(2**63)]),
    ],
)
def test_integers(mode, kind, annotated, fits, differs):
    probe = Probe(ParamSpec.integer(kind, annotated=annotated))
    for value in fits:
        assert probe.slot(value) == struct.unpack("<q", struct.pack("<Q", value & (2**64 - 1)))[0]
    for value in [*differs, *NOT_INTEGERS]:
        assert not probe.accepts(value), value


def test_integers_whose_value_is_part_of_the_specialisation(mode):
    divisible = Probe(ParamSpec.integer("i32", divisible_by_16=True, not_one=True))
    other = Probe(ParamSpec.integer("i32", divisible_by_16=False, not_one=True))
    large = Probe(ParamSpec.integer("i64", divisible_by_16=True, not_one=True))
    for value, expected in [(0, "d"), (16, "d"), (-32, "d"), (1, ""), (2, "o"), (17, "o"), (-1, "o"), (2**40, "l")]:
        accepted = [name for name, probe in zip("dol", (divisible, other, large), strict=True) if probe.accepts(value)]
        assert "".join(accepted) == expected, value
    assert not large.accepts(2**40 + 1)


def test_bools(mode):
    probe = Probe(ParamSpec.boolean())
    assert [probe.slot(True) & 0xFF, probe.slot(False) & 0xFF] == [1, 0]
    assert not any(map(probe.accepts, [0, 1, None, 1.0, np.bool_(True), "True"]))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -1.0, 1e-45, 1e300, -1e39, float("inf"), float("nan"), 16777217.0])
def test_floats(mode, value):
    with np.errstate(over="ignore"):
        expected = int(np.float32(value).view(np.uint32))
    assert Probe(ParamSpec.floating("f32")).slot(value) & 0xFFFFFFFF == expected
    [bits] = struct.unpack("<q", struct.pack("<d", value))
    assert Probe(ParamSpec.floating("f64")).slot(value) == bits


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_what_is_no_float(mode, kind):
    probe = Probe(ParamSpec.floating(kind))
    for value in [1, 0, True, None, "1.0", np.float32(1), np.float64(1), Fraction(1, 2), type("F", (float,), {})(1.0)]:
        assert not probe.accepts(value), value


def function() -> None: ...


@pytest.mark.parametrize(
    ("constant", "equal", "different"),
    [
        (1, [int("1")], [2, 0, True, 1.0, "1", None, np.int64(1), Int(1)]),
        (1024, [int("1024")], [1023, 1024.0, Int(1024), np.int64(1024)]),
        (10**30, [10 * 10**29], [10**30 + 1, 1e30]),
        (True, [True], [1, 1.0, False, None]),
        (None, [None], [0, False, "None"]),
        (0.0, [float("0.0")], [-0.0, 0, False]),
        (2.5, [5.0 / 2], [2.25, "2.5"]),
        (float("nan"), [float("nan")], [0.0]),
        ("bf16x3", ["".join(["bf16", "x3"])], ["bf16", b"bf16x3", None]),
        (function, [function], [None, print, 0]),
        ((1, 2), [], [[1, 2], 1, None]),
    ],
)
def test_constants_take_no_slot(mode, constant, equal, different):
    out = np.zeros(3, np.int64)
    launch = make_kernel(copy_slots(3)).launcher([OUT, ParamSpec.constant(constant), ParamSpec.integer("i32")])
    for value in [constant, *equal]:
        out[:] = 0
        assert launch(1, 1, 1, out, value, 99) is None
        assert out[1:].tolist() == [99, 1]
    for value in different:
        assert launch(1, 1, 1, out, value, 99) is NotImplemented, value


def test_equality_of_constants_never_runs_foreign_code(mode):
    class Nosy:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        def __hash__(self) -> int:
            return 0

    probe = Probe(ParamSpec.integer("i32"))
    launch = make_kernel(copy_slots(1)).launcher([OUT, ParamSpec.constant(Nosy()), ParamSpec.constant("a")])
    assert launch(1, 1, 1, probe.out, Nosy(), "a") is NotImplemented


def test_constants_must_be_hashable():
    with pytest.raises(TypeError):
        ParamSpec.constant([1])


@pytest.mark.parametrize(
    "dtype",
    ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"],
    ids=lambda name: np.dtype(name).name,
)
def test_arrays_of_every_dtype(mode, dtype):
    probe = Probe(ParamSpec.tensor(np.dtype(dtype)))
    array = np.zeros((3, 4), dtype)
    assert probe.slot(array) == array.ctypes.data
    assert probe.slot(array[1:, ::2]) == array.ctypes.data + 4 * array.itemsize
    assert probe.slot(np.zeros(0, dtype)) != 0
    for other in ["f4", "f8", "i4", "u4"]:
        assert probe.accepts(np.zeros(3, other)) == (np.dtype(other) is np.dtype(dtype))


def test_what_is_no_array_of_the_dtype(mode):
    probe = Probe(ParamSpec.tensor(F32))
    array = np.zeros(8, F32)
    assert probe.accepts(array)
    swapped = np.zeros(8, F32.newbyteorder())
    for value in [
        None,
        0,
        array.tolist(),
        array.ctypes.data,
        swapped,
        array[0],
        array.data,
        np.ma.array([1.0], dtype=F32),
    ]:
        assert not probe.accepts(value)


def test_addresses_and_their_divisibility(mode):
    storage = np.zeros(64, np.uint8)
    start = -storage.ctypes.data % 16
    aligned = storage[start : start + 16].view(F32)
    by_four = storage[start + 4 : start + 20].view(F32)
    odd = storage[start + 1 : start + 17].view(F32)
    taken = {
        demand: [
            Probe(ParamSpec.tensor(F32, divisible_by_16=demand)).accepts(array) for array in (aligned, by_four, odd)
        ]
        for demand in (True, False, None)
    }
    assert taken == {True: [True, False, False], False: [False, True, True], None: [True, True, True]}


def test_read_only_arrays(mode):
    array = np.zeros(8, F32)
    array.flags.writeable = False
    assert not Probe(ParamSpec.tensor(F32, writes=True)).accepts(array)
    assert Probe(ParamSpec.tensor(F32, writes=False)).accepts(array)


def test_a_tensor_parameter_takes_something():
    with pytest.raises(ValueError, match="numpy arrays, torch tensors or both"):
        ParamSpec.tensor()
    with pytest.raises(ValueError, match="24 bytes"):
        ParamSpec.tensor(np.dtype([("a", "f8"), ("b", "f8"), ("c", "f8")]))


@pytest.mark.parametrize("kind", ["i1", "i128", "f32", "tensor"])
def test_kinds_of_integers(kind):
    with pytest.raises(ValueError, match="not an integer type"):
        ParamSpec.integer(kind, annotated=True)
    with pytest.raises(ValueError, match="not a floating-point type"):
        ParamSpec.floating(kind.replace("f32", "f16"))


def test_the_number_of_arguments(mode):
    out = np.zeros(2, np.int64)
    launch = make_kernel(copy_slots(1)).launcher([OUT])
    for arguments in [(), (1,), (1, 1, 1), (1, 1, out), (1, 1, 1, out, out)]:
        if mode == "portable" and len(arguments) < 3:
            continue  # A Python function says so itself.
        assert launch(*arguments) is NotImplemented
    with pytest.raises(TypeError):
        launch(1, 1, 1, x=out)
    assert make_kernel("").launcher([])(1, 1, 1) is None


@pytest.mark.parametrize("bad", [-1, 2**31, 2**64, 1.0, True, "1", None, np.int64(1), Int(1)], ids=repr)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_grid(mode, bad, axis):
    counts = np.zeros(1, np.int64)
    launch = make_kernel(COUNT).launcher([OUT])
    grid = [1, 1, 1]
    grid[axis] = bad
    assert launch(*grid, counts) is NotImplemented
    assert launch(2**31 - 1, 2**31 - 1, 2**31 - 1, counts) is NotImplemented
    assert counts[0] == 0


def test_many_parameters(mode):
    count = 300
    out = np.zeros(count + 4, np.int64)
    specs = [OUT, *[ParamSpec.integer("i32") for _ in range(count)]]
    launch = make_kernel(copy_slots(count + 4)).launcher(specs)
    assert launch(1, 2, 1, out, *range(count)) is None
    assert out[1:].tolist() == [*range(count), 1, 2, 1]
    assert launch(1, 2, 1, out, *range(count - 1), 2.0) is NotImplemented


def test_reference_counts_stay(mode):
    out, array, number, text = np.zeros(3, np.int64), np.zeros(4, F32), 123456789, "some text"
    specs = [OUT, ParamSpec.tensor(F32), ParamSpec.integer("i32"), ParamSpec.constant(text)]
    launch = make_kernel(copy_slots(3)).launcher(specs)

    def call() -> None:
        launch(1, 1, 1, out, array, number, text)
        launch(1, 1, 1, out, array, 1.5, text)

    assert not references_kept([out, array, number, text, None, NotImplemented, F32, launch], call)


def test_a_launcher_keeps_its_specs_and_lets_them_go(mode):
    class Constant:
        pass

    constant = Constant()
    alive = weakref.ref(constant)
    probe = Probe(ParamSpec.constant(constant))
    assert probe.launch(1, 1, 1, probe.out, constant) is None
    del constant
    gc.collect()
    assert alive() is not None
    del probe
    gc.collect()
    assert alive() is None


def test_the_interpreter_runs_on_during_a_launch(mode):
    """A kernel waits for a Python thread to change its memory: with the interpreter's lock held, for ever."""
    body = """
  %flag = load ptr, ptr %args
  br label %wait
wait:
  %value = load atomic volatile i64, ptr %flag seq_cst, align 8
  %unset = icmp eq i64 %value, 0
  br i1 %unset, label %wait, label %waited
waited:
"""
    flag = np.zeros(1, np.int64)
    timer = threading.Timer(0.05, lambda: flag.__setitem__(0, 1))
    timer.start()
    assert make_kernel(body).launcher([OUT])(1, 1, 1, flag) is None
    timer.join()


VALUES = st.one_of(
    st.integers(-(2**66), 2**66),
    st.sampled_from([2**31, 2**32, 2**63, 2**64, 16, 1, 0]).flatmap(lambda n: st.sampled_from([n - 1, n, n + 1, -n])),
    st.booleans(),
    st.floats(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from([np.int32(3), np.float64(2), np.zeros(2, F32), np.zeros(2, np.int64)]),
)
TRISTATE = st.sampled_from([True, False, None])
INTEGER_SPECS = st.one_of(
    st.builds(
        ParamSpec.integer, st.sampled_from(["i32", "i64", "u64"]), not_one=st.booleans(), divisible_by_16=TRISTATE
    ),
    st.builds(
        ParamSpec.integer,
        st.sampled_from([f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)]),
        annotated=st.just(True),
        divisible_by_16=TRISTATE,
    ),
)
SPECS = st.one_of(
    INTEGER_SPECS,
    st.builds(ParamSpec.floating, st.sampled_from(["f32", "f64"])),
    st.builds(ParamSpec.boolean),
    st.builds(ParamSpec.constant, VALUES.filter(lambda value: not isinstance(value, np.ndarray))),
    st.builds(ParamSpec.tensor, st.sampled_from([F32, np.dtype(np.int64)]), divisible_by_16=TRISTATE),
)


@pytest.mark.skipif(library.machine() is None, reason="no native launcher for this machine")
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(SPECS, VALUES), max_size=4))
def test_native_and_portable_agree(pairs):
    """Both launchers take and refuse the same arguments, and fill the same slots."""
    specs = [OUT, *[spec for spec, _ in pairs]]
    arguments = [value for _, value in pairs]
    count = sum(spec.takes_slot for spec in specs)
    kernel = make_kernel(copy_slots(count + 3))
    results: list[tuple[object, list[int]]] = []
    native = kernel.launcher(specs)
    assert type(native) is type(len)
    out = np.zeros(count + 3, np.int64)
    for launch in (native, portable.PortableLauncher(kernel.address, 0, specs, 2, owner=kernel)):
        out[:] = -1
        result = launch(1, 1, 1, out, *arguments)
        widths = [32 if spec.kind == "f32" else 64 for spec in specs if spec.takes_slot] + [64] * 3
        results.append((result, [slot & (1 << width) - 1 for slot, width in zip(out.tolist(), widths, strict=True)]))
    assert results[0] == results[1]


def test_layouts_are_as_the_code_reads_them():
    assert layout.is_as_expected()


def test_a_different_layout_is_noticed(monkeypatch):
    monkeypatch.setattr(layout, "_DESCR_OFFSET", 48)
    assert not layout.is_as_expected()
    monkeypatch.undo()
    monkeypatch.setattr(layout, "_TYPE_OFFSET", 0)
    assert not layout.is_as_expected()


def test_the_auto_launcher_is_portable_where_the_layout_differs(monkeypatch):
    monkeypatch.setenv("MLTRITON_LAUNCHER", "auto")
    monkeypatch.setattr(launcher, "_native_works", lambda: False)
    assert isinstance(make_kernel(COUNT).launcher([OUT]), portable.PortableLauncher)


@pytest.mark.parametrize("name", ["x86_64-linux", "aarch64-linux"])
def test_the_code_compiles_for_each_machine(name):
    image = library.compile_object(library.source(name), f"{name.split('-')[0]}-unknown-linux-gnu")
    assert image[:6] == b"\x7fELF\x02\x01"
    assert int.from_bytes(image[18:20], "little") == {"x86_64-linux": 62, "aarch64-linux": 183}[name]


def test_the_code_is_compiled_once(run_script):
    code = """
from mltriton.runtime.native import library
library.compile_object = None if {forbidden} else library.compile_object
library.load()
print("loaded")
"""
    assert run_script(code.format(forbidden=False)) == "loaded\n"
    assert run_script(code.format(forbidden=True)) == "loaded\n"


def test_the_table_is_what_the_code_reads():
    table = encode_table(0x1234, 64, 2, [ParamSpec.integer("i64", divisible_by_16=True)], id)
    assert struct.unpack_from("<QqqIId", table) == (0x1234, 64, 2, 1, 1, 0.0)
    expected = (1, 0, -(2**63), 2**63 - 1, 15, 0, -(2**31), 2**31 - 1)
    assert struct.unpack_from("<II6q", table, 40) == expected
    assert len(table) == 40 + 56
