"""What a kernel needs of an array: memory of its own, in which the elements are as they look.

Level: runtime. Asked of arguments that no launcher has taken yet; `has_memory` also by launchers' machine code, of
addresses that look like none. Guarantees: an array that a kernel would misread, or that would end the process, is an
`ArgumentError` that says what to pass.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from mltriton.errors import ArgumentError
from mltriton.runtime.parts import unwrapped
from mltriton.runtime.specialization import address, is_array

_TRACED = "It stands for a tensor while a program is traced: call the kernel in a torch.library.custom_op."
# What to do about tensors that have no memory, by the class's name.
_WITHOUT_MEMORY = {
    "FakeTensor": _TRACED,
    "FunctionalTensor": _TRACED,
    "DTensor": "Pass {name}.to_local().",
    "MaskedTensor": "Pass {name}.get_data(), or {name}.to_tensor(value).",
}
_ELSEWHERE = (
    "Its storage was resized to 0, or a transform (torch.vmap, torch.func) or another class keeps its elements "
    "elsewhere: pass a plain tensor, in a torch.autograd.Function or a torch.library.custom_op if need be."
)
_DENSE = "torch.strided"


def check_arrays(named: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` for an array in `named`, arguments by name, that kernels cannot access as it looks."""
    for name, value in named.items():
        array = unwrapped(value)
        if is_array(array) and (problem := _problem(array)):
            message, hint = problem
            found = f"{type(array).__module__}.{type(array).__name__}"
            raise ArgumentError(f"the argument {name} {message}", found=found, hint=hint.format(name=name))


def _problem(array: Any) -> tuple[str, str] | None:
    """What is wrong with an array and what to do about it."""
    if is_masked(array):
        return "is a masked array, and kernels see no masks", "Pass {name}.filled(value), or {name}.data."
    layout = str(getattr(array, "layout", _DENSE))
    if layout != _DENSE:
        return f"has the layout {layout}, and kernels take {_DENSE}", "Pass {name}.to_dense(), or its parts."
    if hasattr(array, "is_neg") and array.is_neg():
        return "is a view whose elements are negated when they are read", "Pass {name}.resolve_neg()."
    if not has_memory(array):
        return "has no memory that a kernel could access", _WITHOUT_MEMORY.get(type(array).__name__, _ELSEWHERE)
    return None


def is_masked(array: Any) -> bool:
    """Whether an array is one of numpy's masked arrays."""
    masked: Any = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


def has_memory(array: Any) -> bool:
    """Whether an array's elements are somewhere in memory; true of one without elements."""
    if _is_empty(array):
        return True
    if hasattr(array, "untyped_storage"):
        return _has_storage(array) and array.data_ptr() != 0
    return address(array) != 0


def _is_empty(array: Any) -> bool:
    if hasattr(array, "numel"):
        return array.numel() == 0
    return 0 in getattr(array, "shape", ())


def _has_storage(tensor: Any) -> bool:
    """Whether a tensor of torch's has a storage with something in it; one that is traced has it nowhere ("meta")."""
    try:
        storage = tensor.untyped_storage()
    except RuntimeError:
        return False
    return storage.device.type != "meta" and storage.nbytes() > 0
