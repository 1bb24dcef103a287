"""Blocks in memory: a warp's program as loops over chunks, scratch tiles and dot micro-kernels.

Level: warp to intrinsic, for targets whose `storage` is MEMORY and that run a program as one warp. `lower` takes a
function whose blocks are tensors of any size, with the loop nests of `form-nests` and what `pack-operands` packs, and
gives one with scalars, chunks and the rest of the `tile` dialect (docs/cpu.md, "Tile loops"). Files, in the order of a
first reading: `operations` says what becomes of each operation; `members` and `loop_nests` what shares
loops, which `nest_regions` reads from the program; `lowering` walks it; `evaluation`, `forms`, `accesses` and
`indexing` compute a chunk; `emitter` puts operations where they belong; `footprints` says what may run together;
`tiles` is scratch memory, `shared` what stands there for shared memory; `control_flow` and `slots`, `dots`,
`addressing` and `packing`, `combining` and `scans` are what their names say.
"""

from mltriton.passes.intrinsic.tile_loops.function import lower

__all__ = ["lower"]
