// RUN: mltriton opt %s -p "demote-sums" | filecheck %s
// Of a sum of 256 registers a lane, which has 255, is left what shared memory holds.
#all = #ttg.linear<{register = [[32], [64], [128], [256], [512], [1024], [2048], [4096]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90"} {
// CHECK-LABEL: @sum
// CHECK: [[BUFFER:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x8192xf32
// CHECK: [[PART:%.*]] = ttg.memdesc_subview [[BUFFER]]
// CHECK: ttg.local_store %first, [[PART]]
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: [[ROW:%.*]] = tt.load
// CHECK: [[OLD:%.*]] = ttg.local_load [[PART]]
// CHECK: [[NEW:%.*]] = arith.addf [[OLD]], [[ROW]]
// CHECK: ttg.local_store [[NEW]], [[PART]]
// CHECK: }
// CHECK: [[SUM:%.*]] = ttg.local_load [[PART]]
// CHECK: tt.store %{{.*}}, [[SUM]]
tt.func public @sum(%x: !tt.ptr<f32>, %n: i32) {
  %first = arith.constant dense<0.0> : tensor<8192xf32, #all>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %at = tt.make_range {end = 8192 : i32, start = 0 : i32} : tensor<8192xi32, #all>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #all>
  %ptr = tt.addptr %base, %at : tensor<8192x!tt.ptr<f32>, #all>, tensor<8192xi32, #all>
  %sum = scf.for %i = %zero to %n step %one iter_args(%old = %first) -> (tensor<8192xf32, #all>) : i32 {
    %row = tt.load %ptr : tensor<8192x!tt.ptr<f32>, #all>
    %new = arith.addf %old, %row : tensor<8192xf32, #all>
    scf.yield %new : tensor<8192xf32, #all>
  }
  tt.store %ptr, %sum : tensor<8192x!tt.ptr<f32>, #all>
  tt.return
}
}
