// RUN: mltriton opt %s -p canonicalize | filecheck %s
// A piece of what was put together of the like pieces is one of them, and a loop that only looks at pieces carries them.

// CHECK-LABEL: @pieces
// CHECK: %[[R:.*]], %[[P:.*]], %[[Q:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %n, %[[A:.*]] = %x, %[[B:.*]] = %y)
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[B]], %[[B]]
// CHECK-NEXT: %[[T:.*]] = arith.addi %[[S]], %i
// CHECK-NEXT: scf.yield %[[T]], %[[SUM]], %[[PRODUCT]]
// CHECK: %[[WHOLE:.*]] = ttig.glue %[[P]], %[[Q]]
// CHECK: tt.store %b, %[[WHOLE]]
// CHECK-NEXT: tt.store %a, %[[Q]]
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32} {
tt.func public @pieces(%a: !tt.ptr<tensor<8x16xf32>>, %b: !tt.ptr<tensor<16x16xf32>>, %c: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %a : !tt.ptr<tensor<8x16xf32>>
  %y = tt.load %a : !tt.ptr<tensor<8x16xf32>>
  %g = ttig.glue %x, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %r, %m = scf.for %i = %c0 to %n step %c1 iter_args(%k = %g, %s = %n) -> (tensor<16x16xf32>, i32) : i32 {
    %p = ttig.extract %k[0] : tensor<16x16xf32> -> tensor<8x16xf32>
    %q = ttig.extract %k[1] : tensor<16x16xf32> -> tensor<8x16xf32>
    %t = arith.addf %p, %q : tensor<8x16xf32>
    %u = arith.mulf %q, %q : tensor<8x16xf32>
    %h = ttig.glue %t, %u : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %v = arith.addi %s, %i : i32
    scf.yield %h, %v : tensor<16x16xf32>, i32
  }
  %w = ttig.extract %r[1] : tensor<16x16xf32> -> tensor<8x16xf32>
  tt.store %b, %r : !tt.ptr<tensor<16x16xf32>>
  tt.store %a, %w : !tt.ptr<tensor<8x16xf32>>
  tt.store %c, %m : !tt.ptr<i32>
  tt.return
}

// Half a piece is no piece, and a loop that looks at the whole carries the whole.
// CHECK-LABEL: @whole
// CHECK: %[[G:.*]] = ttig.glue
// CHECK: scf.for {{.*}} iter_args(%[[K:.*]] = %[[G]])
// CHECK: ttig.extract %[[K]][3]
// CHECK: arith.addf %[[K]], %[[K]]
tt.func public @whole(%a: !tt.ptr<tensor<8x16xf32>>, %b: !tt.ptr<tensor<16x16xf32>>, %c: !tt.ptr<tensor<4x16xf32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %a : !tt.ptr<tensor<8x16xf32>>
  %y = tt.load %a : !tt.ptr<tensor<8x16xf32>>
  %g = ttig.glue %x, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %g) -> (tensor<16x16xf32>) : i32 {
    %p = ttig.extract %k[3] : tensor<16x16xf32> -> tensor<4x16xf32>
    tt.store %c, %p : !tt.ptr<tensor<4x16xf32>>
    %h = arith.addf %k, %k : tensor<16x16xf32>
    scf.yield %h : tensor<16x16xf32>
  }
  tt.store %b, %r : !tt.ptr<tensor<16x16xf32>>
  tt.return
}
}
