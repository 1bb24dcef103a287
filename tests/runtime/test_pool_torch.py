"""The pool beside torch: its number of threads, its OpenMP library, torch appearing late or by halves."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from mltriton.runtime.native import launcher, library, portable
from mltriton.runtime.native.params import ParamSpec

from .native_kernels import WHO, make_kernel

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(library.machine() is None, reason="no native launcher for this machine")

OUT = ParamSpec.tensor(np.dtype(np.int64), torch.int64)


def test_the_number_of_threads_is_torchs():
    previous = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            assert launcher.num_threads() == count
            out = torch.zeros(500, dtype=torch.int64)
            make_kernel(WHO).launcher([OUT])(500, 1, 1, out)
            assert 1 <= len(set(out.tolist())) <= count
    finally:
        torch.set_num_threads(previous)
    launcher.set_num_threads(2)
    assert launcher.num_threads() == 2
    launcher.set_num_threads(None)
    assert launcher.num_threads() == previous


def test_other_threads_use_torchs_number_too():
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(launcher.num_threads()))
    thread.start()
    thread.join()
    assert seen == [torch.get_num_threads()]


LATE = """
import numpy as np
from native_kernels import WHO, make_kernel
from mltriton.runtime.native import launcher
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.pool import pool
launch = make_kernel(WHO).launcher([ParamSpec.tensor(np.dtype(np.int64))])
out = np.zeros(200, np.int64)
launch(200, 1, 1, out)
print(pool().kind, end=" ")
import torch
torch.set_num_threads(3)
launch(200, 1, 1, out)
print(pool().kind, launcher.num_threads(), end=" ")
launch = make_kernel(WHO).launcher([ParamSpec.tensor(torch_dtype=torch.int64)])
print(launch(200, 1, 1, torch.from_numpy(out)))
"""


def test_torch_may_appear_late(run_script):
    assert run_script(LATE, MLTRITON_LAUNCHER="native") == "workers openmp 3 None\n"


HALF = """
import sys, types
import numpy as np
from native_kernels import COUNT, make_kernel
from mltriton.runtime.native import launcher
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.pool import pool
launch = make_kernel(COUNT).launcher([ParamSpec.tensor(np.dtype(np.int64))])
out = np.zeros(20, np.int64)
sys.modules["torch"] = types.ModuleType("torch")  # As while another thread imports it.
launch(20, 1, 1, out)
print(pool().kind, end=" ")
del sys.modules["torch"]
import torch
launch(20, 1, 1, out)
print(pool().kind, set(out.tolist()))
"""


def test_torch_half_imported(run_script):
    assert run_script(HALF, MLTRITON_LAUNCHER="native") == "workers openmp {2}\n"


def test_the_portable_pool_asks_torch():
    assert portable.pool().num_threads() == torch.get_num_threads()
