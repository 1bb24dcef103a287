"""`tl.extra.cuda` (and `hip`, `intel`): where kernels written for one vendor find `libdevice`, and ask for threads.

What such kernels ask of a program's threads is answered for every machine: on a CPU one thread runs a program. Where
launches may overlap (`launch_pdl`) a program waits for those in front of its own; elsewhere they have ended.
"""

from __future__ import annotations

from mltriton.dialects import ttng
from mltriton.ir.operation import Operation
from mltriton.language import types
from mltriton.language.assembly import inline_asm_elementwise
from mltriton.language.building import builtin, current, current_threads
from mltriton.language.constants import constexpr
from mltriton.language.extra import libdevice as libdevice
from mltriton.language.target_info import cuda_capability_geq
from mltriton.language.tensor import tensor

__all__ = ["gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads", "num_warps", "smid"]

__path__: list[str] = []  # Programs import modules of the same content below it.
_THREADS_OF_A_WARP = 32


@builtin
def num_threads() -> constexpr:
    """How many threads run each program, a constant."""
    return constexpr(current_threads())


@builtin
def num_warps() -> constexpr:
    """How many times 32 threads run each program, a constant; at least 1."""
    return constexpr(max(current_threads() // _THREADS_OF_A_WARP, 1))


@builtin
def gdc_wait() -> None:
    """Wait until the kernels that this launch depends on have ended and their results are there: before the first
    access to these, where it has `launch_pdl`.
    """
    _order_launches(ttng.GridDependencyWait)


@builtin
def gdc_launch_dependents() -> None:
    """Let the next kernel of the stream begin, if its launch has `launch_pdl`, once all programs have said so."""
    _order_launches(ttng.LaunchDependents)


def _order_launches(kind: type[Operation]) -> None:
    if cuda_capability_geq(9):  # Before, launches do not overlap.
        current().create(kind, result_types=[])


@builtin
def globaltimer() -> tensor:
    """The nanoseconds of an NVIDIA GPU's clock (int64); `AssemblyError` elsewhere."""
    return inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], types.int64, False, 1)


@builtin
def smid() -> tensor:
    """The multiprocessor of an NVIDIA GPU that runs the program (int32); `AssemblyError` elsewhere."""
    return inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], types.int32, False, 1)
