// RUN: mltriton opt %s -p split-barriers | filecheck %s
// RUN: mltriton opt %s -p "split-barriers{warps=32}" | filecheck %s --check-prefix MORE
// Warps arrive at the start of an iteration of a matrix product and wait for each other at its end; a loop in which
// they meet anyway stays as it is, and so does a program with fewer warps than asked for.

// CHECK-LABEL: @product
// CHECK: scf.for
// CHECK-NEXT: ttig.barrier_arrive
// CHECK-NEXT: tt.dot
// CHECK-NEXT: ttig.barrier_wait
// CHECK-NEXT: scf.yield
// CHECK-LABEL: @meets
// CHECK-NOT: ttig.barrier
// MORE-NOT: ttig.barrier
#c = #ttg.blocked<{sizePerWarp = [8, 16], warpsPerCTA = [4, 4], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #c}>
#b = #ttg.dot_op<{opIdx = 1, parent = #c}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 16 : i32, ttg.target = "generic"} {
tt.func public @product(%a: tensor<8x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<8x16xf32, #c>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<8x16xf32, #c>) : i32 {
    %d = tt.dot %a, %b, %acc : tensor<8x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<8x16xf32, #c>
    scf.yield %d : tensor<8x16xf32, #c>
  }
  tt.return
}
tt.func public @meets(%a: tensor<8x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<8x16xf32, #c>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<8x16xf32, #c>) : i32 {
    gpu.barrier
    %d = tt.dot %a, %b, %acc : tensor<8x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<8x16xf32, #c>
    scf.yield %d : tensor<8x16xf32, #c>
  }
  tt.return
}
}
