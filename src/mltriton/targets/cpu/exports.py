"""Kernels for programs that know nothing of Python: C functions in an object file, and shared libraries for torch.

Level: llvm -> binary. The kernel's own function `void kernel(ptr args, i64 begin, i64 end, ptr scratch)` gets a name,
and functions beside it that write its arguments into the table it reads. Guarantees: nothing is exported but what is
said here; the object needs only the C library. A kernel with assertions is an `OptionError`: what fails has nobody to
tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ctypes import CDLL
from typing import TYPE_CHECKING

from mltriton.errors import OptionError
from mltriton.frontend.signature import Argument
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.compiler.job import Job
    from mltriton.compiler.kernel import CompiledKernel, Metadata

SLOT = 8  # bytes of an argument in the table
STACK = 1 << 16  # scratch memory of more bytes is allocated
GRID = ("%grid_x", "%grid_y", "%grid_z")
ALIGNMENT = 64  # of scratch memory, in bytes


class Scalar(NamedTuple):
    """A type: in C as an argument and in memory, and in LLVM as an argument. Narrow floats are passed as `float`."""

    argument: str
    memory: str
    llvm: str


_INTEGERS = {
    f"{letter}{bits}": Scalar(name, name, f"i{bits}")
    for letter, sign in (("i", ""), ("u", "u"))
    for bits in (8, 16, 32, 64)
    for name in (f"{sign}int{bits}_t",)
}
_BYTES = ("fp8e4nv", "fp8e5", "fp8e4b8", "fp8e4b15", "fp8e5b16")
SCALARS: Mapping[str, Scalar] = _INTEGERS | {
    "i1": Scalar("uint8_t", "uint8_t", "i8"),
    "u1": Scalar("uint8_t", "uint8_t", "i8"),
    "fp16": Scalar("float", "uint16_t", "float"),
    "bf16": Scalar("float", "uint16_t", "float"),
    "fp32": Scalar("float", "float", "float"),
    "fp64": Scalar("double", "double", "double"),
    **dict.fromkeys(_BYTES, Scalar("float", "uint8_t", "float")),
}


# Words of C and C++, and names that the header itself uses.
_C = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef typeof union unsigned void volatile while"
)
_CPP = (
    "alignas alignof and and_eq asm bitand bitor bool catch class compl concept constexpr consteval constinit "
    "decltype delete dynamic_cast explicit export false friend module mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public requires static_assert template this thread_local throw "
    "true try typeid typename using virtual wchar_t xor xor_eq"
)
_HEADERS = "begin end scratch grid_x grid_y grid_z total failed program aligned_alloc free NULL main"
_RESERVED = frozenset((*_C.split(), *_CPP.split(), *_HEADERS.split(), *(scalar.memory for scalar in SCALARS.values())))


def is_reserved(name: str) -> bool:
    """Whether no function of a program may have this name: a word of C or C++, or a function of the C library."""
    return name in _RESERVED or hasattr(CDLL(None), name)


class Source(NamedTuple):
    """What is exported of a kernel: its compilation, what is known of it, and its LLVM IR."""

    job: Job
    metadata: Metadata
    levels: Mapping[str, str]


def source_of(kernel: CompiledKernel) -> Source:
    """What is exported of a kernel. Raises `OptionError` for one with assertions."""
    if kernel.binary is not None and kernel.binary.metadata.get("assertions"):
        raise OptionError(f"{kernel.name} has assertions, which a C program does not hear of", hint="Leave out debug.")
    return Source(kernel.job, kernel.metadata, kernel.asm)


class Parameter(NamedTuple):
    """A parameter of a kernel in C and in LLVM; `promise` is what its caller must keep."""

    name: str
    c: str
    llvm: str
    promise: str


def parameters_of(source: Source) -> list[Parameter]:
    """The parameters that are no constants, in their order."""
    found: list[Parameter] = []
    taken = {name for name in source.job.entries if name not in _RESERVED}
    for name, entry in source.job.entries.items():
        if isinstance(entry, Argument):
            plain = name.replace(".", "_")
            while (plain != name and plain in taken) or plain in _RESERVED:
                plain += "_"
            taken.add(plain)
            scalar = SCALARS[entry.scalar]
            is_written = name in source.metadata.written
            memory = f"{'' if is_written else 'const '}{scalar.memory} *"
            kinds = (memory, "ptr") if entry.is_pointer else (f"{scalar.argument} ", scalar.llvm)
            unit = "aligned to 16 bytes" if entry.is_pointer else "a multiple of 16"
            found.append(Parameter(plain, f"{kinds[0]}{plain}", kinds[1], unit if entry.divisibility > 1 else ""))
    return found


def scratch_of(source: Source) -> int:
    """Bytes that a thread needs beside the arrays, a multiple of their alignment."""
    return -(-source.metadata.scratch_bytes // ALIGNMENT) * ALIGNMENT


def named_text(source: Source, symbol: str, linkage: str) -> str:
    """The kernel's LLVM IR with a name of its own."""
    text = re.sub(r"@kernel\b", f"@{symbol}", source.levels["llvm"])
    return text.replace(f"define void @{symbol}(", f"define {linkage} void @{symbol}(", 1)


