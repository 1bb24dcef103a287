"""What a kernel may call: `import mltriton.language as tl`.

Types and values are imported at once; they are cheap. Every function is imported when it is first used (PEP 562),
because its module needs the compiler: a launch of a cached kernel never loads it. `_HOMES` says where each name
lives. A name of upstream Triton that is not offered raises `NameNotFoundError` when it is called.
"""

# ruff: noqa: F403 - the star imports below are for type checkers; each module lists what it offers in __all__
from __future__ import annotations

import builtins
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mltriton.errors import NameNotFoundError
from mltriton.errors import closest_public as _closest_public
from mltriton.language.building import builtin as builtin
from mltriton.language.building import is_builtin as is_builtin
from mltriton.language.constants import constexpr as constexpr
from mltriton.language.constants import constexpr_type as constexpr_type
from mltriton.language.constants import tuple_type as tuple_type
from mltriton.language.iterators import condition as condition
from mltriton.language.iterators import range as range
from mltriton.language.iterators import static_range as static_range
from mltriton.language.tensor import flatten as flatten
from mltriton.language.tensor import tensor as tensor
from mltriton.language.tensor import tensor_descriptor as tensor_descriptor
from mltriton.language.tensor import unflatten as unflatten
from mltriton.language.types import MAX_BLOCK_ELEMENTS
from mltriton.language.types import bfloat16 as bfloat16
from mltriton.language.types import block_type as block_type
from mltriton.language.types import by_name as _by_name
from mltriton.language.types import const as const
from mltriton.language.types import dtype as dtype
from mltriton.language.types import float8e4b8 as float8e4b8
from mltriton.language.types import float8e4b15 as float8e4b15
from mltriton.language.types import float8e4nv as float8e4nv
from mltriton.language.types import float8e5 as float8e5
from mltriton.language.types import float8e5b16 as float8e5b16
from mltriton.language.types import float16 as float16
from mltriton.language.types import float32 as float32
from mltriton.language.types import float64 as float64
from mltriton.language.types import get_int_dtype as _get_int_dtype
from mltriton.language.types import int1 as int1
from mltriton.language.types import int8 as int8
from mltriton.language.types import int16 as int16
from mltriton.language.types import int32 as int32
from mltriton.language.types import int64 as int64
from mltriton.language.types import pi32_t as pi32_t
from mltriton.language.types import pointer_type as pointer_type
from mltriton.language.types import tensor_descriptor_type as tensor_descriptor_type
from mltriton.language.types import uint8 as uint8
from mltriton.language.types import uint16 as uint16
from mltriton.language.types import uint32 as uint32
from mltriton.language.types import uint64 as uint64
from mltriton.language.types import void as void

if TYPE_CHECKING:
    from mltriton.language import core as core
    from mltriton.language import extra as extra
    from mltriton.language import math as math
    from mltriton.language import random as random
    from mltriton.language import standard as standard
    from mltriton.language import target_info as target_info
    from mltriton.language.aggregates import aggregate_replace as aggregate_replace
    from mltriton.language.arithmetic import *
    from mltriton.language.assembly import *
    from mltriton.language.atomic_accesses import *
    from mltriton.language.atomics import *
    from mltriton.language.block_pointers import *
    from mltriton.language.casting import *
    from mltriton.language.comparison import *
    from mltriton.language.creation import *
    from mltriton.language.debug import *
    from mltriton.language.descriptors import *
    from mltriton.language.hints import *
    from mltriton.language.indexing import *
    from mltriton.language.mapping import *
    from mltriton.language.math import *
    from mltriton.language.matmul import *
    from mltriton.language.memory import *
    from mltriton.language.program import *
    from mltriton.language.random import *
    from mltriton.language.reductions import *
    from mltriton.language.scaled_matmul import *
    from mltriton.language.scans import *
    from mltriton.language.semantic import *
    from mltriton.language.shapes import *
    from mltriton.language.shared_memory import *
    from mltriton.language.sorting import *
    from mltriton.language.standard import *
    from mltriton.language.warps import *

TRITON_MAX_TENSOR_NUMEL = MAX_BLOCK_ELEMENTS
tuple = builtins.tuple
slice = builtins.slice
get_int_dtype = builtin(_get_int_dtype)

# Modules that a kernel names itself: tl.math.exp.
_NAMESPACES = ("core", "extra", "math", "random", "standard", "target_info")

# Where each function lives.
_HOMES: dict[str, str] = {
    "aggregates": "aggregate_replace",
    "assembly": "inline_asm_elementwise",
    "arithmetic": "PropagateNan add cdiv clamp fma maximum minimum mul sub umulhi",
    "atomics": "atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor",
    "atomic_accesses": "atomic_load atomic_poll atomic_store",
    "block_pointers": "advance make_block_ptr",
    "casting": "cast",
    "comparison": "where",
    "creation": "arange full zeros zeros_like",
    "debug": "device_assert device_print static_assert static_print",
    "descriptors": "load_tensor_descriptor make_tensor_descriptor store_tensor_descriptor",
    "external": "extern_elementwise",
    "hints": "assume debug_barrier max_constancy max_contiguous multiple_of",
    "indexing": "flip gather",
    "math": "abs ceil cos div_rn erf exp exp2 fdiv floor log log2 rsqrt sin sqrt sqrt_rn tanh",
    "mapping": "map_elementwise",
    "matmul": "dot",
    "memory": "load store",
    "program": "num_programs program_id",
    "random": "pair_uniform_to_normal philox philox_impl rand rand4x randint randint4x randn randn4x "
    "uint_to_uniform_float",
    "reductions": "argmax argmin max min reduce reduce_or sum xor_sum",
    "scans": "associative_scan cumprod cumsum",
    "scaled_matmul": "dot_scaled",
    "semantic": "to_tensor",
    "shared_memory": "alloc",
    "shapes": "broadcast broadcast_to cat expand_dims interleave item join permute ravel reshape split squeeze trans "
    "unsqueeze view",
    "sorting": "bitonic_merge sort topk",
    "standard": "histogram sigmoid softmax swizzle2d",
    "warps": "barrier num_warps warp_id",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

# Names of upstream that are not offered, and what to do instead.
_MISSING = {
    "expect_zero": "leave it out: it is a hint",
}


def str_to_ty(name: str, c: object = None) -> dtype:
    """The type with a signature's name, as upstream's `core` gives it."""
    return _by_name(name)


def __getattr__(name: str) -> Any:
    """Import the module that holds a function and keep the function here for the next use."""
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _NAMESPACES:
        value = import_module(f"{__name__}.{name}")
    elif name in _MISSING:
        value = _missing(name)
    else:
        raise AttributeError(f"mltriton.language has no {name!r}{_suggestion(name)}")
    globals()[name] = value
    return value


def _missing(name: str) -> Any:
    """A stand-in that says, when it is called, that a name of upstream is not offered."""

    @builtin
    def missing(*_args: Any, **_kwargs: Any) -> None:
        raise NameNotFoundError(f"tl.{name} is not offered by mltriton", hint=_MISSING[name])

    return missing


def _suggestion(name: str) -> str:
    close = _closest_public(name, [*_HOME, *_NAMESPACES, *globals()])
    return f"; did you mean {close!r}?" if close else ""


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*(name for name in globals() if name[0] != "_"), *_HOME, *_NAMESPACES})
