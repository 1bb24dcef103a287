"""How many CPUs this process may use: by its affinity, and by the quota of its control groups.

Level: runtime. A container that may use two CPUs of a machine with 64 mostly sees all of them, and has a quota: more
threads than that only wait for each other. Guarantees: at least 1; a quota of a fraction counts as the next whole CPU.
"""

from __future__ import annotations

import math
import os
from functools import cache

_ROOT = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"


def available_cpus() -> int:
    """Return how many CPUs this process may keep busy."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(count, quota())))


@cache
def quota() -> float:
    """Return the CPUs that the control groups of this process allow; infinite without a limit."""
    try:
        with open(_MEMBERSHIP, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return math.inf
    return min((_of_group(*line.split(":", 2)) for line in lines if line.count(":") >= 2), default=math.inf)


def _of_group(number: str, controllers: str, path: str) -> float:
    """The least quota of a group and those that it is in, of version 2 (number 0) or 1."""
    if number != "0" and "cpu" not in controllers.split(","):
        return math.inf
    root, read = (_ROOT, _version_2) if number == "0" else (f"{_ROOT}/cpu", _version_1)
    # In a container the path may be the host's, and the group is the root that is seen.
    names = [name for name in path.split("/") if name]
    return min(read("/".join([str(root), *names[:depth]])) for depth in range(len(names) + 1))


def _version_2(group: str) -> float:
    return _quotient(*_words(f"{group}/cpu.max"))


def _version_1(group: str) -> float:
    return _quotient(*_words(f"{group}/cpu.cfs_quota_us"), *_words(f"{group}/cpu.cfs_period_us"))


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def _quotient(allowed: str = "max", period: str = "0", *_: str) -> float:
    """CPUs of an allowance ("max" or -1: without limit) in each period, both in microseconds."""
    is_limit = allowed.isdecimal() and period.isdecimal() and int(period) > 0 and int(allowed) > 0
    return int(allowed) / int(period) if is_limit else math.inf
