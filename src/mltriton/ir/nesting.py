"""What stands inside of what.

Level: all.
"""

from __future__ import annotations

from mltriton.ir.operation import Operation, Value


def is_inside(op: Operation, *others: Operation) -> bool:
    """Whether an operation stands in a region of one of `others`, however deep."""
    parent = op.parent_op
    while parent is not None and parent not in others:
        parent = parent.parent_op
    return parent is not None


def is_defined_inside(value: Value, other: Operation) -> bool:
    """Whether a value is defined in a region of `other`: by an operation there, or as an argument of a block."""
    owner = value.owner
    if isinstance(owner, Operation):
        return is_inside(owner, other)
    parent = owner.parent_op
    return parent is not None and (parent is other or is_inside(parent, other))
