"""Intel's offline compiler: figures of its binaries, its errors, and where it is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import xe_modules as modules
from mltriton.errors import BackendError, TargetError
from mltriton.targets.xe import isa, zebin
from mltriton.targets.xe.devices import DEVICES, device
from mltriton.targets.xe.ocloc import compile_native, compile_without_spills, disassemble, find
from mltriton.targets.xe.spirv.emission import emit
from mltriton.targets.xe.zebin import kernels

PVC, BMG = device("pvc"), device("bmg")
TABLE = "Intel_Symbol_Table_Void_Program"
EMPTY = "define spir_kernel void @k() {\n  ret void\n}\n"


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize("name", list(DEVICES))
def test_every_builtin_compiles_for_every_device(name: str) -> None:
    native = compile_native(emit(modules.every_call() + EMPTY), device(name))
    assert native.binary
    assert list(native.kernels) == ["k"]


@pytest.mark.usefixtures("needs_ocloc")
def test_what_the_compiler_rejects_is_an_error_with_its_log() -> None:
    double = emit(modules.calling([(modules.xe.BLOCK_LOAD, {0: 2, 1: 16, 2: 16, 3: 4})]))
    with pytest.raises(BackendError, match="Intel's compiler rejects the module") as caught:
        compile_native(double, PVC)
    assert "unsupported block configuration: width=16, height=16, numBlocksV=4" in str(caught.value)


@pytest.mark.usefixtures("needs_ocloc")
def test_grf_modes() -> None:
    assert compile_native(emit(EMPTY), PVC, registers=256).kernels["k"].registers == 256
    assert compile_native(emit(EMPTY), PVC, registers=128).kernels["k"].registers == 128
    with pytest.raises(TargetError, match="no option for this GRF mode"):
        compile_native(emit(EMPTY), PVC, registers=512)
    with pytest.raises(TargetError, match="too many warps for 128 registers"):
        compile_without_spills(emit(EMPTY), PVC, 128)


def program(folder: Path, text: str) -> str:
    path = folder / "ocloc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo no good; exit 225", "Intel's compiler rejects the module"),
        ("echo no good; exit 245", "Intel's compiler rejects the module"),
        ("echo no good; exit 139", r"Intel's compiler crashed \(status 139\)"),
        ("echo no good; kill -SEGV $$", r"Intel's compiler crashed \(status -11\)"),
        ("echo no good; exit 0", "Intel's compiler wrote no binary"),
        ("sleep 20", "Intel's compiler took longer than 1 seconds"),
    ],
)
def test_failures(text: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    image = emit(EMPTY)
    monkeypatch.setenv("MLTRITON_OCLOC", program(tmp_path, text))
    monkeypatch.setenv("MLTRITON_COMPILE_TIMEOUT", "1")
    with pytest.raises(BackendError, match=message) as caught:
        compile_native(image, PVC)
    assert "sleep" in text or caught.value.found == "no good"


def test_where_it_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("MLTRITON_XE_PREFIX", str(empty))
    monkeypatch.delenv("MLTRITON_OCLOC", raising=False)
    with pytest.raises(TargetError, match="Intel's offline compiler ocloc is not installed") as caught:
        find()
    assert caught.value.hint is not None
    assert "scripts/install-ocloc.sh" in caught.value.hint
    places = {name: tmp_path / name for name in ("prefix", "path", "named")}
    for folder in places.values():
        folder.mkdir()
        program(folder, "true")
    monkeypatch.setenv("MLTRITON_XE_PREFIX", str(places["prefix"]))
    assert find().parent == places["prefix"]
    monkeypatch.setenv("PATH", str(places["path"]))
    assert find().parent == places["path"]
    monkeypatch.setenv("MLTRITON_OCLOC", str(places["named"] / "ocloc"))
    assert find().parent == places["named"]
    monkeypatch.setenv("MLTRITON_OCLOC", str(tmp_path / "nothing"))
    with pytest.raises(TargetError, match="not installed") as caught:
        find()
    assert "no program" in (caught.value.found or "")


def test_other_files_are_no_binaries() -> None:
    for image in (b"", bytes(100), b"\x7fELF\x02\x01\x01" + bytes(60)):
        with pytest.raises(BackendError, match="no binary for an Intel GPU"):
            kernels(image)


def test_a_table_of_symbols_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "".join(f"  - name: {name}\n    execution_env:\n      grf_count: 128\n" for name in ("k", TABLE))
    monkeypatch.setattr(zebin, "description", lambda binary: f"version: '1.58'\nkernels:\n{entries}")
    assert list(kernels(b"")) == ["k"]


ASSEMBLY = """\
L0:
(W)     mov (8|M0)               r26.0<1>:ud   r0.0<1;1,0>:ud                   {Compacted}
L16:
        send.ugm (1|M0)          r5      r10   null:0  0x0  0x02080203  {$1} // wr:1+0, rd:8; load_block2d.ugm.d16
        send.ugm (1|M0)          null    r10   null:0  0x0  0x02080203  {$1} // wr:1+0, rd:0; load_block2d.ugm.d16
L32:
        dpas.8x8 (16|M0)         r12:f   r12:f  r5:hf   r6.0:hf    {Atomic}
(W&f0.1) jmpi                                L32
(W&~f0.0) jmpi                               L16
(W)     send.gtwy (1|M0)         null     r127    null:0  0x0  0x02000010  {EOT} // wr:1+0, rd:0; end of thread
"""


def test_counting() -> None:
    whole = isa.count(ASSEMBLY)
    assert whole.total == 7
    assert whole.operations == {"mov": 1, "send": 3, "dpas": 1, "jmpi": 2}
    assert whole.messages == {"load_block2d": 1, "prefetch": 1, "end": 1}
    inner, outer = isa.loops(ASSEMBLY)
    assert (inner.instructions.total, outer.instructions.total) == (2, 5)
    assert isa.innermost_loops(ASSEMBLY) == [inner]


@pytest.mark.usefixtures("needs_ocloc")
def test_disassembly() -> None:
    native = compile_native(emit(EMPTY), PVC)
    assert isa.count(disassemble(native)["k"]).messages == {"end": 1}
