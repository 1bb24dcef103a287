"""Intel's offline compiler as a tool: SPIR-V in; a native binary, its figures and its assembly out.

Level: binary. It runs as a program of its own with a time limit. Guarantees: a module that it rejects, on which it
crashes or over which it takes too long raises `BackendError` with its log; `TargetError` says how to install it where
it is missing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mltriton.errors import BackendError, TargetError
from mltriton.records import NamedTuple
from mltriton.runtime import config
from mltriton.runtime.compile_thread import time_limit
from mltriton.targets.xe.devices import Device, GrfMode
from mltriton.targets.xe.prefix import find_tool, prefixes
from mltriton.targets.xe.spirv.emission import Code
from mltriton.targets.xe.zebin import KernelInfo, kernels

TIME_LIMIT = 120  # seconds, where MLTRITON_COMPILE_TIMEOUT is not set
LEAST_REJECTED = 192  # exit statuses from here on are OpenCL's (negative) errors; others are crashes

# Kind of code, registers of a warp -> options; None leaves the choice to the compiler.
_OPTIONS: dict[tuple[Code, int | None], str] = {
    (Code.SIMT, None): "-cl-intel-enable-auto-large-GRF-mode",
    (Code.SIMT, 128): "-cl-intel-128-GRF-per-thread",
    (Code.SIMT, 256): "-cl-intel-256-GRF-per-thread",
    (Code.SIMD, 128): "-vc-codegen",
    (Code.SIMD, 256): "-vc-codegen -doubleGRF",
}
# What the compiler says of every module.
_NOISE = ("Compilation from IR - skipping loading of FCL", "Build succeeded.")


class Native(NamedTuple):
    """A binary for one device, what its kernels use, and what the compiler had to say."""

    binary: bytes
    device: Device
    kernels: dict[str, KernelInfo]
    log: str

    @property
    def spills(self) -> bool:
        """Whether a kernel keeps in memory what the registers cannot hold."""
        return any(info.spilled or info.scratch for info in self.kernels.values())


def find() -> Path:
    """The compiler: `MLTRITON_OCLOC`, else on the PATH, else in the private prefix. Raises `TargetError`."""
    chosen = config.OCLOC.get()
    found = find_tool("ocloc", chosen)
    if found is None:
        places = ", ".join(map(str, prefixes()))
        where = f"{config.OCLOC.name} names {chosen}, no program" if chosen else f"neither on the PATH nor in {places}"
        hint = "`make setup-xe` installs it on Debian (scripts/install-ocloc.sh), a package of Intel's elsewhere."
        raise TargetError("Intel's offline compiler ocloc is not installed", found=where, hint=hint)
    return found


def compile_native(
    image: bytes, device: Device, *, code: Code = Code.SIMT, registers: int | None = 128, extra: Sequence[str] = ()
) -> Native:
    """Compile a SPIR-V module. `registers` of a warp are those of a GRF mode; None lets the compiler choose."""
    options = _OPTIONS.get((code, registers))
    if options is None:
        expected = ", ".join(str(count) for kind, count in _OPTIONS if kind is code)
        raise TargetError("ocloc has no option for this GRF mode", expected=expected, found=str(registers))
    with TemporaryDirectory() as name:
        source, target = Path(name, "kernel.spv"), Path(name, "kernel.bin")
        source.write_bytes(image)
        arguments = ["compile", "-file", str(source), "-spirv_input", "-device", device.ocloc]
        log = _run([*arguments, "-options", " ".join((options, *extra)), "-o", str(target)])
        binary = target.read_bytes() if target.exists() else b""
    if not binary:
        raise BackendError("Intel's compiler wrote no binary", found=log)
    return Native(binary, device, kernels(binary), log)


def build_options(
    device: Device, num_warps: int, registers: int, code: Code = Code.SIMT, *, fixed: bool = False
) -> str:
    """What a driver is told that compiles for a GPU, where nobody can ask it for spills.

    So many registers; with fewer than so many warps may have, unless their number is `fixed`, the compiler takes the
    next mode itself where it would spill. Raises `TargetError` for more warps than the mode allows.
    """
    device.check_warps(num_warps, registers)
    modes = _modes(device, num_warps, registers)
    choose = not fixed and len(modes) > 1 and (code, None) in _OPTIONS
    return _OPTIONS[code, None if choose else registers]


def compile_without_spills(
    image: bytes,
    device: Device,
    num_warps: int,
    *,
    code: Code = Code.SIMT,
    registers: int | None = None,
    fixed: bool = False,
) -> Native:
    """Compile with the fewest registers that are enough, or the most that so many warps may have.

    `registers` is where to begin: what the program is expected to need; where to stay, too, if that is `fixed`.
    Raises `TargetError` for more warps than any mode allows.
    """
    first = device.grf_modes[0].registers if registers is None else registers
    device.check_warps(num_warps, first)
    native = None
    for mode in _modes(device, num_warps, first):
        native = compile_native(image, device, code=code, registers=mode.registers)
        if fixed or not native.spills:
            break
    assert native is not None
    return native


def _modes(device: Device, num_warps: int, registers: int) -> list[GrfMode]:
    """The modes with at least so many registers that so many warps may have, fewest registers first."""
    return [mode for mode in device.grf_modes if mode.registers >= registers and num_warps <= mode.max_warps]


def disassemble(native: Native) -> dict[str, str]:
    """The assembly text of each kernel by name."""
    with TemporaryDirectory() as name:
        source, target = Path(name, "kernel.bin"), Path(name, "dump")
        source.write_bytes(native.binary)
        _run(["disasm", "-file", str(source), "-device", native.device.ocloc, "-dump", str(target)])
        texts = {path.name: path.read_text(errors="replace") for path in target.glob(".text.*.asm")}
    found = {path.removeprefix(".text.").removesuffix(".asm"): text for path, text in texts.items()}
    return {kernel: found[kernel] for kernel in native.kernels if kernel in found}


def _run(arguments: Sequence[str]) -> str:
    """Run the compiler and give its log."""
    limit = time_limit() or TIME_LIMIT
    try:
        done = subprocess.run([str(find()), *arguments], capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        hint = f"{config.COMPILE_TIMEOUT.name} is the limit."
        raise BackendError(f"Intel's compiler took longer than {limit:.3g} seconds", hint=hint) from None
    lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    log = "\n".join(line for line in lines if line.strip() and line not in _NOISE)
    if done.returncode == 0:
        return log
    what = "rejects the module" if done.returncode >= LEAST_REJECTED else f"crashed (status {done.returncode})"
    raise BackendError(f"Intel's compiler {what}", found=log)
