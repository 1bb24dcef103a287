"""Every pass by its name, imported when it is asked for.

Level: all. Adding a pass is adding a line: its name and `module:Class`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from mltriton.errors import OptionError, did_you_mean
from mltriton.ir.module import Module, level_of
from mltriton.ir.passes import Pass

PASSES: dict[str, str] = {
    "canonicalize": "mltriton.passes.any.canonicalize:Canonicalize",
    "cse": "mltriton.passes.any.cse:CommonSubexpressions",
    "dce": "mltriton.passes.any.dce:DeadCode",
    "licm": "mltriton.passes.any.licm:LoopInvariants",
    "flush-powers": "mltriton.passes.tt.flush_powers:FlushPowers",
    "scale-powers": "mltriton.passes.tt.scale_powers:ScalePowers",
    "shorten-powers": "mltriton.passes.tt.shorten_powers:ShortenPowers",
    "fuse-exponents": "mltriton.passes.tt.fuse_exponents:FuseExponents",
    "fuse-multiply-add": "mltriton.passes.any.fuse_multiply_add:FuseMultiplyAdd",
    "pair-products": "mltriton.passes.any.pair_products:PairProducts",
    "inline": "mltriton.passes.tt.inline:Inline",
    "combine": "mltriton.passes.tt.combine:Combine",
    "reorder-broadcast": "mltriton.passes.tt.reorder_broadcast:ReorderBroadcast",
    "convert-dot-operands": "mltriton.passes.tt.convert_dot_operands:ConvertDotOperands",
    "take-turns": "mltriton.passes.tt.take_turns:TakeTurns",
    "hoist-transposes": "mltriton.passes.tt.hoist_transposes:HoistTransposes",
    "turn-products": "mltriton.passes.tt.turn_products:TurnProducts",
    "fold-transposes": "mltriton.passes.tt.fold_transposes:FoldTransposes",
    "split-uniform-increments": "mltriton.passes.tt.split_uniform_increments:SplitUniformIncrements",
    "raise-block-pointers": "mltriton.passes.tt.raise_block_pointers:RaiseBlockPointers",
    "fold-batches": "mltriton.passes.tt.fold_batches:FoldBatches",
    "hoist-descriptors": "mltriton.passes.tt.hoist_descriptors:HoistDescriptors",
    "copy-blocks": "mltriton.passes.ttg.copy_blocks:CopyBlocks",
    "normalize-block-pointers": "mltriton.passes.tt.normalize_block_pointers:NormalizeBlockPointers",
    "rewrite-tensor-pointers": "mltriton.passes.tt.rewrite_tensor_pointers:RewriteTensorPointers",
    "rewrite-descriptor-reduces": "mltriton.passes.tt.rewrite_descriptor_reduces:RewriteDescriptorReduces",
    "merge-k-steps": "mltriton.passes.warp.merge_k_steps:MergeKSteps",
    "check-accesses": "mltriton.passes.tt.check_accesses:CheckAccesses",
    "check-warp-level": "mltriton.passes.tt.check_warp_level:CheckWarpLevel",
    "assign-layouts": "mltriton.passes.ttg.assign_layouts:AssignLayouts",
    "assign-lanes": "mltriton.passes.ttg.assign_lanes:AssignLanes",
    "verify-encodings": "mltriton.passes.ttg.verify_encodings:VerifyEncodings",
    "specialize-warps": "mltriton.passes.ttg.specialize_warps:SpecializeWarps",
    "keep-slots": "mltriton.passes.ttg.keep_slots:KeepSlots",
    "pipeline-loads": "mltriton.passes.ttg.pipeline_loads:PipelineLoads",
    "turn-in-shared-memory": "mltriton.passes.ttg.turn_in_shared_memory:TurnInSharedMemory",
    "delay-dots": "mltriton.passes.ttg.delay_dots:DelayDots",
    "delay-slots": "mltriton.passes.ttg.delay_slots:DelaySlots",
    "start-dots": "mltriton.passes.ttg.start_dots:StartDots",
    "release-slots": "mltriton.passes.ttg.release_slots:ReleaseSlots",
    "fence-shared-memory": "mltriton.passes.warp.fence_shared_memory:FenceSharedMemory",
    "keep-loads": "mltriton.passes.ttg.keep_loads:KeepLoads",
    "load-ahead": "mltriton.passes.ttg.load_ahead:LoadAhead",
    "merge-reductions": "mltriton.passes.ttg.merge_reductions:MergeReductions",
    "prefetch": "mltriton.passes.ttg.prefetch:Prefetch",
    "store-by-warps": "mltriton.passes.warp.store_by_warps:StoreByWarps",
    "delay-lane-sums": "mltriton.passes.warp.delay_lane_sums:DelayLaneSums",
    "split-barriers": "mltriton.passes.warp.split_barriers:SplitBarriers",
    "form-nests": "mltriton.passes.intrinsic.form_nests:FormNests",
    "pack-operands": "mltriton.passes.intrinsic.pack_operands:PackOperands",
    "match-target-size": "mltriton.passes.intrinsic.match_target_size:MatchTargetSize",
    "split-wrapped-accesses": "mltriton.passes.intrinsic.split_wrapped_accesses:SplitWrappedAccesses",
    "prefetch-next-rows": "mltriton.passes.intrinsic.prefetch_next_rows:PrefetchNextRows",
    "demote-sums": "mltriton.passes.intrinsic.demote_sums:DemoteSums",
    "schedule-loads": "mltriton.passes.intrinsic.schedule_loads:ScheduleLoads",
    "hoist-block-offsets": "mltriton.passes.intrinsic.hoist_block_offsets:HoistBlockOffsets",
    "allocate-addresses": "mltriton.passes.intrinsic.allocate_addresses:AllocateAddresses",
    "guard-block-io": "mltriton.passes.intrinsic.guard_block_io:GuardBlockIO",
    "alternate-buffers": "mltriton.passes.intrinsic.alternate_buffers:AlternateBuffers",
    "allocate-shared-memory": "mltriton.passes.intrinsic.allocate_shared_memory:AllocateSharedMemory",
    "allocate-scratch": "mltriton.passes.intrinsic.allocate_scratch:AllocateScratch",
    "check-registers": "mltriton.passes.intrinsic.check_registers:CheckRegisters",
    "choose-registers": "mltriton.passes.intrinsic.choose_registers:ChooseRegisters",
    "lower-cross-warp": "mltriton.passes.warp.lower_cross_warp:LowerCrossWarp",
    "distribute-to-warps": "mltriton.passes.warp.distribute_to_warps:DistributeToWarps",
    "serialize-warps": "mltriton.passes.warp.serialize_warps:SerializeWarps",
}

# A pass takes programs of the level that its folder names (`any`: of all), but these: most lead to that level.
TAKES: dict[str, tuple[str, ...]] = {
    "convert-dot-operands": ("tt", "warp"),
    "merge-k-steps": ("tt", "warp"),
    "assign-layouts": ("tt",),
    "assign-lanes": ("ttg", "warp"),
    "verify-encodings": ("any",),
    "distribute-to-warps": ("ttg",),
    "form-nests": ("warp",),
    "pack-operands": ("warp",),
    "match-target-size": ("warp",),
}
LEADS_TO = ("assign-layouts", "distribute-to-warps", "match-target-size")

# Passes that leave every program as it is that has none of these operations and attributes: they are not even loaded.
WARP_LEVEL = "mltriton.warp_level"
CONCERNS: dict[str, frozenset[str]] = {
    "check-warp-level": frozenset({WARP_LEVEL}),
    "lower-cross-warp": frozenset({WARP_LEVEL}),
    "serialize-warps": frozenset({WARP_LEVEL}),
    "rewrite-descriptor-reduces": frozenset({"tt.descriptor_reduce"}),
    "merge-k-steps": frozenset({"tt.dot"}),
    "convert-dot-operands": frozenset({"tt.dot", "tt.reduce"}),  # sums of products become products
    "flush-powers": frozenset({"math.exp", "math.exp2"}),
    "scale-powers": frozenset({"math.exp"}),
    "shorten-powers": frozenset({"math.exp2"}),
    "fuse-exponents": frozenset({"math.exp2"}),
    "fuse-multiply-add": frozenset({"arith.mulf"}),
    "pair-products": frozenset({"tt.mulhiui"}),
    "specialize-warps": frozenset({"ttng.tensor_map"}),
    "turn-in-shared-memory": frozenset({"tt.trans"}),
    "turn-products": frozenset({"tt.dot"}),
    "pack-operands": frozenset({"tt.dot"}),
    "delay-dots": frozenset({"tt.dot"}),
    "start-dots": frozenset({"tt.dot"}),
    "store-by-warps": frozenset({"ttng.tensor_map"}),
    "delay-slots": frozenset({"ttng.tensor_map"}),
    "release-slots": frozenset({"ttng.tensor_map"}),
    "fence-shared-memory": frozenset({"ttng.warp_group_dot"}),
    "alternate-buffers": frozenset({"ttng.warp_group_dot"}),
    "split-uniform-increments": frozenset({"scf.for", "scf.while"}),
    "keep-loads": frozenset({"scf.for"}),
    "load-ahead": frozenset({"scf.for"}),
    "merge-reductions": frozenset({"tt.reduce"}),
    "prefetch-next-rows": frozenset({"tt.reduce"}),
    "demote-sums": frozenset({"scf.for"}),
    "check-registers": frozenset({"tt.dot", "ttng.warp_group_dot"}),
    "delay-lane-sums": frozenset({"tt.reduce"}),
    "hoist-block-offsets": frozenset({"scf.for"}),
    "allocate-addresses": frozenset({"scf.for"}),
    "licm": frozenset({"scf.for", "scf.while", WARP_LEVEL}),  # warps become loops
}


def concerned(module: Module) -> Callable[[str], bool]:
    """Whether a pass may change this program, or what other passes of its level make of it."""
    found = {*module.attributes, *(op.name for op in module.walk())}
    return lambda name: name not in CONCERNS or not found.isdisjoint(CONCERNS[name])


def levels_taken(name: str) -> tuple[str, ...]:
    """The levels whose programs a pass takes; `any` where it takes them all, and of passes of other packages."""
    package, _, place = PASSES[name].partition(".passes.")
    return TAKES.get(name) or (place.partition(".")[0] if package == "mltriton" else "any",)


def check_level(name: str, module: Module) -> None:
    """Raise `OptionError` where a pass does not take programs of this one's level."""
    taken, level = levels_taken(name) if name in PASSES else ("any",), level_of(module)
    if "any" not in taken and level not in taken:
        raise OptionError(
            f"{name} takes no program at level {level}",
            expected=" or ".join(f"level {one}" for one in taken),
            found=f"level {level}",
            hint="The module's attribute mltriton.level says its level, tt without it. "
            f"Passes that lead to the next: {', '.join(LEADS_TO)}.",
        )


def find_pass(name: str) -> type[Pass]:
    """The class of a pass. Raises `OptionError` for an unknown name."""
    if name not in PASSES:
        hint = did_you_mean(name, PASSES) or f"Passes: {', '.join(sorted(PASSES))}"
        raise OptionError(f"unknown pass {name}", hint=hint)
    module, _, cls = PASSES[name].partition(":")
    return getattr(import_module(module), cls)
