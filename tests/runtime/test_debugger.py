"""Python's debugger and `print` in interpreted kernels: what stops, and what is seen there."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import SyntaxNotSupportedError

PROGRAM = """
import numpy as np
import mltriton as triton
import mltriton.language as tl

@triton.jit
def helper(v, k):
    w = v * k
    import pdb; pdb.set_trace()
    return w

@triton.jit
def add(x, bytes, o, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, m, other=0.0)
    b = tl.load(bytes + i, m, other=255)
    both = (v, pid)
    breakpoint()
    tl.store(o + i, helper(v, 2), m)

x = np.arange(3000, dtype=np.float32)
o = np.zeros_like(x)
add[(2,)](x, np.full(3000, 200, np.uint8), o, 3000, B=2048)
print(bool((o == 2 * x).all()))
"""
COMMANDS = """
p pid, B, n, v.shape, b[0], b.dtype, both[1]
p m.dtype, m.sum(), np.abs(v).max()
p v
c
p int(w.astype(float).sum()), k
c
p pid, m.sum(), b[-1]
c
c
"""


def test_a_debugger_stops_in_every_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = os.environ | {"MLTRITON_INTERPRET": "1", "MLTRITON_CACHE_DIR": str(tmp_path), "PYTHONBREAKPOINT": ""}
    done = subprocess.run([sys.executable, path], env=env, input=COMMANDS, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    line = PROGRAM.split("\n").index("    breakpoint()") + 2
    assert done.stdout.count(f"program.py({line})add()\n-> tl.store(o + i, helper(v, 2), m)") == 2
    assert done.stdout.count("helper()\n-> return w") == 2
    for seen in (
        "(np.int32(0), 2048, np.int32(3000), (2048,), np.uint8(200), dtype('uint8'), np.int32(0))",
        "(dtype('bool'), np.int64(2048), np.float32(2047.0))",
        "1.023e+03, 1.024e+03,",  # The whole block, not its ends.
        f"({2 * sum(range(2048))}, 2)",
        "(np.int32(1), np.int64(952), np.uint8(255))",
    ):
        assert seen in done.stdout, done.stdout
    assert done.stdout.endswith("True\n")


@pytest.fixture
def interpreted(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("MLTRITON_INTERPRET", "1")


def test_print_is_pythons(interpreted, capsys):
    @triton.jit
    def shows(x, N: tl.constexpr):
        values = tl.load(x + tl.arange(0, N))
        print("values", values, values > 1, (N, tl.max(values)), tl.float32, sep="|", end=";\n")

    shows[(1,)](np.arange(4, dtype=np.float32), N=4)
    assert capsys.readouterr().out == "values|[0. 1. 2. 3.]|[False False  True  True]|(4, np.float32(3.0))|fp32;\n"


def test_the_hook_of_breakpoint_is_called_with_the_variables_in_its_callers_frame(interpreted, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(dict(sys._getframe(1).f_locals)))

    @triton.jit
    def stops(o, N: tl.constexpr):
        total = tl.zeros((N,), tl.bfloat16)
        for step in range(2):
            total += step.to(tl.bfloat16)
            if step > 0:
                breakpoint()
        tl.store(o + tl.arange(0, N), total)

    o = np.zeros(4, np.float32)
    stops[(1,)](o, N=4)
    assert len(seen) == 1 and seen[0]["step"] == 1 and seen[0]["N"] == 4
    assert np.array_equal(np.asarray(seen[0]["total"], np.float32), [1, 1, 1, 1]) and np.array_equal(o, [1, 1, 1, 1])


def test_a_compiled_kernel_does_not_stop():
    @triton.jit
    def stops(o):
        breakpoint()
        tl.store(o, 1)

    @triton.jit
    def imports(o):
        import pdb

        pdb.set_trace()
        tl.store(o, 1)

    for kernel in (stops, imports):
        with pytest.raises(SyntaxNotSupportedError, match="TRITON_INTERPRET"):
            kernel[(1,)](np.zeros(1, np.int32))
