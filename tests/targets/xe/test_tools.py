"""What the command line makes of kernels for Xe: SPIR-V, instructions, native binaries; every level verified."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mltriton as triton
import mltriton.language as tl
from mltriton.commands import app
from mltriton.errors import OptionError, TargetError
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.prefix import find_tool
from mltriton.targets.xe.spirv import listing
from mltriton.targets.xe.spirv.words import read
from mltriton.targets.xe.zebin import kernels
from mltriton.tools.aot import emit_levels
from mltriton.tools.verify import verify_kernel

KERNELS = Path(triton.__file__).parent / "kernels"


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def too_far(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i <= n)


@pytest.fixture(scope="module")
def compiled() -> Any:
    return triton.compile(add, "*fp32:16, *fp32:16, *fp32:16, i32, 256", target="xe:bmg")


def test_levels(compiled: Any) -> None:
    assert list(compiled.asm) == ["tt", "ttg", "warp", "intrinsic", "llvm", "spirv", "isa"]
    assert "asm" in compiled.asm
    assert read(compiled.image("spirv")).kernels == ["add"]
    with pytest.raises(TargetError, match="the target xe:bmg makes no ptx") as caught:
        compiled.image("ptx")
    assert (caught.value.expected, caught.value.found) == ("spirv, native", "ptx")


@pytest.mark.usefixtures("needs_ocloc")
def test_figures_are_those_of_the_binary(compiled: Any) -> None:
    info = kernels(compiled.image("native"))["add"]
    assert compiled.asm["asm"] is compiled.asm["isa"]
    assert (compiled.n_regs, compiled.n_spills) == (info.registers, info.spilled // 4) == (128, 0)


@triton.jit
def told(x, SIZE: tl.constexpr):
    tl.device_assert(tl.load(x) > 0, "positive")
    tl.store(x + tl.arange(0, SIZE), tl.cumsum(tl.load(x + tl.arange(0, SIZE)), 0))


@pytest.mark.parametrize(("codegen", "items"), [("simt", 64), ("simd", 2)])
def test_facts_beside_the_text(codegen: str, items: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known of a kernel that is compiled, and of the same one from the cache."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    options: dict[str, Any] = {"target": "xe:pvc", "num_warps": 2, "codegen": codegen, "debug": True}
    found = [triton.compile(told, "*fp32:16, 256", grf_mode=mode, **options) for mode in ("256", "256", "default")]
    assert [kernel.metadata.from_cache for kernel in found] == [False, True, False]
    fixed, cached, free = (kernel.asm.lowered for kernel in found)
    assert fixed.text == cached.text == found[1].asm["llvm"]
    assert asdict(fixed.facts) | {"assertions": ()} == asdict(cached.facts) | {"assertions": ()}
    facts: Any = cached.facts
    assert (facts.codegen, facts.num_warps, facts.work_items) == (codegen, 2, items)
    assert (facts.registers, facts.fixed_registers, free.facts.fixed_registers) == (256, True, False)
    assert (facts.shared, facts.prints) == (found[1].metadata.shared, False)
    assert [said[0] for said in facts.assertions] == ["positive"]


@pytest.mark.parametrize("has_tool", [True, False])
def test_spirv_as_text(compiled: Any, has_tool: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if has_tool and find_tool(listing.TOOL, None) is None:
        pytest.skip("no spirv-dis")
    if not has_tool:
        monkeypatch.setattr(listing, "find_tool", lambda name, chosen: None)
    text = listing.listing(compiled.image("spirv"))
    assert re.search(r'^\s*OpEntryPoint .*"add"', text, re.MULTILINE)
    assert re.search(r"^\s*OpCapability", text, re.MULTILINE)
    instructions = [line for line in text.splitlines() if not line.startswith(";")]
    assert len(instructions) == len(read(compiled.image("spirv")).instructions)
    assert ("since spirv-dis is not installed" in text) == (not has_tool)


@pytest.mark.usefixtures("needs_ocloc")
def test_files_get_binaries(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(
        "import mltriton as triton\nimport mltriton.language as tl\n\n@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n"
    )
    command = ["compile", f"{file}:one", "-s", "*fp32", "-t", "xe:pvc", "-e"]
    result = CliRunner().invoke(app, [*command, "all", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    names = {"tt.mlir", "ttg.mlir", "warp.mlir", "intrinsic.mlir", "ll", "spv", "asm", "zebin"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"one.{name}" for name in names}
    assert read((tmp_path / "out" / "one.spv").read_bytes()).kernels == ["one"]
    assert list(kernels((tmp_path / "out" / "one.zebin").read_bytes())) == ["one"]
    assert CliRunner().invoke(app, [*command, "spirv"]).stdout.lstrip().startswith("; SPIR-V")


def test_a_terminal_gets_no_binary(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    images = {"native": lambda: b"\x7fELF"}
    emit_levels({}, "native", None, "k", images)
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"\x7fELF"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(OptionError, match="native is binary and would go to a terminal") as caught:
        emit_levels({}, "native", None, "k", images)
    assert caught.value.hint == "Say into which file: --output FILE."
    with pytest.raises(OptionError) as caught:
        emit_levels({"tt": ""}, "nativ", None, "k", images)
    assert caught.value.expected == "tt, native or all"


def test_every_level_is_verified(queue: Queue) -> None:
    args = {"x": "100:fp32", "y": "100:fp32", "z": "100:fp32", "n": 100, "BLOCK": 64}
    result = verify_kernel(add, args=args, grid=(2,), target="xe:pvc")
    assert [level.name for level in result.levels] == ["tt", "ttg", "warp", "intrinsic", "xe:pvc"]
    assert result.ok, str(result)


def test_what_the_device_writes_outside_is_seen(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    from mltriton.tools.level_runs import Runs

    monkeypatch.setattr(Runs, "of_module", _as_reference)
    result = verify_kernel(too_far, args={"x": "50:fp32", "n": 50, "BLOCK": 64}, grid=(1,), target="xe:pvc")
    assert "machine code wrote outside x" in str(result)


def _as_reference(runs: Any, name: str, module: Any) -> Any:
    """A level that is not run: what it would leave are the arguments."""
    return runs._run(name, lambda copies: None)


# Kernels of the library with the longest times of emulation left out.
LIBRARY = [
    *("normalization:softmax_kernel", "normalization:layer_norm_kernel", "gemm:matmul_descriptor_kernel"),
    *("gemm:matmul_pointer_kernel", "gemm:matmul_block_pointer_kernel", "attention:attention_kernel"),
    *("fused_gemm:fused_matmul_kernel", "split_k:split_k_kernel", "stream_k:stream_k_kernel"),
    *("gemm_grouped:grouped_gemm_kernel", "attention_paged_kernels:paged_attention_warps_kernel"),
    *("attention_paged_kernels:paged_attention_kernel", "attention_backward:attention_backward_kernel"),
]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["xe:pvc", "xe:bmg"])
@pytest.mark.parametrize("kernel", LIBRARY)
def test_the_library_is_verified(queue: Queue, kernel: str, target: str) -> None:
    file, _, name = kernel.partition(":")
    result = verify_kernel(f"{KERNELS / file}.py:{name}", target=target)
    assert result.levels[-1].name == target
    assert result.ok, str(result)
    assert np.isfinite(result.levels[-1].seconds)
