"""LLVM's names of memory orders and of what an atomic update does. Level: intrinsic -> llvm, data."""

from __future__ import annotations

ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
FAILURE_ORDERS = {"monotonic": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}
NAMES = {"exch": "xchg", "fadd": "fadd", "max": "max", "min": "min", "umax": "umax", "umin": "umin"}
FLOAT_NAMES = {"fadd": "fadd", "add": "fadd", "max": "fmax", "min": "fmin", "exch": "xchg"}
