"""What AOTInductor packages of a kernel: two shared libraries, `asm["so"]` and `asm["launcher.so"]`.

Level: user. Takes a kernel compiled for this machine; the first library exports it by its name, the second
`run_from_nativert`, by which torch's C++ programs launch it. Made when they are asked for, by the C compiler that
AOTInductor needs anyway (`CC`, cc, gcc or clang); `TargetError` where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mltriton.compiler.levels import Levels
from mltriton.errors import TargetError

if TYPE_CHECKING:
    from mltriton.compiler.kernel import CompiledKernel

LIBRARIES = ("so", "launcher.so")
_COMPILERS = ("cc", "gcc", "clang")


class WithLibraries(Levels):
    """A kernel's levels, and its shared libraries, which are not listed: a compiler makes them when they are asked
    for. It goes to other processes without the kernel.
    """

    def __init__(self, kernel: CompiledKernel) -> None:
        super().__init__(kernel.job, kernel.asm.known_lowered)
        self._metadata = kernel.metadata
        self._has_assertions = bool(kernel.binary and kernel.binary.metadata.get("assertions"))

    def __getitem__(self, level: str) -> Any:
        return self._library(level) if level in LIBRARIES else super().__getitem__(level)

    def __contains__(self, level: object) -> bool:
        return (level in LIBRARIES and not self._has_assertions) or super().__contains__(level)

    def _library(self, which: str) -> bytes:
        """The library of the kernel, or of its launcher. Raises `OptionError`, `TargetError`."""
        from mltriton.targets.cpu.exports import Source, launcher_text, named_text  # Few programs need it.
        from mltriton.tools.c_object import cpu_of

        if self._has_assertions:
            raise KeyError(which)  # Nobody would hear of them.
        source = Source(self._job, self._metadata, self)
        text = named_text(source, source.metadata.name, "") if which == "so" else launcher_text(source)
        return linked(cpu_of(source).object_of(text))


def linked(image: bytes) -> bytes:
    """A shared library of one object file. Raises `TargetError` where there is no C compiler, or it fails."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, _COMPILERS), None)
    if compiler is None:
        raise TargetError("a shared library needs a C compiler to link it", hint="Install gcc, or set CC.")
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        source.write_bytes(image)
        done = subprocess.run(
            [*compiler.split(), "-shared", "-o", str(made), str(source)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TargetError(f"{compiler} cannot link a shared library", found=done.stderr.strip())
        return made.read_bytes()
