"""Arrays that kernels would misread, or that have no memory: named errors, cold and warm, in every launcher."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import cache
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError

SIZE = 64
PLAIN = np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)


def make_copy() -> Any:
    @triton.jit
    def copy(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.load(x_ptr + i, i < n), i < n)

    return copy


@cache
def plain_tensor() -> Any:
    return sys.modules["torch"].from_numpy(PLAIN)


def check_refused(x: Any, message: str, hint: str, *, target: str = "cpu") -> None:
    """The copy of `x` is an error that names it, whether the kernel was launched before or not."""
    for warm in (False, True):
        copy, out = make_copy(), np.zeros(SIZE, np.float32)
        if warm:
            for _ in range(2):
                copy[(1,)](PLAIN, out, SIZE, BLOCK=SIZE, target=target)
                if "torch" in sys.modules:
                    copy[(1,)](plain_tensor(), out, SIZE, BLOCK=SIZE, target=target)
            assert np.array_equal(out, PLAIN)
            out[:] = 0
        with pytest.raises(ArgumentError, match=f"argument x_ptr {message}") as caught:
            copy[(1,)](x, out, SIZE, BLOCK=SIZE, target=target)
        assert hint in (caught.value.hint or "")
        assert caught.value.line is not None
        assert not out.any()


def copied(x: Any, launches: int = 3) -> np.ndarray[Any, Any]:
    copy, out = make_copy(), np.zeros(SIZE, np.float32)
    for _ in range(launches):
        out[:] = 0
        copy[(1,)](x, out, SIZE, BLOCK=SIZE)
    return out


TENSORS = {
    "storage resized to 0": ("has no memory", "resized to 0", lambda torch, x: emptied(x.clone())),
    "part of a storage resized to 0": ("has no memory", "resized", lambda torch, x: second_half(torch.cat([x, x]))),
    "parameter resized to 0": ("has no memory", "resized", lambda torch, x: emptied(torch.nn.Parameter(x.clone()))),
    "fake": ("has no memory", "custom_op", lambda torch, x: fake(x)),
    "sparse": ("has the layout torch.sparse_coo", "to_dense", lambda torch, x: x.to_sparse()),
    "sparse rows": ("has the layout torch.sparse_csr", "to_dense", lambda torch, x: x.reshape(8, 8).to_sparse_csr()),
    "oneDNN's": ("has the layout torch._mkldnn", "to_dense", lambda torch, x: x.to_mkldnn()),
    "negated": ("is a view whose elements are negated", "resolve_neg", lambda torch, x: torch._neg_view(x)),
    "imaginary part": ("is a view whose", "resolve_neg", lambda torch, x: torch.complex(x, x).conj().imag),
    "functional": ("has no memory", "transform", lambda torch, x: torch._to_functional_tensor(x)),
}


def emptied(tensor: Any) -> Any:
    tensor.untyped_storage().resize_(0)
    return tensor


def second_half(tensor: Any) -> Any:
    half = tensor[SIZE:]
    emptied(tensor)
    return half


def fake(tensor: Any) -> Any:
    from torch._subclasses import FakeTensorMode  # pyright: ignore[reportMissingImports]

    return FakeTensorMode().from_tensor(tensor)


@pytest.fixture(params=["method", "function"])
def sign(request, mode, monkeypatch):
    """Ask tensors for their sign by torch's function and by their method."""
    pytest.importorskip("torch")
    if mode == "portable":
        if request.param == "function":
            pytest.skip("only machine code calls torch's function")
        yield
        return
    from mltriton.runtime.native.pool import pool

    pool().prepare()
    function = pool().library.pointer("torch_is_neg")
    address = function.value
    if request.param == "method":
        function.value = None
    elif address is None:
        pytest.skip("this torch has no such function")
    yield
    function.value = address


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_that_kernels_would_misread_is_refused(name, sign):
    torch: Any = pytest.importorskip("torch")
    message, hint, make = TENSORS[name]
    check_refused(make(torch, torch.from_numpy(PLAIN)), message, hint)


@pytest.mark.parametrize("transform", ["vmap", "grad"])
def test_a_tensor_of_a_transform_is_refused(transform, mode, capfd):
    """By its error alone: torch logs one of its own where such a tensor is asked for its data."""
    torch: Any = pytest.importorskip("torch")

    def launch(x: Any) -> Any:
        check_refused(x, "has no memory", "transform")
        return x.sum()

    argument = plain_tensor()
    getattr(torch.func, transform)(launch)(argument.reshape(1, -1) if transform == "vmap" else argument)
    assert not capfd.readouterr().err


def test_a_distributed_tensor_is_refused(run_script):
    """In a process of its own: it needs a process group."""
    torch: Any = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    code = f"""
    import numpy as np, torch, torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor
    import mltriton as triton, mltriton.language as tl
    import sys
    sys.path.insert(0, {str(__file__.rsplit("/", 2)[0])!r})
    from runtime.test_arrays import check_refused, copied, PLAIN
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    x = distribute_tensor(torch.from_numpy(PLAIN), init_device_mesh("cpu", (1,)), [Replicate()])
    check_refused(x, "has no memory", "Pass x_ptr.to_local().")
    print(np.array_equal(copied(x.to_local()), PLAIN))
    dist.destroy_process_group()
    """
    assert run_script(textwrap.dedent(code)) == "True\n"


def test_a_tensor_without_elements_is_taken(mode):
    """Its address is 0."""
    torch: Any = pytest.importorskip("torch")
    copy = make_copy()
    for empty in (torch.empty(0), np.empty(0, np.float32), torch.empty(3, 0)):
        for _ in range(3):
            copy[(1,)](empty, empty, 0, BLOCK=16)


