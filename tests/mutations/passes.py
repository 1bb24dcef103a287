"""Mistakes planted in passes, from the front end's `tt` to the intrinsic level of memory targets."""

from __future__ import annotations

from mutations.mutation import Mutation

ALTERNATIVES = "passes/intrinsic/test_alternatives.py"
LOOPS = "passes/intrinsic/test_tile_loops.py"
MASKS = "passes/intrinsic/test_mask_ends.py"
NEUTRAL = "language/test_neutral_elements.py::test_machine_code"
LEVELS = "passes/warp/test_levels.py"

TT = [
    Mutation(
        "passes/any/canonicalize.py",
        "return _reassociated(op, lambda a, b: a + b)",
        "return _reassociated(op, lambda a, b: a - b)",
        "(x + a) + b becomes x + (a - b)",
        "filecheck/canonicalize.mlir",
    ),
    Mutation(
        "passes/any/canonicalize.py",
        '"lt": "ge", "ge": "lt"',
        '"lt": "gt", "ge": "lt"',
        "not (a < b) becomes a > b",
        "filecheck/canonicalize.mlir passes/any/test_canonicalize.py",
    ),
    Mutation(
        "passes/any/canonicalize.py",
        'if (op.predicate == "ne") == (number == 0):',
        'if (op.predicate == "eq") == (number == 0):',
        "a widened boolean compared with 0 becomes its opposite",
        "filecheck/canonicalize.mlir passes/any/test_canonicalize.py",
    ),
    Mutation(
        "passes/any/cse.py",
        "        self.epoch += writes\n        self.regions(op)\n",
        "        self.regions(op)\n",
        "a load behind a loop that writes is taken for the one before it",
        "filecheck/cse.mlir passes/any/test_cleanup.py",
    ),
    Mutation(
        "passes/any/cse.py",
        "            if op.writes:\n                self.epoch += 1\n",
        "",
        "a load behind a store is taken for the one before it",
        "filecheck/cse.mlir passes/any/test_cleanup.py",
    ),
    Mutation(
        "passes/any/dce.py",
        "*op.before.block.terminator.operands, *op.after.block.terminator.operands)",
        "*op.before.block.terminator.operands)",
        "what a while yields is dropped",
        "filecheck/dce.mlir passes/any/test_cleanup.py",
    ),
    Mutation(
        "passes/any/licm.py",
        "if not op.terminator and is_pure(op) and not any",
        "if not op.terminator and not op.writes and not any",
        "loads leave loops that write what they read",
        "filecheck/licm.mlir passes/any/test_cleanup.py",
    ),
    Mutation(
        "passes/tt/combine.py",
        "return [builder.insert(made).result] if _can_move_down(load, builder) else None",
        "return [builder.insert(made).result]",
        "a load moves down over a store",
        "filecheck/combine.mlir passes/tt/test_combine.py",
    ),
    Mutation(
        "passes/tt/combine.py",
        "builder.emit(arith.AddI, inner.offset, op.offset)",
        "builder.emit(arith.AddI, inner.offset, inner.offset)",
        "of two offsets one is added twice",
        "passes/tt/test_combine.py",
    ),
    Mutation(
        "passes/tt/rewrite_tensor_pointers.py",
        'builder.emit(arith.CmpI, indices[dim], zero, predicate="sge")',
        'builder.emit(arith.CmpI, indices[dim], zero, predicate="sgt")',
        "the first row and column of a block pointer count as outside",
        "filecheck/rewrite-tensor-pointers.mlir passes/tt/test_block_pointers.py",
    ),
    Mutation(
        "passes/tt/split_uniform_increments.py",
        "arith.SubI if isinstance(op, arith.SubI) else arith.AddI",
        "arith.AddI",
        "a block that moves back moves on",
        "passes/tt/test_split_uniform_increments.py filecheck/split-uniform-increments.mlir",
    ),
    Mutation(
        "passes/tt/fold_transposes.py",
        "parts = [list(reversed(values)) for values in (shape, strides, offsets)]",
        "parts = [list(shape)[::-1], list(strides)[::-1], list(offsets)]",
        "a transposed block pointer keeps the order of its offsets",
        "filecheck/fold-transposes.mlir",
    ),
    Mutation(
        "passes/tt/hoist_transposes.py",
        "axis=1 - op.axis",
        "axis=op.axis",
        "a row of a transposed block stays a row",
        "filecheck/hoist-transposes.mlir",
    ),
    Mutation(
        "passes/tt/convert_dot_operands.py",
        "arith.ExtUI if unsigned else arith.ExtSI",
        "arith.ExtSI",
        "unsigned bytes are widened as signed ones",
        "filecheck/convert-dot-operands.mlir",
    ),
    Mutation(
        "passes/tt/normalize_block_pointers.py",
        "a if a is b else builder.emit(arith.Select, op.condition, a, b)",
        "a if a is b else builder.emit(arith.Select, op.condition, b, a)",
        "the other one of two block pointers is chosen",
        "filecheck/normalize-block-pointers.mlir passes/tt/test_block_pointers.py",
    ),
]

