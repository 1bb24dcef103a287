// RUN: mltriton opt %s -p canonicalize | filecheck %s
// Constants are computed through shapes and conversions, and a loop that runs once is its body.

// CHECK-LABEL: @shapes
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<6> : tensor<4x8xi32>
// CHECK-NEXT: %[[P:.*]] = tt.splat %p : !tt.ptr<i32> -> tensor<4x8x!tt.ptr<i32>>
// CHECK-NEXT: tt.store %[[P]], %[[C]]
// CHECK-NEXT: tt.return
tt.func @shapes(%p: !tt.ptr<i32>) {
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant dense<3> : tensor<4xi32>
  %0 = arith.trunci %c2 : i64 to i32
  %1 = tt.splat %0 : i32 -> tensor<4xi32>
  %2 = arith.muli %1, %c3 : tensor<4xi32>
  %3 = tt.expand_dims %2 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %4 = tt.broadcast %3 : tensor<4x1xi32> -> tensor<4x8xi32>
  %5 = tt.splat %p : !tt.ptr<i32> -> tensor<4x8x!tt.ptr<i32>>
  tt.store %5, %4 : tensor<4x8x!tt.ptr<i32>>
  tt.return
}

// CHECK-LABEL: @once
// CHECK-NOT: scf.for
// CHECK: %[[S:.*]] = arith.addi %x, %x : i32
// CHECK-NEXT: tt.store %p, %[[S]]
tt.func @once(%p: !tt.ptr<i32>, %x: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %0 = scf.for %i = %c0 to %c4 step %c8 iter_args(%a = %x) -> (i32) : i32 {
    %1 = arith.addi %a, %x : i32
    %2 = arith.addi %1, %i : i32
    scf.yield %2 : i32
  }
  tt.store %p, %0 : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: @unchanged
// CHECK: scf.for %{{.*}} = %{{.*}} to %n step %{{.*}} : i32 {
// CHECK-NEXT: tt.store %p, %x
tt.func @unchanged(%p: !tt.ptr<i32>, %x: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (i32) : i32 {
    tt.store %p, %a : !tt.ptr<i32>
    scf.yield %a : i32
  }
  tt.return
}

// Quotients round to zero, shifts keep the sign or not, and comparisons know it.
// CHECK-LABEL: @signs
// CHECK-DAG: tt.store %p, %c-3_i32
// CHECK-DAG: tt.store %p, %c-1_i32
// CHECK-DAG: tt.store %p, %c-4_i32
// CHECK-DAG: tt.store %p, %c2147483644_i32
// CHECK-DAG: tt.store %p, %seven
tt.func @signs(%p: !tt.ptr<i32>) {
  %minus = arith.constant -7 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %quotient = arith.divsi %minus, %two : i32
  tt.store %p, %quotient : !tt.ptr<i32>
  %rest = arith.remsi %minus, %two : i32
  tt.store %p, %rest : !tt.ptr<i32>
  %half = arith.shrsi %minus, %one : i32
  tt.store %p, %half : !tt.ptr<i32>
  %bits = arith.shrui %minus, %one : i32
  tt.store %p, %bits : !tt.ptr<i32>
  %seven = arith.constant 7 : i32
  %largest = arith.maxsi %minus, %seven : i32
  tt.store %p, %largest : !tt.ptr<i32>
  tt.return
}
