"""From a launch's arguments to what is compiled for them.

Level: runtime. `job_for` says which program a launch needs, `key_of` what identifies it in this process. Guarantees:
nothing is compiled; arguments that no kernel takes, and arrays that lie elsewhere, are named errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mltriton.compiler import Job, Options, options_of
from mltriton.frontend.signature import Constant
from mltriton.language.constants import unwrap
from mltriton.records import NamedTuple
from mltriton.runtime import config
from mltriton.runtime.arrays import check_arrays
from mltriton.runtime.grid import Grid
from mltriton.runtime.parts import Part, entry_of, parts_of
from mltriton.runtime.specialization import check_devices, device_kind, is_array
from mltriton.targets.target import DEVICES, AccessChecks, find_target

if TYPE_CHECKING:
    from mltriton.runtime.jit import JITFunction

Key = tuple[Any, ...]


class Plan(NamedTuple):
    """What a launch would compile, and the grid it would run over."""

    job: Job
    grid: Grid


def job_for(kernel: JITFunction, arguments: Sequence[Any], options: Mapping[str, Any], *, to_launch: bool) -> Job:
    """The compilation for arguments, one for each parameter; `to_launch` if they must have memory."""
    chosen = {"debug": kernel.debug or config.DEBUG.get()} | dict(options)
    parts = parts_of(kernel.parameters, arguments)
    target = find_target(unwrap(chosen.pop("target", None)) or kernel.default_target or _target_of(parts))
    debugging = chosen["debug"] and target.access_checks is AccessChecks.IN_DEBUGGING
    asked = chosen.pop("sanitize", config.SANITIZE.get() or debugging)
    chosen["sanitize"] = bool(asked) and target.access_checks is not AccessChecks.ALWAYS
    named = {part.name: part.value for part in parts}
    check_devices(named, target.takes, target.name)
    if to_launch:
        check_arrays(named)
    return Job(kernel, {part.name: entry_of(part) for part in parts}, target, options_of(**chosen))


def key_of(job: Job, options: Options) -> Key:
    """What identifies a job with `options` among a kernel's in this process."""
    # The text tells apart constants that compare equal: 1, True and 1.0. Bare, a NaN equals itself in a tuple.
    entries = tuple(
        (name, entry.value if isinstance(entry, Constant) else entry, str(entry)) for name, entry in job.entries.items()
    )
    return entries, job.target.name, options


def _target_of(parts: Sequence[Part]) -> str:
    """The target that a launch without one runs on: that of the first array on a device which kernels run on; the CPU
    where there is none.
    """
    devices = (device_kind(part.value) for part in parts if is_array(part.value))
    return next((DEVICES[device] for device in devices if device in DEVICES and device != "cpu"), "cpu")
