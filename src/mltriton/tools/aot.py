"""Ahead-of-time compile: a kernel named on the command line, compiled for a signature, its levels written out.

Takes `FILE.py:KERNEL` or `package.module:KERNEL`; guarantees that what is missing (file, kernel, level, directory) is a
named error. The compile itself is `mltriton.compile`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mltriton
from mltriton.compiler.entries import kernel_of
from mltriton.errors import OptionError, SourceLocation, TritonError
from mltriton.runtime.interface import KernelInterface

Levels = Mapping[str, str | bytes]
Images = Mapping[str, Callable[[], bytes]]

# How a level's file is called: the kernel's name and this.
SUFFIXES: Mapping[str, str] = {
    "tt": ".tt.mlir",
    "ttg": ".ttg.mlir",
    "warp": ".warp.mlir",
    "intrinsic": ".intrinsic.mlir",
    "llvm": ".ll",
    "asm": ".s",
    "spirv": ".spv",
    "isa": ".asm",
    "native": ".zebin",
}


def load_kernel(spec: str) -> Any:
    """Return the kernel that `FILE.py:KERNEL` or `package.module:KERNEL` names; OptionError where there is none.

    It is the `JITFunction` inside what `autotune` and `heuristics` made of it.
    """
    where, colon, name = spec.rpartition(":")
    if not colon or not where or not name:
        raise OptionError(f"{spec!r} names no kernel", expected="FILE.py:KERNEL or package.module:KERNEL")
    module = _load_module(where)
    found = getattr(module, name, None)
    if isinstance(found, KernelInterface):
        return kernel_of(found)
    known = sorted(key for key, value in vars(module).items() if isinstance(value, KernelInterface))
    raise OptionError(
        f"{where} has no kernel {name!r}",
        found=f"{name} of type {type(found).__name__}" if hasattr(module, name) else None,
        hint=f"Its kernels are {', '.join(known)}." if known else "It has no function under @mltriton.jit.",
    )


def compile_kernel(spec: str, signature: str, *, target: str, **options: Any) -> Any:
    """Compile the kernel that `spec` names; returns what `mltriton.compile` does."""
    return mltriton.compile(load_kernel(spec), signature=signature, target=target, **options)


def emit_levels(levels: Levels, level: str, output: Path | None, stem: str, images: Images | None = None) -> None:
    """Write one level to `output` or standard output, or with `level="all"` every level into the directory `output`.

    `images` are levels that a file gets as binaries. Standard output gets their text where they have one. Raises
    `OptionError` for an unknown level, and for a binary that would go to a terminal.
    """
    images = images or {}
    if level == "all":
        _emit_all(levels, images, output, stem)
    elif level not in levels and level not in images:
        known = ", ".join(dict.fromkeys((*levels, *images)))
        raise OptionError(f"there is no level {level!r}", expected=f"{known} or all", found=level)
    elif output is not None:
        write_output(output, images[level]() if level in images else levels[level])
    elif level in levels:
        _print(levels[level])
    elif sys.stdout.isatty():
        raise OptionError(f"{level} is binary and would go to a terminal", hint="Say into which file: --output FILE.")
    else:
        _print(images[level]())


def _emit_all(levels: Levels, images: Images, output: Path | None, stem: str) -> None:
    if output is None:
        raise OptionError("--emit all writes one file a level", hint="Say into which directory: --output DIR.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make the directory {output}: {error.strerror}") from None
    for level in dict.fromkeys((*levels, *images)):
        content = images[level]() if level in images else levels[level]
        write_output(output / f"{stem}{SUFFIXES.get(level, f'.{level}')}", content)


def _print(content: str | bytes) -> None:
    if isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(content if content.endswith("\n") else content + "\n")


def write_output(file: Path, content: str | bytes) -> None:
    """Write a file that the user asked for. Raises `OptionError` where that cannot be."""
    try:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise OptionError(f"cannot write {file}: {error.strerror}") from None


def print_files(write: Callable[[], Iterable[Path]]) -> int:
    """Do a command's work and print which files it wrote. The status is 1 after an error, which is printed."""
    try:
        files = write()
    except TritonError as error:
        print(error.render(), file=sys.stderr)
        return 1
    print(*files, sep="\n")
    return 0


def _load_module(where: str) -> ModuleType:
    """Import a file or a module; what its own code raises becomes an OptionError at the raising line."""
    try:
        return _import_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except TritonError:
        raise
    except Exception as error:
        raise OptionError(f"{where} cannot be imported: {error!r}").at(_raising_location(error)) from error


def _import_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise OptionError(f"there is no file {file}")
    name = f"mltriton_kernels_of_{file.stem}"
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise OptionError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent.resolve()))
    return module


def _raising_location(error: Exception) -> SourceLocation | None:
    """Return the innermost line of user code in the traceback."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return SourceLocation(error.filename, error.lineno or 1, (error.offset or 1) - 1)
    location = None
    frame = error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and file not in (__file__, importlib.__file__):
            location = SourceLocation(file, frame.tb_lineno, 0)
        frame = frame.tb_next
    return location
