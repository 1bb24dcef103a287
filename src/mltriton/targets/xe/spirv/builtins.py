"""The built-in functions that LLVM's SPIR-V back end turns into instructions of Xe, with their C types.

Level: `llvm`. A lowering calls them through `Builtin.call`, which declares the function in the module under
construction. Names, types and flags are data; symbols are mangled from them (`mangling.py`). Guarantees: arguments of
other types are refused here, since a symbol that is spelled wrongly would only become an undefined function.
Sources: the SPIR-V extensions SPV_INTEL_2d_block_io, SPV_INTEL_subgroup_matrix_multiply_accumulate,
SPV_INTEL_split_barrier, SPV_INTEL_predicated_io, SPV_INTEL_bfloat16_conversion, SPV_INTEL_tensor_float32_conversion.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from functools import cache

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.spirv.mangling import llvm_type, mangled


class Builtin(NamedTuple):
    """A function by its unmangled name. `pure`: equal operands give equal results whichever lanes take part, so that
    one call may stand for several.
    """

    name: str
    result: str
    parameters: tuple[str, ...]
    pure: bool = False

    @property
    def symbol(self) -> str:
        """The mangled name."""
        return _symbol(self.name, self.parameters)

    @property
    def result_type(self) -> Type:
        """LLVM's type of the result."""
        return llvm_type(self.result)

    @property
    def parameter_types(self) -> tuple[Type, ...]:
        """LLVM's types of the parameters."""
        return tuple(map(llvm_type, self.parameters))

    def call(self, function: Function, *arguments: Value | int) -> Value:
        """Append a call. An int stands for a constant of its parameter's type. Raises `BackendError` for others."""
        types = self.parameter_types
        if len(arguments) != len(types):
            found = f"{len(arguments)} arguments"
            raise BackendError(f"{self.name} is called wrongly", expected=f"{len(types)} arguments", found=found)
        values = [
            constant(type_, given) if isinstance(given, int) else given
            for type_, given in zip(types, arguments, strict=True)
        ]
        if tuple(value.type for value in values) != types:
            expected, found = ", ".join(map(str, types)), ", ".join(str(value.type) for value in values)
            raise BackendError(f"{self.name} is called wrongly", expected=expected, found=found)
        call = function.pure_call if self.pure else function.declared_call
        return call(self.symbol, self.result_type, *values)


@cache
def _symbol(name: str, parameters: tuple[str, ...]) -> str:
    return mangled(name, parameters)


class Family(NamedTuple):
    """Functions of one name for several types: `T` in `result` and `parameters` stands for one of `types`."""

    name: str
    result: str
    parameters: tuple[str, ...]
    types: tuple[str, ...]
    pure: bool = False

    def of(self, type_: str) -> Builtin:
        """The function for a type. Raises `BackendError` where there is none."""
        if type_ not in self.types:
            raise BackendError(f"{self.name} takes no {type_}", expected=", ".join(self.types), found=type_)
        parameters = tuple(parameter.replace("T", type_) for parameter in self.parameters)
        return Builtin(self.name, self.result.replace("T", type_), parameters, self.pure)


def _vector(element: str, count: int) -> str:
    return f"{element}{count}" if count > 1 else element


# Who runs: the number of the program along an axis, the warp, the lane.

GET_GROUP_ID = Builtin("get_group_id", "ulong", ("uint",), pure=True)
GET_NUM_GROUPS = Builtin("get_num_groups", "ulong", ("uint",), pure=True)
GET_LOCAL_ID = Builtin("get_local_id", "ulong", ("uint",), pure=True)
GET_SUB_GROUP_ID = Builtin("get_sub_group_id", "uint", (), pure=True)
GET_SUB_GROUP_LOCAL_ID = Builtin("get_sub_group_local_id", "uint", (), pure=True)


# 2D block accesses: bytes of an element, columns, rows and number of blocks; base, bytes of a row of the surface, its
# rows, its pitch in bytes; x and y in elements. What a lane gets lies in private memory.