WARPS = [
    Mutation(
        "passes/ttg/layout_rules.py",
        "plan.wanted.get((op, 0)) or plan.known(list(op.sources))",
        "plan.known(list(op.sources))",
        "the result of a reduction is the slice of another parent than its source has",
        "passes/ttg/test_rearranged_blocks.py",
    ),
    Mutation(
        "passes/ttg/layout_rules.py",
        "others = tuple(dim for dim in range(len(shape)) if dim != op.axis)",
        "others = tuple(range(len(shape)))",
        "warps scan their parts of a row, each from its own start",
        "passes/ttg/test_rearranged_blocks.py",
    ),
    Mutation(
        "passes/warp/distribute_to_warps.py",
        "    if offset is None:\n        return [local]\n",
        "    if offset is None or offset:\n        return [local]\n",
        "every warp's range starts at the program's first element",
        LEVELS,
    ),
    Mutation(
        "passes/warp/distribute_to_warps.py",
        "    if parts == 1:\n        return local\n    part = d.warp.part(cut, source.shape[op.axis])",
        "    if parts >= 1:\n        return local\n    part = d.warp.part(cut, source.shape[op.axis])",
        "the parts of a reduction are not combined across warps",
        LEVELS,
    ),
    Mutation(
        "passes/warp/coordinates.py",
        "mask |= (parts not in seen) << warp",
        "mask |= 1 << warp",
        "every warp that holds a part stores it and adds to it atomically",
        f"{LEVELS} -kreductions",
    ),
    Mutation(
        "passes/warp/exchange.py",
        "        self.barrier()\n        return memory\n",
        "        return memory\n",
        "a buffer is written while another warp still reads it",
        "passes/warp/test_hinted_levels.py",
    ),
    Mutation(
        "passes/warp/lower_cross_warp.py",
        "    if _may_meet_itself(op):\n        d.barrier()\n",
        "",
        "a loop's next reduction across warps writes what the last one still reads",
        "filecheck/lower-cross-warp.mlir",
    ),
    Mutation(
        "passes/warp/merge_k_steps.py",
        "self._constant(self.factor * step)",
        "self._constant(self.factor)",
        "the steps that are left start too early",
        "passes/warp/test_merge_k_steps.py",
    ),
    Mutation(
        "passes/warp/serialize/writer.py",
        "            Builder().before(op).create(ttg.LocalStore, op.init, op.result)\n",
        "",
        "a buffer in shared memory loses its first contents",
        "filecheck/serialize-warps.mlir",
    ),
    Mutation(
        "passes/warp/split_barriers.py",
        "    Builder().before(block.terminator).create(ttig.BarrierWait, result_types=[])\n",
        "",
        "warps arrive at a barrier that nobody waits for",
        "filecheck/split-barriers.mlir",
    ),
]

