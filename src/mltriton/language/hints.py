"""What a kernel promises the compiler, and barriers.

Takes tensors and constants; gives the tensor back. A promise is an attribute of the operation that makes the value
(`ir/promises.py`); the front end puts those of parameters, and of what control flow makes, in place at the end. A
promise that does not hold makes the result unspecified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import gpu, tt
from mltriton.errors import ShapeMismatchError, TypeMismatchError
from mltriton.ir.promises import attach
from mltriton.language.building import builtin, current, deferred
from mltriton.language.semantic import as_operand, constexpr_int
from mltriton.language.tensor import tensor

__all__ = ["assume", "debug_barrier", "max_constancy", "max_contiguous", "multiple_of"]


def _promise(attribute: str, value: object, values: object, name: str) -> object:
    operand = as_operand(value)
    if not isinstance(operand, tensor):
        return operand
    listed: Sequence[object] = cast("Sequence[object]", values) if isinstance(values, tuple | list) else (values,)
    numbers = tuple(constexpr_int(item, f"the values of tl.{name}") for item in listed)
    rank = max(1, len(operand.type.shape))
    if len(numbers) != rank:
        raise ShapeMismatchError(
            f"tl.{name} needs one value for each dimension",
            expected=str(rank),
            found=f"{len(numbers)} for {operand.type.name}",
        )
    attach(operand.handle, {attribute: numbers}, deferred())
    return operand


@builtin
def multiple_of(input: object, values: object) -> object:
    """The promise that the first element of each run of `input` is a multiple of `values` (one for each dimension)."""
    return _promise("tt.divisibility", input, values, "multiple_of")


@builtin
def max_contiguous(input: object, values: object) -> object:
    """The promise that runs of `values` (one for each dimension) elements of `input` count up by one."""
    return _promise("tt.contiguity", input, values, "max_contiguous")


@builtin
def max_constancy(input: object, values: object) -> object:
    """The promise that runs of `values` (one for each dimension) elements of `input` are equal."""
    return _promise("tt.constancy", input, values, "max_constancy")


@builtin
def assume(cond: object) -> None:
    """The promise that a scalar condition holds."""
    operand = as_operand(cond)
    if not isinstance(operand, tensor):
        return
    if operand.type.is_block() or not operand.dtype.is_bool():
        raise TypeMismatchError("tl.assume needs a condition", expected="a scalar int1", found=operand.type.name)
    current().create(tt.Assume, operand.handle, result_types=[])


@builtin
def debug_barrier() -> None:
    """All warps of the program wait for each other here."""
    current().create(gpu.Barrier, result_types=[])
