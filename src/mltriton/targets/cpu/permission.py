"""Whether this process may use the matrix tiles of x86 processors (AMX).

Level: run time. Linux gives the tiles' 8 KB of state only to processes that ask for it (arch_prctl(2),
ARCH_REQ_XCOMP_PERM); threads that run already may use them, too. Guarantees: asks once a process; False wherever there
is nothing to ask, or the answer is no (a sandbox, a kernel before 5.16), and then code is generated without tiles.
"""

from __future__ import annotations

import platform
import sys
from functools import cache

_ARCH_PRCTL = 158  # the system call's number on x86-64
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@cache
def tiles_permitted() -> bool:
    """Ask for the tiles' state; whether it was given."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    import ctypes

    return ctypes.CDLL(None, use_errno=True).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0
