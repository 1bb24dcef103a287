"""The machine that a choice of autotuning holds for: other processors, GPUs and numbers of threads choose anew.

Level: runtime. it is asked at every launch of a tuned kernel, which takes a fraction of a microsecond; `identity`
is text for choices that are kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from mltriton.language.constants import unwrap
from mltriton.runtime.native.launcher import current_pool
from mltriton.runtime.specialization import device_of
from mltriton.targets.target import DEVICES, find_target

Machine = int | str  # the number of threads of a launch on the CPU, or the device that its first array lies on


def machine_of(named: Mapping[str, Any]) -> Machine:
    """The machine of a launch with these arguments."""
    for value in named.values():
        if type(value) is np.ndarray:
            break
        if hasattr(value, "dtype"):
            device = device_of(value)
            if device != "cpu":
                return device
            break
    return _counter()()


@cache
def _counter() -> Callable[[], int]:
    return current_pool().num_threads


def identity(machine: Machine, target: Any) -> str:
    """What tells a machine apart from others: the processor or the GPU, and the number of threads.

    `target` is the name that the launch or the kernel gives, if any.
    """
    family, _, number = ("cpu", "", "") if isinstance(machine, int) else machine.partition(":")
    found = find_target(unwrap(target) or DEVICES.get(family, "cpu"))
    return f"{found.name} {found.fingerprint}, {_gpu(int(number or 0)) if family == 'cuda' else machine}"


def _gpu(number: int) -> str:
    from mltriton.targets.nvidia.driver import device  # Few programs need it.

    return device(number).name
