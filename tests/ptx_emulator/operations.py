"""Instructions of a thread: arithmetic, conversions, memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tensor_copies, values, warp_groups
from .memory import Array, EmulationError
from .races import WARP
from .text import Instruction
from .values import DTYPES, UNSIGNED

if TYPE_CHECKING:
    from .threads import Threads

Rule = Callable[["Threads", Instruction], None]


def kind_of(i: Instruction) -> str:
    """The last type that an opcode names."""
    return _kind_of(i.opcode)


@cache
def _kind_of(opcode: tuple[str, ...]) -> str:
    return next(part for part in reversed(opcode) if part in DTYPES)


def _wide(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _plain(compute: Callable[..., Array]) -> Rule:
    """All operands and the result of the instruction's type."""

    def rule(t: Threads, i: Instruction) -> None:
        kind = kind_of(i)
        result, *operands = i.operands
        made = compute(*(t.read(operand, kind) for operand in operands))
        t.write(result, np.asarray(made).astype(DTYPES[kind], copy=False), kind)

    return rule


def _multiply(t: Threads, i: Instruction) -> None:
    kind, (result, *operands) = kind_of(i), i.operands
    if "wide" in i.opcode:
        wide = DTYPES[_wide(kind)]
        a, b = (t.read(operand, kind).astype(wide) for operand in operands[:2])
        made, kind = a * b, _wide(kind)
    elif "hi" in i.opcode:
        a, b = (t.read(operand, kind).astype(object) for operand in operands[:2])
        made = ((a * b) >> int(kind[1:])).astype(DTYPES[kind])
    else:
        made = t.read(operands[0], kind) * t.read(operands[1], kind)
    if i.opcode[0] == "mad":
        made = made + t.read(operands[2], kind)
    t.write(result, made, kind)