def test_a_masked_array_is_refused(mode):
    masked = np.ma.array(PLAIN, mask=PLAIN > 0)
    check_refused(masked, "is a masked array", "Pass x_ptr.filled(value), or x_ptr.data.")
    assert np.array_equal(copied(masked.data), PLAIN)


def test_an_emulated_launch_refuses_the_same():
    pytest.importorskip("dpctl")
    torch: Any = pytest.importorskip("torch")
    x = torch.from_numpy(PLAIN)
    check_refused(np.ma.array(PLAIN, mask=PLAIN > 0), "is a masked array", "filled", target="xe:pvc")
    for name in ("storage resized to 0", "part of a storage resized to 0", "fake", "negated", "sparse"):
        message, hint, make = TENSORS[name]
        check_refused(make(torch, x), message, hint, target="xe:pvc")


def test_a_kernel_compiled_ahead_of_time_refuses_the_same():
    torch: Any = pytest.importorskip("torch")
    compiled = triton.compile(make_copy(), f"*fp32, *fp32, i32, {SIZE}")
    out = torch.zeros(SIZE)
    for name in ("storage resized to 0", "negated", "sparse"):
        message, hint, make = TENSORS[name]
        with pytest.raises(ArgumentError, match=f"argument x_ptr {message}") as caught:
            compiled[(1,)](make(torch, torch.from_numpy(PLAIN)), out, SIZE)
        assert hint in (caught.value.hint or "")


class Derived(np.ndarray[Any, Any]):
    """An array of a class of the user's."""


def memmapped(tmp_path: Any) -> Any:
    np.save(tmp_path / "x.npy", PLAIN)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def unaligned() -> Any:
    array = np.zeros(PLAIN.nbytes + 1, np.uint8)[1:].view(np.float32)
    array[:] = PLAIN
    return array


ARRAYS = {
    "memmap": memmapped,
    "unaligned": lambda _: unaligned(),
    "derived": lambda _: PLAIN.view(Derived),
    "a tensor that is unaligned": lambda _: pytest.importorskip("torch").from_numpy(unaligned()),
    "a tensor of a derived class": lambda _: derived_tensor(),
}


def derived_tensor() -> Any:
    torch: Any = pytest.importorskip("torch")
    return torch.from_numpy(PLAIN).as_subclass(type("DerivedTensor", (torch.Tensor,), {}))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_usual_array_of_another_kind_is_launched_by_the_launcher(name, mode, tmp_path, monkeypatch):
    """After the first launches nothing is specialised again."""
    from mltriton.runtime.jit import JITFunction

    x, out, copy = ARRAYS[name](tmp_path), np.zeros(SIZE, np.float32), make_copy()
    for _ in range(2):
        copy[(1,)](x, out, SIZE, BLOCK=SIZE)
    out[:] = 0
    monkeypatch.setattr(JITFunction, "launch", None)
    copy[(1,)](x, out, SIZE, BLOCK=SIZE)
    assert np.array_equal(out, PLAIN)


def test_numbers_of_numpy_are_launched_by_the_launcher(mode, monkeypatch):
    from mltriton.runtime.jit import JITFunction

    @triton.jit
    def fill(o_ptr, a, b, c, BLOCK: tl.constexpr):
        tl.store(o_ptr + tl.arange(0, BLOCK), a * b + c)

    out = np.zeros(16, np.float64)
    values = np.int64(3), np.float32(2.5), np.bool_(True), np.int8(16)
    fill[(1,)](out, *values[:3], BLOCK=values[3])
    monkeypatch.setattr(JITFunction, "launch", None)
    for a, b, c in ((np.int64(7), np.float32(-1.5), np.bool_(False)), (np.int64(5), np.float32(0.5), np.bool_(True))):
        fill[(1,)](out, a, b, c, BLOCK=values[3])
        assert (out == float(a) * float(b) + bool(c)).all()


def test_a_number_too_large_for_f32_is_infinite(mode):
    @triton.jit
    def fill(o_ptr, value):
        tl.store(o_ptr, value)

    out = np.zeros(1, np.float64)
    for value, expected in ((np.float64(1e300), np.inf), (-1e39, -np.inf), (np.float64(-1e300), -np.inf)):
        fill[(1,)](out, value)
        assert out[0] == expected


def test_a_crash_would_be_seen():
    """What the tests above rely on: a process that reads address 0 does not go on."""
    code = "import ctypes; ctypes.string_at(0)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode < 0


@triton.jit
def read_tail(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + (n - B + i)))


@triton.jit
def fill_large(x_ptr, n, first, B: tl.constexpr):
    i = (first + tl.program_id(0).to(tl.int64)) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 5, i < n)


LARGE, LARGE_BLOCK = 3_000_000_000, 1 << 16


@pytest.mark.parametrize("blocks", [9, pytest.param(-(-LARGE // LARGE_BLOCK), marks=pytest.mark.slow)])
def test_arrays_of_more_than_two_to_the_31_elements(blocks):
    """Zeros that nobody wrote take no memory: the short form touches the end only."""
    try:
        x, o = np.zeros(LARGE, np.int8), np.zeros(64, np.int8)
    except MemoryError:
        pytest.skip("3 GB cannot be mapped here")
    x[-64:] = np.arange(64)
    read_tail[(1,)](x, o, x.size, B=64)
    assert (o == np.arange(64)).all()
    first = -(-LARGE // LARGE_BLOCK) - blocks
    fill_large[(blocks,)](x, x.size, first, B=LARGE_BLOCK)
    start = first * LARGE_BLOCK
    assert x[start:].min() == x[start:].max() == 5
    assert not x[max(0, start - 64) : start].any()