def c_text(source: Source, name: str) -> str:
    """LLVM IR with the C functions NAME (a whole grid) and NAME_programs (some programs of it)."""
    parameters = parameters_of(source)
    values = [(parameter.llvm, f"%value{number}") for number, parameter in enumerate(parameters)]
    listed = "".join(f", {kind} {value}" for kind, value in values)
    grid = "i32 %grid_x, i32 %grid_y, i32 %grid_z"
    size = scratch_of(source)
    programs = [
        f"define void @{name}_programs({grid}, i64 %begin, i64 %end, ptr %scratch{listed}) nounwind {{",
        *_filled(values),
        f"  call void @{name}_kernel(ptr %table, i64 %begin, i64 %end, ptr %scratch)",
        "  ret void",
        "}",
    ]
    run = f"  call void @{name}_programs({grid}, i64 0, i64 %total, ptr %scratch{listed})"
    if size <= STACK:
        body = [f"  %scratch = alloca i8, i64 {max(size, 1)}, align {ALIGNMENT}", run, "  ret i32 0"]
    else:
        body = [
            f"  %scratch = call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {size})",
            "  %none = icmp eq ptr %scratch, null",
            "  br i1 %none, label %failed, label %there",
            "failed:",
            "  ret i32 -1",
            "there:",
            run,
            "  call void @free(ptr %scratch)",
            "  ret i32 0",
        ]
    total = [
        *(f"  %{axis} = zext i32 %grid_{axis} to i64" for axis in "xyz"),
        "  %plane = mul i64 %x, %y",
        "  %total = mul i64 %plane, %z",
    ]
    whole = [f"define i32 @{name}({grid}{listed}) nounwind {{", *total, *body, "}"]
    declared = ["declare ptr @aligned_alloc(i64, i64)", "declare void @free(ptr)"] if size > STACK else []
    return "\n".join([named_text(source, f"{name}_kernel", "internal"), *declared, *programs, *whole, ""])


def _filled(
    values: Sequence[tuple[str, str]], grid: Sequence[str] = ("%grid_x", "%grid_y", "%grid_z")
) -> Iterator[str]:
    """The table of arguments on the stack: the values, then the grid as 64-bit integers."""
    yield f"  %table = alloca i64, i64 {len(values) + 3}, align {SLOT}"
    sizes = [f"%wide{axis}" for axis in range(3)]
    for wide, narrow in zip(sizes, grid, strict=True):
        yield f"  {wide} = zext i32 {narrow} to i64"
    for number, (kind, value) in enumerate([*values, *(("i64", size) for size in sizes)]):
        yield f"  %slot{number} = getelementptr i64, ptr %table, i64 {number}"
        yield f"  store {kind} {value}, ptr %slot{number}, align {SLOT}"


