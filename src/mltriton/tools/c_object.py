"""`mltriton aot`: a kernel as an object file and a header, which a C program links and calls.

Takes a kernel compiled for a CPU; guarantees that the object needs only the C library and defines only functions that
begin with its name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mltriton.errors import OptionError, TargetError
from mltriton.targets.cpu.exports import Source, c_text, header, is_reserved, source_of
from mltriton.tools.aot import write_output

if TYPE_CHECKING:
    from mltriton.compiler.kernel import CompiledKernel
    from mltriton.targets.cpu.target import CpuTarget

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def cpu_of(source: Source) -> CpuTarget:
    """The CPU that a kernel is for. Raises `TargetError` for other machines."""
    from mltriton.targets.cpu.target import CpuTarget  # Needed seldom.

    target = source.job.target
    if not isinstance(target, CpuTarget):
        raise TargetError("C programs call kernels for a CPU", expected="cpu or cpu:VARIANT", found=target.name)
    return target


def write_c_object(kernel: CompiledKernel, directory: Path, name: str | None = None) -> tuple[Path, Path]:
    """Write NAME.h and NAME.o, and say where. Raises `OptionError`, `TargetError`."""
    name = name or kernel.name
    if not _NAME.fullmatch(name):
        raise OptionError("the functions need a name of C", expected="letters, digits, _", found=name)
    if is_reserved(name):
        raise OptionError(f"C has a meaning for {name}", hint="Give the functions another name: --name NAME.")
    source = source_of(kernel)
    image = cpu_of(source).object_of(c_text(source, name))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make the directory {directory}: {error.strerror}") from None
    files = directory / f"{name}.h", directory / f"{name}.o"
    write_output(files[0], header(source, name))
    write_output(files[1], image)
    return files
