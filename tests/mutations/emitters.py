"""Mistakes planted in the front end, the language, analyses, passes for registers, emitters and the run time."""

from __future__ import annotations

from mutations.mutation import Mutation

CPU = "targets/cpu/test_emit_elementwise.py"
PROGRAMS = "targets/cpu/test_emit_programs.py"
REDUCTIONS = "language/test_neutral_elements.py::test_machine_code"
XE = "targets/xe/test_lowering.py targets/xe/test_moves.py"

LANGUAGE = [
    Mutation(
        "frontend/flow.py",
        'return f"<running {bodies.count(Body.LOOP)}>"',
        'return "<running>"',
        "the break of a loop is lost by a loop in it",
        "frontend/test_loops.py -kbreak",
    ),
    Mutation(
        "frontend/loops.py",
        "return _Bounds(end, start, stride, lambda count: start - (count - end))",
        "return _Bounds(end, start, stride, lambda count: count)",
        "a range that runs down is visited from below",
        "frontend/test_loops.py",
    ),
    Mutation(
        "language/semantic.py",
        "return unsigned if unsigned.bits >= signed.bits else signed",
        "return unsigned if unsigned.bits > signed.bits else signed",
        "of two integers of one width the signed one wins",
        "language/test_promotion.py",
    ),
    Mutation(
        "language/casting.py",
        "return _emit(arith.ExtSI if value.dtype.is_int_signed() else arith.ExtUI, value, target)",
        "return _emit(arith.ExtSI, value, target)",
        "unsigned integers are widened as signed ones",
        "language/test_casting.py",
    ),
    Mutation(
        "language/scans.py",
        "            reverse=True if reverse else None,\n",
        "",
        "a reverse scan runs forward",
        "language/test_reductions.py",
    ),
    Mutation(
        "language/sorting.py",
        "takes_smaller = along(invert(takes_smaller) if descending else takes_smaller,",
        "takes_smaller = along(takes_smaller,",
        "descending order is ascending",
        "language/test_shapes.py language/test_reductions.py language/test_kernels.py",
    ),
    Mutation(
        "dialects/arith_folding.py",
        "arith.ShRSI: lambda a, b, type: a >> b,",
        "arith.ShRSI: lambda a, b, type: unsigned(a, type) >> b,",
        "a constant shifted right loses its sign",
        "filecheck/ir/folding.mlir",
    ),
    Mutation(
        "dialects/arith_folding.py",
        "return quotient if (a < 0) == (b < 0) else -quotient",
        "return quotient",
        "the quotient of constants of different signs is positive",
        "filecheck/ir/folding.mlir",
    ),
    Mutation(
        "targets/simt/shared.py",
        "part = _rounded(max(own.values(), default=0), _WIDEST)",
        "part = _WIDEST",
        "warps gather from memory that others write",
        "targets/nvidia/test_emulated.py -kshapes",
    ),
]

ANALYSES = [
    Mutation(
        "analysis/aliasing.py",
        "    return a is b or _may_be_same_array(load, write)",
        "    return a is b",
        "two parameters are never one array",
        "passes/intrinsic/test_tile_loops.py -kone_array",
    ),
    Mutation(
        "analysis/aliasing.py",
        "return Offsets(tuple(added), None if is_parameter else pointer)",
        "return Offsets(tuple(added), None)",
        "a pointer that a loop moves points where the parameter does",
        "passes/intrinsic/test_tile_loops.py -kpointers_that",
    ),
    Mutation(
        "analysis/axis_info.py",
        "            self._join_results(op, [op.inits, block.terminator.operands])",
        "            self._join_results(op, [op.inits])",
        "what a loop gives is as regular as what it starts from",
        "analysis/test_axis_info.py",
    ),
    Mutation(
        "analysis/axis_info.py",
        "info = AxisInfo((1,), gcds(lower.divisibility, step.divisibility), (1,))",
        "info = AxisInfo((1,), step.divisibility, (1,))",
        "a counter is a multiple of its step, wherever it starts",
        "analysis/test_axis_info.py",
    ),
    Mutation(
        "layouts/conversions.py",
        "    if not own(2):\n        return Means.SHARED\n",
        "",
        "elements of other warps are looked for in the own one",
        "layouts/test_conversions.py",
    ),
]

REGISTERS = [
    Mutation(
        "passes/intrinsic/split_registers/dots.py",
        "operand_of(s, op.b, (*outer, step, column), (*batch, k, n), full_b)",
        "operand_of(s, op.b, (*outer, 0, column), (*batch, k, n), full_b)",
        "every step of a dot multiplies the first rows",
        "passes/intrinsic/test_split_registers.py",
    ),
    Mutation(
        "passes/intrinsic/split_registers/rules.py",
        "for first in range(0, source.shape[op.axis], span)]",
        "for first in range(0, span, span)]",
        "only the first piece is reduced",
        "passes/intrinsic/test_split_registers.py",
    ),
    Mutation(
        "passes/intrinsic/schedule_loads.py",
        "                self._place_with_users(load)\n        if op.terminator:",
        "                pass\n        if op.terminator:",
        "loads move down over stores",
        "passes/intrinsic/test_schedule_loads.py filecheck/schedule-loads.mlir",
    ),
    Mutation(
        "passes/intrinsic/guard_block_io.py",
        "self.block(regions[1].block, held, broken.union(checked))",
        "self.block(regions[1].block, held.union(checked), broken)",
        "block accesses where the hardware does not take the matrix",
        "filecheck/guard-block-io.mlir",
    ),
    Mutation(
        "passes/intrinsic/allocate_addresses.py",
        "stays[-2] != stays[-1]",
        "stays[-2] == stays[-1]",
        "what does not move takes the addresses",
        "filecheck/allocate-addresses.mlir",
    ),
]

