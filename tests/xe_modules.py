"""Small modules for the tests of the Xe target: every built-in function, and one kernel of each kind by hand."""

from __future__ import annotations

from mltriton.targets.llvm.types import (
    F32,
    GLOBAL_PTR,
    I8,
    I16,
    I32,
    I64,
    VOID,
    Type,
    Value,
    constant,
    poison,
    vector,
)
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin

# A block that each kind of access takes: bytes of an element, columns, rows, blocks.
BLOCKS = {
    xe.BLOCK_LOAD: (2, 16, 8, 1),
    xe.BLOCK_LOAD_VNNI: (2, 16, 16, 1),
    xe.BLOCK_LOAD_TRANSPOSE: (4, 8, 16, 1),
    xe.BLOCK_STORE: (4, 16, 8, 1),
    xe.BLOCK_PREFETCH: (2, 16, 8, 1),
}
BARRIERS = {
    xe.BARRIER: (2, 2, 0x110),
    xe.BARRIER_ARRIVE: (2, 2, 0),
    xe.BARRIER_WAIT: (2, 2, 0),
    xe.FENCE: (2, 0x108),
}


def calling(builtins: list[tuple[Builtin, dict[int, int]]]) -> str:
    """A module with one function for each built-in function: arguments are parameters but for the constants given."""
    module = Module()
    for number, (builtin, constants) in enumerate(builtins):
        types = builtin.parameter_types
        parameters = [(f"a{i}", type_) for i, type_ in enumerate(types)]
        function = module.function(f"call_{number}", builtin.result_type, parameters, linkage="")
        arguments: list[Value] = [
            constant(I32, constants[i]) if i in constants else value for i, value in enumerate(function.parameters)
        ]
        result = builtin.call(function, *arguments)
        function.ret(None if builtin.result_type == VOID else result)
    return module.text


def constants_of(builtin: Builtin) -> dict[int, int]:
    """The arguments that must be constants, by their place."""
    if "GroupNonUniform" in builtin.name:
        return {0: 3, 1: 0}
    return dict(enumerate(BLOCKS.get(builtin, BARRIERS.get(builtin, ()))))


def every_call() -> str:
    """Each function of the table, called once; products with the operands of each dtype."""
    others = [builtin for builtin in xe.every_builtin() if builtin.name != xe.DPAS]
    calls = [(builtin, constants_of(builtin)) for builtin in others]
    for product in xe.DPAS_TABLE.values():
        calls += [(product.builtin(rows), {0: product.k, 4: int(product.operands)}) for rows in xe.DPAS_ROWS]
    return calling(calls)


# Kernels.

COORDINATES = vector("i32", 2)


def kernel(name: str, parameters: list[tuple[str, Type]], warps: int = 1) -> tuple[Module, Function]:
    """A module and its kernel with 16 lanes a warp, still without instructions."""
    module = Module()
    module.name_nodes("opencl.enable.FP_CONTRACT")
    lanes, size = module.node("i32 16"), module.node(f"i32 {16 * warps}, i32 1, i32 1")
    attachments = f"!intel_reqd_sub_group_size {lanes} !reqd_work_group_size {size} "
    made = module.function(name, VOID, parameters, linkage="spir_kernel", attachments=attachments, keeps_parts=True)
    return module, made


def vadd() -> Function:
    """z[i] = x[i] + y[i] for i < n, one element a lane, 64 a program."""
    _, f = kernel("vadd", [("x", GLOBAL_PTR), ("y", GLOBAL_PTR), ("z", GLOBAL_PTR), ("n", I32)], warps=4)
    x, y, z, n = f.parameters
    group = f.cast("trunc", xe.GET_GROUP_ID.call(f, 0), I32)
    lane = f.cast("trunc", xe.GET_LOCAL_ID.call(f, 0), I32)
    i = f.add(f.mul(group, 64), lane)
    with f.when(f.icmp("slt", i, n), "inside"):
        at = f.cast("zext", i, I64)
        total = f.fadd(f.load(F32, f.gep(x, at, F32)), f.load(F32, f.gep(y, at, F32)))
        f.store(total, f.gep(z, at, F32))
    f.ret()
    return f


def place(f: Function, x: Value, y: Value) -> Value:
    """The coordinates of a block."""
    return f.insert(f.insert(poison(COORDINATES), x, 0), y, 1)


