// RUN: not mltriton opt %s -p "check-warp-level" 2>&1 | filecheck %s
// A condition that is equal on all warps that exist is no divergence: id / 4 is 0 on each of 4 warps.
module attributes {mltriton.level = "tt", mltriton.warp_level = true, "ttg.num-warps" = 4 : i32, ttg.target = "generic"} {
tt.func @uniform() {
  %0 = gpu.subgroup_id : index
  %id = arith.index_cast %0 : index to i32
  %c4 = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %group = arith.divui %id, %c4 : i32
  %first = arith.cmpi eq, %group, %c0 : i32
  scf.if %first {
    gpu.barrier
  }
  tt.return
}
// CHECK: check-warp-level.mlir:24:{{[0-9]+}}: WarpDivergenceError: a barrier that not all warps of the program reach
// CHECK: The condition at {{.*}}check-warp-level.mlir:23:{{[0-9]+}} depends on the warp: tl.warp_id() at
tt.func @divergent() {
  %0 = gpu.subgroup_id : index
  %id = arith.index_cast %0 : index to i32
  %c0 = arith.constant 0 : i32
  %first = arith.cmpi eq, %id, %c0 : i32
  scf.if %first {
    gpu.barrier
  }
  tt.return
}
}
