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


def inline_asm(op: tt.InlineAsm | tt.VolatileAsm) -> Handler:
    """The fragment on one element after the other."""
    from mltriton.targets.llvm.inline_assembly import fragment_of  # Few programs need it.

    fragment = fragment_of(op)
    if any(isinstance(kind, PointerType) for kind in (*fragment.takes, *fragment.gives)):
        raise ExecutionError("assembly with pointers runs only as machine code", hint="Run the kernel on the CPU.")
    numbers = tuple(range(len(op.results))) if isinstance(op, tt.VolatileAsm) else (op.number,)
    kinds = [element_type(result.type) for result in op.results]

    def call(warp: Warp, *values: Array) -> Any:
        given = [np.ascontiguousarray(encode(v, t)) for v, t in zip(values, fragment.takes, strict=True)]
        shape = np.shape(values[0]) if values else ()
        found = [np.empty(shape, memory_dtype(kind)) for kind in kinds]
        addresses = [array.ctypes.data for array in (*given, *found)]
        _machine_code(fragment, numbers)((ctypes.c_void_p * len(addresses))(*addresses), found[0].size)
        made = [decode(array, kind)[()] for array, kind in zip(found, kinds, strict=True)]
        return made[0] if len(made) == 1 else made

    return call


@cache
def _machine_code(fragment: Fragment, numbers: tuple[int, ...]) -> Callable[[Any, int], None]:
    """A function of a table of addresses (arguments, then the results of these numbers) and the number of elements."""
    from mltriton.runtime.native.objects import load_object  # Few programs need it.
    from mltriton.targets.llvm.inline_assembly import SECONDS, check, over_arrays
    from mltriton.targets.llvm.isolation import compile_isolated
    from mltriton.targets.llvm.toolchain import Machine, host_machine

    triple, cpu, flags = host_machine()
    machine = Machine(triple, cpu, ",".join(f"+{flag}" for flag, has in flags.items() if has))
    check(fragment, machine)
    loaded = load_object(compile_isolated(over_arrays(fragment, numbers, machine), machine, SECONDS), ["apply"])
    _loaded.append(loaded)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses["apply"])


_loaded: list[object] = []  # kept: functions are called for as long as the process lives
TABLE: Table = {tt.InlineAsm: inline_asm, tt.VolatileAsm: inline_asm}
