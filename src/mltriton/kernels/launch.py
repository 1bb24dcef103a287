"""A launch of a kernel as a value: what to run, over which grid, with which arguments and block sizes.

Level: user. The library's functions make one and run it; `mltriton verify`, the demo and the benchmarks look inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mltriton.records import NamedTuple
from mltriton.runtime.specialization import ON_HOST, device_kind
from mltriton.targets.target import DEVICES, split_name

if TYPE_CHECKING:
    from mltriton.compiler import CompiledKernel
    from mltriton.runtime.jit import JITFunction
    from mltriton.targets.base import BlockIO


# What `mltriton verify` runs: arguments by name, grid, compile options.
Example = tuple[dict[str, Any], tuple[int, ...], dict[str, Any]]


class Launch(NamedTuple):
    """`kernel[grid](*arguments, **constants)`."""

    kernel: JITFunction
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: dict[str, Any]

    def run(self) -> CompiledKernel:
        """Launch; compiles first if need be."""
        return self.kernel[self.grid](*self.arguments, **self.constants)

    def on(self, target: str | None, num_warps: int | None = None, num_stages: int | None = None) -> Launch:
        """The same launch on a target, with so many warps and stages; None is where the arrays lie, and the usual
        number.
        """
        options = {"target": target, "num_warps": num_warps, "num_stages": num_stages}
        chosen = {name: value for name, value in options.items() if value is not None}
        return self._replace(constants=self.constants | chosen) if chosen else self

    def compiled(self) -> CompiledKernel:
        """The kernel compiled for this launch, which is not made."""
        return self.kernel.warmup(*self.arguments, **self.constants)

    def named(self) -> dict[str, Any]:
        """All arguments by the names of the kernel's parameters."""
        return dict(zip(self.kernel.arg_names, self.arguments, strict=False)) | self.constants

    def example(self) -> Example:
        """What a function `mltriton_verify` returns."""
        arguments = self.named()
        options = {name: arguments.pop(name) for name in self.constants.keys() - set(self.kernel.arg_names)}
        return arguments, self.grid, options


def example_of(name: str, *launches: Launch | None) -> Example | None:
    """That of a kernel's first launch among these."""
    return next((launch.example() for launch in launches if launch and launch.kernel.__name__ == name), None)


def target_of(target: str | None, x: Any) -> str | None:
    """The target that was named, or that of the GPU on which an array lies; None in main memory."""
    device = device_kind(x)
    return target if target is not None or device == ON_HOST else DEVICES.get(device)


def family_of_warps(target: str | None) -> str | None:
    """The family of a target where the warps of a program share its blocks; None where a program is one thread."""
    if target is None:
        return None
    from mltriton.targets.registry import spec  # Few launches ask for it.

    return split_name(target)[0] if spec(target).has_lanes else None


STAGES = 3  # of a loop whose operands are copied to shared memory ahead, unless there is no room for so many
EXCHANGED = 16384  # bytes of shared memory for what warps exchange besides


def stages_on(target: str | None, stage_bytes: int, most: int = STAGES) -> int | None:
    """How many stages of a loop have room in shared memory, of which each takes so many bytes; None where operands are
    not copied there.
    """
    if family_of_warps(target) != "cuda":
        return None
    from mltriton.targets.registry import spec  # Few launches ask for it.

    assert target is not None
    return max(1, min(most, (spec(target).shared_bytes - EXCHANGED) // stage_bytes))


def block_limits(target: str | None) -> BlockIO | None:
    """What 2D block loads of a target must be; None where it has none."""
    if target is None:
        return None
    from mltriton.targets.registry import spec  # Few launches ask for it.

    return spec(target).block_load