_BLOCK = ("int", "int", "int", "int")
_SURFACE = ("global void*", "int", "int", "int", "int2")
BLOCK_LOAD = Builtin("__spirv_Subgroup2DBlockLoadINTEL", "void", (*_BLOCK, *_SURFACE, "void*"))
BLOCK_LOAD_VNNI = Builtin("__spirv_Subgroup2DBlockLoadTransformINTEL", "void", (*_BLOCK, *_SURFACE, "void*"))
BLOCK_LOAD_TRANSPOSE = Builtin("__spirv_Subgroup2DBlockLoadTransposeINTEL", "void", (*_BLOCK, *_SURFACE, "void*"))
BLOCK_STORE = Builtin("__spirv_Subgroup2DBlockStoreINTEL", "void", (*_BLOCK, "void*", *_SURFACE))
BLOCK_PREFETCH = Builtin("__spirv_Subgroup2DBlockPrefetchINTEL", "void", (*_BLOCK, *_SURFACE))
BLOCK_ACCESSES = (BLOCK_LOAD, BLOCK_LOAD_VNNI, BLOCK_LOAD_TRANSPOSE, BLOCK_STORE, BLOCK_PREFETCH)


# Matrix products.


class DpasOperands(IntFlag):
    """How the operands of a matrix product are read."""

    NONE = 0
    A_SIGNED = 0x1
    B_SIGNED = 0x2
    C_BF16 = 0x4
    RESULT_BF16 = 0x8
    A_INT8 = 0x10
    B_INT8 = 0x20
    A_TF32 = 0x100
    B_TF32 = 0x200
    A_F16 = 0x400
    B_F16 = 0x800
    A_BF16 = 0x1000
    B_BF16 = 0x2000


