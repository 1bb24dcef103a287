"""A target for tests of launches: a kernel is its tt module, and the reference executor runs it.

What tests of the runtime need of a target, without machine code: guards that refuse what they were not made for, a
count of what was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from mltriton.executor import run
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.portable import read_argument
from mltriton.runtime.slots import Slot
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.target import AccessChecks, Binary, Lowered

NAME = "executor"


class ExecutorTarget:
    """Compiles to text, runs in numpy."""

    name = NAME
    can_run = True
    access_checks = AccessChecks.ALWAYS
    unused_options: ClassVar[frozenset[str]] = frozenset()
    fingerprint = "1"
    spec = TargetSpec(name=NAME, storage=Storage.MEMORY, warp_size=1, pipeline=("", "", "", ""))

    def __init__(self) -> None:
        self.loads = 0
        self.assembled = 0

    def lower(self, module: Module) -> Lowered:
        return Lowered(str(module))

    def restored(self, text: str, binary: Binary) -> Lowered:
        return Lowered(text)

    texts: ClassVar[dict[str, Any]] = {"asm": lambda lowered: f"# {len(lowered.text)} characters"}
    images: ClassVar[dict[str, Any]] = {}

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        self.assembled += 1
        return Binary(lowered.text.encode(), {"scratch_bytes": 128})

    def load(self, binary: Binary, name: str) -> LoadedModule:
        self.loads += 1
        return LoadedModule(parse_module(binary.object.decode()))

    def takes(self, device: str) -> bool:
        return device == "cpu"


class LoadedModule:
    """A kernel that the executor runs."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.launches: list[tuple[int, int, int]] = []

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        def launch(x: int, y: int, z: int, *arguments: Any) -> Any:
            pairs = list(zip(specs, arguments, strict=True))
            if any(read_argument(spec, argument) is None for spec, argument in pairs):
                return NotImplemented
            self.launches.append((x, y, z))
            run(self.module, [argument for spec, argument in pairs if spec.takes_slot], (x, y, z))
            return None

        return launch

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot], /) -> None:
        self.slots = [slot.bits for slot in slots]
        self.launches.append(grid)


def create(variant: str) -> ExecutorTarget:
    return ExecutorTarget()
