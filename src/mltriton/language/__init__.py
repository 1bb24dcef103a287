"""What a kernel may call: `import mltriton.language as tl`.

Types and values are imported at once; they are cheap. Every function is imported when it is first used (PEP 562), because its module needs the compiler: a launch of
a cached kernel never loads it. `_HOMES` says where each name lives. A name of upstream Triton that is not offered raises `NameNotFoundError` when it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mltriton.language.building import builtin as builtin
from mltriton.language.building import is_builtin as is_builtin
from mltriton.language.constants import constexpr as constexpr
from mltriton.language.tensor import flatten as flatten
from mltriton.language.tensor import tensor as tensor
from mltriton.language.tensor import tensor_descriptor as tensor_descriptor
from mltriton.language.tensor import unflatten as unflatten
from mltriton.language.types import bfloat16 as bfloat16
from mltriton.language.types import block_type as block_type
from mltriton.language.types import dtype as dtype
from mltriton.language.types import float8e4b8 as float8e4b8
from mltriton.language.types import float8e4b15 as float8e4b15
from mltriton.language.types import float8e4nv as float8e4nv
from mltriton.language.types import float8e5 as float8e5
from mltriton.language.types import float8e5b16 as float8e5b16
from mltriton.language.types import float16 as float16
from mltriton.language.types import float32 as float32
from mltriton.language.types import float64 as float64
from mltriton.language.types import get_int_dtype as get_int_dtype
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