MEMORY = [
    Mutation(
        "passes/intrinsic/tile_loops/combining.py",
        "return low if isinstance(ops[0], arith.MaxSI) else -1 - low",
        "return 0 if isinstance(ops[0], arith.MaxSI) else -1 - low",
        "the largest of negative numbers is 0",
        NEUTRAL,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/combining.py",
        "    arith.MinUI: -1,\n",
        "    arith.MinUI: 0,\n",
        "the smallest of unsigned numbers is 0",
        NEUTRAL,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/combining.py",
        "    arith.AndI: -1,\n",
        "    arith.AndI: 0,\n",
        "the common bits of numbers are none",
        NEUTRAL,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/mask_ends.py",
        "            yield self._if(self.e.scalar(op.source))\n",
        "            yield self._if(self.e.emitter.integer(1, I1))\n",
        "the part of a mask that is the same everywhere is dropped",
        MASKS,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/mask_ends.py",
        '    "slt": (False, 0, False),\n',
        '    "slt": (False, 1, False),\n',
        "a row goes one element too far without its mask",
        MASKS,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/mask_ends.py",
        "        if unsigned and not (low.base is None and low.const >= 0):\n",
        "        if False:\n",
        "a block that starts before its tensor is not masked there",
        MASKS,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/alternatives.py",
        "return {value: known for value, known in ours.items() if theirs.get(value) is known}",
        "return {**ours, **theirs}",
        "what an untaken branch brought to memory is read behind it",
        ALTERNATIVES,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/alternatives.py",
        "        self._before.restore(self._e)\n        yield",
        "        yield",
        "one side of a branch reads what the other brought to memory",
        ALTERNATIVES,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/evaluation.py",
        "if found is not None and found.depth <= self.emitter.level:",
        "if found is not None:",
        "a tile is read before the region that fills it",
        ALTERNATIVES,
    ),
    Mutation(
        "passes/intrinsic/tile_loops/control_flow.py",
        "if low.e.tiles.get(leaf) is tile and (other != number or coordinates != own):",
        "if low.e.tiles.get(leaf) is tile and other != number:",
        "a carried block is overwritten while other elements of it are needed",
        f"{LOOPS} -kother_elements",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/footprints.py",
        "writers[bisect_right(positions, numbers[op]) : bisect_right(positions, last)]",
        "writers[bisect_right(positions, numbers[op]) : bisect_right(positions, last - 1)]",
        "a load is repeated behind a store that spoils it",
        f"{LOOPS} -kpointers_that",
    ),
    Mutation(
        "analysis/placement.py",
        "return self.first <= other.last and other.first <= self.last",
        "return self.first < other.last and other.first < self.last",
        "parts of scratch memory overlap while both are needed",
        "analysis/test_placement.py",
    ),
    Mutation(
        "passes/intrinsic/allocate_scratch.py",
        "max(map(self._end, holders))",
        "max(map(self.numbers.__getitem__, holders))",
        "a part that every iteration reads is given away before the loop ends",
        f"{LOOPS} -kevery_iteration",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/scans.py",
        "e.emitter.integer(0 if op.reverse else lanes - 1)",
        "e.emitter.integer(lanes - 1)",
        "a reverse scan goes on from the wrong lane",
        f"{LOOPS} -kscans",
    ),
    Mutation(
        "dialects/tt/shapes.py",
        "tuple(at[self.order.index(dim)] for dim in range(len(at)))",
        "tuple(at[self.order.index(self.order.index(dim))] for dim in range(len(at)))",
        "a permutation is done twice",
        "fuzz/test_programs.py::test_levels_agree_with_the_evaluator[cpu-shapes]",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/first_sums.py",
        'clear_when(low, condition(low, "sge", bounds[0], bounds[1]), init, tile)',
        'clear_when(low, condition(low, "sgt", bounds[0], bounds[1]), init, tile)',
        "the sum of a loop without iterations is not cleared",
        "passes/intrinsic/test_first_sums.py",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/packing.py",
        "e.at(packing.value, packing.index(prefix, a.add(first, constant_index(r)), column), lanes)",
        "e.at(packing.value, packing.index(prefix, first, column), lanes)",
        "one row of a group is packed in the place of all",
        "passes/intrinsic/test_tile_loops.py -kdot",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/addressing.py",
        "product(*(sorted({0, extent - 1}) for extent in shape_of(mask.type)))",
        "product(*([0] for extent in shape_of(mask.type)))",
        "only the first corner of a mask is looked at",
        f"{LOOPS} -kend_early",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/loop_nests.py",
        "return not any(may_alias(load, store) for store in stores for load, _ in footprint.loads)",
        "return True",
        "a row is loaded before what it needs is stored",
        f"{LOOPS} -kwas_stored",
    ),
    Mutation(
        "passes/intrinsic/tile_loops/lowering.py",
        "if any(member.store is not None and may_alias(op, member.store) for member in self.nest.members):\n"
        "            return True",
        "if any(member.store is not None and may_alias(op, member.store) for member in self.nest.members):\n"
        "            return False",
        "a scalar is loaded before the block is stored that it lies in",
        f"{LOOPS} -kpointers_that",
    ),
]
