"""torch tensors as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.runtime.native import library
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.pool import pool

from .native_kernels import copy_slots, make_kernel
from .references import references_kept

torch: Any = pytest.importorskip("torch")

OUT = ParamSpec.tensor(np.dtype(np.int64), torch.int64)
DTYPES = [
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("uint64", "bool", "float8_e4m3fn", "float8_e5m2"),
]


@pytest.fixture(params=["functions", "attributes", "portable"], autouse=True)
def way(request, monkeypatch):
    """Ask tensors by torch's C functions, as with an older torch through their attributes, and from Python."""
    monkeypatch.setenv("MLTRITON_LAUNCHER", "portable" if request.param == "portable" else "native")
    if request.param == "portable":
        yield
        return
    if library.machine() is None:
        pytest.skip("no native launcher for this machine")
    pool().prepare()
    function = pool().library.pointer("torch_data")
    address = function.value
    if request.param == "functions" and address is None:
        assert not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), "newer versions have what launches are fast by"
        pytest.skip("this torch has no functions that we understand")
    if request.param == "attributes":
        function.value = None
    yield
    function.value = address


def accepts(spec: ParamSpec, tensor: Any) -> bool:
    out = torch.full((2,), -7)
    result = make_kernel(copy_slots(2)).launcher([OUT, spec])(1, 1, 1, out, tensor)
    if result is NotImplemented:
        assert (out == -7).all()
        return False
    assert out.tolist() == [out.data_ptr(), tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.ctypes.data]
    return True


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name):
    dtype = getattr(torch, name)
    spec = ParamSpec.tensor(torch_dtype=dtype)
    for other in DTYPES:
        tensor = torch.zeros(4, dtype=getattr(torch, other))
        assert accepts(spec, tensor) == (other == name), other


def test_tensors_of_all_sorts():
    spec = ParamSpec.tensor(torch_dtype=torch.float32)
    base = torch.zeros(8, 8)
    for tensor in [base, base[1:, 2:], base.T, base[3, 3], torch.empty(0), base.expand(2, 8, 8)]:
        assert accepts(spec, tensor)
    assert accepts(spec, torch.nn.Parameter(base))
    assert accepts(spec, base.clone().requires_grad_() * 2)
    assert accepts(spec, torch.zeros(8, requires_grad=True))


def test_what_is_no_such_tensor():
    spec = ParamSpec.tensor(torch_dtype=torch.float32)
    tensor = torch.zeros(4)
    refused = [
        tensor.double(),
        torch.zeros(4, device="meta"),
        torch.zeros(3, 3).to_sparse(),
        np.zeros(4, np.float32),
        tensor.data_ptr(),
        torch.float32,
        None,
    ]
    for value in refused:
        assert not accepts(spec, value)
    assert not accepts(ParamSpec.tensor(np.dtype(np.float32)), tensor)


def test_a_parameter_can_take_both_kinds():
    spec = ParamSpec.tensor(np.dtype(np.float32), torch.float32)
    assert accepts(spec, torch.zeros(4))
    assert accepts(spec, np.zeros(4, np.float32))
    assert not accepts(spec, torch.zeros(4, dtype=torch.int32))
    assert not accepts(spec, np.zeros(4, np.int32))


def test_divisibility():
    base = torch.zeros(64)
    start = -(base.data_ptr() // 4) % 4
    tensors = [base[start:], base[start + 1 :]]
    taken = {
        demand: [accepts(ParamSpec.tensor(torch_dtype=torch.float32, divisible_by_16=demand), each) for each in tensors]
        for demand in (True, False, None)
    }
    assert taken == {True: [True, False], False: [False, True], None: [True, True]}


def test_refused_tensors_leave_no_exception_and_no_references():
    spec = ParamSpec.tensor(torch_dtype=torch.float32)
    out, tensors = (
        torch.zeros(2, dtype=torch.int64),
        [torch.zeros(4), torch.zeros(2, device="meta"), torch.zeros(4).int()],
    )
    launch = make_kernel(copy_slots(2)).launcher([OUT, spec])

    def call() -> None:
        assert [launch(1, 1, 1, out, tensor) for tensor in tensors] == [None, NotImplemented, NotImplemented]

    assert not references_kept([*tensors, torch.float32, torch.int32, True], call)
