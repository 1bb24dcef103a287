"""What Intel's compiler says of the kernels in its binaries: registers, spills, shared memory.

Level: binary. A binary is an ELF file; its section `.ze_info` describes the kernels in YAML, of which the few forms
that the compiler writes are read here. Guarantees: a binary without that section raises `BackendError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import error as StructError

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.runtime.native.elf import read_sections

_RELOCATABLE, _INTEL_GPU = 1, 205  # kind of file and machine

_KERNELS = "kernels:"
_SYMBOLS = "Intel_Symbol_Table_Void_Program"  # stands among the kernels where a kernel calls functions
_NUMBER = re.compile(r"^\s+(\w+):\s+(\d+)$", re.MULTILINE)
_BUFFER = re.compile(r"- type:\s+(\w+)\s+usage:\s+\w+\s+size:\s+(\d+)")


class KernelInfo(NamedTuple):
    """One kernel: registers of a warp, lanes, bytes of memory by use. `spilled` are bytes that registers were too few
    for; `scratch` all private memory of a warp, that included.
    """

    name: str
    registers: int
    lanes: int
    spilled: int
    scratch: int
    shared: int
    private: int
    barriers: int


def kernels(binary: bytes) -> dict[str, KernelInfo]:
    """The kernels of a binary by name."""
    return {info.name: info for info in _read(description(binary)) if info.name != _SYMBOLS}


def description(binary: bytes) -> str:
    """The text of `.ze_info`."""
    try:
        sections = read_sections(memoryview(binary), _RELOCATABLE, _INTEL_GPU) or ()
    except (StructError, ValueError, IndexError):
        sections = ()
    for section in sections:
        if section.name == ".ze_info":
            return bytes(section.data).decode()
    raise BackendError("this is no binary for an Intel GPU", found=f"{len(binary)} bytes")


def _read(text: str) -> Iterator[KernelInfo]:
    _, _, rest = text.partition(f"\n{_KERNELS}\n")
    body = re.split(r"^\S", rest, maxsplit=1, flags=re.MULTILINE)[0]
    for part in re.split(r"^  - name:\s+", body, flags=re.MULTILINE)[1:]:
        name, _, fields = part.partition("\n")
        numbers = {key: int(value) for key, value in _NUMBER.findall(fields)}
        # The vector compiler, for which a warp is one lane, reports no spills, but the scratch memory for them.
        scratch = sum(int(size) for kind, size in _BUFFER.findall(fields) if kind == "scratch")
        lanes = numbers.get("simd_size", 1)
        yield KernelInfo(
            name.strip(),
            registers=numbers.get("grf_count", 0),
            lanes=lanes,
            spilled=numbers.get("spill_size", scratch if lanes == 1 else 0),
            scratch=scratch,
            shared=numbers.get("slm_size", 0),
            private=numbers.get("private_size", 0),
            barriers=numbers.get("barrier_count", 0),
        )