EMITTERS = [
    Mutation(
        "targets/llvm/emit/casts.py",
        'arith.FPToUI: to_integer("fptoui")',
        'arith.FPToUI: to_integer("fptosi")',
        "floats from 2**31 on are not converted to u32",
        f"{CPU} -kfloat_to_integer",
    ),
    Mutation(
        "targets/llvm/emit/casts.py",
        'arith.UIToFP: from_integer("uitofp")',
        'arith.UIToFP: from_integer("sitofp")',
        "large unsigned integers become negative floats",
        f"{CPU} -kinteger_to_float",
    ),
    Mutation(
        "targets/llvm/emit/arith.py",
        '"sge" if up else "slt"',
        '"slt" if up else "sge"',
        "rounding up and down are exchanged",
        f"{CPU} -kdivision",
    ),
    Mutation(
        "targets/llvm/emit/arith.py",
        'f.mul(f.cast("zext", lhs, wide), f.cast("zext", rhs, wide))',
        'f.mul(f.cast("sext", lhs, wide), f.cast("sext", rhs, wide))',
        "the high half of an unsigned product is that of a signed one",
        f"{CPU} -kinteger_operations",
    ),
    Mutation(
        "targets/llvm/emit/arith.py",
        'arith.ShRSI: binary("ashr")',
        'arith.ShRSI: binary("lshr")',
        "a negative number shifted right is positive",
        f"{CPU} -kshifts",
    ),
    Mutation(
        "targets/llvm/emit/floats.py",
        'arith.MaxNumF: extremum("ogt", propagate=False)',
        'arith.MaxNumF: extremum("ogt", propagate=True)',
        "a NaN wins where the number should",
        f"{CPU} -kfloat_operations",
    ),
    Mutation(
        "targets/llvm/emit/control.py",
        'lower, upper, step = (f.cast("sext", e.get(bound), I64)',
        'lower, upper, step = (f.cast("zext", e.get(bound), I64)',
        "a loop from a negative number does not run",
        "passes/intrinsic/test_tile_loops.py -kbelow_zero",
    ),
    Mutation(
        "targets/cpu/llvm/emit/reduce.py",
        "first_without = e.function.sub(constant(I32, lanes - distance), none)",
        "first_without = e.function.sub(constant(I32, lanes - 1), none)",
        "the last lanes of a reverse scan are combined twice",
        "passes/intrinsic/test_tile_loops.py -kscan",
    ),
    Mutation(
        "targets/cpu/llvm/emit/chunk_accesses.py",
        "return constant(type_, 0) if other is None else to_memory(e, e.get(other))",
        "return constant(type_, 0)",
        "masked elements are 0, not what the program says",
        f"{PROGRAMS} -kmasked_chunks",
    ),
    Mutation(
        "targets/cpu/llvm/emit/tile.py",
        "has_rest = k.literal is None or int(k.literal) % UNROLL != 0",
        "has_rest = False",
        "the last steps of a dot are left out",
        f"{PROGRAMS} -kdots",
    ),
    Mutation(
        "targets/cpu/llvm/emit/kernel.py",
        "return [f.select(past_x, zero, x), f.select(past_y, zero, y), z]",
        "return [f.select(past_x, zero, x), y, z]",
        "the second dimension of a grid is never started again",
        f"{PROGRAMS} -kcoordinates",
    ),
    Mutation(
        "targets/simt/elements.py",
        '_BELOW = frozenset(("slt", "ult", "sge", "uge"))',
        '_BELOW = frozenset(("slt", "ult", "sge", "uge", "sle"))',
        "neighbours that `<=` tells apart are compared once",
        "targets/xe/test_kernels.py -kmasked",
        needs="dpctl",
    ),
    Mutation(
        "targets/simt/reduce.py",
        "    for bit in reversed(bits):\n        step = 1 << bit\n",
        "    for bit in reversed(bits[1:]):\n        step = 1 << bit\n",
        "half of the registers are left out of a reduction",
        "targets/xe/test_kernels.py -kboth_axes",
        needs="dpctl",
    ),
    Mutation(
        "dialects/tt/shapes.py",
        "tuple(at[self.order.index(dim)] for dim in range(len(at)))",
        "tuple(at[dim] for dim in self.order)",
        "a permutation is taken for its inverse",
        "targets/xe/test_kernels.py -kpermut",
        needs="dpctl",
    ),
    Mutation(
        "targets/simt/constant_offsets.py",
        "return self._sum(x.root, x.constant - y.constant, a.type)",
        "return self._sum(x.root, x.constant + y.constant, a.type)",
        "a constant is added that should be taken away",
        "targets/xe/test_constant_offsets.py",
    ),
]
