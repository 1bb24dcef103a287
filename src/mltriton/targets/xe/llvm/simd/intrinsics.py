"""The intrinsics of Intel's vector compiler that kernels call, by name.

Level: `llvm`. A vector holds all lanes of a warp, registers after each other. Sizes of data and vectors are coded as
the messages of the memory pipeline code them. Guarantees: what has no effect is called once for equal operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mltriton.errors import BackendError
from mltriton.targets.llvm.types import I1, I8, I16, I32, VOID, Type, Value, constant, integers, poison, vector
from mltriton.targets.llvm.writer import Function

PREFIX = "llvm.genx."
LANES = 16

# Bytes of an element in memory -> its code in a message; those below 4 bytes fill words of 4 bytes in registers.
DATA_SIZES = {1: 5, 2: 6, 4: 3, 8: 4}
VECTOR_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 8: 5, 16: 6, 32: 7, 64: 8}
_BY_LANE, _IN_A_ROW = 1, 2  # orders of a message's data
PLACE = 5  # the element of a matrix's description that is a block's column; its row follows
Caching = tuple[int, int]  # codes of what the first and the third level of the cache do
AS_USUAL: Caching = (0, 0)
_PREFETCHED: Caching = (2, 2)
_LOAD, _STORE = 0, 4  # operations of the memory pipeline

# LLVM's names of atomic updates -> operations of the memory pipeline.
ATOMICS = {
    "xchg": 11,
    "add": 12,
    "sub": 13,
    "min": 14,
    "max": 15,
    "umin": 16,
    "umax": 17,
    "cmpxchg": 18,
    "fadd": 19,
    "fmin": 21,
    "fmax": 22,
    "and": 24,
    "or": 25,
    "xor": 26,
}

# Operands of a matrix product by the name of their type.
PRECISIONS = {"u8": 7, "s8": 8, "bf16": 9, "f16": 10, "tf32": 12}


def read(
    f: Function, source: Value, start: int, count: int, stride: int = 1, rows: int = 1, row_stride: int = 0
) -> Value:
    """`rows` times `count` elements of a vector: number `start`, `start` + `stride`, ...; rows `row_stride` apart."""
    if source.literal is not None:
        return constant(source.type.with_lanes(rows * count), source.literal)
    if start == 0 and source.type.lanes == count and stride == rows == 1:
        return source
    if source.type.bits == 1:
        wide = f.cast("zext", source, source.type.with_element("i16"))
        return f.icmp("ne", read(f, wide, start, count, stride, rows, row_stride), 0)
    result = source.type.with_lanes(rows * count)
    offset = constant(I16, start * source.type.bits // 8)
    region = (constant(I32, number) for number in (row_stride, count, stride))
    name = f"{PREFIX}rdregion{_kind(source.type)}.{result.suffix}.{source.type.suffix}.i16"
    return f.pure_call(name, result, source, *region, offset, poison(I32))


def write(f: Function, whole: Value, part: Value, start: int, stride: int = 1) -> Value:
    """A vector with some elements replaced: number `start`, `start` + `stride`, ..."""
    return write_at(f, whole, part, constant(I16, start * whole.type.bits // 8), stride)


def write_at(f: Function, whole: Value, part: Value, byte: Value, stride: int = 1) -> Value:
    """As `write`, from an offset in bytes (i16) that is known when the kernel runs."""
    name = f"{PREFIX}wrregion{_kind(whole.type)}.{whole.type.suffix}.{part.type.suffix}.i16.i1"
    region = (constant(I32, number) for number in (0, part.type.lanes, stride))
    return f.pure_call(name, whole.type, whole, part, *region, byte, poison(I32), constant(I1, 1))


def read_at(f: Function, source: Value, byte: Value, count: int, stride: int = 1) -> Value:
    """As `read`, from an offset in bytes (i16) that is known when the kernel runs."""
    result = source.type.with_lanes(count)
    name = f"{PREFIX}rdregion{_kind(source.type)}.{result.suffix}.{source.type.suffix}.i16"
    region = (constant(I32, number) for number in (0, count, stride))
    return f.pure_call(name, result, source, *region, byte, poison(I32))


def joined(f: Function, parts: Sequence[Value]) -> Value:
    """Vectors of one type after each other."""
    first = parts[0].type
    whole = first.with_lanes(first.lanes * len(parts))
    if len(parts) == 1:
        return parts[0]
    if first.bits == 1:
        wide = [f.cast("zext", part, part.type.with_element("i16")) for part in parts]
        return f.icmp("ne", joined(f, wide), 0)
    literals = {part.literal for part in parts}
    if len(literals) == 1 and (literal := parts[0].literal) is not None:
        return constant(whole, literal)
    made = poison(whole)
    for number, part in enumerate(parts):
        made = write(f, made, part, number * first.lanes)
    return made


def _kind(type_: Type) -> str:
    return "f" if type_.is_float else "i"


def same_bits(f: Function, value: Value, to: Type) -> Value:
    """A vector as another type of the same size."""
    if value.type == to:
        return value
    return constant(to, 0) if value.literal == 0 and not _is_negative(value) else f.bitcast(value, to)


def _is_negative(value: Value) -> bool:
    return value.text != "zeroinitializer"


def every(f: Function, mask: Value) -> Value:
    """Whether all elements of a vector of i1 hold, an i1."""
    return f.pure_call(f"{PREFIX}all.{mask.type.suffix}", I1, mask)


def high_product(f: Function, a: Value, b: Value) -> Value:
    """The high half of the product of integers of 32 bits without a sign."""
    return f.pure_call(f"{PREFIX}umulh.{a.type.suffix}.{a.type.suffix}", a.type, a, b)


# Where the warp is.


def group(f: Function, axis: int) -> Value:
    """A coordinate of the program, i32."""
    return f.pure_call(f"{PREFIX}group.id.{'xyz'[axis]}", I32)


def groups(f: Function, axis: int) -> Value:
    """A size of the grid, i32."""
    return f.extract(f.pure_call(f"{PREFIX}group.count.v3i32", I32.with_lanes(3)), axis)


def warp(f: Function) -> Value:
    """The number of the warp in its program, i32."""
    return f.extract(f.pure_call(f"{PREFIX}local.id.v3i32", I32.with_lanes(3)), 0)


# Memory, an address for each lane.


def gather(
    f: Function, addresses: Value, mask: Value, size: int, count: int, displaced: int = 0, cached: Caching = AS_USUAL
) -> Value:
    """`count` elements of `size` bytes from each address on: all lanes' first elements, then their second ones."""
    result = vector(f"i{max(32, 8 * size)}", count * LANES)
    where = _memory(addresses)
    name = f"{PREFIX}lsc.load.{where}.{result.suffix}.{mask.type.suffix}.{addresses.type.suffix}"
    codes = _codes(_LOAD, displaced, size, count, cached)
    return f.declared_call(name, result, mask, *codes, addresses, constant(I32, 0))


