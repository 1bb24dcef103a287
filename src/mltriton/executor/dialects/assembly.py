"""Inline assembly in the executor: the machine code of this machine, on all elements of a block.

Level: all. The fragment is compiled for this machine when it is first run. Guarantees: what this machine's assembler
rejects is an `AssemblyError`, pointers into the executor's memory an `ExecutionError`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import ExecutionError
from mltriton.executor.code import Handler, Table
from mltriton.executor.machine import Warp
from mltriton.executor.values import Array, decode, encode, memory_dtype
from mltriton.ir.types import PointerType, element_type

if TYPE_CHECKING:
    from mltriton.targets.llvm.inline_assembly import Fragment


def inline_asm(op: tt.InlineAsm) -> Handler:
    """The fragment on one element after the other."""
    from mltriton.targets.llvm.inline_assembly import fragment_of  # Few programs need it.

    fragment = fragment_of(op)
    if any(isinstance(kind, PointerType) for kind in (*fragment.takes, *fragment.gives)):
        raise ExecutionError("assembly with pointers runs only as machine code", hint="Run the kernel on the CPU.")
    number, kind = op.number, element_type(op.result.type)

    def call(warp: Warp, *values: Array) -> Array:
        given = [np.ascontiguousarray(encode(v, t)) for v, t in zip(values, fragment.takes, strict=True)]
        found = np.empty(np.shape(values[0]) if values else (), memory_dtype(kind))
        addresses = [array.ctypes.data for array in (*given, found)]
        _machine_code(fragment, number)((ctypes.c_void_p * len(addresses))(*addresses), found.size)
        return decode(found, kind)[()]

    return call


@cache
def _machine_code(fragment: Fragment, number: int) -> Callable[[Any, int], None]:
    """A function of a table of addresses (arguments, then the result) and the number of elements."""
    from mltriton.runtime.native.objects import load_object  # Few programs need it.
    from mltriton.targets.llvm.inline_assembly import SECONDS, check, over_arrays
    from mltriton.targets.llvm.isolation import compile_isolated
    from mltriton.targets.llvm.toolchain import Machine, host_machine

    triple, cpu, flags = host_machine()
    machine = Machine(triple, cpu, ",".join(f"+{flag}" for flag, has in flags.items() if has))
    check(fragment, machine)
    loaded = load_object(compile_isolated(over_arrays(fragment, number, machine), machine, SECONDS), ["apply"])
    _loaded.append(loaded)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses["apply"])


_loaded: list[object] = []  # kept: functions are called for as long as the process lives
TABLE: Table = {tt.InlineAsm: inline_asm}
