"""LLVM as a tool chain: rejected text, time limits, crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import llvmlite
import pytest

from mltriton.errors import BackendError
from mltriton.targets.llvm import isolation, toolchain
from mltriton.targets.llvm.isolation import compile_isolated
from mltriton.targets.llvm.toolchain import Machine

X86 = Machine("x86_64-unknown-linux-gnu", "x86-64")
FINE = "define void @f() {\n  ret void\n}\n"
WRONG = "define void @f() {\n  ret i32 0\n}\n"


def test_objects_and_assembly():
    assert toolchain.compile_object(FINE, X86).startswith(b"\x7fELF")
    assert "retq" in toolchain.assembly(FINE, X86)
    assert "ret\n" in toolchain.assembly(FINE, Machine("aarch64-unknown-linux-gnu"))


def test_rejected_text_is_an_error_with_llvms_message_and_a_reproducer():
    with pytest.raises(BackendError, match="value doesn't match function result type") as caught:
        toolchain.compile_object(WRONG, X86)
    assert caught.value.reproducer is not None
    assert caught.value.reproducer.read_text() == WRONG


def test_a_process_of_its_own_gives_the_same_object(monkeypatch):
    here = toolchain.compile_object(FINE, X86)
    monkeypatch.setenv("MLTRITON_COMPILE_TIMEOUT", "60")
    assert toolchain.compile_object(FINE, X86) == here
    with pytest.raises(BackendError, match="value doesn't match function result type"):
        toolchain.compile_object(WRONG, X86)


def test_the_time_limit_is_an_error():
    with pytest.raises(BackendError, match="LLVM took longer than"):
        compile_isolated("".join(FINE.replace("@f", f"@f{number}") for number in range(2000)), X86, 0.001)


def test_a_crash_is_an_error_and_the_next_request_is_served():
    spirv = Machine("spirv64v1.4-unknown-unknown")
    wide = "define spir_kernel void @f(ptr addrspace(1) %p, <32 x i32> %x) {\n"
    wide += "  %y = add <32 x i32> %x, %x\n  store <32 x i32> %y, ptr addrspace(1) %p\n  ret void\n}\n"
    with pytest.raises(BackendError, match="LLVM crashed") as caught:
        compile_isolated(wide, spirv, 60)
    assert "LLVM ERROR: unable to legalize" in str(caught.value)
    assert compile_isolated(FINE, spirv, 60)


@pytest.fixture
def no_worker():
    """None is idle that another test has left."""
    isolation._close_workers()


def test_a_worker_serves_many_requests(no_worker):
    compile_isolated(FINE, X86, 60)
    (worker,) = isolation._idle
    compile_isolated(FINE, X86, 60)
    assert isolation._idle == [worker]


NAMED_FROM_ANOTHER_FOLDER = f"""
import os, sys
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
from mltriton.targets.llvm import isolation, toolchain
os.chdir("/")
assert isolation.compile_isolated({FINE!r}, toolchain.Machine(*{tuple(X86)}), 60).startswith(b"\\x7fELF")
"""


@pytest.mark.parametrize("who", ["environment", "program"])
def test_a_worker_finds_the_package_where_this_process_did(tmp_path, who):
    """The environment, or the program, names its folder from one that the program has left.

    The interpreter is the one behind a virtual environment, in which a package may be installed as well.
    """
    (tmp_path / "sources").symlink_to(Path(isolation.__file__).parents[3])
    libraries = str(Path(llvmlite.__file__).parents[1])
    paths = ["sources", libraries] if who == "environment" else [libraries]
    command = [getattr(sys, "_base_executable", sys.executable), "-c", NAMED_FROM_ANOTHER_FOLDER]
    done = subprocess.run(
        command if who == "environment" else [*command, "sources"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_ends_the_process(monkeypatch, no_worker):
    compile_isolated(FINE, X86, 60)
    (worker,) = isolation._idle
    threads, read = set(threading.enumerate()), isolation.Worker._read

    def interrupted(self, deadline):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return read(self, deadline)

    monkeypatch.setattr(isolation.Worker, "_read", interrupted)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compile_isolated("".join(FINE.replace("@f", f"@f{number}") for number in range(30000)), X86, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert worker._process.poll() is not None
    assert not isolation._idle
    assert set(threading.enumerate()) <= threads


LOOP = """
define float @sum(ptr %p, i64 %stride, i64 %n) {
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %total = phi float [ 0.0, %entry ], [ %more, %body ]
  %offset = mul i64 %i, %stride
  %place = getelementptr float, ptr %p, i64 %offset
  %x = load float, ptr %place
  %more = fadd float %total, %x
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %body, label %exit
exit:
  ret float %more
}
"""


def test_strength_is_reduced_but_where_it_is_not_wanted():
    """LLVM's option is one of the process: it holds for one compilation."""
    reduced = toolchain.assembly(LOOP, X86)
    assert "imul" not in reduced
    assert "imul" in toolchain.assembly(LOOP, X86._replace(reduce_strength=False))
    assert toolchain.assembly(LOOP, X86) == reduced


def test_without_optimization_values_lie_in_memory():
    values = toolchain.assembly(LOOP, X86._replace(optimization=0))
    assert values.count("(%rsp)") > toolchain.assembly(LOOP, X86).count("(%rsp)")