class Dpas(NamedTuple):
    """One matrix product of 8 rows at most and 16 columns: `k` products are added up for each element.

    `a_element` and `b_element` are the C types in which a lane holds the operands (smaller elements side by side),
    `lanes_per_row` how many lanes hold one row of a.
    """

    k: int
    a_element: str
    b_element: str
    c_element: str
    operands: DpasOperands
    lanes_per_row: int = 16

    def builtin(self, rows: int) -> Builtin:
        """The function for 1, 2, 4 or 8 rows."""
        if rows not in DPAS_ROWS:
            raise BackendError("a matrix product has another number of rows", expected="1, 2, 4 or 8", found=str(rows))
        a, c = _vector(self.a_element, max(1, rows * self.lanes_per_row // 16)), _vector(self.c_element, rows)
        return Builtin(DPAS, c, ("int", a, f"{self.b_element}8", c, "int"))

    def call(self, function: Function, rows: int, a: Value, b: Value, c: Value) -> Value:
        """Append c + a * b."""
        return self.builtin(rows).call(function, self.k, a, b, c, int(self.operands))


DPAS = "__spirv_SubgroupMatrixMultiplyAccumulateINTEL"
DPAS_ROWS = (1, 2, 4, 8)

_F16 = DpasOperands.A_F16 | DpasOperands.B_F16
_BF16 = DpasOperands.A_BF16 | DpasOperands.B_BF16
_TF32 = DpasOperands.A_TF32 | DpasOperands.B_TF32
_INT8 = DpasOperands.A_INT8 | DpasOperands.B_INT8
_BF16_SUMS = DpasOperands.C_BF16 | DpasOperands.RESULT_BF16
# Elements of a, b and c -> the product.
DPAS_TABLE: dict[tuple[str, str, str], Dpas] = {
    ("f16", "f16", "f32"): Dpas(16, "short", "int", "float", _F16),
    ("f16", "f16", "f16"): Dpas(16, "short", "int", "half", _F16),
    ("bf16", "bf16", "f32"): Dpas(16, "short", "int", "float", _BF16),
    ("bf16", "bf16", "bf16"): Dpas(16, "short", "int", "short", _BF16 | _BF16_SUMS),
    ("tf32", "tf32", "f32"): Dpas(8, "float", "float", "float", _TF32, lanes_per_row=8),
    ("s8", "s8", "i32"): Dpas(32, "short", "int", "int", _INT8 | DpasOperands.A_SIGNED | DpasOperands.B_SIGNED),
    ("s8", "u8", "i32"): Dpas(32, "short", "int", "int", _INT8 | DpasOperands.A_SIGNED),
    ("u8", "s8", "i32"): Dpas(32, "short", "int", "int", _INT8 | DpasOperands.B_SIGNED),
    ("u8", "u8", "i32"): Dpas(32, "short", "int", "int", _INT8),
}


# Lanes of a sub-group talking to each other.


class Scope(IntEnum):
    """Who takes part."""

    DEVICE = 1
    WORKGROUP = 2
    SUBGROUP = 3


class Semantics(IntFlag):
    """What a barrier orders."""

    NONE = 0
    ACQUIRE = 0x2
    RELEASE = 0x4
    ACQUIRE_RELEASE = 0x8
    SEQUENTIALLY_CONSISTENT = 0x10
    WORKGROUP_MEMORY = 0x100
    GLOBAL_MEMORY = 0x200


class GroupOperation(IntEnum):
    """What a function of a group gives a lane: the total, or that of the lanes up to (or before) it."""

    REDUCE = 0
    INCLUSIVE_SCAN = 1
    EXCLUSIVE_SCAN = 2
    CLUSTERED_REDUCE = 3


_SHUFFLED = ("char", "short", "int", "uint", "long", "half", "float", "double")
# (value, lane), (value, bits to flip in the lane's number)
SHUFFLE = Family("sub_group_shuffle", "T", ("T", "uint"), _SHUFFLED)
SHUFFLE_XOR = Family("sub_group_shuffle_xor", "T", ("T", "uint"), _SHUFFLED)
BROADCAST = Family("sub_group_broadcast", "T", ("T", "uint"), _SHUFFLED)

_FLOATS, _SIGNED, _UNSIGNED = ("half", "float", "double"), ("short", "int", "long"), ("ushort", "uint", "ulong")


def _group(name: str, types: tuple[str, ...]) -> Family:
    """(scope, GroupOperation, value)."""
    return Family(f"__spirv_GroupNonUniform{name}", "T", ("int", "int", "T"), types)


# What is combined -> the function, for floats, signed and unsigned integers.
GROUP_FUNCTIONS: dict[str, tuple[Family, ...]] = {
    "add": (_group("FAdd", _FLOATS), _group("IAdd", (*_SIGNED, *_UNSIGNED))),
    "mul": (_group("FMul", _FLOATS), _group("IMul", (*_SIGNED, *_UNSIGNED))),
    "max": (_group("FMax", _FLOATS), _group("SMax", _SIGNED), _group("UMax", _UNSIGNED)),
    "min": (_group("FMin", _FLOATS), _group("SMin", _SIGNED), _group("UMin", _UNSIGNED)),
    "and": (_group("BitwiseAnd", (*_SIGNED, *_UNSIGNED)),),
    "or": (_group("BitwiseOr", (*_SIGNED, *_UNSIGNED)),),
    "xor": (_group("BitwiseXor", (*_SIGNED, *_UNSIGNED)),),
}


def group_function(combine: str, type_: str) -> Builtin:
    """(scope, `GroupOperation`, value) -> the values of a group combined. Raises `BackendError` where there is none."""
    families = GROUP_FUNCTIONS.get(combine, ())
    for family in families:
        if type_ in family.types:
            return family.of(type_)
    expected = ", ".join(name for family in families for name in family.types) or ", ".join(GROUP_FUNCTIONS)
    raise BackendError(f"lanes cannot be combined by {combine}", expected=expected, found=type_)


# Barriers: (execution scope, memory scope, semantics). The split barrier's two halves are passed by all warps in turn.

BARRIER = Builtin("__spirv_ControlBarrier", "void", ("int", "int", "int"))
BARRIER_ARRIVE = Builtin("__spirv_ControlBarrierArriveINTEL", "void", ("int", "int", "int"))
BARRIER_WAIT = Builtin("__spirv_ControlBarrierWaitINTEL", "void", ("int", "int", "int"))
FENCE = Builtin("__spirv_MemoryBarrier", "void", ("int", "int"))


# Conversions; bf16 travels as its bits. Vectors are rounded at once: of elements Intel's compiler copies each one.

FLOATS_TO_BF16 = {
    n: Builtin("__spirv_ConvertFToBF16INTEL", _vector("short", n), (_vector("float", n),), pure=True)
    for n in (1, 2, 4, 8)
}
BF16_TO_FLOAT = Builtin("__spirv_ConvertBF16ToFINTEL", "float", ("short",), pure=True)
ROUND_TO_TF32 = Family(
    "__spirv_RoundFToTF32INTEL", "T", ("T",), tuple(_vector("float", n) for n in (1, 2, 4, 8)), pure=True
)


# Accesses of one lane under a condition: (address, condition, value in its place), (address, value, condition).


def _widths(*elements: str) -> tuple[str, ...]:
    return tuple(_vector(element, count) for element in elements for count in (1, 2, 4, 8))


_ACCESSED = _widths("char", "short", "int", "long", "half", "float", "double")
PREDICATED_LOAD = Family("__spirv_PredicatedLoadINTEL", "T", ("global const T*", "bool", "T"), _ACCESSED)
PREDICATED_STORE = Family("__spirv_PredicatedStoreINTEL", "void", ("global T*", "T", "bool"), _ACCESSED)


# Accesses of a whole sub-group to consecutive elements: lane l gets elements l, 16 + l, ...

_BLOCK_SUFFIX = {"uchar": "uc", "ushort": "us", "uint": "ui", "ulong": "ul"}


def sub_group_block_read(element: str, count: int, space: str) -> Builtin:
    """(address) -> `count` elements for each lane; `space` is "global" or "local"."""
    name = f"intel_sub_group_block_read_{_BLOCK_SUFFIX[element]}{count if count > 1 else ''}"
    return Builtin(name, _vector(element, count), (f"{space} const {element}*",))


def sub_group_block_write(element: str, count: int, space: str) -> Builtin:
    """(address, `count` elements of each lane)."""
    name = f"intel_sub_group_block_write_{_BLOCK_SUFFIX[element]}{count if count > 1 else ''}"
    return Builtin(name, "void", (f"{space} {element}*", _vector(element, count)))


# Functions of OpenCL's mathematical library; `native_` ones are single instructions of less accuracy.

_EXPONENTIAL = "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt erf erfc"
_CIRCULAR = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
_ROUNDING = "floor ceil rint trunc round fabs"
_NATIVE = "native_exp native_exp2 native_log native_log2 native_sqrt native_rsqrt native_recip native_sin native_cos"
_TWO = "fmax fmin fmod pow atan2 hypot copysign nextafter remainder fdim"
_THREE = "fma mad"
_ARITIES = {1: f"{_EXPONENTIAL} {_CIRCULAR} {_ROUNDING} {_NATIVE}", 2: _TWO, 3: _THREE}
MATH: dict[str, Family] = {
    name: Family(
        f"__spirv_ocl_{name}", "T", ("T",) * arity, ("float",) if name.startswith("native_") else _FLOATS, pure=True
    )
    for arity, names in _ARITIES.items()
    for name in names.split()
}


FIXED: tuple[Builtin, ...] = (
    *(GET_GROUP_ID, GET_NUM_GROUPS, GET_LOCAL_ID, GET_SUB_GROUP_ID, GET_SUB_GROUP_LOCAL_ID),
    *BLOCK_ACCESSES,
    *(BARRIER, BARRIER_ARRIVE, BARRIER_WAIT, FENCE),
    *(*FLOATS_TO_BF16.values(), BF16_TO_FLOAT),
)
FAMILIES: tuple[Family, ...] = (
    *(SHUFFLE, SHUFFLE_XOR, BROADCAST),
    *(family for families in GROUP_FUNCTIONS.values() for family in families),
    *(ROUND_TO_TF32, PREDICATED_LOAD, PREDICATED_STORE),
    *MATH.values(),
)


@cache
def every_builtin() -> tuple[Builtin, ...]:
    """Each function of this table, for each type."""
    products = (product.builtin(rows) for product in DPAS_TABLE.values() for rows in DPAS_ROWS)
    blocks = [
        make(element, count, space)
        for make in (sub_group_block_read, sub_group_block_write)
        for element in _BLOCK_SUFFIX
        for count in (1, 2, 4, 8)
        for space in ("global", "local")
    ]
    typed = (family.of(type_) for family in FAMILIES for type_ in family.types)
    return tuple(dict.fromkeys((*FIXED, *products, *blocks, *typed)))
