"""Whether integers only say where memory is accessed: in offsets of pointers, and in masks.

Level: any with `tt` accesses. Such integers do not wrap inside a block (docs/architecture.md, "Semantics"); what is
computed with others is exact. Guarantees: what is not known to be a place is no place.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, element_type

_MOVED = (tt.Splat, tt.ExpandDims, tt.Broadcast, tt.Trans, ttg.ConvertLayout)
_INDEX = (*_MOVED, arith.AddI, arith.SubI, arith.MulI, arith.ShLI, arith.ExtSI)
_MASK = (*_MOVED, arith.AndI, arith.OrI)
_ACCESS = (tt.Load, tt.Store, tt.AtomicRMW, tt.AtomicCAS)


def is_place(value: Value) -> bool:
    """Whether an integer, or a block of them, is used for nothing but offsets of pointers and masks of accesses."""
    pending, seen = [value], {value}
    while pending:
        used = pending.pop()
        is_mask = element_type(used.type) is I1
        for user in used.users:
            if isinstance(user, _MASK if is_mask else (*_INDEX, arith.CmpI)):
                result = user.results[0]
                if result not in seen:
                    seen.add(result)
                    pending.append(result)
            elif not (_takes_mask(user, used) if is_mask else isinstance(user, tt.AddPtr)):
                return False
    return True


def _takes_mask(user: Operation, mask: Value) -> bool:
    return isinstance(user, _ACCESS) and getattr(user, "mask", None) is mask and user.operands.count(mask) == 1
