"""`ttng`: launches that overlap (programmatic dependent launch). Before Hopper launches follow each other.

Level: intrinsic -> llvm. Each lane waits for itself: what it accesses behind the wait, by instructions or by the
engine, is there. Source: PTX ISA 8.7, "griddepcontrol".
"""

from __future__ import annotations

from mltriton.dialects import ttng
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.simt.context import Emitter, Rules


def _wait(e: Emitter, op: ttng.GridDependencyWait) -> None:
    ptx(e.function, "griddepcontrol.wait;", [])


def _launch_dependents(e: Emitter, op: ttng.LaunchDependents) -> None:
    ptx(e.function, "griddepcontrol.launch_dependents;", [])


RULES: Rules = {ttng.GridDependencyWait: _wait, ttng.LaunchDependents: _launch_dependents}
