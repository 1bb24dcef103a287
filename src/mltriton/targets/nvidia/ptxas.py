"""NVIDIA's assembler as a tool: PTX in; a cubin and what its kernels use out. Its disassembler likewise.

Level: PTX -> binary. They run as programs of their own with a time limit. Guarantees: PTX that ptxas rejects raises
`BackendError` with its message and the PTX saved; `TargetError` says how to install what is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from mltriton.errors import BackendError, TargetError
from mltriton.records import NamedTuple
from mltriton.runtime import config
from mltriton.runtime.compile_thread import time_limit
from mltriton.targets.nvidia.devices import RESERVED_BYTES, Device

TIME_LIMIT = 300  # seconds, where MLTRITON_COMPILE_TIMEOUT is not set
TOOLKIT = Path("/usr/local/cuda/bin")
PACKAGES = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cu12/bin")  # where PyPI's packages install programs

_LIMITED = re.compile(r"^\.maxnreg ", re.MULTILINE)
_THREADS = re.compile(r"^\.maxntid (\d+).*$(?!\n\.minnctapersm)", re.MULTILINE)
# So many times the registers that there are, at most, where ptxas is asked to do with those: sums of products stay.
_SQUEEZED = {True: 1.45, False: 2.0}  # whether there are such sums
_FEW = 2  # programs on a multiprocessor, for one more of which it is worth to ask
_UNIT = 8  # of which registers of a lane are a multiple
_NEXT_TO_NOTHING = 4  # bytes of a lane
_KERNEL = re.compile(r"Compiling entry function '([^']+)' for")
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_SERIALIZED = re.compile(r"C75\d\d")  # products of a warp group that had to wait for each other


class KernelInfo(NamedTuple):
    """What a kernel uses: registers of a lane, bytes that they are too few for, bytes of shared memory."""

    name: str
    registers: int
    spilled: int
    shared: int


class Cubin(NamedTuple):
    """A binary for one device, what its kernels use, and what ptxas had to say besides."""

    binary: bytes
    kernels: dict[str, KernelInfo]
    remarks: tuple[str, ...]

    @property
    def spilled(self) -> int:
        """Bytes, of all kernels."""
        return sum(info.spilled for info in self.kernels.values())


@cache
def find_tool(name: str) -> Path | None:
    """A program of NVIDIA's: on the PATH, of the toolkit, or of PyPI's packages in this environment."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    places = [TOOLKIT, *(Path(folder, part) for folder in sys.path if folder for part in PACKAGES)]
    return next((place / name for place in places if os.access(place / name, os.X_OK)), None)


def tool(name: str) -> Path:
    """The same. Raises `TargetError` where there is none."""
    found = find_tool(name)
    if found is None:
        hint = "pip install 'mltriton[cuda]' installs NVIDIA's assembler; the toolkit has it, too."
        raise TargetError(f"{name} is not installed", found=f"neither on the PATH nor in {TOOLKIT}", hint=hint)
    return found


def version() -> str:
    """What identifies the assembler that is installed; "" where there is none. It is not run."""
    found = find_tool("ptxas")
    if found is None:
        return ""
    stat = found.stat()
    return f"ptxas {stat.st_size} {stat.st_mtime_ns}"


