"""The executor as a target: a kernel is its program as text, and launching it runs the text in numpy.

Level: tt. What `MLTRITON_INTERPRET` asks for. Guarantees: an access out of bounds, a misaligned one, a write to a
read-only array are named errors with the kernel's line; values are those of the reference executor, programs run one
after the other.
What only compiling needs is imported by the functions that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mltriton.targets.target import AccessChecks, Binary, Lowered, Target

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.runtime.native.params import ParamSpec
    from mltriton.runtime.slots import Slot


class InterpreterTarget(Target):
    """Arrays in main memory, numpy for a machine."""

    name = "interpreter"
    access_checks = AccessChecks.ALWAYS

    def lower(self, module: Module) -> Lowered:
        """The program's own text, with locations."""
        from mltriton.ir.printer import print_op

        return Lowered(print_op(module, locations=True))

    @property
    def texts(self) -> Mapping[str, Callable[[Lowered], str]]:
        """The same text: there is nothing below."""
        return {"asm": lambda lowered: lowered.text}

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        """The text."""
        return Binary(lowered.text.encode(), {})

    def registers(self, assembly: str) -> tuple[int, int]:
        """One, and no memory in its place."""
        return 1, 0

    def load(self, binary: Binary, name: str) -> LoadedProgram:
        """Read the text."""
        from mltriton.ir.parser import parse_module
        from mltriton.runtime.compile_thread import unlimited

        return LoadedProgram(unlimited(partial(parse_module, binary.object.decode())))

    def takes(self, device: str) -> bool:
        """Whether it is main memory."""
        return device == "cpu"


class LoadedProgram:
    """A program that the executor runs."""

    def __init__(self, module: Module) -> None:
        from mltriton.runtime.compile_thread import nests_deep

        self.module = module
        self._is_deep = nests_deep(module)

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """As every target's; arguments are checked in Python."""
        from mltriton.executor.arguments import Bits
        from mltriton.runtime.native.portable import read_argument

        def launch(x: int, y: int, z: int, *arguments: Any) -> Any:
            pairs = list(zip(specs, arguments, strict=True))
            if any(read_argument(spec, argument) is None for spec, argument in pairs):
                return NotImplemented
            taken = [(spec.kind, argument) for spec, argument in pairs if spec.takes_slot]
            self._run((x, y, z), [Bits(argument) if kind == "tensor" else argument for kind, argument in taken])
            return None

        return launch

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot], /) -> None:
        """Launch on slots: arrays where there are some, numbers by their bits."""
        from mltriton.executor.arguments import Bits
        from mltriton.runtime.slots import value_of

        self._run(grid, [Bits(slot.array) if slot.array is not None else value_of(slot) for slot in slots])

    def _run(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        from mltriton.executor import run
        from mltriton.runtime.compile_thread import deep

        work = partial(run, self.module, arguments, grid)
        _ = deep(work) if self._is_deep else work()


@cache
def create(variant: str) -> Target:
    """The only one."""
    return InterpreterTarget()