def launcher_text(source: Source) -> str:
    """LLVM IR of `run_from_nativert(x, y, z, threads, arguments, kernel)`, torch's way to launch a kernel.

    `arguments` has an entry for each parameter of the Python function: a tensor's address, a scalar's place, nothing
    for a constant. Programs run one after the other on the calling thread.
    """
    names = list(source.job.fn.signature.parameters)
    loads: list[str] = []
    values: list[tuple[str, str]] = []
    for number, (parameter, name) in enumerate(zip(parameters_of(source), _names(source), strict=True)):
        loads.append(f"  %place{number} = getelementptr ptr, ptr %arguments, i64 {names.index(name)}")
        loads.append(f"  %given{number} = load ptr, ptr %place{number}, align {SLOT}")
        if parameter.llvm == "double":  # torch writes every float of Python as C's float
            loads.append(f"  %single{number} = load float, ptr %given{number}, align 1")
            loads.append(f"  %value{number} = fpext float %single{number} to double")
        elif parameter.llvm != "ptr":
            loads.append(f"  %value{number} = load {parameter.llvm}, ptr %given{number}, align 1")
        values.append((parameter.llvm, f"%{'given' if parameter.llvm == 'ptr' else 'value'}{number}"))
    size = scratch_of(source)
    lines = [
        "declare ptr @aligned_alloc(i64, i64)",
        "declare void @free(ptr)",
        "define void @run_from_nativert(i32 %x, i32 %y, i32 %z, i32 %threads, ptr %arguments, ptr %kernel) nounwind {",
        *loads,
        *_filled(values, ("%x", "%y", "%z")),
        "  %plane = mul i64 %wide0, %wide1",
        "  %total = mul i64 %plane, %wide2",
        f"  %scratch = call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {max(size, ALIGNMENT)})",
        "  call void %kernel(ptr %table, i64 0, i64 %total, ptr %scratch)",
        "  call void @free(ptr %scratch)",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _names(source: Source) -> list[str]:
    names = [name for name, entry in source.job.entries.items() if isinstance(entry, Argument)]
    parts = [name for name in names if "." in name]
    if parts:
        raise OptionError("tuples and descriptors are not passed by torch's launcher", found=", ".join(parts))
    return names


def header(source: Source, name: str) -> str:
    """The C header of the functions of `c_text`."""
    parameters = parameters_of(source)
    listed = "".join(f", {parameter.c}" for parameter in parameters)
    passed = "".join(f", {parameter.name}" for parameter in parameters)
    promises = [f" *   {parameter.name}: {parameter.promise}" for parameter in parameters if parameter.promise]
    constants = ", ".join(f"{key} = {value!r}" for key, value in source.job.constants.items())
    uses_tiles = "llvm.x86.t" in source.levels["llvm"]
    return _HEADER.format(
        name=name,
        guard=f"{name.upper()}_H",
        kernel=source.metadata.name,
        target=source.metadata.target,
        constants=f"; {constants}" if constants else "",
        promises="\n".join(["", " * The caller promises:", *promises]) if promises else "",
        listed=listed,
        passed=passed,
        scratch=max(scratch_of(source), ALIGNMENT),
        prepare=_TILES.format(name=name) if uses_tiles else "",
    )


_HEADER = """\
/* The kernel {kernel} for {target}{constants}. Written by mltriton.{promises}
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {{
#endif
{prepare}
/* All programs of a grid, on the calling thread. 0, or -1 where there is no memory. */
int {name}(uint32_t grid_x, uint32_t grid_y, uint32_t grid_z{listed});

/* The programs begin, ..., end - 1 of a grid (x runs fastest), for threads of the caller's own: each has its own
 * scratch memory of {name}_SCRATCH bytes, aligned to 64. */
#define {name}_SCRATCH {scratch}
void {name}_programs(uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, int64_t begin, int64_t end,
    void *scratch{listed});

#ifdef _OPENMP
/* All programs of a grid, by OpenMP's threads. 0, or -1 where there is no memory. */
static inline int {name}_parallel(uint32_t grid_x, uint32_t grid_y, uint32_t grid_z{listed}) {{
    int64_t total = (int64_t)grid_x * grid_y * grid_z;
    int failed = 0;
#pragma omp parallel reduction(| : failed)
    {{
        void *scratch = aligned_alloc(64, {name}_SCRATCH);
        failed = scratch == NULL;
#pragma omp for schedule(dynamic)
        for (int64_t program = 0; program < total; program++)
            if (scratch) {name}_programs(grid_x, grid_y, grid_z, program, program + 1, scratch{passed});
        free(scratch);
    }}
    return failed ? -1 : 0;
}}
#endif

#ifdef __cplusplus
}}
#endif
#endif
"""
_TILES = """
/* The kernel multiplies by matrix tiles (AMX), which Linux gives to a process that asks: call this once, before others.
 * 0 where it does. */
#include <sys/syscall.h>
#include <unistd.h>
static inline int {name}_prepare(void) {{ return (int)syscall(SYS_arch_prctl, 0x1023, 18); }}
"""
