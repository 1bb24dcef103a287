// RUN: mltriton opt %s -p "distribute-to-warps" | filecheck %s
// What only lanes of one warp want of each other goes through shared memory without a barrier, where each warp has a
// part of its own; where several have the same one, they wait for each other.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 8], repCluster = [8, 2]}>
#rows = #ttg.linear<{register = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], warp = [[128, 0], [256, 0], [512, 0]], block = []}>
module attributes {mltriton.level = "ttg", "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90"} {
// CHECK-LABEL: @apart
// CHECK: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NOT: gpu.barrier
// CHECK: ttg.local_load
// CHECK-LABEL: @together
tt.func public @apart() {
  %x = arith.constant dense<1.0> : tensor<1024x16xf16, #mma>
  %y = ttg.convert_layout %x : tensor<1024x16xf16, #mma> -> tensor<1024x16xf16, #rows>
  tt.return
}

// CHECK: gpu.barrier
// CHECK: ttg.local_store
// CHECK-NEXT: gpu.barrier
// CHECK: ttg.local_load
tt.func public @together() {
  %x = arith.constant dense<1.0> : tensor<128x16xf16, #mma>
  %y = ttg.convert_layout %x : tensor<128x16xf16, #mma> -> tensor<128x16xf16, #rows>
  tt.return
}
}