def assemble(ptx: str, device: Device, shared: int = 0, *, multiplies: bool = False) -> Cubin:
    """Machine code of a PTX module whose programs have so many bytes of dynamic shared memory; `multiplies`: matrices.

    Where the kernel says how many registers a lane may have (`maxnreg`), that is it. By itself ptxas leaves registers
    to other programs on the multiprocessor, even if it spills for that: then one program may have them all, if it did
    not. Where few programs fit and one more would for a few registers, they share the registers if that spills next to
    nothing: one computes while the others wait.
    """
    cubin = _assembled(ptx, device)
    found = _THREADS.search(ptx)
    if found is None or _LIMITED.search(ptx):
        return cubin
    most = max((info.registers for info in cubin.kernels.values()), default=0)
    if cubin.spilled:
        if most >= min(device.registers, device.all_registers // int(found[1])):
            return cubin
        return min(cubin, _assembled(_resident(ptx, 1), device), key=lambda made: made.spilled)
    programs = 1 + device.all_registers // (int(found[1]) * _allotted(most))
    each = device.all_registers // (programs * int(found[1])) // _UNIT * _UNIT
    shared_too = programs * (shared + RESERVED_BYTES) <= device.all_shared_bytes
    if programs <= _FEW and each < most <= each * _SQUEEZED[multiplies] and shared_too:
        return _together(ptx, programs, device) or cubin
    return cubin


def _together(ptx: str, programs: int, device: Device) -> Cubin | None:
    """Machine code of which so many programs share the registers; None where each would have too few: products of warp
    groups take as many as they take.
    """
    try:
        made = _assembled(_resident(ptx, programs), device)
    except BackendError:
        return None
    serialised = any(_SERIALIZED.search(remark) for remark in made.remarks)
    return None if serialised or made.spilled > _NEXT_TO_NOTHING else made


def _allotted(registers: int) -> int:
    """The registers that a lane takes of its multiprocessor's."""
    return max(1, -(-registers // _UNIT)) * _UNIT


def _resident(ptx: str, programs: int) -> str:
    """The same for at least so many programs on a multiprocessor."""
    return _THREADS.sub(rf"\g<0>\n.minnctapersm {programs}", ptx)


def _assembled(ptx: str, device: Device) -> Cubin:
    with TemporaryDirectory() as name:
        source, target = Path(name, "kernel.ptx"), Path(name, "kernel.cubin")
        source.write_text(ptx)
        log = _run("ptxas", ptx, f"--gpu-name={device.arch}", "-v", str(source), "-o", str(target))
        return Cubin(target.read_bytes(), {info.name: info for info in _kernels(log)}, tuple(_remarks(log)))


def disassemble(cubin: bytes) -> str:
    """The instructions of a cubin as text."""
    tool("nvdisasm")  # cuobjdump runs it, and does not say where it comes from
    with TemporaryDirectory() as name:
        source = Path(name, "kernel.cubin")
        source.write_bytes(cubin)
        return _run("cuobjdump", "", "-sass", str(source))


def _kernels(log: str) -> Iterator[KernelInfo]:
    """The figures of each kernel in the log."""
    starts = [match.start() for match in _KERNEL.finditer(log)]
    for start, end in pairwise([*starts, len(log)]):
        part = log[start:end]
        [name] = _KERNEL.findall(part)
        spilled = max((max(int(a), int(b)) for a, b in _SPILLED.findall(part)), default=0)
        registers, shared = (max(map(int, of.findall(part)), default=0) for of in (_USED, _SHARED))
        yield KernelInfo(name, registers, spilled, shared)


def _remarks(log: str) -> Iterator[str]:
    """What slows a kernel down: products that are serialised, and spilled registers."""
    yield from (line.strip() for line in log.splitlines() if _SERIALIZED.search(line))
    for info in _kernels(log):
        if info.spilled:
            yield f"{info.name}: {info.spilled} bytes of registers spilled to memory"


def _run(name: str, ptx: str, *arguments: str) -> str:
    """Run a program and give what it says."""
    limit = time_limit() or TIME_LIMIT
    try:
        done = subprocess.run([str(tool(name)), *arguments], capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        hint = f"{config.COMPILE_TIMEOUT.name} is the limit."
        raise BackendError(f"{name} took longer than {limit:.3g} seconds", hint=hint).saved_to(_saved(ptx)) from None
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        what = (
            f"rejects {'the generated PTX' if ptx else 'the cubin'}"
            if done.returncode > 0
            else f"crashed (signal {-done.returncode})"
        )
        raise BackendError(f"{name} {what}", found=said[-2000:]).saved_to(_saved(ptx))
    return said


def _saved(ptx: str) -> Path | None:
    from mltriton.runtime.private_files import save_text  # A launch from the cache needs none of it.

    return save_text(ptx, "ptx", suffix=".ptx") if ptx else None