def gemm(warps: tuple[int, int] = (2, 2)) -> Function:
    """c = a @ b, f16 to f32; 32x64 elements a warp, 32 of k a step; A is m x k, B k x n, C m x n."""
    down, across = warps
    parameters = [("a", GLOBAL_PTR), ("b", GLOBAL_PTR), ("c", GLOBAL_PTR), ("m", I32), ("n", I32), ("k", I32)]
    _, f = kernel("gemm", parameters, warps=down * across)
    a, b, c, m, n, k = f.parameters
    warp = xe.GET_SUB_GROUP_ID.call(f)
    group = [f.cast("trunc", xe.GET_GROUP_ID.call(f, axis), I32) for axis in (0, 1)]
    row = f.add(f.mul(group[1], 32 * down), f.mul(f.binary("udiv", warp, across), 32))
    column = f.add(f.mul(group[0], 64 * across), f.mul(f.binary("urem", warp, across), 64))
    a_pitch, b_pitch, c_pitch = f.shl(k, 1), f.shl(n, 1), f.shl(n, 2)
    left, right = f.alloca(I16, 64), [f.alloca(I32, 32) for _ in range(2)]
    zero = constant(vector("float", 8), 0.0)
    product = xe.DPAS_TABLE["f16", "f16", "f32"]
    with f.loop(0, f.cast("zext", k, I64), 32, carried=[zero] * 16) as loop:
        step = f.cast("trunc", loop.index, I32)
        xe.BARRIER_ARRIVE.call(f, 2, 2, 0)
        xe.BLOCK_LOAD.call(f, 2, 16, 32, 2, a, a_pitch, m, a_pitch, place(f, step, row), left)
        for half, held in enumerate(right):
            at = place(f, f.add(column, 32 * half), step)
            xe.BLOCK_LOAD_VNNI.call(f, 2, 16, 32, 2, b, b_pitch, k, b_pitch, at, held)
        xe.BLOCK_PREFETCH.call(f, 2, 16, 32, 2, a, a_pitch, m, a_pitch, place(f, f.add(step, 96), row))
        sums = list(loop.carried)
        for inner in range(2):
            lefts = [f.load(vector("i16", 8), f.gep(left, 32 * inner + 8 * i, I16), align=16) for i in range(4)]
            for j in range(4):
                held = f.gep(right[j // 2], 16 * (j % 2) + 8 * inner, I32)
                b_tile = f.load(vector("i32", 8), held, align=32)
                for i in range(4):
                    sums[4 * j + i] = product.call(f, 8, lefts[i], b_tile, sums[4 * j + i])
        xe.BARRIER_WAIT.call(f, 2, 2, 0)
        loop.yield_(*sums)
    result = f.alloca(F32, 8)
    for j in range(4):
        for i in range(4):
            f.store(loop.results[4 * j + i], result, align=32)
            at = place(f, f.add(column, 16 * j), f.add(row, 8 * i))
            xe.BLOCK_STORE.call(f, 4, 16, 8, 1, result, c, c_pitch, m, c_pitch, at)
    f.ret()
    return f


def block_load(builtin: Builtin, block: tuple[int, int, int, int]) -> Function:
    """Load a block at (x, y) of a surface; `out` gets each lane's bytes one after the other, 1024 apart."""
    surface = [("base", GLOBAL_PTR), ("width", I32), ("height", I32), ("pitch", I32), ("x", I32), ("y", I32)]
    _, f = kernel("load", [*surface, ("out", GLOBAL_PTR)])
    base, width, height, pitch, x, y, out = f.parameters
    held = f.alloca(I8, 1024)
    builtin.call(f, *block, base, width, height, pitch, place(f, x, y), held)
    lane = f.cast("zext", xe.GET_SUB_GROUP_LOCAL_ID.call(f), I64)
    with f.loop(0, block[0] * block[1] * block[2] * block[3] // 16) as loop:
        f.store(f.load(I8, f.gep(held, loop.index, I8)), f.gep(out, f.add(f.mul(lane, 1024), loop.index), I8))
        loop.yield_()
    f.ret()
    return f


def block_store(block: tuple[int, int, int, int]) -> Function:
    """The other way round."""
    surface = [("base", GLOBAL_PTR), ("width", I32), ("height", I32), ("pitch", I32), ("x", I32), ("y", I32)]
    _, f = kernel("store", [*surface, ("source", GLOBAL_PTR)])
    base, width, height, pitch, x, y, source = f.parameters
    held = f.alloca(I8, 1024)
    lane = f.cast("zext", xe.GET_SUB_GROUP_LOCAL_ID.call(f), I64)
    with f.loop(0, block[0] * block[1] * block[2] * block[3] // 16) as loop:
        f.store(f.load(I8, f.gep(source, f.add(f.mul(lane, 1024), loop.index), I8)), f.gep(held, loop.index, I8))
        loop.yield_()
    xe.BLOCK_STORE.call(f, *block, held, base, width, height, pitch, place(f, x, y))
    f.ret()
    return f


def product(dtypes: tuple[str, str, str], rows: int) -> Function:
    """One matrix product: each lane's part of a, b and c lies in a row of its own."""
    made = xe.DPAS_TABLE[dtypes]
    _, a_type, b_type, c_type, _ = made.builtin(rows).parameter_types
    _, f = kernel("product", [("a", GLOBAL_PTR), ("b", GLOBAL_PTR), ("c", GLOBAL_PTR)])
    lane = f.cast("zext", xe.GET_SUB_GROUP_LOCAL_ID.call(f), I64)

    def mine(pointer: Value, type_: Type) -> Value:
        return f.gep(pointer, f.mul(lane, type_.lanes), type_.scalar)

    at = [mine(pointer, type_) for pointer, type_ in zip(f.parameters, (a_type, b_type, c_type), strict=True)]
    a, b, c = (f.load(type_, pointer, align=2) for type_, pointer in zip((a_type, b_type, c_type), at, strict=True))
    f.store(made.call(f, rows, a, b, c), at[2], align=2)
    f.ret()
    return f


def lanes() -> Function:
    """A predicated copy: out[l] = source[l] where l < n and 7 elsewhere; then, where l >= n, out[16 + l] = l."""
    _, f = kernel("lanes", [("source", GLOBAL_PTR), ("out", GLOBAL_PTR), ("n", I32)])
    source, out, n = f.parameters
    number = xe.GET_SUB_GROUP_LOCAL_ID.call(f)
    lane, inside = f.cast("zext", number, I64), f.icmp("slt", number, n)
    value = xe.PREDICATED_LOAD.of("int").call(f, f.gep(source, lane, I32), inside, 7)
    f.store(value, f.gep(out, lane, I32))
    beyond = f.gep(out, f.add(lane, 16), I32)
    xe.PREDICATED_STORE.of("int").call(f, beyond, number, f.xor(inside, 1))
    f.ret()
    return f