def scatter(
    f: Function,
    addresses: Value,
    mask: Value,
    data: Value,
    size: int,
    count: int,
    displaced: int = 0,
    cached: Caching = AS_USUAL,
) -> None:
    """The opposite of `gather`."""
    where = _memory(addresses)
    name = f"{PREFIX}lsc.store.{where}.{mask.type.suffix}.{addresses.type.suffix}.{data.type.suffix}"
    codes = _codes(_STORE, displaced, size, count, cached)
    f.declared_call(name, VOID, mask, *codes, addresses, data, constant(I32, 0))


def load_row(f: Function, address: Value, displaced: int, count: int) -> Value:
    """`count` words of 32 bits from one address on (i32: of shared memory)."""
    result = I32.with_lanes(count)
    name = f"{PREFIX}lsc.load.{_memory(address)}.{result.suffix}.i1.{address.type.suffix}"
    codes = _codes(_LOAD, displaced, I32.bytes, count, order=_IN_A_ROW)
    return f.declared_call(name, result, constant(I1, 1), *codes, address, constant(I32, 0))


def store_row(f: Function, address: Value, displaced: int, words: Value) -> None:
    """The opposite of `load_row`."""
    name = f"{PREFIX}lsc.store.{_memory(address)}.i1.{address.type.suffix}.{words.type.suffix}"
    codes = _codes(_STORE, displaced, I32.bytes, words.type.lanes, order=_IN_A_ROW)
    f.declared_call(name, VOID, constant(I1, 1), *codes, address, words, constant(I32, 0))


def atomic(f: Function, addresses: Value, mask: Value, code: int, sources: Sequence[Value], size: int) -> Value:
    """Update memory at each address by an operation of the memory pipeline; what was there before."""
    result = sources[0].type
    name = f"{PREFIX}lsc.xatomic.{_memory(addresses)}.{result.suffix}.{mask.type.suffix}.{addresses.type.suffix}"
    both = [*sources, poison(result)][:2]
    return f.declared_call(
        name, result, mask, *_codes(code, 0, size, 1), addresses, *both, constant(I32, 0), poison(result)
    )


def _memory(addresses: Value) -> str:
    """Addresses of 64 bits are those of global memory, of 32 bits those of the memory that warps share."""
    return "stateless" if addresses.type.bits == 64 else "slm"


