"""What is known of a kernel for NVIDIA besides its LLVM IR. Level: `llvm` to binary; no compiler module is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mltriton.targets.nvidia.tensor_maps import TensorMap, from_json
from mltriton.targets.target import Facts

if TYPE_CHECKING:
    from mltriton.targets.assertions import Description

WARP = 32  # lanes
# Options that are attributes of a launch, by the module's attributes: CUDA's numbers of "programmatic stream
# serialization" and "cooperative".
LAUNCH_ATTRIBUTES = {"ttg.launch-pdl": 6, "ttg.launch-cooperative-grid": 2}


@dataclass(frozen=True)
class NvidiaFacts(Facts):
    """A program has so many warps of 32 lanes, which share `shared` bytes that the launch provides (dynamic shared
    memory). `multiplies` says whether it multiplies matrices, `prints` whether it prints, `assertions` what its
    assertions say: with any, the last parameter points to what they record. `maps` are what the launch passes behind
    the arguments. `attributes` are CUDA's numbers of what the launch is told besides (`LAUNCH_ATTRIBUTES`). `beside`:
    how many programs would share a multiprocessor if the kernel were compiled for launches of one round
    (`TargetOptions.in_one_round`); 1 where it is no other one. `takes_turns`: as
    many programs along x as run at a time will do, which are told behind the maps how many the launch asks for.
    """

    num_warps: int
    shared: int
    multiplies: bool = False
    prints: bool = False
    assertions: Sequence[Description] = ()
    maps: Sequence[TensorMap] = ()
    attributes: Sequence[int] = ()
    beside: int = 1
    takes_turns: bool = False

    @staticmethod
    def of(values: Mapping[str, Any]) -> NvidiaFacts:
        """From JSON."""
        others = {name: value for name, value in values.items() if name != "maps"}
        return NvidiaFacts(**others, maps=from_json(values.get("maps", ())))
