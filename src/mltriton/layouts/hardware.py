"""The linear layout of an encoding: which register of which lane of which warp holds an element of a tensor.

Level: ttg to llvm. `linear_layout(encoding, shape)` has the inputs "register", "lane", "warp" (of shared memory:
"offset") and the outputs "dim0", "dim1", ...; register counts elements. Each class of encodings has its own rule,
`linear_layout`. Guarantees: every element of the tensor is somewhere; what several positions hold has bases of zero.
"""

from __future__ import annotations

from functools import cache

from mltriton.layouts.base import LayoutAttr, Shape
from mltriton.layouts.base import NoLanesError as NoLanesError
from mltriton.layouts.linear import LinearLayout


@cache
def linear_layout(encoding: LayoutAttr, shape: Shape) -> LinearLayout:
    """The linear layout of a tensor of `shape`. Raises `NoLanesError` where lanes are not stated."""
    return encoding.linear_layout(shape)


@cache
def warp_layout(encoding: LayoutAttr, shape: Shape) -> LinearLayout:
    """The registers and lanes of one warp that holds the whole of a tensor of `shape`; no two registers of a lane have
    the same element.

    Raises `NoLanesError` where lanes are not stated, ValueError where a warp holds only a part.
    """
    whole = linear_layout(encoding, shape)
    if any(any(vector) for vector in whole.vectors("warp")):
        raise ValueError(f"a warp has only a part of {'x'.join(map(str, shape))} with {encoding}")
    registers = [vector for vector in whole.vectors("register") if any(vector)]
    bases = {"register": registers, "lane": whole.vectors("lane")}
    return LinearLayout.of(bases, dict(zip(whole.outputs, whole.sizes, strict=True)))