def _codes(
    operation: int, displaced: int, size: int, count: int, cached: Caching = AS_USUAL, order: int = _BY_LANE
) -> list[Value]:
    """Operation, caching of two levels, scale and distance of addresses, sizes, order, channels."""
    head = [*(constant(I8, code) for code in (operation, *cached)), constant(I16, 1), constant(I32, displaced)]
    return head + [constant(I8, code) for code in (DATA_SIZES[size], VECTOR_SIZES[count], order, 0)]


# Rectangles of a matrix.


def surface(f: Function, base: Value, numbers: Sequence[Value]) -> Value:
    """What messages say of a matrix: its base (i64); bytes of a row, rows and bytes from row to row, each less 1."""
    halves = f.bitcast(base, I32.with_lanes(2))
    made = poison(I32.with_lanes(LANES))
    for number, value in enumerate((f.extract(halves, 0), f.extract(halves, 1), *numbers)):
        made = f.insert(made, value, number)
    return made


def rectangle(f: Function, of: Value, x: Value, y: Value) -> Value:
    """The description of a matrix with the place of a block in it."""
    return f.insert(f.insert(of, x, PLACE), y, PLACE + 1)


def load_rectangle(
    f: Function,
    result: Type,
    form: str,
    shape: Sequence[int],
    described: Value,
    at: tuple[int, int],
    cached: Caching = AS_USUAL,
) -> Value:
    """Blocks, rows and columns `shape` of elements of the result; `form`: "", "vnni." or "transpose."."""
    _check(result, shape)
    name = f"{PREFIX}lsc.load.2d.ugm.desc.{form}{result.suffix}.v2i8"
    return f.declared_call(name, result, *_shape(shape, cached), described, *_distance(at), poison(result))


def store_rectangle(
    f: Function, data: Value, shape: Sequence[int], described: Value, at: tuple[int, int], cached: Caching = AS_USUAL
) -> None:
    """The opposite."""
    _check(data.type, shape)
    name = f"{PREFIX}lsc.store.2d.ugm.desc.v2i8.{data.type.suffix}"
    f.declared_call(name, VOID, *_shape(shape, cached), described, *_distance(at), data)


def prefetch_rectangle(f: Function, element: Type, shape: Sequence[int], described: Value, at: tuple[int, int]) -> None:
    """Bring a rectangle nearer, into both levels of the cache."""
    name = f"{PREFIX}lsc.prefetch.2d.ugm.desc.v2i8.{element.suffix}"
    f.declared_call(name, VOID, *_shape(shape, _PREFETCHED), described, *_distance(at), constant(element, 0))


def _check(data: Type, shape: Sequence[int]) -> None:
    """A message moves as many elements as its shape says, whatever it is given."""
    if data.lanes != prod(shape):
        expected = f"{' x '.join(map(str, shape))} elements"
        raise BackendError("a vector is not what its message moves", expected=expected, found=str(data))


def _shape(shape: Sequence[int], cached: Caching) -> list[Value]:
    blocks, rows, columns = shape
    levels = constant(I8.with_lanes(2), cached[0]) if cached[0] == cached[1] else integers("i8", list(cached))
    return [constant(I1, 1), levels, constant(I8, blocks), constant(I16, columns), constant(I16, rows)]


def _distance(at: tuple[int, int]) -> list[Value]:
    return [constant(I32, number) for number in at]


# Products and barriers.


def product(f: Function, c: Value, b: Value, a: Value, precisions: tuple[str, str], rows: int, signed: bool) -> Value:
    """c + a b on the matrix engine; operands in registers of i32; `precisions` are those of b and a."""
    types = (c.type, c.type, b.type, a.type)
    name = f"{PREFIX}dpas2.{'.'.join(type_.suffix for type_ in types)}"
    numbers = (*(PRECISIONS[name] for name in precisions), 8, rows, int(signed), int(signed))
    return f.pure_call(name, c.type, c, b, a, *(constant(I32, number) for number in numbers))


def barrier(f: Function) -> None:
    """All warps of the program wait here; what they wrote to shared memory before is seen after it."""
    fence(f, of_shared=True)
    f.declared_call(f"{PREFIX}barrier", VOID)


def fence(f: Function, *, of_shared: bool) -> None:
    """What the warp wrote before is seen by others before what it writes afterwards."""
    f.declared_call(f"{PREFIX}fence", VOID, constant(I8, 0x21 if of_shared else 1))


def half_barrier(f: Function, *, arrives: bool) -> None:
    """Tell that this warp has come here, or wait for all others that do."""
    f.declared_call(f"{PREFIX}sbarrier", VOID, constant(I8, int(arrives)))
