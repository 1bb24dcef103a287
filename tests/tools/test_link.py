"""`triton.tools.link`: variants of a kernel behind one C function."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import OptionError
from mltriton.tools.c_object import write_c_object
from mltriton.tools.link import link, main

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@triton.jit
def mark(out, n, value: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, value, i < n)


@triton.jit
def other(out, x, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


def written(folder: Path, name: str, signature: str, kernel=mark) -> Path:
    return write_c_object(triton.compile(kernel, signature, target="cpu"), folder, name)[0]


@needs_cc
def test_the_variant_that_fits_is_called(tmp_path):
    """Algorithm 0 has a variant for multiples of 16 alone, 1 has one for all; their constants tell them apart."""
    headers = [
        written(tmp_path, "aligned", "*i32:16, i32:16, 5, 32"),
        written(tmp_path, "any7", "*i32, i32, 7, 32"),
        written(tmp_path, "aligned7", "*i32:16, i32:16, 7, 64"),
    ]
    assert main([*map(str, headers), "-o", str(tmp_path / "linked"), "--prefix", "my_"]) == 0
    objects = [path.with_suffix(".o") for path in headers]
    library = tmp_path / "linked.so"
    sources = [str(tmp_path / "linked.c"), *map(str, objects)]
    subprocess.run(["cc", "-Wall", "-Werror", "-shared", "-fPIC", *sources, "-o", str(library)], check=True)
    linked = ctypes.CDLL(str(library))
    memory = np.zeros(64 + 16, np.int32)
    start = (-memory.ctypes.data % 64) // 4
    place = memory[start : start + 64]

    def call(count: int, offset: int = 0, algorithm: int | None = None) -> tuple[int, int]:
        place[:] = 0
        address = ctypes.c_void_p(place.ctypes.data + 4 * offset)
        first = () if algorithm is None else (algorithm,)
        function = linked.my_mark if algorithm is None else linked.my_mark_algo
        status = function(*first, 2, 1, 1, address, count)
        return status, int(place.sum())

    assert linked.my_mark_get_num_algos() == 3
    assert call(32) == (0, 5 * 32)
    assert call(31) == (-2, 0) and call(32, offset=1) == (-2, 0)
    assert call(31, offset=1, algorithm=1) == (0, 7 * 31)
    assert call(48, algorithm=2) == (0, 7 * 48) and call(40, algorithm=2) == (-2, 0)
    assert call(32, algorithm=3) == (-2, 0)


def test_headers_that_do_not_belong_together(tmp_path):
    headers = written(tmp_path, "one", "*i32, i32, 5, 32"), written(tmp_path, "two", "*i32, *i32, 32", other)
    with pytest.raises(OptionError, match="different kernels"):
        link(headers, tmp_path / "linked")
    with pytest.raises(OptionError, match="cannot read"):
        link([tmp_path / "none.h"], tmp_path / "linked")
    (tmp_path / "own.h").write_text("int f(void);")
    with pytest.raises(OptionError, match="describes no kernel"):
        link([tmp_path / "own.h"], tmp_path / "linked")
    with pytest.raises(OptionError, match="itself"):
        link([written(tmp_path, "mark", "*i32, i32, 5, 32")], tmp_path / "linked")
    assert not (tmp_path / "linked.c").exists()