def _fused(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    a, b, c = (t.read(operand, kind) for operand in i.operands[1:])
    if kind == "f64":
        wide = np.longdouble(a) * np.longdouble(b) + np.longdouble(c)
        made = wide.astype(np.float64)
    else:
        exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        made = exact.astype(DTYPES[kind])
        if "rm" in i.opcode:
            made = np.where(made.astype(np.float64) > exact, np.nextafter(made, DTYPES[kind].type(-np.inf)), made)
        if "sat" in i.opcode:
            made = np.where(np.isnan(made), 0, np.clip(made, 0, 1)).astype(DTYPES[kind])
    t.write(i.operands[0], made, kind)


def _extremum(number: Callable[..., Array], spreading: Callable[..., Array]) -> Rule:
    def rule(t: Threads, i: Instruction) -> None:
        kind = kind_of(i)
        a, b = (t.read(operand, kind) for operand in i.operands[1:])
        made = (spreading if "NaN" in i.opcode or kind[0] != "f" else number)(a, b)
        t.write(i.operands[0], np.maximum(made, 0).astype(made.dtype) if "relu" in i.opcode else made, kind)

    return rule


def _divide(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    a, b = (t.read(operand, kind) for operand in i.operands[1:])
    if kind[0] == "f":
        made: Array = a / b
    else:
        zero = b == 0
        x, y = a.astype(object), np.where(zero, 1, b).astype(object)
        quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(x, y, strict=True)]
        found = quotients if i.opcode[0] == "div" else [p - q * d for p, q, d in zip(x, quotients, y, strict=True)]
        mask = (1 << int(kind[1:])) - 1
        made = np.array([int(f) & mask for f in found], np.uint64).astype(UNSIGNED[DTYPES[kind].itemsize])
        made = made.view(DTYPES[kind])
    t.write(i.operands[0], made, kind)


def _shift(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    value, count = t.read(i.operands[1], kind), t.read(i.operands[2], "u32").astype(np.int64)
    bits = 8 * value.dtype.itemsize
    near = np.minimum(count, bits - 1).astype(value.dtype)
    made = value << near if i.opcode[0] == "shl" else value >> near
    gone = np.zeros_like(value) if i.opcode[0] == "shl" or kind[0] != "s" else value >> value.dtype.type(bits - 1)
    t.write(i.operands[0], np.where(count >= bits, gone, made), kind)


_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _compare(t: Threads, i: Instruction) -> None:
    kind, name = kind_of(i), i.opcode[1]
    a, b = (t.read(operand, kind) for operand in i.operands[1:3])
    unordered = np.isnan(a) | np.isnan(b) if kind[0] == "f" else np.zeros(t.count, bool)
    if name in ("num", "nan"):
        made = unordered if name == "nan" else ~unordered
    elif kind[0] == "f" and name.endswith("u") and name[:-1] in _COMPARISONS:
        made = _COMPARISONS[name[:-1]](a, b) | unordered
    else:
        made = _COMPARISONS[name](a, b) & ~unordered
    joins = [part for part in i.opcode[2:] if part in ("and", "or", "xor")]
    if joins:
        other = t.read(i.operands[3], "pred")
        made = {"and": made & other, "or": made | other, "xor": made ^ other}[joins[0]]
    t.write(i.operands[0], made, "pred")


def _select(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    a, b, condition = t.read(i.operands[1], kind), t.read(i.operands[2], kind), t.read(i.operands[3], "pred")
    t.write(i.operands[0], np.where(condition, a, b), kind)


def _move(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    result, source = i.operands
    if kind == "pred":
        t.write(result, t.read(source, "pred"), kind)
    else:
        t.write(result, t.read(source, f"b{8 * DTYPES[kind].itemsize}"), f"b{8 * DTYPES[kind].itemsize}")


_ROUNDINGS: dict[str, Callable[..., Array]] = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}


def _convert(t: Threads, i: Instruction) -> None:
    kinds = [part for part in i.opcode if part in DTYPES or part in values.FP8]
    to, source, operands = kinds[0], kinds[-1], i.operands[1:]
    if to in values.FP8:
        high, low = (values.to_fp8(t.read(operand, "f32"), to) for operand in operands)
        t.write(i.operands[0], (high.astype(np.uint16) << 8) | low, "b16")
        return
    if source in values.FP8:
        pair = t.read(operands[0], "b16")
        halves = [values.from_fp8(pair >> shift & 0xFF, source).astype(np.float16).view(np.uint16) for shift in (0, 8)]
        t.write(i.operands[0], halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << 16, "b32")
        return
    if to in ("f16x2", "bf16x2"):
        high, low = (_narrowed(t.read(operand, "f32"), to[:-2]) for operand in operands)
        t.write(i.operands[0], (high.astype(np.uint32) << 16) | low, "b32")
        return
    if "tf32" in i.opcode:
        bits = t.read(operands[0], "b32")
        t.write(i.operands[0], (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), "b32")
        return
    value = t.read(operands[0], source)
    if source == "bf16":
        value = values.from_bf16(value)
    if to[0] == "f" and to not in ("f16", "bf16"):
        t.write(i.operands[0], _rounded(value, i).astype(DTYPES[to]), to)
    elif to in ("f16", "bf16"):
        t.write(i.operands[0], _narrowed(value, to), "b16")
    elif value.dtype.kind == "f":
        t.write(i.operands[0], _to_integer(_rounded(value, i), to), to)
    else:
        t.write(
            i.operands[0],
            values.resized(
                value.view(UNSIGNED[value.dtype.itemsize]), DTYPES[to].itemsize, signed=source[0] == "s"
            ).view(DTYPES[to]),
            to,
        )


def _narrowed(value: Array, to: str) -> Array:
    return values.to_bf16(value) if to == "bf16" else value.astype(np.float16).view(np.uint16)


def _rounded(value: Array, i: Instruction) -> Array:
    rounding = next((_ROUNDINGS[part] for part in i.opcode if part in _ROUNDINGS), None)
    return value if rounding is None or value.dtype.kind != "f" else rounding(value)


def _to_integer(value: Array, to: str) -> Array:
    """Clamped, as the instruction does; NaN gives 0."""
    limits = np.iinfo(DTYPES[to])
    finite = np.clip(np.where(np.isnan(value), 0, value), -(2.0**70), 2.0**70)
    return np.array([min(max(int(x), limits.min), limits.max) for x in finite], DTYPES[to])


# Memory


def _places(t: Threads, i: Instruction) -> tuple[Any, Array, int, int]:
    """The threads that access, where, the bytes of an element, and how many elements."""
    memory = next(operand for operand in i.operands if operand.kind == "address")
    count = next((int(part[1:]) for part in i.opcode if part in ("v2", "v4", "v8")), 1)
    return t.active, t.address(memory)[t.active], DTYPES[kind_of(i)].itemsize, count


def _load(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    parts = i.operands[0].parts if i.operands[0].kind == "vector" else (i.operands[0],)
    if "param" in i.opcode and i.operands[1].parts[0].name in t.parameters:
        [base] = i.operands[1].parts
        held = t.parameters[base.name][:, i.operands[1].number :][:, : DTYPES[kind].itemsize]
        t.write(parts[0], np.ascontiguousarray(held).view(UNSIGNED[held.shape[1]])[:, 0], kind)
        return
    active, addresses, size, count = _places(t, i)
    t.races.read(addresses, size * count, t.numbers[active] // WARP)
    data = t.memory.read(addresses, size * count).view(UNSIGNED[size])
    for number, part in enumerate(parts):
        whole = np.zeros(t.count, UNSIGNED[size])
        whole[active] = data[:, number]
        t.write(part, whole, kind)


def _store(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    bits = f"b{8 * DTYPES[kind].itemsize}"
    parts = i.operands[1].parts if i.operands[1].kind == "vector" else (i.operands[1],)
    if "param" in i.opcode:
        [base] = i.operands[0].parts
        held = t.parameters.get(base.name, np.zeros((t.count, 8), np.uint8)).copy()
        value = np.ascontiguousarray(t.read(parts[0], bits))[:, None].view(np.uint8)
        held[t.active, i.operands[0].number : i.operands[0].number + value.shape[1]] = value[t.active]
        t.parameters[base.name] = held
        return
    active, addresses, _, _ = _places(t, i)
    data = np.stack([t.read(part, bits)[active] for part in parts], 1)
    warp_groups.check_write(t, addresses)
    t.races.write(addresses, data.shape[1] * data.itemsize, t.numbers[active] // WARP, data)
    t.memory.write(addresses, np.ascontiguousarray(data).view(np.uint8))


_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "max": max, "min": min, "exch": lambda a, b: b,
}  # fmt: skip


def _atomic(t: Threads, i: Instruction) -> None:
    """One thread after the other."""
    kind, name = kind_of(i), next(part for part in i.opcode if part in _UPDATES or part == "cas")
    if i.opcode[1] not in ("relaxed", "acquire", "release", "acq_rel") or i.opcode[2] not in ("cta", "gpu", "sys"):
        raise EmulationError("an atomic access that says no order or no scope")
    dtype, addresses = DTYPES[kind], t.address(i.operands[1])
    operands = [t.read(operand, kind) for operand in i.operands[2:]]
    made = np.zeros(t.count, dtype)
    for thread in np.flatnonzero(t.active):
        place = addresses[thread : thread + 1]
        old = t.memory.read(place, dtype.itemsize).view(dtype)[:, 0]
        made[thread] = old[0]
        if name == "cas":
            new = operands[1][thread] if old[0] == operands[0][thread] else old[0]
        elif kind == "bf16":
            total = values.from_bf16(old) + values.from_bf16(operands[0][thread : thread + 1])
            new = values.to_bf16(total)[0]
        else:
            new = _UPDATES[name](old[0], operands[0][thread])
        t.memory.write(place, np.array([[new]], dtype).view(np.uint8))
    t.write(i.operands[0], made, kind)


def _reduce(t: Threads, i: Instruction) -> None:
    """An update of neighbours that gives nothing back, one thread after the other."""
    kind, parts = kind_of(i), i.operands[1].parts if i.operands[1].kind == "vector" else (i.operands[1],)
    if i.opcode[1] not in ("relaxed", "release") or i.opcode[2] not in ("cta", "gpu", "sys") or "add" not in i.opcode:
        raise EmulationError("an update of another kind, or that says no order or no scope")
    size, active = DTYPES[kind].itemsize, t.active
    data = np.stack([t.read(part, kind)[active] for part in parts], 1)
    for place, new in zip(t.address(i.operands[0])[active], data, strict=True):
        held = t.memory.read(np.array([place]), size * len(parts)).view(DTYPES[kind])[0]
        if kind == "bf16":
            held = values.to_bf16(values.from_bf16(held) + values.from_bf16(new))
        else:
            held = held + new
        t.memory.write(np.array([place]), np.ascontiguousarray(held)[None].view(np.uint8))


def _copy(t: Threads, i: Instruction) -> None:
    """Copies arrive when their group is waited for."""
    if "bulk" in i.opcode:
        tensor_copies.copy(t, i)
    elif "commit_group" in i.opcode:
        t.copies.append([])
    elif "wait_group" in i.opcode:
        while len(t.copies) - 1 > i.operands[0].number:
            for addresses, data in t.copies.pop(0):
                t.memory.write(addresses, data)
    else:
        target, source, size = t.address(i.operands[0]), t.address(i.operands[1]), i.operands[2].number
        taken = t.read(i.operands[3], "u32") if len(i.operands) > 3 else np.full(t.count, size)
        if not np.isin(taken, (0, size)).all():
            raise EmulationError("a copy of a part")
        data, reads = np.zeros((t.count, size), np.uint8), t.active & (taken == size)
        data[reads] = t.memory.read(source[reads], size)
        warp_groups.check_write(t, target[t.active])
        t.races.write(target[t.active], size, t.numbers[t.active] // WARP)
        t.copies[-1].append((target[t.active], data[t.active]))


def print_lines(t: Threads, forms: Array, slots: Array) -> None:
    """vprintf of each thread."""
    for thread in np.flatnonzero(t.active):
        text = _string(t, int(forms[thread].view(np.uint64)[0]))
        place = int(slots[thread].view(np.uint64)[0])
        found: list[Any] = []
        for conversion in re.findall(r"%\d*(l?[dfx]|s)", text.replace("%%", "")):
            size = 4 if conversion == "d" else 8
            place += -place % size
            kind = {"d": np.int32, "ld": np.int64, "lx": np.uint64, "f": np.float64}[conversion]
            found.append(t.memory.read(np.array([place], np.uint64), size).view(kind)[0, 0])
            place += size
        print(re.sub(r"(%\d*)l", r"\1", text) % tuple(found), end="")


def _string(t: Threads, place: int) -> str:
    data = bytearray()
    while True:
        byte = int(t.memory.read(np.array([place], np.uint64), 1)[0, 0])
        if byte == 0:
            return data.decode()
        data.append(byte)
        place += 1


def _count_bits(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    value = t.read(i.operands[1], kind)
    bits = 8 * value.dtype.itemsize
    count = {"popc": lambda x: x.bit_count(), "clz": lambda x: bits - x.bit_length()}[i.opcode[0]]
    t.write(i.operands[0], np.array([count(int(x)) for x in value], np.uint32), "u32")


def _reversed(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    value = t.read(i.operands[1], kind)
    bits = 8 * value.dtype.itemsize
    t.write(i.operands[0], np.array([int(f"{int(x):0{bits}b}"[::-1], 2) for x in value], value.dtype), kind)


def _extracted(t: Threads, i: Instruction) -> None:
    kind = kind_of(i)
    value, start, length = t.read(i.operands[1], kind), t.read(i.operands[2], "u32"), t.read(i.operands[3], "u32")
    made = [(int(v) >> int(s)) & ((1 << int(n)) - 1) for v, s, n in zip(value, start, length, strict=True)]
    if kind[0] == "s":
        made = [m - (1 << int(n)) if n and m >> (int(n) - 1) else m for m, n in zip(made, length, strict=True)]
    t.write(i.operands[0], np.array(made, DTYPES[kind]), kind)


def _inserted(t: Threads, i: Instruction) -> None:
    part, whole, start, length = (t.read(operand, "u32").astype(np.uint64) for operand in i.operands[1:5])
    mask = ((np.uint64(1) << length) - np.uint64(1)) << start
    t.write(i.operands[0], (whole & ~mask | part << start & mask).astype(np.uint32), "u32")


def _permuted(t: Threads, i: Instruction) -> None:
    a, b, selector = (t.read_any(operand) for operand in i.operands[1:4])
    pair = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    made = np.zeros(t.count, np.uint32)
    for place in range(4):
        which = selector >> np.uint32(4 * place) & np.uint32(0xF)
        byte = (pair >> (np.uint64(8) * (which & np.uint32(7)).astype(np.uint64)) & np.uint64(0xFF)).astype(np.uint32)
        byte = np.where(which & np.uint32(8), np.where(byte & np.uint32(0x80), 0xFF, 0), byte).astype(np.uint32)
        made |= byte << np.uint32(8 * place)
    t.write(i.operands[0], made, "u32")


def _funnel(t: Threads, i: Instruction) -> None:
    low, high, count = (t.read(operand, "u32") for operand in i.operands[1:4])
    pair = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    by = (np.minimum(count, 32) if "clamp" in i.opcode else count & 31).astype(np.uint64)
    made = pair << by >> np.uint64(32) if "l" in i.opcode else pair >> by
    t.write(i.operands[0], made.astype(np.uint32), "u32")


def _absolute(x: Array) -> Array:
    return np.abs(x)


RULES: dict[str, Rule] = {
    "add": _plain(np.add), "sub": _plain(np.subtract), "mul": _multiply, "mad": _multiply, "fma": _fused,
    "neg": _plain(np.negative), "abs": _plain(_absolute), "min": _extremum(np.fmin, np.minimum),
    "max": _extremum(np.fmax, np.maximum), "div": _divide, "rem": _divide, "sqrt": _plain(np.sqrt),
    "rsqrt": _plain(lambda x: 1 / np.sqrt(x)), "rcp": _plain(lambda x: 1 / x), "ex2": _plain(np.exp2),
    "copysign": _plain(lambda sign, x: np.copysign(x, sign)),
    "and": _plain(np.bitwise_and), "or": _plain(np.bitwise_or), "xor": _plain(np.bitwise_xor),
    "not": _plain(np.invert), "shl": _shift, "shr": _shift, "setp": _compare, "selp": _select, "mov": _move,
    "cvt": _convert, "cvta": _move, "ld": _load, "st": _store, "atom": _atomic, "red": _reduce, "cp": _copy,
    "popc": _count_bits, "clz": _count_bits, "brev": _reversed, "bfe": _extracted, "bfi": _inserted,
    "prmt": _permuted, "shf": _funnel, "mbarrier": tensor_copies.barrier,
    "fence": lambda t, i: None, "membar": lambda t, i: None, "prefetch": lambda t, i: None,
}  # fmt: skip
