"""LLVM as a tool chain: rejected text, time limits, crashes."""

from __future__ import annotations

import subprocess

import pytest

from mltriton.errors import BackendError
from mltriton.targets.llvm import toolchain
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
        toolchain.compile_isolated(FINE, X86, 0.001)


def test_a_crash_is_an_error(monkeypatch):
    def crash(*arguments, **keywords):
        return subprocess.CompletedProcess(arguments, -6, b"", b"LLVM ERROR: Cannot select")

    monkeypatch.setattr(subprocess, "run", crash)
    with pytest.raises(BackendError, match="LLVM crashed") as caught:
        toolchain.compile_isolated(FINE, X86, 5)
    assert "Cannot select" in str(caught.value)
