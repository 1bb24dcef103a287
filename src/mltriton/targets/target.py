"""What the compiler and the runtime ask of a target, and how a target is found by its name.

Level: tt to binary. A family is a package beside this file: `target.py` there makes machine code (`create(variant) ->
Target`) and `spec.py` describes it to passes (`targets/registry.py`). Importing this module, or a family's `target.py`,
loads no compiler module: a launch of a cached kernel needs them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum, auto
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mltriton.errors import TargetError, did_you_mean
from mltriton.records import record

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.runtime.native.params import ParamSpec
    from mltriton.runtime.slots import Slot
    from mltriton.targets.base import TargetSpec

# family -> its variants; the variant of the plain family name is "".
FAMILIES: dict[str, tuple[str, ...]] = {
    "cpu": ("avx512", "avx512-vnni", "avx512-bf16", "amx", "amx-fp16", "avx2", "sse", "neon"),
    "cuda": ("80", "89", "90"),
    "generic": (),
    "interpreter": (),
    "xe": ("pvc", "bmg", "lnl", "ptl"),
}
# The package of a family that has another name than this.
PACKAGES: dict[str, str] = {"cuda": "nvidia"}
# Families whose name alone is no target: there is no machine of which all variants are parts.
VARIANTS_ONLY = frozenset({"xe"})
# Packages of other targets that a family has no use for: changes there change nothing of its kernels.
FOREIGN_SOURCES: dict[str, frozenset[str]] = {"cpu": frozenset({"xe", "nvidia", "simt"})}


# Families whose launches return before they have run -> the module with their `clock()`.
CLOCKS: dict[str, str] = {"cuda": "timing"}

# The family that runs kernels on arrays of a kind of device, where a launch names no target.
DEVICES: dict[str, str] = {"cpu": "cpu", "cuda": "cuda"}


class LoadedKernel(Protocol):
    """A kernel in this process, ready to be launched."""

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """A function `launch(grid_x, grid_y, grid_z, *arguments)`, for arguments that pass `specs`.

        `specs` are those of all parameters in order, constants included. It returns None after the launch, or
        NotImplemented where an argument does not pass its spec.
        """
        ...

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot], /) -> None:
        """Launch with the slots of the kernel's parameters already filled."""
        ...


@runtime_checkable
class ConditionalKernel(Protocol):
    """A kernel that asks something which launches only find out. Others are compiled when they are needed: `otherwise`
    gives the one that asks nothing of the memory of its arguments, `in_one_round` the one for launches whose programs
    all run at a time if several share a multiprocessor.
    """

    otherwise: Callable[[], LoadedKernel] | None
    in_one_round: Callable[[], LoadedKernel] | None


class AccessChecks(Enum):
    """When a target checks that accesses stay inside the arrays passed."""

    ALWAYS = auto()  # by itself
    IN_DEBUGGING = auto()  # where it is asked to, and in kernels that are being debugged
    ON_DEMAND = auto()


@record(frozen=True)
class Facts:
    """What a target knows of a lowered kernel besides its text: each target has its own class, of JSON values."""


@record(frozen=True)
class Lowered:
    """A kernel as LLVM IR text, and what is known of it besides."""

    text: str
    facts: Facts = Facts()


@record(frozen=True)
class Binary:
    """What a target makes of a module: `object` is what `load` takes, `metadata` (JSON values) what it must know
    besides, such as `scratch_bytes`.
    """

    object: bytes
    metadata: dict[str, Any]


def heading(registers: int, spilled: int) -> str:
    """The first line of an assembly: registers of a lane or a warp, bytes of memory of a lane in their place."""
    return f"// {registers} registers, {spilled} bytes spilled\n"


