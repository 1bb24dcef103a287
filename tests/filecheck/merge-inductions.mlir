// RUN: mltriton opt %s -p merge-inductions | filecheck %s
// Offsets that start 16 apart and grow by the same steps are carried as one, in the loop and behind it; one that grows
// by other steps, and one that starts elsewhere, are not.

// CHECK-LABEL: @pieces
// CHECK: %[[R:r]], {{.*}} = scf.for {{.*}} iter_args(%a = %n, %c = %n, %d = %m) -> (i32, i32, i32)
// CHECK: %[[INSIDE:.*]] = arith.addi %a, %c16
// CHECK: arith.addi %a, %[[INSIDE]]
// CHECK: scf.yield %a2, %c2, %d2
// CHECK: %[[BEHIND:.*]] = arith.addi %[[R]], %c16
// CHECK: tt.store %p, %[[BEHIND]]
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "xe:bmg"} {
tt.func public @pieces(%n: i32, %m: i32, %step: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %far = arith.addi %n, %c16 : i32
  %r:4 = scf.for %i = %c0 to %n step %c32 iter_args(%a = %n, %b = %far, %c = %n, %d = %m) -> (i32, i32, i32, i32) : i32 {
    %sum = arith.addi %a, %b : i32
    tt.store %p, %sum : !tt.ptr<i32>
    %a2 = arith.addi %a, %c32 : i32
    %b2 = arith.addi %b, %c32 : i32
    %c2 = arith.addi %c, %step : i32
    %d2 = arith.addi %d, %c32 : i32
    scf.yield %a2, %b2, %c2, %d2 : i32, i32, i32, i32
  }
  tt.store %p, %r#1 : !tt.ptr<i32>
  tt.return
}
}