class Target:
    """A target as `compiler/` uses it; one instance for each name in `targets/registry.py` (`cpu`, `cpu:avx2`,
    `generic`, ...).

    A target that compiles no further than the intrinsic level has `can_run` False; `lower` and all after it raise
    `TargetError` there. `unused_options` are options of a launch (`compiler/options.py`) that make no difference to a
    workgroup-level kernel: of jobs that differ in these alone one is compiled.
    """

    name: str  # in the registry
    access_checks = AccessChecks.ON_DEMAND
    unused_options: frozenset[str] = frozenset()

    @property
    def spec(self) -> TargetSpec:
        """What passes ask."""
        from mltriton.targets.registry import spec  # A launch from the cache needs none of it.

        return spec(self.name)

    @property
    def can_run(self) -> bool:
        """Whether there is machine code."""
        return True

    @property
    def fingerprint(self) -> str:
        """What the machine code depends on besides the program: instruction set, CPU name, tool chain version. Part
        of the cache key.
        """
        return self.name

    def lower(self, module: Module) -> Lowered:
        """LLVM IR of a module at the intrinsic level, which is left as it is."""
        raise self._nothing("LLVM IR")

    def restored(self, text: str, binary: Binary) -> Lowered:
        """What `lower` gave, from its text and from what `assemble` made of it."""
        return Lowered(text)

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """What there is to read below LLVM IR, by name; each is made of LLVM IR. The last is the assembly."""
        return {}

    @property
    def images(self) -> Mapping[str, Callable[[Lowered], bytes]]:
        """Files for other tools, by name; each is made of LLVM IR."""
        return {}

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """Machine code of LLVM IR; `module`, from which it came, tells scratch and shared memory."""
        raise self._nothing("machine code")

    def registers(self, assembly: str) -> tuple[int, int]:
        """How many registers, and 4-byte words of memory in their place, the program in assembly text uses: what
        `heading` says. Raises `TargetError` for a text without it.
        """
        match = re.match(r"// (\d+) registers, (\d+) bytes spilled", assembly)
        if match is None:
            raise TargetError(f"the text is no assembly of {self.name}")
        return int(match[1]), int(match[2]) // 4

    def load(self, binary: Binary, name: str) -> LoadedKernel:
        """Bring the kernel `name` into the process."""
        raise self._nothing("machine code")

    def takes(self, device: str) -> bool:
        """Whether arrays on `device` ("cpu", "xpu", "cuda", ...) can be passed to this target's kernels."""
        return False

    def _nothing(self, what: str) -> TargetError:
        hint = "It compiles down to the intrinsic level, to be read; compile for cpu to run."
        return TargetError(f"the target {self.name} has no {what}", hint=hint)


def names() -> list[str]:
    """Every target name: families, and families with a variant."""
    plain = {family: () if family in VARIANTS_ONLY else (family,) for family in FAMILIES}
    return [name for family, of in FAMILIES.items() for name in (*plain[family], *(f"{family}:{v}" for v in of))]


@cache
def find_target(name: str) -> Target:
    """The target called `name`. Raises `TargetError` for an unknown one."""
    family, variant = split_name(name)
    return module_of(family, "target").create(variant)


def clock_of(name: str) -> AbstractContextManager[Callable[[Callable[[], object]], float]]:
    """What gives the milliseconds that launches on a target take: of the host where they have run when they return.

    For a `with` statement around all that is measured: a clock may need memory.
    """
    family = name.partition(":")[0]
    return module_of(family, CLOCKS[family]).clock() if family in CLOCKS else nullcontext(_milliseconds)


def _milliseconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def module_of(family: str, name: str) -> Any:
    """The module `name` of a family's package."""
    return import_module(f"mltriton.targets.{PACKAGES.get(family, family)}.{name}")


@cache
def split_name(name: str) -> tuple[str, str]:
    """Family and variant of a target's name. Raises `TargetError` for an unknown one."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from a launch
        raise TargetError("a target is named by a text", expected="'cpu', say", found=repr(name))
    if name not in names():
        hint = did_you_mean(name, names())
        of_family = [known for known in names() if known.partition(":")[0] == name.partition(":")[0]]
        expected = f"one of {', '.join(of_family or names())}"
        raise TargetError(f"unknown target {name!r}", expected=expected, found=name, hint=hint)
    family, _, variant = name.partition(":")
    return family, variant
